package inspect

import (
	"fmt"

	"github.com/seed-c1b73e60/convo"
)

// A stretch is one exchange or more on the strip. Bands are its shares by role.
type stretch struct {
	Title, Href, X, Width string
	Bands                 []band
	Pinned, Open, Cleared bool
}

type band struct {
	Kind      string
	Tokens    int
	Y, Height string
}

const mostStretches = 400 // on the strip

// roleKinds are the kinds by which whole messages are coloured, in the order of the window.
var roleKinds = [...]string{"system", "summary", "user", "assistant", "results"}

// A byRole has tokens by the index in roleKinds.
type byRole [len(roleKinds)]int

// add adds the tokens of an entry.
func (by *byRole) add(e convo.Entry) {
	kind := 3
	switch e.Message.Role {
	case convo.RoleSystem:
		kind = 0
	case convo.RoleUser:
		kind = 2
	case convo.RoleTool:
		kind = 4
	}
	by[kind] += e.Tokens
}

func (by *byRole) sum() (tokens int) {
	for _, n := range by {
		tokens += n
	}
	return tokens
}

// bands divides the height of a stretch.
func (by *byRole) bands() (out []band) {
	at, whole := 0, by.sum()
	for i, n := range by {
		if n > 0 {
			out = append(out, band{roleKinds[i], n, percent(at, whole), percent(n, whole)})
			at += n
		}
	}
	return out
}

// stripLegend explains what is on a strip.
func stripLegend(strip []stretch) (keys []key) {
	seen := map[string]bool{}
	for _, st := range strip {
		for _, b := range st.Bands {
			seen[b.Kind] = true
		}
		seen["pinned"], seen["open call"], seen["cleared or cut"] = seen["pinned"] || st.Pinned, seen["open call"] || st.Open, seen["cleared or cut"] || st.Cleared
	}
	for _, kind := range roleKinds {
		if seen[kind] {
			keys = append(keys, keyOf(kind, kind))
		}
	}
	for _, k := range []key{{Class: "pin", Y: "0%", Height: "35%", Name: "pinned"}, {Class: "open", Y: "65%", Height: "35%", Name: "open call"}, {Kind: "results", Class: "cleared", Y: "0%", Height: "100%", Name: "cleared or cut"}} {
		if k.X, k.Width = "0%", "100%"; seen[k.Name] {
			keys = append(keys, k)
		}
	}
	return keys
}

// showStrip draws the exchanges in their order, and the summary after the system entries.
// If there are many, a stretch is several exchanges.
func (v *view) showStrip(m *moment) {
	sum, summarised := m.Summary()
	whole, at := sum.Tokens, 0
	for _, x := range m.exchanges {
		whole += max(x.Tokens, 1)
	}
	add := func(st stretch, tokens int) {
		st.X, st.Width = percent(at, whole), percent(tokens, whole)
		at += tokens
		v.Strip = append(v.Strip, st)
	}
	addSummary := func() {
		st := stretch{Title: "summary: " + counted(sum.Tokens, "token", "tokens"), Href: "#summary", Bands: []band{{"summary", sum.Tokens, "0%", "100%"}}}
		if !v.Alone {
			st.Href = v.at.opened("summary")
		}
		add(st, sum.Tokens)
		summarised = false
	}
	each := max((len(m.exchanges)+mostStretches-1)/mostStretches, 1)
	isSystem := func(i int) bool { return m.entries[i].Message.Role == convo.RoleSystem }
	next := 0 // index of an entry
	for rest := m.exchanges; len(rest) > 0; {
		if summarised && !isSystem(next) {
			addSummary()
		}
		n := 1
		for n < min(each, len(rest)) && (!summarised || isSystem(next+n)) { // a system entry is an exchange of one
			n++
		}
		st, tokens := v.stretch(m, next, rest[:n])
		add(st, tokens)
		for _, x := range rest[:n] {
			next += len(x.IDs())
		}
		rest = rest[n:]
	}
	if summarised {
		addSummary()
	}
	v.StripLegend = stripLegend(v.Strip)
}

// stretch returns a stretch of exchanges. The first of them begins with the entry at index.
func (v *view) stretch(m *moment, index int, exchanges []convo.Exchange) (st stretch, tokens int) {
	var by byRole
	next := index
	for _, x := range exchanges {
		tokens += max(x.Tokens, 1)
		st.Open = st.Open || x.Open
		for range x.IDs() {
			e := m.entries[next]
			by.add(e)
			st.Pinned, st.Cleared = st.Pinned || e.Pinned, st.Cleared || isCleared(e)
			next++
		}
	}
	st.Bands = by.bands()
	e := m.entries[index]
	if st.Title = fmt.Sprintf("%s, entry %d: %s", e.Message.Role, e.ID, counted(tokens, "token", "tokens")); len(exchanges) > 1 {
		st.Title = fmt.Sprintf("%s exchanges from entry %d on: %s", grouped(len(exchanges)), e.ID, counted(tokens, "token", "tokens"))
	}
	for _, note := range []struct {
		name string
		is   bool
	}{{"pinned", st.Pinned}, {"open call", st.Open}, {"cleared or cut", st.Cleared}} {
		if note.is {
			st.Title += ", " + note.name
		}
	}
	if st.Href = v.hrefOf(m.entries, index); len(st.Href) > longAddress {
		st.Href = ""
	}
	return st, tokens
}
