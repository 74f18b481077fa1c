package clienttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/wire"
)

// What becomes of the same agent with the usual trim in place of a History: before each request
// the oldest messages are dropped until the rest seems to fit.
func TestNaive(t *testing.T) {
	page, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	const claude, bedrock, gemini = "claude-opus-5-5", "anthropic.claude-opus-5-5-v1:0", "gemini-3.8-flash"
	for _, c := range []struct {
		row    string
		format wire.Format
		path   string
		params map[string]any
		signs  bool
	}{
		{"Anthropic", wire.Anthropic{Model: claude}, "/v1/messages", map[string]any{"model": claude, "max_tokens": 500}, true},
		{"Chat Completions", wire.OpenAIChat{}, "/v1/chat/completions", map[string]any{"model": "gpt-5.5"}, false},
		{"Responses", wire.OpenAIResponses{}, "/v1/responses", map[string]any{"model": "gpt-5.5", "store": false, "include": []string{"reasoning.encrypted_content"}}, true},
		{"generateContent", wire.Gemini{Model: gemini}, "/v1beta/models/" + gemini + ":generateContent", nil, true},
		{"Converse", wire.Converse{Model: bedrock}, "/model/" + bedrock + "/converse", nil, true},
	} {
		t.Run(c.row, func(t *testing.T) {
			asked := 0
			p := provider.New(provider.Options{Window: window, Answer: func(provider.Request) provider.Answer {
				asked++
				return answer(asked, c.signs)
			}})
			url := serve(t, p)
			h := history(t, convo.Options{TagKey: "clienttest"}) // holds the list, and compacts nothing
			if err := h.SetTools(readTool().Tool); err != nil {
				t.Fatal(err)
			}
			say := func(text string) {
				if _, err := h.Append(convo.User(text)); err != nil {
					t.Fatal(err)
				}
			}
			say(rule)
			requests, knows, refusal := 0, 0, ""
			for turn := 0; turn < 100 && refusal == ""; {
				req, err := c.format.Encode(h.Snapshot())
				if err != nil {
					t.Fatal(err)
				}
				req.Messages = trim(req.Messages)
				body, err := req.With(c.params)
				if err != nil {
					t.Fatal(err)
				}
				requests++
				if strings.Contains(string(body), "only window seats") {
					knows++
				}
				resp, err := http.Post(url+c.path, "application/json", bytes.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				data, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil {
					t.Fatal(err)
				}
				if resp.StatusCode != http.StatusOK {
					refusal = p.Refused()[0].Error
					break
				}
				in, err := c.format.Decode(data)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := h.Append(in.Messages...); err != nil {
					t.Fatal(err)
				}
				calls := in.Reply().OpenCalls()
				for _, call := range calls {
					if _, err := h.Append(convo.Result(call, result(call))); err != nil {
						t.Fatal(err)
					}
				}
				if len(calls) == 0 {
					say(fmt.Sprint("Question ", turn, "."))
					turn++
				}
			}
			row := fmt.Sprintf("| %s | %d | %d |", c.row, requests, knows)
			t.Log(row, refusal)
			if !strings.Contains(string(page), row) {
				t.Errorf("the README of clients lacks the row %s", row)
			}
		})
	}
}

// trim drops the oldest messages until the rest is three quarters of the window at most, by four
// bytes to a token.
func trim(messages []json.RawMessage) []json.RawMessage {
	size := 0
	for _, m := range messages {
		size += len(m) / 4
	}
	for len(messages) > 1 && size > window*3/4 {
		size -= len(messages[0]) / 4
		messages = messages[1:]
	}
	return messages
}
