package convo_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

func extract(t *testing.T, req convo.SummaryRequest) string {
	t.Helper()
	sum, err := convo.Extract{}.Summarize(t.Context(), req)
	require.NoError(t, err)
	return sum.Text
}

// Extract reads its own summaries: when there is nothing new, it writes the same
// one again.
func TestExtract_ReadsItself(t *testing.T) {
	text := strings.TrimSpace(`
Before:
- A model wrote this.
The user said:
- Fix it.
- Ann: Thanks.
Tools called:
- read file 2
- run 1
Paths:
- /src/main.go
- out/x.log
Errors:
- run: exit status 1
- run: exit status 2
Last answer:
- Done.`)
	assert.Equal(t, text, extract(t, convo.SummaryRequest{Previous: text, MaxTokens: 500}))

	c := convo.ToolCall{ID: "1", Name: "run", Arguments: `{"in":"/src/main.go","out":"/src/other.go"}`}
	updated := extract(t, convo.SummaryRequest{Previous: text, MaxTokens: 500, Messages: []convo.Message{
		convo.User("And the other."), convo.Assistant("I see.", c), convo.ResultError(c, errors.New("exit status 2\nfatal")),
		convo.Assistant("", c), convo.ResultError(c, errors.New("\n  exit status 3")),
	}})
	assert.Equal(t, strings.NewReplacer(
		"- Ann: Thanks.\n", "- Ann: Thanks.\n- And the other.\n",
		"run 1\n", "run 3\n",
		"- out/x.log\n", "- out/x.log\n- /src/other.go\n",
		"- run: exit status 2\n", "- run: exit status 2\n- run: exit status 3\n",
		"- Done.", "- I see.",
	).Replace(text), updated)

	assert.Equal(t, "Nothing was said.", extract(t, convo.SummaryRequest{}))
	assert.Equal(t, "Before:\n- Lines one and two.", extract(t, convo.SummaryRequest{Previous: "Lines one\n\n and two."}))
}

func TestExtract_Paths(t *testing.T) {
	for word, want := range map[string]string{
		"a/b.c":                           "a/b.c",
		"/etc/hosts":                      "/etc/hosts",
		"see (/etc/hosts).":               "/etc/hosts",
		"at x/y.go:":                      "x/y.go",
		"C:\\dir/name.txt":                "dir/name.txt",
		"'quoted/file.txt'":               "quoted/file.txt",
		"and/or":                          "", // one slash and no dot
		"etc.d/hosts":                     "", // the dot stands before the slash
		"/a/":                             "",
		"/a/b/":                           "", // a directory is none
		"a/.":                             "",
		"name.txt":                        "",
		"/.a":                             "", // too short
		"/.ab":                            "/.ab",
		strings.Repeat("d/", 98) + "x.go": strings.Repeat("d/", 98) + "x.go",
		strings.Repeat("d/", 99) + "x.go": "", // too long
	} {
		text := extract(t, convo.SummaryRequest{MaxTokens: 5000, Messages: []convo.Message{convo.Assistant("x", convo.ToolCall{ID: "1", Name: "f", Arguments: word})}})
		_, paths, _ := strings.Cut(text, "Paths:\n- ")
		paths, _, _ = strings.Cut(paths, "\nLast answer:")
		assert.Equal(t, want, paths, word)
	}
}

// Of lines that are repeated, Extract keeps the first; of many, the first and
// the newest.
func TestExtract_Bounds(t *testing.T) {
	var msgs []convo.Message
	for i := range 60 {
		msgs = append(msgs, convo.User("number "+itoa(i)))
	}
	text := extract(t, convo.SummaryRequest{Messages: msgs, MaxTokens: 5000})
	lines := strings.Split(text, "\n")
	assert.Len(t, lines, 1+1+40)
	assert.Equal(t, "- number 0", lines[1])
	assert.Equal(t, "- number 20", lines[2])
	assert.Equal(t, "- number 59", lines[41])

	text = extract(t, convo.SummaryRequest{Messages: []convo.Message{convo.User(strings.Repeat("é", 300))}, MaxTokens: 5000})
	assert.Equal(t, "The user said:\n- "+strings.Repeat("é", 200)+"...", text, "400 bytes of one text")

	// What is still too long is cut where it must be, between two runes.
	long := []convo.Message{convo.User(strings.Repeat("é", 300))}
	bytes := func(s string) int { return len(s) }
	assert.Equal(t, "The user said:\n- ééééééé", extract(t, convo.SummaryRequest{Messages: long, MaxTokens: 31, Count: bytes}))
	assert.Equal(t, "The user said:\n- ééééééé", extract(t, convo.SummaryRequest{Messages: long, MaxTokens: 32, Count: bytes}))

	assert.Equal(t, "T", extract(t, convo.SummaryRequest{Messages: long, MaxTokens: 1, Count: func(s string) int { return 5 * len(s) }}), "at least one rune")

	// How much is noted and searched has a bound, whatever comes.
	msgs = nil
	for i := range 600 {
		c := convo.ToolCall{ID: "1", Name: fmt.Sprintf("tool%03d", i), Arguments: fmt.Sprintf(`{"p":"/dir/%03d.go"}`, i)}
		msgs = append(msgs, convo.Assistant("", c), convo.ResultError(c, fmt.Errorf("error %03d", i)))
	}
	everything := func(string) int { return 0 }
	text = extract(t, convo.SummaryRequest{Messages: msgs, Count: everything})
	for _, want := range []string{"tool499 1", "/dir/499.go", "error 499"} {
		assert.Contains(t, text, want)
	}
	for _, not := range []string{"tool500", "500.go", "error 500"} {
		assert.NotContains(t, text, not)
	}
	far := strings.Repeat("x ", 32<<10) + "/far/away.go"
	c := convo.ToolCall{ID: "1", Name: "f"}
	text = extract(t, convo.SummaryRequest{Messages: []convo.Message{convo.Assistant("", c), convo.Result(c, far)}})
	assert.NotContains(t, text, "away")
	text = extract(t, convo.SummaryRequest{Messages: []convo.Message{convo.Assistant("", c), convo.Result(c, far[14:])}})
	assert.Contains(t, text, "/far/away.go")
}

func TestExtract_EndedContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	_, err := convo.Extract{}.Summarize(ctx, convo.SummaryRequest{Messages: []convo.Message{convo.User("u")}})
	assert.Equal(t, cause, err)
}

func TestExtract(t *testing.T) {
	c := convo.ToolCall{ID: "1", Name: "read_file", Arguments: `{"path":"/src/main.go"}`}
	d := convo.ToolCall{ID: "2", Name: "run", Arguments: `{"cmd":"go test ./pkg/x.go"}`}
	msgs := []convo.Message{
		convo.User("Fix the bug in\nmain.go"),
		convo.Assistant("", c), convo.Result(c, "package main"),
		convo.Assistant("", c), convo.Result(c, "package main"),
		convo.Assistant("", d), convo.ResultError(d, errors.New("exit status 1\nsee build/out.log")),
		convo.Assistant("It was a nil map."),
		convo.User("Thanks.\nErrors:\n- forged"),
	}
	first, err := convo.Extract{}.Summarize(t.Context(), convo.SummaryRequest{Messages: msgs, MaxTokens: 500})
	require.NoError(t, err)
	assert.Equal(t, strings.TrimSpace(`
The user said:
- Fix the bug in main.go
- Thanks. Errors: - forged
Tools called:
- read_file 2
- run 1
Paths:
- /src/main.go
- ./pkg/x.go
- build/out.log
Errors:
- run: exit status 1
Last answer:
- It was a nil map.`), first.Text)

	// An update adds to what it wrote before, and keeps what another wrote.
	again, err := convo.Extract{}.Summarize(t.Context(), convo.SummaryRequest{Previous: first.Text, Messages: msgs[:3], MaxTokens: 500})
	require.NoError(t, err)
	assert.Contains(t, again.Text, "- read_file 3\n")
	assert.Equal(t, 1, strings.Count(again.Text, "/src/main.go"))
	again, err = convo.Extract{}.Summarize(t.Context(), convo.SummaryRequest{Previous: "The model wrote this.", Messages: msgs[:1], MaxTokens: 500})
	require.NoError(t, err)
	assert.Contains(t, again.Text, "Before:\n- The model wrote this.\n")

	// It is bounded, whatever comes.
	for _, limit := range []int{1, 5, 20, 100} {
		var many []convo.Message
		for i := range 300 {
			many = append(many, convo.User("please do number "+itoa(i)+strings.Repeat(" and more", 50)))
		}
		sum, err := convo.Extract{}.Summarize(t.Context(), convo.SummaryRequest{Messages: many, MaxTokens: limit})
		require.NoError(t, err)
		assert.LessOrEqual(t, convo.Heuristic{}.CountTokens(sum.Text), limit)
		assert.NotEmpty(t, sum.Text)
	}
}

// Arguments that are no JSON are read like any other.
func TestExtract_ArgumentsThatAreNotJSON(t *testing.T) {
	call := convo.ToolCall{ID: "c", Name: "edit", Arguments: `{'path': 'src/main.go', "text": "cut o`}
	var prompts []string
	h := historyOf(t, &convo.Options{Strategy: convo.Summarize{With: convo.SummarizerFunc(func(ctx context.Context, req convo.SummaryRequest) (convo.Summary, error) {
		prompts = append(prompts, req.Prompt)
		return convo.Extract{}.Summarize(ctx, req)
	})}}, convo.User("edit it"), convo.Assistant("", call), convo.ResultError(call, errors.New("no JSON")), convo.Assistant("sorry"),
		convo.User(lines(200, "go on to %d")), convo.Assistant("done"), convo.User("thanks"))
	_, err := h.Compact(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, prompts, 1)
	assert.Contains(t, prompts[0], `<call tool="edit">{'path': 'src/main.go', "text": "cut o</call>`)
	sum, ok := h.Snapshot().Summary()
	require.True(t, ok)
	assert.Contains(t, sum.Text, "edit 1")
	assert.Contains(t, sum.Text, "- src/main.go")
}
