package inspect

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"slices"

	"github.com/seed-c1b73e60/convo"
)

//go:embed page.html style.css
var sources embed.FS

var pages = template.Must(template.ParseFS(sources, "*"))

// A view is what the template shows. Its strings are visible already; the template escapes
// them.
type view struct {
	Nonce, Policy, Title, Problem string

	Alone       bool // there is no server that answers links
	Home        bool // there is a list to go back to
	Refreshable bool
	Refresh     int    // seconds; 0: never
	RefreshHref string // turns it on, or off

	IsList bool
	List   []listed
	About  []string
	Wrong  string

	Before, After string // addresses of records

	IsArchive bool
	Back      string // address of the conversation
	Gone      []string

	Line         string // which record it is, and how many messages there are
	Window       window
	Facts        []fact
	Strip        []stretch
	StripLegend  []key
	Summary      *summary
	Tools        *tools
	Entries      []entry
	Older        string // address
	Newer        string // address
	Shown        string
	Reports      []report
	ReportLegend []key
	HasReports   bool
	Checks       []check
	Unchecked    bool
	CheckHref    string // makes the checks

	at         state
	hasArchive bool
	from, to   int // indices of the entries on the page
	written    int // bytes of the HTML of texts
	parts      int // on the page
}

// A link has a label for screen readers if its name is not unique.
type link struct{ Name, Href, Label string }

const (
	mostAlone   = 1000 // entries on a page of WriteHTML
	longAddress = 1000 // bytes; a longer address is left out where there are many
)

func newView(at state, nonce string) *view {
	v := &view{Nonce: nonce, Policy: policy(nonce), Title: "Conversation", Refresh: at.refresh, at: at}
	other := at
	if other.refresh = 0; at.refresh == 0 {
		other.refresh = 5
	}
	v.RefreshHref = other.href("")
	return v
}

func (v *view) write(w io.Writer) error { return pages.ExecuteTemplate(w, "page.html", v) }

// fail sets the problem that the page shows, and returns status.
func (v *view) fail(status int, format string, args ...any) int {
	v.Problem = visible(first(fmt.Sprintf(format, args...), mostText))
	return status
}

// keep returns the link that opens an element for good, or closes it.
func (v *view) keep(id string) link {
	if v.Alone {
		return link{}
	}
	l := link{"Keep open", v.at.opened(id), "Keep open: " + id}
	if v.at.isOpen(id) {
		l = link{"Close", v.at.closed(id), "Close: " + id}
	}
	if len(l.Href) > longAddress {
		return link{}
	}
	return l
}

// A moment is a conversation at one moment.
type moment struct {
	*convo.Snapshot
	breakdown convo.Breakdown
	estimate  convo.Estimate
	status    convo.Status // of a snapshot without a History, only the sizes and the marks
	limitless string       // why a snapshot without its History may be without limits; empty: it has its History
	entries   []convo.Entry
	exchanges []convo.Exchange
}

// momentOf returns the moment of a snapshot that is shown without its History. limitless
// says why it may be without limits.
func momentOf(s *convo.Snapshot, limitless string) *moment {
	b := s.Breakdown()
	used := 0
	for _, k := range kinds(&b) {
		used += k.Tokens
	}
	m := &moment{Snapshot: s, breakdown: b, estimate: convo.Estimate{Tokens: used, Upper: used}, limitless: limitless}
	m.status = convo.Status{Tokens: used, Upper: used, Window: b.Window, Limit: max(b.Window-b.Reserve, 0), High: b.High, Low: b.Low, Soft: b.Soft}
	m.collect()
	return m
}

// A present is what is read of a History.
type present interface {
	Snapshot() *convo.Snapshot
	Status() convo.Status
	Tokens() convo.Estimate
}

// now returns the present moment of a History.
func now(h present) *moment {
	m := sizes(h)
	m.collect()
	return m
}

// sizes returns the present moment of a History, which others may be changing, without its entries.
func sizes(h present) *moment {
	m := &moment{}
	for range 1000 { // the three are read one after the other, and must belong together
		if m.Snapshot, m.status, m.estimate = h.Snapshot(), h.Status(), h.Tokens(); m.Snapshot == h.Snapshot() {
			break
		}
	}
	m.breakdown = m.Breakdown()
	return m
}

func (m *moment) collect() {
	m.exchanges = slices.Collect(m.Exchanges())
	m.entries = make([]convo.Entry, 0, m.Len())
	for _, e := range m.All() {
		m.entries = append(m.entries, e)
	}
}

// line says how many messages there are.
func (m *moment) line() string {
	turns := map[int]bool{}
	for _, e := range m.entries {
		if e.Turn > 0 {
			turns[e.Turn] = true
		}
	}
	return counted(len(m.entries), "message", "messages") + " in " + counted(len(turns), "turn", "turns")
}

// showMoment shows a conversation at one moment.
func (v *view) showMoment(m *moment) {
	if v.Line != "" {
		v.Line += ": "
	}
	v.Line += m.line()
	v.Window = windowOf(m)
	v.Window.WordsOpen, v.Window.Keep = v.at.isOpen("words"), v.keep("words")
	v.showSummary(m.Snapshot)
	v.showTools(m.Snapshot)
	v.showEntries(m)
	v.showFacts(m)
	v.showStrip(m)
}
