package inspect

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// A fact is a line of the overview, with links to what it is about.
type fact struct {
	Name, Text string
	Links      []link
}

const mostLinks = 10 // of a fact

// showFacts lists what is pinned, open, cleared, queued and missing, with links.
func (v *view) showFacts(m *moment) {
	var pinned, cleared []convo.ID
	missing := 0
	for _, e := range m.entries {
		if e.Pinned {
			pinned = append(pinned, e.ID)
		}
		if isCleared(e) {
			cleared = append(cleared, e.ID)
			missing += e.Missing
		}
	}
	add := func(name, text string, ids []convo.ID) {
		if len(ids) == 1 {
			text += ", entry "
		} else if len(ids) > 1 {
			text += ", entries "
		}
		v.Facts = append(v.Facts, fact{name, text, v.linksTo(m.entries, ids)})
	}
	if len(pinned) > 0 {
		add("Pinned", counted(len(pinned), "message", "messages"), pinned)
	}
	if id, calls := openCalls(m); len(calls) > 0 {
		var names []string
		for _, c := range calls[:min(len(calls), mostLinks)] {
			names = append(names, short(c.Name))
		}
		if len(calls) > mostLinks {
			names = append(names, "…")
		}
		add("Open", counted(len(calls), "call", "calls")+" of "+strings.Join(names, ", ")+" without a result", []convo.ID{id})
	}
	if len(cleared) > 0 {
		text := counted(len(cleared), "message", "messages")
		if missing > 0 {
			text += ", " + counted(missing, "token", "tokens") + " less"
		}
		add("Cleared or cut", text, cleared)
	}
	if m.status.Again > 0 {
		add("Read again", counted(m.status.Again, "result", "results")+" of "+counted(m.status.AgainTokens, "token", "tokens")+" that had left, up to the last compaction", nil)
	}
	if m.status.Queued > 0 {
		add("Queued", counted(m.status.Queued, "message", "messages")+" that the next request does not have yet", nil)
	}
	if list := v.absent(m.entries); len(list) > 0 {
		v.Facts = append(v.Facts, fact{"Not in the next request", "", list})
	}
}

// linksTo returns links to entries, as far as they are on the page or can be.
func (v *view) linksTo(entries []convo.Entry, ids []convo.ID) (list []link) {
	for _, id := range ids[:min(len(ids), mostLinks)] {
		l := linkTo(id)
		if i := slices.IndexFunc(entries, func(e convo.Entry) bool { return e.ID == id }); i >= 0 {
			l.Href = v.hrefOf(entries, i)
		}
		list = append(list, l)
	}
	if len(ids) > mostLinks {
		list = append(list, link{Name: fmt.Sprintf("and %s more", grouped(len(ids)-mostLinks))})
	}
	return list
}

func linkTo(id convo.ID) link {
	return link{Name: fmt.Sprint(id), Label: fmt.Sprint("entry ", id)}
}

// absent returns the entries that the address opens although they are not in the view,
// with links to them as they were appended if there is an archive.
func (v *view) absent(entries []convo.Entry) (list []link) {
	for _, id := range append(slices.Clone(v.at.open), v.at.whole) {
		digits, ok := strings.CutPrefix(id, "e")
		n, err := strconv.ParseInt(digits, 10, 64)
		if !ok || err != nil || slices.ContainsFunc(entries, func(e convo.Entry) bool { return int64(e.ID) == n }) {
			continue
		}
		l := linkTo(convo.ID(n))
		if l.Name = l.Label; v.hasArchive {
			l.Href, l.Label = v.archived(convo.ID(n)), l.Label+" as it was appended"
		}
		if !slices.Contains(list, l) {
			list = append(list, l)
		}
	}
	return list
}

// isCleared reports whether a result in e was cleared or cut.
func isCleared(e convo.Entry) bool {
	return e.Missing > 0 || slices.ContainsFunc(e.Message.Parts, func(p convo.Part) bool {
		r, ok := p.(convo.ToolResult)
		return ok && r.Cleared
	})
}

// openCalls returns the calls without a result, and the ID of their entry.
func openCalls(m *moment) (id convo.ID, calls []convo.ToolCall) {
	if len(m.exchanges) == 0 {
		return 0, nil
	}
	newest := m.exchanges[len(m.exchanges)-1]
	if !newest.Open {
		return 0, nil
	}
	answered := map[string]int{}
	for _, e := range m.entries[len(m.entries)-len(newest.IDs()):] {
		calls = append(calls, e.Message.ToolCalls()...)
		for _, p := range e.Message.Parts {
			if r, ok := p.(convo.ToolResult); ok {
				answered[r.CallID]++
			}
		}
	}
	return newest.First, slices.DeleteFunc(calls, func(c convo.ToolCall) bool {
		answered[c.ID]--
		return answered[c.ID] >= 0
	})
}
