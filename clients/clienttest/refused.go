package clienttest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest/provider"
)

// errorBodies are the errors of servers and gateways, with MESSAGE for the text.
var errorBodies = map[string]string{
	"object":       `{"object":"error","message":"MESSAGE","type":"BadRequestError","code":400}`,
	"string":       `{"error":"MESSAGE"}`,
	"detail":       `{"detail":"MESSAGE"}`,
	"details":      `{"detail":[{"type":"value_error","msg":"MESSAGE"}]}`,
	"text":         "MESSAGE\n",
	"list":         `[{"error":{"code":400,"message":"MESSAGE","status":"INVALID_ARGUMENT"}}]`,
	"null":         `{"error":null,"message":"MESSAGE"}`,
	"escapes":      `{"error":{"code":503,"message":"MESSAGE, \"please\""}}`,
	"raw":          `{"error":{"message":"Provider returned error","metadata":{"raw":"MESSAGE"}}}`,
	"msg":          `{"code":1305,"msg":"MESSAGE","success":false}`,
	"base_resp":    `{"choices":null,"base_resp":{"status_code":1039,"status_msg":"MESSAGE"}}`,
	"other fields": `{"error":{"msg":"MESSAGE"}}`,
}

// long returns a History of about 4,000 tokens.
func long(t *testing.T, window int) *convo.History {
	h := history(t, convo.Options{Limits: convo.Limits{Window: window}})
	for i := range 100 {
		if _, err := h.Append(convo.User(fmt.Sprint("Question ", i, strings.Repeat(" word", 20))), convo.Assistant("Answer.")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.Append(convo.User("The newest question.")); err != nil {
		t.Fatal(err)
	}
	return h
}

// messageOf returns the message of an error of package provider.
func messageOf(t *testing.T, body []byte) string {
	var e struct {
		Message string
		Error   struct{ Message string }
	}
	if err := json.Unmarshal(body, &e); err != nil {
		t.Error(err)
	}
	return e.Message + e.Error.Message
}

// testRefused has a server refuse requests with errors of other shapes than the provider's. An
// overflow is recognised, with its limit, and the error of any other has the status and what
// the server said.
func testRefused(t *testing.T, c Client) {
	for name, body := range errorBodies {
		t.Run("overflow "+name, func(t *testing.T) {
			p, most := provider.New(provider.Options{Window: 3_500}), 3_500
			url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				answer := httptest.NewRecorder()
				p.ServeHTTP(answer, r)
				said := answer.Body.String()
				if answer.Code == http.StatusBadRequest {
					message := messageOf(t, answer.Body.Bytes())
					if said = strings.ReplaceAll(body, "MESSAGE", message); !strings.Contains(message, "3500") {
						most = 6_000 // the message has no limit
					}
				}
				w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
				w.WriteHeader(answer.Code)
				_, _ = io.WriteString(w, said) // the client may be gone
			}))
			h := long(t, 6_000)
			reply, err := h.Do(t.Context(), c.New(url, nil, "").Send)
			if err != nil || reply.Text() != "ok" || len(p.Refused()) != 1 || h.Status().Limit > most {
				t.Errorf("%v, %v after %d refused requests, and the limit is %d, want the answer after one, and the limit of the error", reply, err, len(p.Refused()), h.Status().Limit)
			}
		})
		t.Run("busy "+name, func(t *testing.T) {
			h := history(t, convo.Options{})
			if _, err := h.Append(convo.User("q")); err != nil {
				t.Fatal(err)
			}
			asked := 0
			url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked++
				w.Header().Set("Retry-After-Ms", "1")
				w.WriteHeader(http.StatusServiceUnavailable)
				_, _ = io.WriteString(w, strings.ReplaceAll(body, "MESSAGE", fmt.Sprint("no room ", asked))) // the client may be gone
			}))
			sender := c.New(url, nil, "")
			if c.Retrying != nil {
				sender = c.Retrying(url)
			}
			_, err := h.Do(t.Context(), sender.Send)
			if err == nil || asked > 1 && strings.Contains(err.Error(), "no room 1") || strings.Count(err.Error(), fmt.Sprint("no room ", asked)) != 1 || !strings.Contains(err.Error(), "503") || convo.IsOverflow(err) {
				t.Errorf("%d requests, and the error is %v, want one with the status and what the server said last", asked, err)
			}
		})
	}
}
