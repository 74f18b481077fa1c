// Command clients makes streamed requests for bench with SDKs of providers, alone and through the
// clients of convo.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/bench/peer"
)

func main() {
	peer.Main(library)
	_ = os.RemoveAll(dir) // it is in a temporary directory
}

var library = peer.Peer{
	Modules: []string{"github.com/anthropics/anthropic-sdk-go/v2", "github.com/openai/openai-go/v3", "google.golang.org/genai", "github.com/aws/aws-sdk-go-v2/service/bedrockruntime", "github.com/sashabaranov/go-openai"},
	Cells: []peer.Cell{ // pairs: an SDK, and the client of convo for it
		{Table: peer.TableStream, Name: "anthropic-sdk-go", New: func(n int) peer.Case { return sdk(n, anthropicSDK) }},
		{Table: peer.TableStream, Name: "convoanthropic", New: func(n int) peer.Case { return ours(n, anthropicSend) }},
		{Table: peer.TableStream, Name: "openai-go, Chat", New: func(n int) peer.Case { return sdk(n, chatSDK) }},
		{Table: peer.TableStream, Name: "convoopenai, Chat", New: func(n int) peer.Case { return ours(n, chatSend) }},
		{Table: peer.TableStream, Name: "openai-go, Responses", New: func(n int) peer.Case { return sdk(n, responsesSDK) }},
		{Table: peer.TableStream, Name: "convoopenai, Responses", New: func(n int) peer.Case { return ours(n, responsesSend) }},
		{Table: peer.TableStream, Name: "genai", New: func(n int) peer.Case { return sdk(n, genaiSDK) }},
		{Table: peer.TableStream, Name: "convogenai", New: func(n int) peer.Case { return ours(n, genaiSend) }},
		{Table: peer.TableStream, Name: "bedrockruntime, ConverseStream", New: func(n int) peer.Case { return sdk(n, bedrockSDK) }},
		{Table: peer.TableStream, Name: "convobedrock", New: func(n int) peer.Case { return ours(n, bedrockSend) }},
		{Table: peer.TableStream, Name: "go-openai", New: func(n int) peer.Case { return sdk(n, goopenaiSDK) }},
		{Table: peer.TableStream, Name: "convogoopenai", New: func(n int) peer.Case { return ours(n, goopenaiSend) }},
		{Table: peer.TableAgent, Name: "copy of what convoopenai sends", New: func(n int) peer.Case { return copies(n, chatSend) }},
		{Table: peer.TableAgent, Name: "convoopenai, Chat", New: func(n int) peer.Case { return turns(n, chatSend) }},
		{Table: peer.TableAgent, Name: "copy of what convoanthropic sends", New: func(n int) peer.Case { return copies(n, anthropicSend) }},
		{Table: peer.TableAgent, Name: "convoanthropic", New: func(n int) peer.Case { return turns(n, anthropicSend) }},
	},
	Notes: []peer.Note{
		{Table: peer.TableStream, Text: "An SDK alone is used as its documentation shows: a list of messages of its types, and its accumulator for the events of the stream, if it has one. With convo, the rows include Append, Prepare and AppendReply."},
	},
}

// deltas is the number of pieces in which an answer comes.
const deltas = 100

// most is how many requests a round makes of a conversation of n messages, so that it hardly grows.
func most(n int) int { return max(n/20, 5) }

// sdk is one request of a conversation of n messages, without convo. list returns a function that
// appends a question, makes a request, appends the answer, and returns its text.
func sdk(n int, list func(*http.Client) (add func(user bool, text string), request func(context.Context) (string, error))) peer.Case {
	return peer.Case{Max: most(n), New: func(int) (func(int) error, error) {
		add, request := list(&http.Client{Transport: canned{}})
		for i, text := range peer.Texts(n) {
			add(peer.IsUser(i), text)
		}
		ctx, next := context.Background(), peer.Next(n)
		return func(i int) error {
			add(true, next(2*i))
			text, err := request(ctx)
			if err == nil && text != answer {
				err = fmt.Errorf("the answer has %d bytes, want %d", len(text), len(answer))
			}
			add(false, text)
			return err
		}, nil
	}}
}

// ours is the same with a History and the client of convo.
func ours(n int, sender func(*http.Client) convo.Send) peer.Case {
	return peer.Case{Max: most(n), New: func(int) (func(int) error, error) {
		send := sender(&http.Client{Transport: canned{}})
		h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: 2_000_000}})
		if err != nil {
			return nil, err
		}
		for i, text := range peer.Texts(n) {
			m := convo.Assistant(text)
			if peer.IsUser(i) {
				m = convo.User(text)
			}
			if _, err := h.Append(m); err != nil {
				return nil, err
			}
		}
		ctx, next := context.Background(), peer.Next(n)
		request := func(text string) error {
			if _, err := h.Append(convo.User(text)); err != nil {
				return err
			}
			reply, err := h.Do(ctx, send)
			if err == nil && (len(reply.Messages) != 1 || reply.Messages[0].Text() != answer) {
				err = fmt.Errorf("the answer is %v", reply.Messages)
			}
			return err
		}
		if err := request(next(9_999)); err != nil { // an agent has made requests before
			return nil, err
		}
		return func(i int) error { return request(next(2 * i)) }, nil
	}}
}

// answer is the text of each answer.
var answer = func() (all string) {
	for i := range deltas {
		all += piece(i)
	}
	return all
}()

func piece(i int) string { return fmt.Sprintf("word%d and ", i) }

// canned answers each request at once, after it has read all of it.
type canned struct{}

func (canned) RoundTrip(r *http.Request) (*http.Response, error) {
	var buffer [32 << 10]byte
	for read := 0; ; {
		n, err := r.Body.Read(buffer[:])
		if read += n; err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
	}
	if err := r.Body.Close(); err != nil {
		return nil, err
	}
	kind := "text/event-stream"
	var body []byte
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/chat/completions"):
		body = chatAnswer
	case strings.HasSuffix(path, "/responses"):
		body = responsesAnswer
	case strings.HasSuffix(path, "/messages"):
		body = anthropicAnswer
	case strings.HasSuffix(path, ":streamGenerateContent"):
		body = genaiAnswer
	case strings.HasSuffix(path, "/converse-stream"):
		kind, body = "application/vnd.amazon.eventstream", bedrockAnswer
	default:
		return nil, fmt.Errorf("no answer for %s", path)
	}
	return &http.Response{StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(bytes.NewReader(body)), Request: r}, nil
}

// quoted returns a text as JSON.
func quoted(text string) string {
	data, _ := json.Marshal(text) // a string is always encoded
	return string(data)
}
