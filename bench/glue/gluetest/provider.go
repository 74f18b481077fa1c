// Package gluetest has a conversation with each agent of the modules in glue, and
// is the provider that they talk to.
package gluetest

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/bench/glue"
	"github.com/seed-c1b73e60/convo/wire"
)

// A Provider is a fake of a provider's streaming API. It counts a token for each
// four bytes of a request, and refuses what is above [glue.Window]. To a question it
// answers with a call of each tool, and to their results with text.
//
// It refuses the question number Odd once whatever its size, as a gateway does
// that falls back to a model with a smaller window.
type Provider struct {
	Format wire.Format

	// Stream writes an answer in the provider's streaming format.
	Stream func(w io.Writer, a Answer)

	// TooLong is the body of the provider's error for a prompt that is too long.
	TooLong func(tokens, window int) string

	Odd int

	mu       sync.Mutex
	requests []Request
	odd      bool // Odd was refused
}

// An Answer is an answer of the fake provider.
type Answer struct {
	Text          string
	Calls         []convo.ToolCall
	Input, Output int // tokens
}

// Deltas returns a text in three pieces.
func Deltas(text string) []string {
	third := len(text) / 3
	return []string{text[:third], text[third : 2*third], text[2*third:]}
}

// A Request is what the fake provider has received.
type Request struct {
	Body     string
	Question string // the newest user message
	Tokens   int
	Refused  bool // it was too long
	Findings []wire.Finding
}

// Requests returns what was received so far.
func (p *Provider) Requests() []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

// ServeHTTP answers a request.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	in, err := p.Format.Decode(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	got := Request{Body: string(body), Tokens: len(body) / 4, Findings: p.Format.Check(body)}
	for _, m := range in.Messages {
		if m.Role == convo.RoleUser {
			got.Question = m.Text()
		}
	}
	number, window := 0, glue.Window
	fmt.Sscanf(got.Question, "Question %d:", &number)
	if number == p.Odd && !p.odd {
		window, p.odd = got.Tokens*3/4, true
	}
	got.Refused = got.Tokens > window
	p.requests = append(p.requests, got)
	if got.Refused {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, p.TooLong(got.Tokens, window))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	p.Stream(w, answer(in.Messages, number, got.Tokens))
}

// answer returns the answer to a conversation.
func answer(messages []convo.Message, number, input int) Answer {
	if messages[len(messages)-1].Role == convo.RoleTool {
		text := fmt.Sprintf("Answer %d: ", number) + strings.Repeat("Take the train at ten past nine. ", 6)
		return Answer{Text: text, Input: input, Output: len(text) / 4}
	}
	a := Answer{Text: "Let me look. ", Input: input, Output: 60}
	for _, t := range glue.Tools() {
		a.Calls = append(a.Calls, convo.ToolCall{
			ID:        fmt.Sprintf("call_%d_%s", number, t.Name),
			Name:      t.Name,
			Arguments: fmt.Sprintf(`{"city":%q}`, City(number)),
		})
	}
	return a
}

// City returns the city that a question is about.
func City(number int) string {
	if number%5 == 0 {
		return "Nowhere"
	}
	return [...]string{"Rome", "Utrecht", "Graz", "Lyon", "Porto"}[number%5]
}
