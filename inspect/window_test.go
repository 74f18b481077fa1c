package inspect_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/inspect"
)

// No label of a mark is on the line of another.
func TestPages_Marks(t *testing.T) {
	h := newHistory(t, &convo.Options{Limits: convo.Limits{Window: 100_000, Reserve: 10_000, Low: 10_000, Soft: 20_000, High: 80_000}})
	page := ask(t, inspect.Handler(h), "/")
	var got []string
	for _, m := range regexp.MustCompile(`<text x="([0-9.%]+)" y="(\d+)" dx="-?4" dy="9" text-anchor="(\w+)">([^<]*)</text>`).FindAllStringSubmatch(page, -1) {
		got = append(got, strings.Join(m[1:], " "))
	}
	assert.Equal(t, []string{"20.00% 4 start soft 20,000", "10.00% 19 start low 10,000", "80.00% 34 end high 80,000", "90.00% 49 end limit 90,000"}, got)
	has(t, page, `aria-label="Marks: soft 20,000, low 10,000, high 80,000, limit 90,000"`)
}

// How many turns are left is said by turns, or in a single long turn by exchanges.
func TestPages_Growth(t *testing.T) {
	for _, c := range []struct {
		name    string
		append  func(n int) []convo.Message
		want    string
		entries int
	}{
		{"turns", func(n int) []convo.Message {
			return []convo.Message{convo.User(strings.Repeat("word ", 50)), convo.Assistant(strings.Repeat("word ", 50))}
		}, `<b>about 22 turns</b> <span class="label">at 88 tokens per turn, as in the newest 10</span>`, 20},
		{"one turn", func(n int) []convo.Message {
			call := convo.ToolCall{ID: fmt.Sprint(n), Name: "f", Arguments: "{}"}
			list := []convo.Message{convo.Assistant("", call), convo.Result(call, strings.Repeat("word ", 50))}
			if n == 0 {
				list = append([]convo.Message{convo.User("Go.")}, list...)
			}
			return list
		}, `<b>about \d+ exchanges</b> <span class="label">at \d+ tokens per exchange, as in the newest 10</span>`, 20},
		{"due", func(n int) []convo.Message {
			return []convo.Message{convo.User("u"), convo.Assistant(strings.Repeat("word ", 500))}
		}, `<b>due now</b>`, 20},
		{"the next", func(n int) []convo.Message {
			return []convo.Message{convo.User("u"), convo.Assistant(strings.Repeat("word ", 1900))}
		}, `<b>less than 1 turn</b> <span class="label">at [0-9,]+ tokens per turn, as in the newest 2<`, 2},
	} {
		h := newHistory(t, &convo.Options{Limits: convo.Limits{Window: 5_000, Reserve: 1_000}})
		for n := range c.entries {
			mustAppend(t, h, c.append(n)...)
		}
		page := ask(t, inspect.Handler(h), "/")
		_, window, _ := strings.Cut(page, `<section aria-label="Window">`)
		assert.Regexp(t, c.want, window[:min(len(window), 600)], c.name)
		assert.Equal(t, c.name == "due", strings.Contains(page, "tokens too large"), c.name)
		h.Close()
	}
}

// Odd limits make a page: none, a mark without a window, no reserve, and more in use than the
// window.
func TestPages_Limits(t *testing.T) {
	for _, c := range []struct {
		name   string
		limits convo.Limits
		has    []string
		hasNot []string
	}{
		{"none", convo.Limits{}, []string{"no limit is set"}, []string{`data-kind="free"`, "Marks:", "not known"}},
		{"high alone", convo.Limits{High: 1_000}, []string{"no limit is set", `aria-label="Marks: low 500, soft 750, high 1,000"`, "about 7 exchanges", "at 121 tokens per exchange, the size of the newest<"}, []string{`data-kind="free"`}},
		{"no reserve", convo.Limits{Window: 1_000, Reserve: -1}, []string{`data-kind="free"`, "high, limit 1,000"}, []string{`data-kind="reserve"`}},
		{"too small", convo.Limits{Window: 100, Reserve: 10}, []string{"it may be 47 tokens too large", `<div class="bad"><dt>Next request`, "due now", `data-kind="reserve" data-tokens="10"`}, []string{`data-kind="free"`}},
		{"a guess", convo.Limits{Window: 1_000, Assumed: true}, []string{"the window is a guess"}, nil},
	} {
		t.Log(c.name)
		h := newHistory(t, &convo.Options{Limits: c.limits})
		mustAppend(t, h, convo.User(strings.Repeat("word ", 150)))
		page := ask(t, inspect.Handler(h), "/")
		for _, want := range c.has {
			has(t, page, want)
		}
		for _, not := range c.hasNot {
			hasNot(t, page, not)
		}
		h.Close()
	}
}

// What was measured and what is estimated are told apart, in figures and in the bar.
func TestPages_Measured(t *testing.T) {
	h := newHistory(t, &convo.Options{Limits: convo.Limits{Window: 10_000}})
	mustAppend(t, h, convo.User(strings.Repeat("word ", 300)))
	page := ask(t, inspect.Handler(h), "/")
	has(t, page, `<dt>Measured</dt><dd><b>nothing</b> <span class="label">no usage report yet; all is estimated</span>`)
	assert.Zero(t, tokensOf(t, page)["measured"])

	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 320, Output: 10}))
	mustAppend(t, h, convo.Assistant(strings.Repeat("word ", 90)))
	page = ask(t, inspect.Handler(h), "/")
	e, tokens := h.Tokens(), tokensOf(t, page)
	assert.Equal(t, []int{e.Measured, e.Tokens - e.Measured, e.Upper - e.Tokens}, []int{tokens["measured"], tokens["estimated"], tokens["margin"]})
	assert.Positive(t, tokens["estimated"])
	has(t, page, fmt.Sprintf(`<dt>Measured</dt><dd><b>%d %%</b>`, 100*e.Measured/e.Tokens))
	has(t, page, fmt.Sprintf(`estimated <span class="number">%d</span>`, e.Tokens-e.Measured))
}
