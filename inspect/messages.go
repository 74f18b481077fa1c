package inspect

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// An entry is a message on the page.
type entry struct {
	ID, Number, Role, Preview, Tokens, Turn string
	More, MoreHref                          string
	Open                                    bool
	Keep                                    link
	Badges                                  []string
	Parts                                   []part
	Archive                                 string // address of the entry as it was appended
}

type part struct {
	Label string
	Text  text
}

const (
	mostEntries   = 200  // on a page
	mostParts     = 20   // of one entry, unless it is requested whole
	mostPageParts = 3000 // on a page
)

func elementID(prefix string, id convo.ID) string {
	return prefix + "e" + strconv.FormatInt(int64(id), 10)
}

// showEntries shows one page of the entries.
func (v *view) showEntries(m *moment) {
	v.from, v.to = v.page(m.entries)
	from, to := v.from, v.to
	if !v.Alone {
		if from > 0 {
			v.Older = v.pageOf(m.entries[max(from-mostEntries, 0)].ID, 0)
		}
		if to < len(m.entries) {
			v.Newer = v.pageOf(m.entries[to].ID, 0)
		}
	}
	if from > 0 || to < len(m.entries) {
		which := "Messages " + grouped(from+1) + " to " + grouped(to)
		if to == from+1 {
			which = "Message " + grouped(to)
		}
		v.Shown = which + " of " + grouped(len(m.entries))
	}
	id, calls := openCalls(m)
	turn := 0
	for _, e := range m.entries[from:to] {
		var open []convo.ToolCall
		if e.ID == id {
			open = calls
		}
		shown := v.entry("", e, open)
		if e.Turn != turn && e.Turn > 0 {
			turn = e.Turn
			shown.Turn = "Turn " + grouped(turn)
		}
		if e.Missing > 0 && v.hasArchive {
			shown.Archive = v.archived(e.ID)
		}
		v.Entries = append(v.Entries, shown)
	}
}

// page returns the indices of the first entry on the page and of the first after it.
func (v *view) page(entries []convo.Entry) (from, to int) {
	most := mostEntries
	if v.Alone {
		most = mostAlone
	}
	from = max(len(entries)-most, 0)
	if v.at.from > 0 {
		// IDs ascend, but those of system entries may be larger than the next ones.
		if i := slices.IndexFunc(entries, func(e convo.Entry) bool { return e.ID == v.at.from }); i >= 0 {
			from = i
		} else if i := slices.IndexFunc(entries, func(e convo.Entry) bool { return e.ID > v.at.from && e.Message.Role != convo.RoleSystem }); i >= 0 {
			from = i
		}
	}
	return from, min(from+most, len(entries))
}

// pageOf returns the address of the page that begins with an entry, with the entry of the
// ID open unless it is 0.
func (v *view) pageOf(first, open convo.ID) string {
	at := v.at
	at.whole, at.from = "", first
	if open != 0 {
		return at.opened(elementID("", open))
	}
	return at.href("")
}

// hrefOf returns the address where the i-th entry is open: on this page if it is here. The
// address is empty if a page without others does not have it.
func (v *view) hrefOf(entries []convo.Entry, i int) string {
	id, here := entries[i].ID, v.from <= i && i < v.to
	switch {
	case v.Alone && here:
		return "#" + elementID("", id)
	case v.Alone:
		return ""
	case here:
		return v.pageOf(v.at.from, id)
	}
	return v.pageOf(entries[max(i-mostEntries/2, 0)].ID, id)
}

// entry returns what the page shows of an entry. open has its calls without a result.
func (v *view) entry(prefix string, e convo.Entry, open []convo.ToolCall) entry {
	id := elementID(prefix, e.ID)
	out := entry{ID: id, Number: strconv.FormatInt(int64(e.ID), 10), Open: v.at.isOpen(id), Keep: v.keep(id), Role: visible(string(e.Message.Role)), Tokens: counted(e.Tokens, "token", "tokens")}
	badge := func(is bool, text string) {
		if is {
			out.Badges = append(out.Badges, text)
		}
	}
	badge(e.Pinned, "pinned")
	badge(e.Message.Author != "", "by "+short(e.Message.Author))
	for _, c := range open[:min(len(open), mostParts)] {
		badge(true, "open call of "+short(c.Name))
	}
	badge(e.Missing > 0, counted(e.Missing, "token", "tokens")+" cleared")
	badge(e.Missing == 0 && isCleared(e), "cleared")
	most := mostParts
	if v.at.whole == id {
		most = len(e.Message.Parts)
	}
	for i, p := range e.Message.Parts {
		if i == most || v.parts > mostPageParts && v.at.whole != id {
			out.More = "and " + counted(len(e.Message.Parts)-i, "more part", "more parts")
			if !v.Alone {
				out.MoreHref = v.at.wholly(id)
			}
			break
		}
		out.Parts = v.part(out.Parts, id, p)
	}
	out.Preview = preview(out.Parts)
	return out
}

// preview returns the beginning of the first text, or without one the first label.
func preview(parts []part) string {
	i := slices.IndexFunc(parts, func(p part) bool { return p.Text.Shown != "" })
	if i < 0 {
		i = slices.IndexFunc(parts, func(p part) bool { return p.Label != "" })
	}
	if i < 0 {
		return ""
	}
	p := parts[i]
	begin := strings.TrimSpace(p.Label + " " + first(p.Text.Shown, shortText))
	if len(p.Text.Shown) > shortText || p.Text.More != "" {
		begin += "…"
	}
	return begin
}

// part appends what the page shows of a part of a message.
func (v *view) part(parts []part, id string, p convo.Part) []part {
	v.parts++
	switch p := p.(type) {
	case convo.Text:
		return append(parts, part{"", v.show(string(p), id)})
	case convo.Reasoning:
		label := "reasoning"
		if p.Signature != "" || p.Encrypted != "" {
			label = "reasoning, signed"
		}
		return append(parts, part{label, v.show(p.Text, id)})
	case convo.ToolCall:
		return append(parts, part{fmt.Sprintf("call of %s (%s)", short(p.Name), short(p.ID)), v.show(p.Arguments, id)})
	case convo.ToolResult:
		return v.result(parts, id, p)
	case convo.Media:
		label := fmt.Sprintf("%s, %s", short(p.MIME), counted(len(strings.TrimRight(p.Data, "="))*3/4, "byte", "bytes"))
		if p.Data == "" {
			label = short(p.MIME) + " at " + short(p.URL)
		}
		return append(parts, part{label, text{}})
	case convo.Opaque:
		return append(parts, part{"only for " + short(p.Format), v.show(p.JSON, id)})
	}
	return parts
}

// result appends what the page shows of a result: its name, and its parts.
func (v *view) result(parts []part, id string, r convo.ToolResult) []part {
	label := "result"
	if r.IsError {
		label = "failed result"
	}
	if r.Cleared {
		label = "cleared " + label
	}
	parts = append(parts, part{fmt.Sprintf("%s of %s (%s)", label, short(r.Name), short(r.CallID)), text{}})
	begin := len(parts)
	for i, inner := range r.Parts {
		if i == mostParts && v.at.whole != id {
			return append(parts, part{"and " + counted(len(r.Parts)-i, "more part", "more parts"), text{}})
		}
		parts = v.part(parts, id, inner)
	}
	if len(parts) > begin && parts[begin].Label == "" { // its first text stands below its name
		parts[begin-1].Text = parts[begin].Text
		parts = slices.Delete(parts, begin, begin+1)
	}
	return parts
}
