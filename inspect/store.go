package inspect

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/seed-c1b73e60/convo"
)

const (
	listLength  = 100              // conversations of the Store on a page
	archiveSize = 100              // entries on a page of the archive
	storeTime   = 30 * time.Second // for what one page reads of the Store
)

// A listed is a conversation in the list. One that is not in the Store has a bar of its window.
type listed struct {
	Name, Line, Href string
	About            []string
	Wrong            string
	Bar              []segment
	Limit            string // where it is on the bar; empty: there is none
}

func (p *Pages) showList(ctx context.Context, v *view, list []Conversation) int {
	v.Title, v.IsList, v.Home, v.Refreshable = "Conversations", true, false, p.List != nil
	named := map[string]bool{}
	for i, c := range list {
		if c.History == nil || v.at.after.Key != "" {
			continue
		}
		m := sizes(c.History)
		name := c.name(i, m.Snapshot)
		if named[name] {
			name = fmt.Sprintf("%s (conversation %d)", name, c.number(i))
		}
		named[name] = true
		w := windowOf(m)
		l := listed{Name: name, Line: m.status.String(), Href: state{number: c.number(i)}.href(""), Bar: w.Kinds}
		if limit := m.status.Limit; limit > 0 {
			l.Limit = percent(limit, w.whole)
		}
		l.About, l.Wrong = c.lines()
		v.List = append(v.List, l)
	}
	if p.Store == nil {
		return http.StatusOK
	}
	n := 0
	last := v.at.after
	for info, err := range p.Store.List(ctx, convo.ListOptions{Prefix: v.at.prefix, After: v.at.after}) {
		if err != nil {
			return v.fail(http.StatusInternalServerError, "The Store cannot be read: %v", err)
		}
		if n++; n > listLength {
			v.Older = state{list: true, prefix: v.at.prefix, after: last}.href("")
			break
		}
		last = info
		line := fmt.Sprintf("%s, %s, record %d of %s", counted(info.Entries, "message", "messages"), counted(info.Tokens, "token", "tokens"), info.Seq, info.Updated.Format("2006-01-02 15:04:05"))
		if info.Title != "" {
			line = short(info.Title) + ": " + line
		}
		v.List = append(v.List, listed{Name: short(info.Key), Line: line, Href: state{key: info.Key}.href("")})
	}
	return http.StatusOK
}

// showRecord shows the view as of a record.
func (p *Pages) showRecord(ctx context.Context, v *view) int {
	v.Title, v.hasArchive = short(v.at.key), true
	s, err := convo.Load(ctx, p.Store, v.at.key, v.at.seq)
	seq, first, last := v.at.seq, uint64(0), uint64(0)
	if convo.CheckKey(v.at.key) == nil {
		first, last = p.records(ctx, v.at.key)
	}
	if seq == 0 {
		seq = last
	}
	record := func(seq uint64) string { return state{key: v.at.key, seq: seq}.href("") }
	if seq > first && last > 0 {
		v.Before = record(min(seq-1, last))
	}
	if seq < last {
		v.After = record(max(seq+1, first))
	}
	if last > 0 {
		v.Line = fmt.Sprintf("Record %d of %d", seq, last)
		if first > 1 {
			v.Line += fmt.Sprintf(", of which %d is the first that is kept", first)
		}
	}
	if err != nil {
		return v.fail(statusOf(err), "The record cannot be shown: %v", err)
	}
	if title, _ := s.Meta(); title != "" {
		v.Title += ": " + short(title)
	}
	v.showMoment(momentOf(s, "this record has no limits, as neither SetLimits nor SetModel had set any."))
	v.showChecks(s, p.Formats)
	return http.StatusOK
}

// records returns the Seqs of the first and the last record of a key, as far as they can
// be read.
func (p *Pages) records(ctx context.Context, key string) (first, last uint64) {
	for r, err := range p.Store.Records(ctx, key, 0) {
		if err == nil {
			last = r.Seq
		} else if !errors.As(err, new(*convo.DamageError)) {
			break
		}
	}
	for r, err := range p.Store.Records(ctx, key, 1) {
		if err == nil {
			first = r.Seq
			break
		} else if !errors.As(err, new(*convo.DamageError)) {
			break
		}
	}
	return first, last
}

// showStoreArchive shows the archive of a conversation in the Store. It opens the
// conversation, which writes nothing.
func (p *Pages) showStoreArchive(ctx context.Context, v *view) int {
	v.Title = short(v.at.key)
	h, err := convo.Open(ctx, p.Store, v.at.key, nil)
	if err != nil {
		return v.fail(statusOf(err), "The archive cannot be shown: %v", err)
	}
	defer h.Close()
	if _, seq := h.Saved(); seq == 0 {
		return v.fail(http.StatusNotFound, "The archive cannot be shown: the Store has no conversation %q.", v.at.key)
	}
	return v.showArchive(ctx, h)
}

// statusOf returns the status of a page that err keeps from being shown.
func statusOf(err error) int {
	if errors.Is(err, convo.ErrNotFound) || errors.As(err, new(*convo.ValueError)) { // the key or the number in the address
		return http.StatusNotFound
	}
	return http.StatusInternalServerError
}

// showArchive shows entries as they were appended.
func (v *view) showArchive(ctx context.Context, h *convo.History) int {
	v.IsArchive = true
	back := v.at
	back.archive, back.from, back.whole, back.open = 0, 0, "", nil
	v.Back = back.href("")
	page := v.at
	page.whole = ""
	if v.at.archive > 1 {
		page.archive = max(v.at.archive-archiveSize, 1)
		v.Older = page.href("")
	}
	for a, err := range h.Archive(ctx, convo.Range{First: v.at.archive, Last: math.MaxInt64}) {
		var damage *convo.DamageError
		switch {
		case errors.As(err, &damage):
			v.Problem = visible(first(err.Error(), mostText))
			continue
		case errors.Is(err, convo.ErrNoStore):
			return v.fail(http.StatusNotFound, "The conversation has no Store, and so no archive. Open it with convo.Open, or call its method Attach.")
		case err != nil:
			return v.fail(http.StatusInternalServerError, "The archive cannot be read: %v", err)
		case a.Gone != nil && len(v.Gone) < archiveSize:
			v.Gone = append(v.Gone, "gone: entries "+ranges(a.Gone))
		}
		if a.Entry == nil {
			continue
		}
		if len(v.Entries) == archiveSize {
			page.archive = a.Entry.ID
			v.Newer = page.href("")
			break
		}
		shown := v.entry("", *a.Entry, nil)
		shown.Tokens = "" // the archive does not count
		v.Entries = append(v.Entries, shown)
	}
	return http.StatusOK
}
