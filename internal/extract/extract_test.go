package extract_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seed-c1b73e60/convo/internal/extract"
	"github.com/seed-c1b73e60/convo/internal/names"
	"github.com/seed-c1b73e60/convo/internal/text"
	"github.com/stretchr/testify/assert"
)

// A said is a message of the user.
type said string

func (s said) Text() string { return string(s) }
func (s said) Line() string { return text.OneLine(string(s)) }

// A call is an assistant message that calls a tool, with the result.
type call struct{ tool, arguments, result, failed string }

// summary returns the summary of messages, each of which is a said, a call, or the text of an
// assistant.
func summary(previous string, limit int, count func(string) int, messages ...any) string {
	var n extract.Notes
	size := 0
	for _, m := range messages {
		switch m := m.(type) {
		case said:
			size += len(m)
		case string:
			size += len(m)
		case call:
			size += len(m.arguments)
		}
	}
	n.Begin(size, 0)
	for i, m := range slices.Backward(messages) {
		switch m := m.(type) {
		case said:
			n.Next(names.Source{Place: 2 * i, Weight: 4, Said: true})
			n.Search(string(m))
			n.Ask(m)
		case string:
			n.Next(names.Source{Place: 2 * i, Weight: 3, Said: true})
			n.Say(m)
			n.Answer(said(m))
		case call:
			n.Next(names.Source{Place: 2*i + 1, Weight: 2, Paths: true})
			if m.failed != "" {
				n.Fail(0, m.tool, m.failed)
			}
			n.Result(m.result)
			n.Next(names.Source{Place: 2 * i, Weight: 3, Said: true})
			n.Call(0, m.tool, m.arguments)
			n.Answer(said(""))
		}
	}
	return n.Summary(previous, limit, count)
}

func words(s string) int { return len(strings.Fields(s)) }

func TestNotes_Paths(t *testing.T) {
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
		_, paths, _ := strings.Cut(summary("", 5000, words, call{tool: "f", arguments: word}), "Paths:\n- ")
		paths, _, _ = strings.Cut(paths, "\n")
		assert.Equal(t, want, paths, word)
	}
}

// Of what the user said, a summary lists the first message and then those with words that few
// others have, in any script, and the newer of two that are as rare.
func TestNotes_RareWords(t *testing.T) {
	for name, c := range map[string]struct{ usual, rare string }{
		"English": {"look at the next page and go on until you are done", "my landlord plays the harpsichord on rainy mornings"},
		"Chinese": {"请继续看下一页直到你全部看完为止", "房东下雨天早上喜欢弹大键琴"},
	} {
		msgs := []any{said("the first")}
		for i := range 200 {
			msgs = append(msgs, said(fmt.Sprint(i, " ", c.usual)))
			if i == 40 {
				msgs = append(msgs, said(c.rare))
			}
		}
		lines := strings.Split(summary("", 1000, func(s string) int { return len(s) }, msgs...), "\n")
		assert.Less(t, len(lines), 40, name)
		assert.Equal(t, []string{"The user said:", "- the first", "- " + c.rare}, lines[:3], name)
		assert.Equal(t, "- 199 "+c.usual, lines[len(lines)-1], name)
	}
}

// How much is noted and searched has a bound, whatever comes.
func TestNotes_Bounds(t *testing.T) {
	var msgs []any
	for i := range 600 {
		msgs = append(msgs, call{tool: fmt.Sprintf("tool%03d", i), arguments: fmt.Sprintf(`{"p":"/dir/%03d.go"}`, i), failed: fmt.Sprintf("error %03d", i)})
	}
	everything := func(string) int { return 0 }
	text := summary("", 500, everything, msgs...)
	for _, want := range []string{"tool100 1", "tool599 1", "/dir/100.go", "/dir/599.go", "error 100", "error 599"} {
		assert.Contains(t, text, want)
	}
	for _, not := range []string{"tool099", "099.go", "error 099"} { // the oldest ones
		assert.NotContains(t, text, not)
	}
	far := strings.Repeat("x ", 1<<20) + "/far/away.go"
	assert.NotContains(t, summary("", 500, words, call{tool: "f", result: far}), "away")
	assert.Contains(t, summary("", 500, words, call{tool: "f", result: far[14:]}), "/far/away.go")
	assert.Contains(t, summary("", 500, words, far, call{tool: "f", arguments: far, result: "ok"}), "/far/away.go", "of what was said, all is read")
}

// A summary of nothing new is the one before.
func TestNotes_ReadItself(t *testing.T) {
	for _, text := range []string{
		"Before:\n- A model wrote this.\nThe user said:\n- Fix it.\nTools called:\n- read file 2\n- run 1\nPaths:\n- /src/main.go\n- out/x.log\nErrors:\n- run: exit status 1\nLast answer:\n- Done.",
		"Nothing was said.",
	} {
		previous := strings.TrimPrefix(text, "Nothing was said.")
		assert.Equal(t, text, summary(previous, 500, words))
	}
	assert.Equal(t, "Before:\n- Lines one\n- and two.", summary("Lines one\n\n and two.", 500, words))
}

// The names after a summary are neither in it nor in what stays, and fit their room.
func TestNotes_Line(t *testing.T) {
	var n extract.Notes
	n.Next(names.Source{Weight: 4, Said: true})
	n.Search("see /src/a.go, /src/b.go and ORD-17, then ORD-18")
	stays := func(yield func(string) bool) { yield("about ORD-17") }
	assert.Equal(t, "ORD-18 X-1", n.Line("X-1", "it reads /src/a.go and /src/b.go", "\nNames: ", stays, 20, words))
	assert.Empty(t, n.Line("", "", "\nNames: ", stays, 4, words), "no room")
}
