package inspect

import (
	"fmt"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// A summary is the summary of a conversation on the page.
type summary struct {
	ID, Line, Covers, Model string
	Open                    bool
	Keep                    link
	Text, Names             text
	Archive                 []link
}

// tools are the tools of a conversation on the page.
type tools struct {
	ID, Line, More string
	Open           bool
	Keep           link
	List           []part
}

const mostTools = 100 // on a page

func (v *view) showSummary(s *convo.Snapshot) {
	sum, ok := s.Summary()
	if !ok {
		return
	}
	covered := 0
	for _, r := range sum.Covers {
		covered += int(r.Last-r.First) + 1
	}
	const id = "summary"
	v.Summary = &summary{
		ID: id, Open: v.at.isOpen(id), Keep: v.keep(id),
		Line: fmt.Sprintf("stands for %s, in %s", counted(covered, "message", "messages"), counted(sum.Tokens, "token", "tokens")),
		Text: v.show(sum.Text, id), Names: v.show(sum.Names, id),
		Covers: ranges(sum.Covers), Model: short(sum.Model),
	}
	if sum.Updates > 0 {
		v.Summary.Line += fmt.Sprintf(", updated %s", counted(sum.Updates, "time", "times"))
	}
	if !v.hasArchive {
		return
	}
	for _, r := range sum.Covers[:min(len(sum.Covers), mostLinks)] {
		v.Summary.Archive = append(v.Summary.Archive, link{Name: ranges([]convo.Range{r}), Href: v.archived(r.First)})
	}
}

// archived returns the address of an entry as it was appended.
func (v *view) archived(id convo.ID) string {
	at := v.at
	at.archive, at.from, at.whole, at.open, at.refresh = id, 0, "", []string{elementID("", id)}, 0
	return at.href("")
}

func (v *view) showTools(s *convo.Snapshot) {
	list := s.Tools()
	if len(list) == 0 {
		return
	}
	const id = "tools"
	v.Tools = &tools{ID: id, Open: v.at.isOpen(id), Keep: v.keep(id), Line: counted(len(list), "tool", "tools")}
	for _, t := range list[:min(len(list), mostTools)] {
		body := t.Description
		if t.Schema != "" {
			body += "\n" + t.Schema
		}
		name := t.Name
		if t.Opaque.JSON != "" {
			name = strings.TrimSpace(name + " (only for " + t.Opaque.Format + ")")
			body += t.Opaque.JSON
		}
		v.Tools.List = append(v.Tools.List, part{short(name), v.show(strings.TrimSpace(body), id)})
	}
	if len(list) > mostTools {
		v.Tools.More = "and " + counted(len(list)-mostTools, "more tool", "more tools")
	}
}
