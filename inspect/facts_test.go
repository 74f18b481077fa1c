package inspect_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/inspect"
)

// Facts lead to what they are about.
func TestPages_Facts(t *testing.T) {
	h, _ := talk(t)
	require.NoError(t, h.Queue(convo.User("Later."), convo.User("And this.")))
	page := ask(t, inspect.Handler(h), "/")
	_, facts, _ := strings.Cut(page, `<ul class="facts">`)
	facts, _, _ = strings.Cut(facts, "</ul>")
	links := regexp.MustCompile(`<a href="([^"]*)" aria-label="entry (\d+)">(\d+)</a>`).FindAllStringSubmatch(facts, -1)
	require.Greater(t, len(links), 2)
	for _, m := range []int{0, 1, len(links) - 1} {
		assert.Equal(t, links[m][2], links[m][3])
		assert.True(t, isOpen(t, ask(t, inspect.Handler(h), links[m][1]), "e"+links[m][2]))
	}
	has(t, facts, "<b>Queued</b>: 2 messages that the next request does not have yet")
	hasNot(t, facts, "Not in the next request")
}

// An address of an entry that has left says so, and leads to it if there is an archive.
func TestPages_Absent(t *testing.T) {
	h, seen := talk(t)
	for _, query := range []string{"?open=e9", "?whole=e9", "?open=e9&open=e9&whole=e9"} {
		page := ask(t, pagesOf(h, seen), query)
		assert.Equal(t, 1, strings.Count(page, "<b>Not in the next request</b>: entry 9</li>"), query)
	}
	hasNot(t, ask(t, pagesOf(h, seen), fmt.Sprint("?open=c1e9&open=e", h.Snapshot().Pinned()[0])), "Not in the next request")

	saved := openHistory(t, &convotest.MemStore{}, "k", &convo.Options{Limits: convo.Limits{Window: 5_000, Reserve: 1_000}})
	fill(t, saved)
	require.NoError(t, saved.Save(t.Context()))
	page := ask(t, inspect.Handler(saved), "?open=e4")
	link := regexp.MustCompile(`<a href="([^"]*)" aria-label="entry 4 as it was appended">entry 4</a>`).FindStringSubmatch(page)
	require.NotNil(t, link)
	page = ask(t, inspect.Handler(saved), link[1])
	assert.True(t, isOpen(t, page, "e4"))
	has(t, page, "Flight 0 leaves at nine")
}
