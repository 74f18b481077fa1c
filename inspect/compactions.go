package inspect

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed-c1b73e60/convo"
)

// Reports collects the reports of a History for Pages. The zero Reports is ready to use. It
// is safe for concurrent use.
//
//	var seen inspect.Reports
//	h, err := convo.New(&convo.Options{OnCompaction: seen.Add})
//
// It keeps the newest twenty, with the originals of what left the view.
type Reports struct {
	mu    sync.Mutex
	count int
	list  []dated
}

type dated struct {
	number int // from 1
	at     time.Time
	report convo.Report
	left   byRole
}

const mostReports = 20

// Add adds a report. It is meant for Options.OnCompaction.
func (r *Reports) Add(report convo.Report) {
	var left byRole
	for _, e := range report.Originals() {
		left.add(e)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count++
	r.list = append(r.list, dated{r.count, time.Now(), report, left})
	if len(r.list) > mostReports {
		r.list = slices.Delete(r.list, 0, 1)
	}
}

// newest returns the reports, the newest first.
func (r *Reports) newest() []dated {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.Clone(r.list)
	slices.Reverse(all)
	return all
}

// A report is a compaction on the page.
type report struct {
	ID, Line, Time string
	Open           bool
	Keep           link
	Bars           []bar
	Rows           [][2]string
	Leaves         string // how many messages left the view
	LeftHref       string // shows them
	Left           []entry
	More, MoreHref string
}

// A bar is the size of a request before or after a compaction. Limit is where the limit is
// on it; empty: there is none.
type bar struct {
	Name, Number, Limit string
	Segments            []segment
}

const (
	mostLeft = 50 // of one compaction
	mostRows = 40 // of one compaction
)

func (v *view) showReports(reports *Reports) {
	v.HasReports = reports != nil
	for _, d := range reports.newest() {
		v.Reports = append(v.Reports, v.report(d))
	}
	v.ReportLegend = reportLegend(v.Reports)
}

// reportLegend explains the bars of reports.
func reportLegend(reports []report) (keys []key) {
	seen := map[string]bool{}
	for _, r := range reports {
		for _, b := range r.Bars {
			seen["limit"] = seen["limit"] || b.Limit != ""
			for _, s := range b.Segments {
				seen[s.Kind] = true
			}
		}
	}
	for _, k := range []key{keyOf("system", "system messages removed"), keyOf("summary", "summary"), keyOf("user", "user messages removed"), keyOf("assistant", "assistant messages removed"),
		keyOf("results", "results removed"), keyOf("stayed", "stayed")} {
		if seen[k.Kind] {
			keys = append(keys, k)
		}
	}
	if seen["limit"] {
		keys = append(keys, key{Class: "pin", X: "40%", Y: "0%", Width: "20%", Height: "100%", Name: "limit"})
	}
	return keys
}

func (v *view) report(d dated) report {
	r, id := d.report, fmt.Sprint("c", d.number)
	out := report{ID: id, Open: v.at.isOpen(id) || v.at.isOpenIn(id), Keep: v.keep(id), Line: visible(first(fmt.Sprint(r), mostText)), Time: d.at.Format("Jan 2, 15:04:05")}
	out.Bars, out.Rows = barsOf(&r, d.left), rowsOf(&r)
	ids := slices.Concat(r.Dropped, r.Summarised, r.Cleared, r.Shortened, r.Rewritten)
	if slices.Sort(ids); len(ids) == 0 {
		return out
	}
	out.Leaves = counted(len(slices.Compact(ids)), "message", "messages")
	if !out.Open {
		out.LeftHref = v.at.opened(id)
		return out
	}
	left, most := r.Originals(), mostLeft
	if v.at.whole == id {
		most = mostAlone
	}
	for _, e := range left[:min(len(left), most)] {
		out.Left = append(out.Left, v.entry(id, e, nil))
	}
	if len(left) > most {
		out.More = "and " + counted(len(left)-most, "more message", "more messages")
		if most == mostLeft {
			out.MoreHref = v.at.wholly(id)
		}
	}
	return out
}

// barsOf returns the request before and after a compaction: the summary, what left by role,
// and what stayed.
//
// A report has the size of both requests and of their summaries, and what left as it was. So
// what left takes the difference, and each role the share that its messages have in tokens.
func barsOf(r *convo.Report, left byRole) []bar {
	if r.TokensBefore+r.TokensAfter == 0 {
		return nil
	}
	whole := max(r.Limit, r.TokensBefore, r.TokensAfter, 1)
	summaryBefore, summaryAfter := clamp(r.SummaryBefore, r.TokensBefore), clamp(r.SummaryAfter, r.TokensAfter)
	stayed := clamp(r.TokensAfter-summaryAfter, r.TokensBefore-summaryBefore)
	gone, sum := r.TokensBefore-summaryBefore-stayed, left.sum()
	if sum == 0 { // what left is not known
		stayed, gone = stayed+gone, 0
	}
	before := byRole{1: summaryBefore}
	shared, share := 0, 0
	for i, n := range left {
		shared += n // rounding the sums, and not the shares, keeps the total
		to := gone
		if shared < sum {
			to = int(float64(gone) * float64(shared) / float64(sum))
		}
		before[i] += to - share
		share = to
	}
	out := []bar{barOf("before", before, stayed, whole), barOf("after", byRole{1: summaryAfter}, max(r.TokensAfter-summaryAfter, 0), whole)}
	for i := range out {
		if r.Limit > 0 {
			out[i].Limit = percent(r.Limit, whole)
		}
	}
	return out
}

// clamp returns n, or the nearest number from 0 to most.
func clamp(n, most int) int { return max(min(n, most), 0) }

// barOf returns a bar of the parts by role and of what stayed.
func barOf(name string, by byRole, stayed, whole int) bar {
	at := 0
	b := bar{Name: name, Number: grouped(by.sum() + stayed)}
	add := func(kind string, tokens int) {
		if tokens > 0 {
			b.Segments = append(b.Segments, segmentOf(kind, tokens, at, tokens, whole))
			at += tokens
		}
	}
	for i, n := range by {
		add(roleKinds[i], n)
	}
	add("stayed", stayed)
	return b
}

// why says for which reason a compaction was started.
func why(r convo.Reason) string {
	switch r {
	case convo.ReasonHigh, convo.ReasonSoft:
		return "the request was above " + r.String()
	}
	return r.String()
}

// rowsOf returns what a report says, by name.
func rowsOf(r *convo.Report) (rows [][2]string) {
	row := func(shown bool, name, format string, args ...any) {
		if shown {
			rows = append(rows, [2]string{name, visible(first(fmt.Sprintf(format, args...), mostText/4))})
		}
	}
	row(true, "reason", "%s", why(r.Reason))
	row(r.Strategy != "", "strategy", "%s", r.Strategy)
	for i, l := range r.Links[:min(len(r.Links), mostRows)] {
		row(true, fmt.Sprint("step ", i+1), "%v", l)
	}
	row(r.Cause != nil, "cause", "%v", r.Cause)
	row(true, "messages", "%s before, %s after", grouped(r.MessagesBefore), grouped(r.MessagesAfter))
	for _, left := range []struct {
		name string
		ids  []convo.ID
	}{{"dropped", r.Dropped}, {"summarised", r.Summarised}, {"cleared", r.Cleared}, {"shortened", r.Shortened}, {"rewritten", r.Rewritten}, {"spared", r.Spared}} {
		row(len(left.ids) > 0, left.name, "%s", counted(len(left.ids), "message", "messages"))
	}
	row(len(r.Read) > 0, "read", "results of %s, before they were cleared", counted(len(r.Read), "message", "messages"))
	row(r.Pause > 0, "pause", "%v since the last answer, so that the provider's cache was empty", r.Pause.Round(time.Second))
	row(r.Again > 0, "read again", "%s of %s that had left", counted(r.Again, "result", "results"), counted(r.AgainTokens, "token", "tokens"))
	row(r.Calls > 0, "cost", "%s, %s tokens read and %s written", counted(r.Calls, "model call", "model calls"), grouped(r.Usage.Input), grouped(r.Usage.Output))
	row(r.Model != "", "model", "%s", r.Model)
	row(r.Duration > 0, "took", "%v", r.Duration.Round(time.Microsecond))
	row(r.Unread > 0, "unread", "%s that no summarizer was shown and none can read any more", counted(r.Unread, "token", "tokens"))
	row(r.Outcome == convo.OutcomeApplied, "cache", "the next request begins with %.0f %% of the last one", 100*r.PrefixKept)
	return rows
}
