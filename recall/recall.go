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
// calls within a bound of tokens, and with [Hint] each summary mentions the tool.
//
//	h, err := convo.New(&convo.Options{Limits: limits, OnCompaction: ix.Observe, SummaryHint: recall.Hint})
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
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-c1b73e60/convo"
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

	// Tokenizer counts them. Nil, or one that panics, means convo.Heuristic.
	Tokenizer convo.Tokenizer

	mu       sync.RWMutex
	docs     []doc
	passages []passage // those of a doc follow each other, in the order of docs
	byID     map[convo.ID]int32
	terms    map[string][]posting
	gone     int // how many of docs were removed
}

// A doc is a message in an Index.
type doc struct {
	entry convo.Entry
	text  string
	gone  bool // it was removed or replaced
}

// A passage is a part of the text of a doc. What a doc has of a term is what its best
// passage has, so that a long text is not worse than its parts.
type passage struct {
	doc    int32
	length float32 // of 0.72 for a passage without terms, and at most 2.64; see firstLocked
}

// A posting says how often a term is in a passage.
type posting struct {
	passage int32
	times   int32
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
	i, ok := ix.byID[id]
	if !ok {
		return convo.Entry{}, false
	}
	return clone(ix.docs[i].entry), true
}

// Len returns how many entries there are.
func (ix *Index) Len() int {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	return len(ix.byID)
}

// Drop removes the entries that were appended before a time, and returns how many there
// were. Entries whose time is not known stay.
func (ix *Index) Drop(before time.Time) int {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	n := 0
	for i := range ix.docs {
		if d := &ix.docs[i]; !d.gone && !d.entry.Time.IsZero() && d.entry.Time.Before(before) {
			ix.removeLocked(int32(i))
			n++
		}
	}
	ix.packLocked()
	return n
}

// Remove removes the entries with these IDs, and returns how many there were.
func (ix *Index) Remove(ids ...convo.ID) (n int) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	for _, id := range ids {
		if i, ok := ix.byID[id]; ok {
			ix.removeLocked(i)
			n++
		}
	}
	ix.packLocked()
	return n
}

func (ix *Index) add(e convo.Entry) {
	e = clone(e)
	if ix.Redact != nil {
		e.Message = redacted(e.Message, ix.Redact)
	}
	text := textOf(&e.Message)
	if strings.TrimSpace(text) == "" {
		return
	}
	parts := passagesOf(text)
	counts := make([]map[string]int32, len(parts))
	lengths := make([]float32, len(parts)) // in terms
	for i, part := range parts {
		counts[i] = make(map[string]int32, len(part)/8)
		for term := range termsOf(part) {
			counts[i][term]++
			lengths[i]++
		}
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.byID == nil {
		ix.byID, ix.terms = make(map[convo.ID]int32), make(map[string][]posting)
	}
	if i, ok := ix.byID[e.ID]; ok {
		if ix.docs[i].entry.Missing < e.Missing {
			return
		}
		ix.removeLocked(i)
		ix.packLocked()
	}
	i := int32(len(ix.docs))
	ix.docs = append(ix.docs, doc{entry: e, text: text})
	ix.byID[e.ID] = i
	for k := range parts {
		p := int32(len(ix.passages))
		ix.passages = append(ix.passages, passage{i, 1.2 * (0.6 + 0.4*min(lengths[k]/200, 4))})
		for term, times := range counts[k] {
			ix.terms[term] = append(ix.terms[term], posting{p, times})
		}
	}
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

// removeLocked removes a doc. Its postings stay until packLocked removes them.
func (ix *Index) removeLocked(i int32) {
	delete(ix.byID, ix.docs[i].entry.ID)
	ix.docs[i] = doc{gone: true}
	ix.gone++
}

// packLocked removes the postings of docs that were removed, if these are half of all.
func (ix *Index) packLocked() {
	if ix.gone < 64 || 2*ix.gone < len(ix.docs) {
		return
	}
	docs, passages := ix.docs[:0:0], ix.passages[:0:0]
	newDoc := make([]int32, len(ix.docs))
	for i, d := range ix.docs {
		if !d.gone {
			newDoc[i] = int32(len(docs))
			docs = append(docs, d)
		}
	}
	moved := make([]int32, len(ix.passages))
	for i, p := range ix.passages {
		if moved[i] = -1; !ix.docs[p.doc].gone {
			moved[i] = int32(len(passages))
			passages = append(passages, passage{newDoc[p.doc], p.length})
		}
	}
	for term, list := range ix.terms {
		list = slices.DeleteFunc(list, func(p posting) bool { return moved[p.passage] < 0 })
		for k := range list {
			list[k].passage = moved[list[k].passage]
		}
		if len(list) == 0 {
			delete(ix.terms, term)
		} else {
			ix.terms[term] = list
		}
	}
	ix.docs, ix.passages, ix.gone = docs, passages, 0
	for i := range docs {
		ix.byID[docs[i].entry.ID] = int32(i)
	}
}

// Search returns the k messages that match a query best, the best first. A word counts
// for less once a better message has it, so that messages about the rest of the query
// come before messages that repeat the same. Messages that match none of its words are
// left out.
func (ix *Index) Search(query string, k int) []Hit {
	if k <= 0 {
		return nil
	}
	asked := make(map[string]bool)
	var terms []string // in the order of the query, so that sums are the same each time
	for term := range termsOf(query) {
		if !asked[term] {
			asked[term], terms = true, append(terms, term)
		}
	}
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	best := ix.variedLocked(ix.bestLocked(terms, max(k, mostVaried)), terms)
	hits := make([]Hit, min(k, len(best)))
	for n, m := range best[:len(hits)] {
		d := &ix.docs[m.doc]
		hits[n] = Hit{Entry: clone(d.entry), Score: float64(m.score), Excerpt: ix.excerptLocked(d.text, asked)}
	}
	return hits
}

// A match is a doc that a search found.
type match struct {
	doc   int32
	score float32
}

// bestLocked returns the k docs that match the terms best, the best first.
func (ix *Index) bestLocked(terms []string, k int) []match {
	scores := make([]float32, len(ix.docs))
	for _, term := range terms {
		list := ix.terms[term]
		rarity := float32(ix.rarityLocked(list))
		for len(list) > 0 {
			d, often, n := ix.firstLocked(list)
			scores[d] += rarity * often
			list = list[n:]
		}
	}
	var best []match
	better := func(a, b match) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(ix.docs[b.doc].entry.ID, ix.docs[a.doc].entry.ID))
	}
	for d, score := range scores {
		m := match{int32(d), score}
		if score == 0 || ix.docs[d].gone || len(best) == k && better(m, best[k-1]) > 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, m, better)
		if best = slices.Insert(best, at, m); len(best) > k {
			best = best[:k]
		}
	}
	return best
}

// rarityLocked returns the weight of a term with these postings.
func (ix *Index) rarityLocked(list []posting) float64 {
	return math.Log1p((float64(len(ix.passages)-len(list)) + 0.5) / (float64(len(list)) + 0.5))
}

// firstLocked returns the doc of the first of some postings, what the doc has of the term,
// and how many of the postings are of this doc. Often is better than once, and among few
// terms is better than among many, but only a little.
func (ix *Index) firstLocked(list []posting) (doc int32, often float32, n int) {
	doc = ix.passages[list[0].passage].doc
	for _, p := range list {
		in := &ix.passages[p.passage]
		if in.doc != doc {
			break
		}
		times := float32(p.times)
		often = max(often, times*2.2/(times+in.length))
		n++
	}
	return doc, often, n
}

// mostVaried is how many of the best matches variedLocked puts in another order.
const mostVaried = 20

// variedLocked orders matches so that each term counts half for each match before that has
// it. The best one stays the first.
func (ix *Index) variedLocked(best []match, terms []string) []match {
	pool := slices.Clone(best[:min(len(best), mostVaried)])
	adds := make([][]float32, len(pool)) // what each term adds to a score
	for i := range adds {
		adds[i] = make([]float32, len(terms))
	}
	worth := make([]float32, len(terms))
	for t, term := range terms {
		list := ix.terms[term]
		worth[t] = float32(ix.rarityLocked(list))
		for i, m := range pool {
			at, ok := slices.BinarySearchFunc(list, m.doc, func(p posting, doc int32) int { return cmp.Compare(ix.passages[p.passage].doc, doc) })
			if ok {
				_, often, _ := ix.firstLocked(list[at:])
				adds[i][t] = often
			}
		}
	}
	for n := range pool {
		next, most := 0, float32(-1)
		for i := range pool {
			sum := float32(0)
			for t, add := range adds[i] {
				sum += add * worth[t]
			}
			if adds[i] != nil && sum > most {
				next, most = i, sum
			}
		}
		best[n] = pool[next]
		for t, add := range adds[next] {
			if add > 0 {
				worth[t] /= 2
			}
		}
		adds[next] = nil
	}
	return best
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

// textOf returns the text of a message: what was said, the names and arguments of calls,
// and results. A single text is not copied.
func textOf(m *convo.Message) string {
	var all []string
	for _, p := range m.Parts {
		switch p := p.(type) {
		case convo.Text:
			all = append(all, string(p))
		case convo.ToolCall:
			all = append(all, p.Name+" "+unescaped(p.Arguments))
		case convo.ToolResult:
			all = append(all, p.Text())
		}
	}
	text := strings.Join(all, "\n")
	if m.Author != "" {
		text = m.Author + ": " + text
	}
	return text
}
