package gluetest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// A Reader reads the answer that streams from a URL. Text is shown as it arrives.
type Reader func(ctx context.Context, url string, show func(string)) (convo.Reply, error)

// A streamCase is a stream as a provider, a proxy or a bad line may send it.
type streamCase struct {
	name   string
	spoil  func(stream []byte, failure string) []byte // nil: as it is
	breaks bool                                       // the connection breaks at the end
	fails  bool                                       // the reader must say that there is no answer
	args   string                                     // arguments of the first call instead of its own
}

var streamCases = []streamCase{
	{name: "whole"},
	{name: "a whole number beyond 2^53 in the arguments", args: `{"city":"Rome","ticket":9007199254740993}`},
	{name: "lines that end in CRLF", spoil: func(s []byte, _ string) []byte { return bytes.ReplaceAll(s, []byte("\n"), []byte("\r\n")) }},
	{name: "comments between the events", spoil: func(s []byte, _ string) []byte {
		return bytes.ReplaceAll(s, []byte("\n\n"), []byte("\n\n: keep alive\n\n"))
	}},
	{name: "no blank line behind the last event", spoil: func(s []byte, _ string) []byte { return bytes.TrimRight(s, "\n") }},
	{name: "no space behind the colons", spoil: func(s []byte, _ string) []byte {
		return bytes.ReplaceAll(bytes.ReplaceAll(s, []byte("data: "), []byte("data:")), []byte("event: "), []byte("event:"))
	}},
	{name: "ends after two thirds", fails: true, spoil: func(s []byte, _ string) []byte { return events(s, 2, 3) }},
	{name: "ends inside an event", fails: true, spoil: func(s []byte, _ string) []byte { return s[:len(s)/2] }},
	{name: "breaks after two thirds", fails: true, breaks: true, spoil: func(s []byte, _ string) []byte { return events(s, 2, 3) }},
	{name: "the provider fails in the middle", fails: true, spoil: func(s []byte, failure string) []byte {
		return append(events(s, 1, 2), failure...)
	}},
	{name: "the provider fails, and then ends the stream as ever", fails: true, spoil: func(s []byte, failure string) []byte {
		half := events(s, 1, 2)
		return slices.Concat(half, []byte(failure), s[len(half):])
	}},
	{name: "nothing", fails: true, spoil: func([]byte, string) []byte { return nil }},
}

// events returns the first of the events of a stream.
func events(s []byte, part, of int) []byte {
	list := bytes.SplitAfter(s, []byte("\n\n"))
	return bytes.Clone(bytes.Join(list[:len(list)*part/of], nil))
}

// A Quirk is what some hosts of a provider's format do to a stream. The answer stays the
// same.
type Quirk struct {
	Name  string
	Spoil func(stream []byte) []byte
}

// TestStreams has the readers in readsdk.go and readwire.go read streams, and checks how
// many each of them reads right. A reader is right if it returns the text, the calls and
// the usage of a whole answer, and an error if there is none. That of package wire must
// be right each time. The name is that of the row in bench/README.md, stream writes an
// answer, and failure is an event by which the provider says that it has failed. The
// quirks are further streams of a whole answer.
func TestStreams(t *testing.T, name string, stream func(io.Writer, Answer), failure string, sdk, wire Reader, quirks ...Quirk) {
	answer := Answer{Text: "Let me look at the trains, and at the weather.", Input: 1200, Output: 34, Calls: []convo.ToolCall{
		{ID: "call_1", Name: "trains", Arguments: `{"city":"Rome"}`}, {ID: "call_2", Name: "weather", Arguments: `{"city":"Rome"}`}}}
	var whole bytes.Buffer
	stream(&whole, answer)
	cases := slices.Clone(streamCases)
	for _, q := range quirks {
		spoiled := q.Spoil(whole.Bytes())
		require.NotEqual(t, whole.String(), string(spoiled), q.Name)
		cases = append(cases, streamCase{name: q.Name, spoil: func([]byte, string) []byte { return spoiled }})
	}
	right := map[string]int{}
	for _, c := range cases {
		want, body := answer, whole.Bytes()
		if c.args != "" {
			want.Calls = slices.Clone(answer.Calls)
			want.Calls[0].Arguments = c.args
			var other bytes.Buffer
			stream(&other, want)
			body = other.Bytes()
		}
		if c.spoil != nil {
			body = c.spoil(body, failure)
		}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			if c.breaks {
				w.Header().Set("Content-Length", strconv.Itoa(len(body)+100))
			}
			_, _ = w.Write(body) // the reader may be gone
		}))
		for file, read := range map[string]Reader{"readsdk.go": sdk, "readwire.go": wire} {
			var shown strings.Builder
			reply, err := read(t.Context(), server.URL, func(s string) { shown.WriteString(s) })
			problem := wrong(want, reply, shown.String(), err, c.fails)
			if problem == "" {
				right[file]++
				continue
			}
			t.Logf("%s, %s: %s", file, c.name, problem)
			assert.NotEqual(t, "readwire.go", file, "%s: %s", c.name, problem)
		}
		server.Close()
	}
	cells := []string{"", name}
	for _, file := range []string{"readsdk.go", "readwire.go"} {
		n, err := lines(file)
		require.NoError(t, err)
		cells = append(cells, strconv.Itoa(n), fmt.Sprintf("%d of %d", right[file], len(cases)))
	}
	checkRow(t, cells)
}

// wrong says what is wrong with a reading, or nothing.
func wrong(want Answer, got convo.Reply, shown string, err error, fails bool) string {
	switch {
	case fails && err == nil:
		return "no error"
	case fails:
		return ""
	case err != nil:
		return err.Error()
	case shown != want.Text:
		return fmt.Sprintf("shown: %q", shown)
	case got.Usage.Input != want.Input || got.Usage.Output != want.Output:
		return fmt.Sprintf("usage: %+v", got.Usage)
	case len(got.Messages) != 1 || got.Messages[0].Text() != want.Text:
		return "another text"
	}
	calls := got.Messages[0].ToolCalls()
	for i := range calls {
		calls[i] = convo.ToolCall{ID: calls[i].ID, Name: calls[i].Name, Arguments: calls[i].Arguments}
	}
	if !slices.Equal(calls, want.Calls) {
		return fmt.Sprintf("calls: %v", calls)
	}
	return ""
}
