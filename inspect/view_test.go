package inspect_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/inspect"
	"github.com/seed-c1b73e60/convo/wire"
)

func TestPages_ShowsAConversation(t *testing.T) {
	h, seen := talk(t)
	page := ask(t, pagesOf(h, seen), "/")
	for _, want := range []string{
		"<bdi>A trip to Rome</bdi></h1>", fmt.Sprintf("%d messages in %d turns", h.Len(), h.Status().Turns), fmt.Sprintf("<b>%d %%</b>", 100*h.Tokens().Upper/4_000), "Before the next compaction",
		`<span class="badge">pinned</span>`, `<span class="badge">open call of search</span>`, "tokens cleared</span>",
		"<b>Pinned</b>: 1 message, entry <a ", "<b>Open</b>: 1 call of search without a result", "<b>Cleared or cut</b>: ",
		"stands for", "Window seats only", "compacted ", "<td>nothing</td>", "Finds flights.", "Turn 40",
		`<tr><th scope="row">reason</th><td>the request was above high</td></tr>`, `<tr><th scope="row">cache</th><td>`, "Show what left or was changed, as it was",
	} {
		has(t, page, want)
	}
	hasNot(t, page, "http-equiv")
	b, e := h.Snapshot().Breakdown(), h.Tokens()
	var got []string
	for _, m := range regexp.MustCompile(`data-kind="(\w+)" data-tokens="(\d+)"`).FindAllStringSubmatch(page, -1)[:13] {
		got = append(got, m[1]+" "+m[2])
	}
	var want []string // the bar of what was measured is above that of the window
	for _, k := range []struct {
		name   string
		tokens int
	}{{"measured", e.Measured}, {"estimated", e.Tokens - e.Measured}, {"margin", e.Upper - e.Tokens}, {"system", b.System}, {"tools", b.Tools}, {"summary", b.Summary}, {"user", b.User}, {"assistant", b.Assistant}, {"reasoning", b.Reasoning}, {"calls", b.Calls}, {"results", b.Results},
		{"free", b.Free}, {"reserve", b.Reserve}} {
		want = append(want, fmt.Sprint(k.name, " ", k.tokens))
	}
	assert.Equal(t, want, got, "the segments in a fixed order")
	for _, name := range []string{"low ", "soft ", "high", "limit "} {
		assert.Regexp(t, ">[a-z, ]*"+name+"[^<]*</text>", page)
	}
	for _, kind := range []string{"stayed"} {
		assert.Regexp(t, `data-kind="`+kind+`" data-tokens="\d+"`, page)
	}
}

// A busy is a History that changes whenever its figures are read, for a while.
type busy struct {
	*convo.History
	left int
}

func (b *busy) Status() convo.Status {
	if b.left > 0 {
		b.left--
		_ = b.SetEphemeral(convo.User(strings.Repeat("rain ", b.left%10+1)))
	}
	return b.History.Status()
}

// The figures of a page are those of one moment, while others change the conversation.
func TestPages_OneMoment(t *testing.T) {
	h := newHistory(t, nil)
	b := &busy{h, 7}
	sum, tokens := inspect.Moment(b)
	assert.Equal(t, tokens, sum)
	assert.Zero(t, b.left)
	sum, tokens = inspect.Moment(&busy{h, 1_000_000}) // it ends, whatever others do
	assert.Positive(t, sum)
	assert.Positive(t, tokens)
}

// A page of ten thousand entries has at most 3 MB.
func TestPages_Large(t *testing.T) {
	h := large(t, 10_000)
	p := inspect.Handler(h)
	page := ask(t, p, "/")
	t.Logf("%d entries: %d bytes", h.Len(), len(page))
	assert.Less(t, len(page), 500_000, "docs/inspect.md says 0.5 MB")
	has(t, page, "more than 200,000 tokens and was not checked")
	strip := regexp.MustCompile(`(?s)<svg class="strip".*?</svg>`).FindString(page)
	assert.LessOrEqual(t, strings.Count(strip, "<g>"), 400)
	sum := 0
	for _, m := range regexp.MustCompile(`data-tokens="(\d+)"`).FindAllStringSubmatch(strip, -1) {
		n := 0
		fmt.Sscan(m[1], &n)
		sum += n
	}
	assert.Equal(t, h.Snapshot().Tokens(), sum, "the strip holds all")
	// A stretch of the strip leads to its entry.
	links := regexp.MustCompile(`<a href="([^"]*)" aria-label="[^"]*from entry (\d+) on`).FindAllStringSubmatch(strip, -1)
	for _, i := range []int{0, len(links) / 2, len(links) - 1} {
		assert.True(t, isOpen(t, ask(t, p, links[i][1]), "e"+links[i][2]))
	}
	p.Formats = []wire.Format{wire.Anthropic{}}
	has(t, ask(t, p, regexp.MustCompile(`<a href="([^"]*)">Check it</a>`).FindStringSubmatch(page)[1]), "<td>nothing</td>")

	var out bytes.Buffer
	require.NoError(t, inspect.WriteHTML(&out, h.Snapshot()))
	checkPage(t, out.String())
	t.Logf("WriteHTML: %d bytes", out.Len())
	assert.Less(t, out.Len(), 3_000_000)
	has(t, out.String(), "was not checked")
	hasNot(t, out.String(), "Older messages")
	hasNot(t, out.String(), `href="?`)
}

// large makes a conversation with a number of entries, a multiple of four.
func large(t testing.TB, entries int) *convo.History {
	h := newHistory(t, &convo.Options{Limits: convo.Limits{Window: 10_000_000}})
	for n := range entries / 4 {
		call := convo.ToolCall{ID: fmt.Sprint("c", n), Name: "read", Arguments: fmt.Sprintf(`{"page":%d}`, n)}
		mustAppend(t, h, convo.User(fmt.Sprint("Question ", n)), convo.Assistant("", call), convo.Result(call, strings.Repeat("It says nothing. ", 200)), convo.Assistant("Nothing."))
	}
	return h
}

// What a page holds is bounded even if each of its parts is as large as can be.
func TestPages_WorstCase(t *testing.T) {
	seen := &inspect.Reports{}
	h := newHistory(t, &convo.Options{OnCompaction: seen.Add})
	quotes := strings.Repeat("'\u200b", 2000) // grows to 13 bytes from 4
	var parts []convo.Part
	for n := range 300 {
		parts = append(parts, convo.Text(quotes), convo.ToolCall{ID: fmt.Sprint(n, quotes), Name: "x" + quotes, Arguments: "{}"})
	}
	var results []convo.Message
	var ids []convo.ID
	for n := range 600 {
		id, err := h.Append(convo.User(quotes), convo.Message{Role: convo.RoleAssistant, Parts: []convo.Part{convo.Text(quotes), convo.Reasoning{Text: quotes}, convo.Text(fmt.Sprint(n))}})
		require.NoError(t, err)
		ids = append(ids, id, id-1)
	}
	for n := range 20 {
		r, err := h.Apply(h.Snapshot(), convo.Edit{Drop: ids[n*40 : n*40+40], Summary: &convo.Summary{Text: quotes}})
		require.NoError(t, err)
		require.Equal(t, convo.OutcomeApplied, r.Outcome)
	}
	mustAppend(t, h, convo.User("x"), convo.Message{Role: convo.RoleAssistant, Parts: parts})
	for n := range 300 {
		results = append(results, convo.Message{Role: convo.RoleTool, Parts: []convo.Part{convo.ToolResult{CallID: fmt.Sprint(n, quotes), Parts: slices.Repeat([]convo.Part{convo.Text("x")}, 100)}}})
	}
	mustAppend(t, h, results[:290]...)
	var query strings.Builder
	query.WriteString("?")
	for n := range 20 {
		query.WriteString(fmt.Sprintf("open=c%d&", n+1))
	}
	page := ask(t, pagesOf(h, seen), query.String())
	t.Logf("%d bytes", len(page))
	assert.Less(t, len(page), 3_000_000)
	assert.Equal(t, 20, strings.Count(page, " open>"))
	has(t, page, "<b>Open</b>: 10 calls of x")
	var out bytes.Buffer
	require.NoError(t, inspect.WriteHTML(&out, h.Snapshot()))
	t.Logf("WriteHTML: %d bytes", out.Len())
	assert.Less(t, out.Len(), 3_500_000)
}

func TestWriteHTML(t *testing.T) {
	h, _ := talk(t)
	var out bytes.Buffer
	require.NoError(t, inspect.WriteHTML(&out, h.Snapshot()))
	page := out.String()
	checkPage(t, page)
	has(t, page, "Window seats only")
	has(t, page, "<title>A trip to Rome · convo</title>")
	assert.Regexp(t, `<meta http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;; style-src &#39;nonce-\w+&#39;`, page)
	hasNot(t, page, `href="?`)
	hasNot(t, page, "<nav")
	has(t, page, `href="#e2"`)
	has(t, page, `href="#summary"`)
	has(t, page, `aria-label="Marks: low 2,000, soft 3,000, high, limit 4,000"`)
	hasNot(t, page, "are not known")
	assert.ErrorIs(t, inspect.WriteHTML(broken{}, h.Snapshot()), io.ErrClosedPipe)

	// A snapshot without a History has no limits.
	out.Reset()
	require.NoError(t, inspect.WriteHTML(&out, convo.NewSnapshot([]convo.Message{convo.User("Hello.")})))
	has(t, out.String(), "The window and the marks low, soft, high and limit are not known: the snapshot has no limits.")
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func BenchmarkPages_Large(b *testing.B) {
	p := inspect.Handler(large(b, 10_000))
	r := httptest.NewRequest("GET", "/", nil)
	r.Host = "localhost"
	for b.Loop() {
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		b.ReportMetric(float64(w.Body.Len()), "bytes/page")
	}
}

func BenchmarkWriteHTML_Large(b *testing.B) {
	s := large(b, 10_000).Snapshot()
	for b.Loop() {
		var out bytes.Buffer
		require.NoError(b, inspect.WriteHTML(&out, s))
		b.ReportMetric(float64(out.Len()), "bytes/page")
	}
}
