// Package recall finds messages that compactions have removed from a conversation.
//
// An [Index] is filled from the reports of compactions, or from the archive of a saved
// conversation, and is searched by words:
//
//	ix := new(recall.Index)
//	h, err := convo.New(&convo.Options{Limits: limits, OnCompaction: ix.Observe})
//	...
//	for _, hit := range ix.Search("which port did we choose for staging?", 5) {
//		fmt.Println(hit)
//	}
//
// The model can search by itself: [Index.Tool] defines a tool, [Index.Answer] answers its
// calls within a bound of tokens. With [Hint] each summary mentions the tool, and with
// [ToolName] each marker in place of a result says how to read the result.
//
//	h, err := convo.New(&convo.Options{
//		Limits:       limits,
//		OnCompaction: ix.Observe,
//		SummaryHint:  recall.Hint,
//		RecallTool:   recall.ToolName,
//	})
//	...
//	req.Tools, err = wire.Anthropic{}.Tools(append(tools, ix.Tool())...)
//	...
//	for _, call := range reply.OpenCalls() {
//		if call.Name == recall.ToolName {
//			_, err = h.Append(ix.Answer(call))
//		}
//	}
//
// # Words
//
// A search finds whole words, whatever their case. An identifier, a path or an address is
// found as a whole and by its pieces: "parseConfig" by "config", "store/file_7.go" by
// "file_7". Chinese, Japanese and Korean texts are found by pairs of characters. Rare
// words weigh more than common ones, and of two messages that match equally well, the
// newer comes first. A word counts in a long message as much as in the part of the message
// that has it most.
package recall

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/search"
)

// An Index holds messages that left the view of one conversation. The zero value is empty
// and ready to use. Its methods may be called by several goroutines at once. The fields
// must not be changed after the first call. It must not be copied after that.
type Index struct {
	// Redact, if not nil, changes a message before it is added, such as to remove a
	// secret. It gets a copy. A message without parts, or for which it panics, is left
	// out.
	Redact func(convo.Message) convo.Message

	// MaxTokens is how many tokens an answer of Answer has at most. 0 means 1,000.
	MaxTokens int

	// Tokenizer counts them. If it is nil or panics, convo.Heuristic does.
	Tokenizer convo.Tokenizer

	mu    sync.RWMutex
	held  map[convo.ID]held
	words search.Index // of the texts in held
}

// A held is a message in an Index.
type held struct {
	entry convo.Entry
	text  string
}

// A Hit is a message that a search found.
type Hit struct {
	Entry convo.Entry

	// Score says how well the message matches by itself. It can be compared within one
	// search.
	Score float64

	// Excerpt is the part of the message that matches best, at most 400 bytes.
	Excerpt string
}

// String returns the ID, the role, the time and the excerpt in one line.
func (h Hit) String() string {
	when := ""
	if !h.Entry.Time.IsZero() {
		when = ", " + h.Entry.Time.UTC().Format("2006-01-02 15:04")
	}
	return fmt.Sprintf("[%d, %s%s] %s", h.Entry.ID, h.Entry.Message.Role, when, h.Excerpt)
}

// Observe adds what a compaction took out of the view or changed in it, and removes what
// an edit has made the History forget. It is for [convo.Options].OnCompaction.
func (ix *Index) Observe(r convo.Report) {
	ix.Remove(r.Forgotten...)
	ix.Add(r.Originals()...)
}

// Add adds entries. An entry replaces one with the same ID, unless more of its results is
// missing. Entries without text are left out.
func (ix *Index) Add(entries ...convo.Entry) {
	for _, e := range entries {
		ix.add(e)
	}
}

// Load adds the entries of the archive of h that are not in its view, or not complete
// there. What was forgotten after it was saved is still in the archive until
// [convo.History.Prune] removes it; Redact keeps it out. A DamageError in the log does not
// end it, and is returned in the end; other errors are those of [convo.History.Archive].
func (ix *Index) Load(ctx context.Context, h *convo.History) error {
	view := h.Snapshot()
	var damage error
	for x, err := range h.Archive(ctx) {
		if err != nil {
			damage = cmp.Or(damage, err)
			continue // the sequence ends by itself if it cannot go on
		}
		if x.Entry == nil {
			continue
		}
		if shown, ok := view.Find(x.Entry.ID); !ok || shown.Missing > x.Entry.Missing {
			ix.add(*x.Entry)
		}
	}
	return damage
}

// Get returns the entry with the ID as it was added, and whether there is one.
func (ix *Index) Get(id convo.ID) (convo.Entry, bool) {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	d, ok := ix.held[id]
	if !ok {
		return convo.Entry{}, false
	}
	return clone(d.entry), true
}

// Len returns how many entries there are.
func (ix *Index) Len() int {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	return len(ix.held)
}

// Drop removes the entries that were appended before a time, and returns how many there
// were. Entries whose time is not known stay.
func (ix *Index) Drop(before time.Time) int {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	n := 0
	for id, d := range ix.held {
		if !d.entry.Time.IsZero() && d.entry.Time.Before(before) {
			ix.removeLocked(id)
			n++
		}
	}
	ix.words.Pack()
	return n
}

// Remove removes the entries with these IDs, and returns how many there were.
func (ix *Index) Remove(ids ...convo.ID) (n int) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	for _, id := range ids {
		if _, ok := ix.held[id]; ok {
			ix.removeLocked(id)
			n++
		}
	}
	ix.words.Pack()
	return n
}

func (ix *Index) add(e convo.Entry) {
	e = clone(e)
	if ix.Redact != nil {
		e.Message = redacted(e.Message, ix.Redact)
	}
	text := search.TextOf(&e.Message)
	read := ix.words.Read(text)
	if read.IsBlank() {
		return
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if d, ok := ix.held[e.ID]; ok && d.entry.Missing < e.Missing {
		return
	}
	if ix.held == nil {
		ix.held = make(map[convo.ID]held)
	}
	ix.held[e.ID] = held{e, text}
	ix.words.Add(int64(e.ID), read)
}

// redacted returns what redact makes of a message, and no message if it panics.
func redacted(m convo.Message, redact func(convo.Message) convo.Message) (out convo.Message) {
	defer func() {
		if recover() != nil {
			out = convo.Message{}
		}
	}()
	return redact(m)
}

func (ix *Index) removeLocked(id convo.ID) {
	delete(ix.held, id)
	ix.words.Remove(int64(id))
}

// Search returns the k messages that match a query best, the best first. A word counts
// for less once a better message has it, so that messages about the rest of the query
// come before messages that repeat the same. Messages that match none of its words are
// left out.
func (ix *Index) Search(query string, k int) []Hit {
	if k <= 0 {
		return nil
	}
	q := search.Ask(query)
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	found := ix.words.Search(q, k)
	hits := make([]Hit, len(found))
	for n, m := range found {
		d := ix.held[convo.ID(m.ID)]
		hits[n] = Hit{Entry: clone(d.entry), Score: m.Score, Excerpt: ix.words.Excerpt(d.text, q)}
	}
	return hits
}

// clone returns e with parts of its own.
func clone(e convo.Entry) convo.Entry {
	e.Message.Parts = slices.Clone(e.Message.Parts)
	for i, p := range e.Message.Parts {
		if r, ok := p.(convo.ToolResult); ok {
			r.Parts = slices.Clone(r.Parts)
			e.Message.Parts[i] = r
		}
	}
	return e
}
