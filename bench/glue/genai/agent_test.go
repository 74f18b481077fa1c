package genai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"github.com/seed-c1b73e60/convo/bench/glue"
	"github.com/seed-c1b73e60/convo/bench/glue/gluetest"
	"github.com/seed-c1b73e60/convo/clients"
	"github.com/seed-c1b73e60/convo/wire"
)

func Test(t *testing.T) {
	provider := func() *gluetest.Provider {
		return &gluetest.Provider{Format: wire.Gemini{Model: model}, Stream: stream, TooLong: tooLong}
	}
	gluetest.Test(t, "genai, generateContent", provider, func(t *testing.T, file, url string) glue.Ask {
		client, err := genai.NewClient(t.Context(), &genai.ClientConfig{
			APIKey: "none", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: url},
		})
		require.NoError(t, err)
		through, err := genai.NewClient(t.Context(), &genai.ClientConfig{
			APIKey: "none", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: url},
			HTTPClient: &http.Client{Transport: clients.Transport(nil)},
		})
		require.NoError(t, err)
		switch file {
		case "bare.go":
			return (&bare{client: client}).Ask
		case "byhand.go":
			return newByHand(client).Ask
		case "steps.go":
			a, err := newWithSteps(client)
			require.NoError(t, err)
			return a.Ask
		case "convo.go":
			a, err := newWithDo(client)
			require.NoError(t, err)
			return a.Ask
		case "client.go":
			a, err := newWithClient(through)
			require.NoError(t, err)
			return a.Ask
		}
		t.Fatal("no such agent: " + file)
		return nil
	})
}

func TestStreams(t *testing.T) {
	gluetest.TestStreams(t, "genai, generateContent", stream, "data: {\"error\":{\"code\":503,\"message\":\"The model is overloaded.\",\"status\":\"UNAVAILABLE\"}}\n\n", readWithSDK, readWithWire,
		gluetest.Quirk{Name: "thoughts before the answer", Spoil: func(s []byte) []byte {
			thought := `data: {"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":"Where to?","thought":true}]}}]}`
			return slices.Concat([]byte(thought+"\n\n"), s)
		}},
		gluetest.Quirk{Name: "a last chunk with the usage alone", Spoil: func(s []byte) []byte {
			return append(bytes.Clone(s), `data: {"usageMetadata":{"promptTokenCount":1200,"candidatesTokenCount":34,"totalTokenCount":1234}}`+"\n\n"...)
		}})
}

func tooLong(tokens, window int) string {
	return fmt.Sprintf(`{"error":{"code":400,"message":"The input token count (%d) exceeds the maximum number of tokens allowed (%d).","status":"INVALID_ARGUMENT"}}`, tokens, window)
}

// stream writes chunks as Gemini does: text in pieces, each call whole, the
// signature on the first of them, and an empty text at the end.
func stream(w io.Writer, a gluetest.Answer) {
	chunk := func(part map[string]any, reason string) {
		candidate := map[string]any{"index": 0, "content": map[string]any{"role": "model", "parts": []any{part}}}
		if reason != "" {
			candidate["finishReason"] = reason
		}
		data, err := json.Marshal(map[string]any{
			"candidates": []any{candidate}, "modelVersion": model, "responseId": "r1",
			"usageMetadata": map[string]any{"promptTokenCount": a.Input, "candidatesTokenCount": a.Output, "totalTokenCount": a.Input + a.Output},
		})
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(w, "data: %s\n\n", data)
	}
	for _, text := range gluetest.Deltas(a.Text) {
		chunk(map[string]any{"text": text}, "")
	}
	for i, c := range a.Calls {
		part := map[string]any{"functionCall": map[string]any{"id": c.ID, "name": c.Name, "args": json.RawMessage(c.Arguments)}}
		if i == 0 {
			part["thoughtSignature"] = "c2lnbmF0dXJl"
		}
		chunk(part, "")
	}
	chunk(map[string]any{"text": ""}, "STOP")
}
