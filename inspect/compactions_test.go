package inspect_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

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

// What was read, read again, and the pause are shown with the other figures.
func TestReports_Figures(t *testing.T) {
	var seen inspect.Reports
	seen.Add(convo.Report{Outcome: convo.OutcomeApplied, Read: []convo.ID{3, 5}, Pause: 6 * time.Minute, Again: 2, AgainTokens: 1900})
	page := ask(t, pagesOf(newHistory(t, nil), &seen), "/")
	has(t, page, `<th scope="row">read</th><td>results of 2 messages, before they were cleared</td>`)
	has(t, page, `<th scope="row">pause</th><td>6m0s since the last answer, so that the provider&#39;s cache was empty</td>`)
	has(t, page, `<th scope="row">read again</th><td>2 results of 1,900 tokens that had left</td>`)
	hasNot(t, page, "Read again")
}

// The window says how much was read again since it had left.
func TestPages_ReadAgain(t *testing.T) {
	h := newHistory(t, &convo.Options{Limits: convo.Limits{Window: 4000}})
	_, err := h.Append(convo.User("Read them all."))
	require.NoError(t, err)
	for i := 0; h.Status().Again == 0; i++ {
		require.Less(t, i, 200)
		call := convo.ToolCall{ID: fmt.Sprint("c", i), Name: "read", Arguments: fmt.Sprintf(`{"file":%d}`, i%7)}
		_, err := h.Append(convo.Assistant("", call), convo.Result(call, strings.Repeat(fmt.Sprintf("file %d has many lines\n", i%7), 120)))
		require.NoError(t, err)
		_, _, err = h.Prepare(t.Context())
		require.NoError(t, err)
	}
	assert.Regexp(t, `<b>Read again</b>: \d+ results? of [\d,]+ tokens that had left, up to the last compaction`, ask(t, pagesOf(h, nil), "/"))
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
