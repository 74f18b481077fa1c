package inspect_test

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is opened has an address, at which it is open, and stays open.
func TestPages_Addresses(t *testing.T) {
	h, seen := talk(t)
	p := pagesOf(h, seen)
	pinned := fmt.Sprint("e", h.Snapshot().Pinned()[0])
	page := ask(t, p, "/")
	for _, id := range []string{pinned, "summary", "tools", "words", "c1"} {
		assert.False(t, isOpen(t, page, id), id)
		assert.True(t, isOpen(t, ask(t, p, linkAfter(t, page, id, "Keep open")), id), id)
	}
	page = ask(t, p, linkAfter(t, page, pinned, "Keep open"))
	page = ask(t, p, linkAfter(t, page, "summary", "Keep open"))
	page = ask(t, p, linkAfter(t, page, "c1", "Show what left"))
	assert.True(t, isOpen(t, page, pinned), "what was open stays open")
	assert.True(t, isOpen(t, page, "summary"))
	assert.True(t, isOpen(t, page, "c1"))

	refresh := regexp.MustCompile(`href="([^"]*)">Refresh every 5 seconds`).FindStringSubmatch(page)
	require.NotNil(t, refresh)
	live := ask(t, p, refresh[1])
	has(t, live, `<meta http-equiv="refresh" content="5">`)
	has(t, live, "Stop refreshing")
	assert.True(t, isOpen(t, live, pinned))
	assert.True(t, isOpen(t, live, "summary"))

	page = ask(t, p, linkAfter(t, page, "summary", "Close"))
	assert.False(t, isOpen(t, page, "summary"))
	assert.True(t, isOpen(t, page, pinned))

	// At most twenty are open: the last twenty.
	var target strings.Builder
	target.WriteString("?")
	for n := range 30 {
		target.WriteString(fmt.Sprintf("open=e%d&", n+1000))
	}
	page = ask(t, p, linkAfter(t, ask(t, p, target.String()), "summary", "Keep open"))
	assert.True(t, isOpen(t, page, "summary"))
	assert.LessOrEqual(t, strings.Count(html.UnescapeString(linkAfter(t, page, "tools", "Keep open")), "open="), 20)
}
