package inspect_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/inspect"
)

// Each entry is on one page, if the number of entries divides by 200.
func TestPages_Paging(t *testing.T) {
	h := large(t, 1_000)
	p := inspect.Handler(h)
	page := ask(t, p, "/")
	hasNot(t, page, "Newer messages")
	found := map[string]bool{}
	for target := ""; ; {
		for _, m := range regexp.MustCompile(`<details id="(e\d+)"`).FindAllStringSubmatch(page, -1) {
			assert.False(t, found[m[1]], "%s is on two pages", m[1])
			found[m[1]] = true
		}
		older := regexp.MustCompile(`<a href="([^"]*)" rel="prev">Older`).FindStringSubmatch(page)
		if older == nil {
			break
		}
		require.NotEqual(t, target, older[1])
		target = older[1]
		page = ask(t, p, target)
	}
	assert.Len(t, found, h.Len())
	has(t, page, "Newer messages")
	status, page := get(t, p, "?from=700")
	assert.Equal(t, 200, status)
	has(t, page, `<details id="e700"`)
	hasNot(t, page, `<details id="e699"`)
	has(t, page, "Messages 700 to 899 of 1,000")
	_, page = get(t, p, "?from=1000")
	has(t, page, "Message 1,000 of 1,000")
}
