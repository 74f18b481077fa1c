package inspect_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/inspect"
)

// The strip has the exchanges in their order, each as wide as its tokens and colored by
// role, and a legend of what is on it.
func TestPages_Strip(t *testing.T) {
	h, _ := talk(t)
	s := h.Snapshot()
	page := ask(t, inspect.Handler(h), "/")
	strip := regexp.MustCompile(`(?s)<svg class="strip".*?</svg>`).FindString(page)
	var kinds []string
	for _, m := range regexp.MustCompile(`<g[^>]*><title>(system|summary|user|assistant|tool)`).FindAllStringSubmatch(strip, -1) {
		kinds = append(kinds, m[1])
	}
	want := []string{"system", "summary"}
	for x := range s.Exchanges() {
		if e, _ := s.Find(x.First); e.Message.Role != convo.RoleSystem {
			want = append(want, string(e.Message.Role))
		}
	}
	assert.Equal(t, want, kinds)
	sum, entries := 0, 0
	for _, n := range tokensOf(t, strip) {
		sum += n
	}
	for _, e := range s.All() {
		entries += e.Tokens
	}
	summary, _ := s.Summary()
	assert.Equal(t, entries+summary.Tokens, sum)
	assert.Equal(t, summary.Tokens, tokensOf(t, strip)["summary"])
	assert.Equal(t, 1, strings.Count(strip, `class="pin"`))
	assert.Equal(t, 1, strings.Count(strip, `class="open"`))
	assert.Equal(t, 6, strings.Count(strip, `class="cleared"`))
	assert.Regexp(t, `aria-label="assistant, entry \d+: 23 tokens, open call"`, strip)

	legend := func(page string) (names []string) {
		_, rest, _ := strings.Cut(page, `aria-label="Exchanges, sized by tokens"`)
		_, rest, _ = strings.Cut(rest, "</svg>\n<ul")
		rest, _, _ = strings.Cut(rest, "</ul>")
		for _, m := range regexp.MustCompile(`</svg>([^<]*)</li>`).FindAllStringSubmatch(rest, -1) {
			names = append(names, m[1])
		}
		return names
	}
	assert.Equal(t, []string{"system", "summary", "user", "assistant", "results", "pinned", "open call", "cleared or cut"}, legend(page))
	other, err := convo.New(nil)
	assert.NoError(t, err)
	defer other.Close()
	_, err = other.Append(convo.User("Hello."))
	assert.NoError(t, err)
	assert.Equal(t, []string{"user"}, legend(ask(t, inspect.Handler(other), "/")))
}
