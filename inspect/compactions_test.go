package inspect_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/inspect"
)

// What left with a compaction is shown as it was.
func TestPages_Originals(t *testing.T) {
	h, seen := talk(t)
	p := pagesOf(h, seen)
	page := ask(t, p, "/")
	hasNot(t, page, "Flight 0 leaves")
	page = ask(t, p, linkAfter(t, page, "c1", "Show what left"))
	has(t, page, "Flight 0 leaves at nine")
	first := regexp.MustCompile(`<details id="(c1e\d+)"`).FindStringSubmatch(page)
	require.NotNil(t, first)
	opened := ask(t, p, linkAfter(t, page, first[1], "Keep open"))
	assert.True(t, isOpen(t, opened, first[1]))
	assert.True(t, isOpen(t, opened, "c1"))
	assert.True(t, isOpen(t, ask(t, p, "?open="+first[1]), "c1"), "it is in c1")
	closed := ask(t, p, linkAfter(t, opened, "c1", "Close"))
	assert.False(t, isOpen(t, closed, "c1"))
}

// What was forgotten is in no compaction.
func TestPages_Forgotten(t *testing.T) {
	seen := &inspect.Reports{}
	h := newHistory(t, &convo.Options{OnCompaction: seen.Add})
	call := convo.ToolCall{ID: "c", Name: "read", Arguments: "{}"}
	last, err := h.Append(convo.User("Read it."), convo.Assistant("", call), convo.Result(call, "the password"), convo.Assistant("Done."))
	require.NoError(t, err)
	_, err = h.Apply(h.Snapshot(), convo.Edit{Clear: []convo.Clear{{ID: last - 1, Forget: true}}})
	require.NoError(t, err)
	page := ask(t, pagesOf(h, seen), "?open=c1")
	assert.True(t, isOpen(t, page, "c1"))
	hasNot(t, page, "the password")
}

func TestReports_KeepsTheNewest(t *testing.T) {
	var seen inspect.Reports
	h := newHistory(t, nil)
	has(t, ask(t, pagesOf(h, &seen), "/"), "There was none.")
	hasNot(t, ask(t, pagesOf(h, nil), "/"), "Compactions")
	for n := range 25 {
		seen.Add(convo.Report{Outcome: convo.OutcomeFailed, Cause: errors.New(fmt.Sprint("cause ", n))})
	}
	page := ask(t, pagesOf(h, &seen), "/")
	assert.Equal(t, 20, strings.Count(page, `<th scope="row">cause</th>`))
	hasNot(t, page, "cause 4<")
	has(t, page, "cause 24")
}

// The bars of a compaction show the summary, what left by role, and what stayed, in the order
// and the colors of the window, and a legend says so.
func TestReports_Bars(t *testing.T) {
	h, seen := talk(t)
	page := ask(t, pagesOf(h, seen), "/")
	_, part, _ := strings.Cut(page, `<section aria-label="Compactions">`)
	legend, _, _ := strings.Cut(part, "</ul>")
	var keys []string
	for _, m := range regexp.MustCompile(`<rect[^>]*/></svg>([^<]*)<`).FindAllStringSubmatch(legend, -1) {
		keys = append(keys, m[1])
	}
	assert.Equal(t, []string{"summary", "user messages removed", "assistant messages removed", "results removed", "stayed", "limit"}, keys)

	order := []string{"system", "summary", "user", "assistant", "results", "stayed"}
	bars := regexp.MustCompile(`<span>(before|after)</span><svg class="small"(.*?)</svg><span>([0-9,]+)</span>`).FindAllStringSubmatch(part, -1)
	require.NotEmpty(t, bars)
	for _, m := range bars {
		assert.Contains(t, m[2], `class="mark"`, "the limit")
		last, sum := -1, 0
		for _, s := range regexp.MustCompile(`data-kind="(\w+)"`).FindAllStringSubmatch(m[2], -1) {
			at := slices.Index(order, s[1])
			assert.Greater(t, at, last, "the order of %s", s[1])
			last = at
		}
		tokens := tokensOf(t, m[2])
		for _, n := range tokens {
			sum += n
		}
		assert.Equal(t, m[3], grouped(sum))
		if m[1] == "after" {
			assert.Zero(t, tokens["user"]+tokens["assistant"]+tokens["results"])
		}
	}
	before := tokensOf(t, bars[len(bars)-2][2]) // the oldest compaction cleared results alone
	after := tokensOf(t, bars[len(bars)-1][2])
	assert.Positive(t, before["results"])
	assert.Zero(t, before["user"]+before["assistant"])
	assert.Equal(t, before["stayed"], after["stayed"])

	// A report that does not say what left, or whose sizes are not those of a request.
	odd := &inspect.Reports{}
	odd.Add(convo.Report{TokensBefore: 100, TokensAfter: 40})
	odd.Add(convo.Report{TokensBefore: 10, TokensAfter: 400, SummaryBefore: 50, SummaryAfter: -1, Limit: 5})
	odd.Add(convo.Report{})
	page = ask(t, pagesOf(h, odd), "/")
	assert.Equal(t, 4, strings.Count(page, `<svg class="small"`), "none without sizes")
	_, part, _ = strings.Cut(page, `<section aria-label="Compactions">`)
	assert.Equal(t, map[string]int{"summary": 10, "stayed": 400 + 100 + 40}, tokensOf(t, part))
}

// Of ten thousand compactions the newest are listed, by their numbers.
func TestReports_Many(t *testing.T) {
	h, seen := talk(t)
	for range 10_000 {
		seen.Add(convo.Report{Outcome: convo.OutcomeApplied})
	}
	page := ask(t, pagesOf(h, seen), "?open=c1")
	assert.Equal(t, 20, strings.Count(page, `<details id="c`))
	assert.Regexp(t, `<details id="c100\d\d"`, page)
	assert.Less(t, len(page), 200_000)
}

// grouped returns n with a comma before the last three digits.
func grouped(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}
