package repotest_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// Every number on the pages for users, outside code, is known: testdata/figures.txt says where
// it comes from, or it stands on a line that another test compares.
//
// A line of figures.txt is PAGE | TEXT | SOURCE | TEXT OF THE SOURCE, with a tab on each side
// of a bar: the page has the text, and the file SOURCE has the text that proves it. A source
// that begins with https:// is a public thread, and the page links to it.
func TestPages_FiguresAreKnown(t *testing.T) {
	inRoot(t)
	fences := regexp.MustCompile("(?ms)^```.*?^```$")
	compared := regexp.MustCompile(`(?m)^!\[Tokens of each request.*$`) // by another test
	pages, links := map[string]string{}, map[string]string{}
	for _, page := range append(globs(t, "docs/*.md"), "README.md") {
		if page != "docs/format.md" { // tested by a reader that is written from it
			links[page] = read(t, page)
			pages[page] = oneLine(compared.ReplaceAllString(fences.ReplaceAllString(links[page], ""), ""))
		}
	}
	for line := range strings.Lines(read(t, "internal/repotest/testdata/figures.txt")) {
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t|\t")
		require.Len(t, cells, 4, line)
		page, text, source, proof := cells[0], cells[1], cells[2], cells[3]
		assert.True(t, strings.Contains(pages[page], text), "%s no longer says what figures.txt has: %s", page, text)
		if strings.HasPrefix(source, "https://") {
			assert.True(t, strings.Contains(links[page], "]("+source+")"), "%s does not link to where %q comes from", page, text)
		} else {
			assert.True(t, strings.Contains(oneLine(read(t, source)), proof), "%s says %q, and %s does not have %q", page, text, source, proof)
		}
		pages[page] = strings.Replace(pages[page], text, "", 1)
	}
	send, _ := block(t, links["docs/formats.md"][strings.Index(links["docs/formats.md"], "```go\nsend := "):], "```go\n")
	lines := fmt.Sprintf("| anything with an HTTP client | %d |", strings.Count(send, "\n"))
	assert.True(t, strings.Contains(pages["README.md"], lines), "the sender of docs/formats.md: %s", lines)
	pages["README.md"] = strings.Replace(pages["README.md"], lines, "", 1)

	rest := regexp.MustCompile("`[^`]*`|\\]\\([^)]*\\)")
	known := regexp.MustCompile(`UTF-8|U\+202E|v1\.0\.0|GPT-5|Gemini 3|Go 1\.26|November 2026|\b400, `) // names, and a status that a link has
	number := regexp.MustCompile(`.{0,40}\d.{0,40}`)
	for page, text := range pages {
		text = known.ReplaceAllString(rest.ReplaceAllString(text, ""), "")
		for _, found := range number.FindAllString(text, -1) {
			t.Errorf("%s has a number that no test knows: %s", page, found)
		}
	}
}

// oneLine makes each run of white space one space, so that a text is found wherever lines break.
func oneLine(page string) string { return strings.Join(strings.Fields(page), " ") }

// What docs/costs.md says that operations allocate.
func TestPages_Costs(t *testing.T) {
	h := historyOf(t, &convo.Options{Roles: convo.Relaxed()})
	msg := convo.User("a question of some words")
	const n = 10_000
	assert.InDelta(t, 1, testing.AllocsPerRun(1, func() {
		for range n {
			_, _ = h.Append(msg)
		}
	})/n, 0.05, "Append")
	s := h.Snapshot()
	assert.InDelta(t, n*2/256, testing.AllocsPerRun(5, func() {
		for range s.All() {
		}
	}), 8, "All")
	assert.InDelta(t, 2, testing.AllocsPerRun(1000, func() {
		_, _ = h.Append(msg)
		h.Snapshot()
	}), 0.2, "Append and Snapshot")
	assert.Zero(t, testing.AllocsPerRun(100, func() { h.Snapshot(); h.Len(); h.Status(); h.Tokens() }))
}
