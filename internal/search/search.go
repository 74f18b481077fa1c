// Package search finds the texts that match the words of a query best.
package search

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"strings"
)

// An Index finds texts by their words. It does not keep the texts. The zero value is empty and
// ready to use. Search and Excerpt may be called by several goroutines at once. Read may be
// called at any time, but not while Pack or Add changes an Index that For returned.
type Index struct {
	docs     []doc
	passages []passage // those of a doc follow each other, in the order of docs
	byID     map[int64]int32
	numbers  map[string]int32 // by term: the index in lists
	lists    [][]posting
	fixed    bool // numbers stays as it is
	gone     int  // how many of docs were removed
}

// A doc is a text in an Index.
type doc struct {
	id   int64
	gone bool // it was removed or replaced
}

// A passage is a part of a text. What a text has of a term is what its best passage has, so
// that a long text is not worse than its parts.
type passage struct {
	doc    int32
	length float32 // of 0.72 for a passage without terms, and at most 2.64; see first
}

// A posting says how often a term is in a passage. It is small, since there are very many. No
// passage has a term more than 1<<16 times.
type posting struct{ high, low, times uint16 }

func (p posting) passage() int32 { return int32(p.high)<<16 | int32(p.low) }

func newPosting(passage int32, times uint16) posting {
	return posting{uint16(passage >> 16), uint16(passage), times}
}

// A Query is what to search for.
type Query struct {
	terms []string // in the order of the query, so that sums are the same each time
	asked map[string]bool
}

// Ask returns the query for a text.
func Ask(text string) Query {
	q := Query{asked: make(map[string]bool)}
	for term := range termsOf(text) {
		if !q.asked[term] {
			q.asked[term], q.terms = true, append(q.terms, term)
		}
	}
	return q
}

// For returns an Index that need not answer any query but these. It takes little memory, since
// it keeps no other words.
func For(queries iter.Seq[string]) *Index {
	ix := &Index{fixed: true}
	for q := range queries {
		for term := range termsOf(q) {
			ix.listOf(term)
		}
	}
	return ix
}

// listOf returns the index in lists of a term, which it adds.
func (ix *Index) listOf(term string) int32 {
	n, ok := ix.numbers[term]
	if !ok {
		if ix.numbers == nil {
			ix.numbers = make(map[string]int32)
		}
		n = int32(len(ix.lists))
		ix.numbers[term], ix.lists = n, append(ix.lists, nil)
	}
	return n
}

// list returns the postings of a term.
func (ix *Index) list(term string) []posting {
	if n, ok := ix.numbers[term]; ok {
		return ix.lists[n]
	}
	return nil
}

// A Text is a text that was read to be added.
type Text struct{ parts []part }

// IsBlank reports whether a text has nothing but white space.
func (t Text) IsBlank() bool { return len(t.parts) == 0 }

// A part is a passage to be.
type part struct {
	counts []termCount
	terms  float32 // their number, with repetitions and with those that are not kept
}

type termCount struct {
	term  string
	times uint16
}

// Read reads a text. It takes most of the time of adding one.
func (ix *Index) Read(text string) Text {
	if strings.TrimSpace(text) == "" {
		return Text{}
	}
	passages := passagesOf(text)
	t := Text{make([]part, len(passages))}
	at := make(map[string]int) // by term: its index in counts
	var counts []termCount
	for i, s := range passages {
		clear(at)
		counts = counts[:0]
		for term := range termsOf(s) {
			t.parts[i].terms++
			k, ok := at[term]
			if !ok {
				if ix.fixed {
					if _, ok := ix.numbers[term]; !ok {
						continue
					}
				}
				k = len(counts)
				at[term], counts = k, append(counts, termCount{term: term})
			}
			counts[k].times++
		}
		t.parts[i].counts = slices.Clone(counts)
	}
	return t
}

// Add adds a text under an ID, in place of another text with this ID.
func (ix *Index) Add(id int64, t Text) {
	if ix.byID == nil {
		ix.byID = make(map[int64]int32)
	}
	if ix.Remove(id) {
		ix.Pack()
	}
	i := int32(len(ix.docs))
	ix.docs = append(ix.docs, doc{id: id})
	ix.byID[id] = i
	for _, part := range t.parts {
		p := int32(len(ix.passages))
		ix.passages = append(ix.passages, passage{i, 1.2 * (0.6 + 0.4*min(part.terms/200, 4))})
		for _, c := range part.counts {
			n := ix.listOf(c.term)
			ix.lists[n] = append(ix.lists[n], newPosting(p, c.times))
		}
	}
}

// Remove removes the text with an ID, and reports whether there was one. What it held is kept
// until Pack frees it.
func (ix *Index) Remove(id int64) bool {
	i, ok := ix.byID[id]
	if ok {
		delete(ix.byID, id)
		ix.docs[i] = doc{gone: true}
		ix.gone++
	}
	return ok
}

// Pack frees the memory of texts that were removed, if these are half of all.
func (ix *Index) Pack() {
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
	lists := ix.lists[:0:0]
	for term, n := range ix.numbers {
		list := slices.DeleteFunc(ix.lists[n], func(p posting) bool { return moved[p.passage()] < 0 })
		for k, p := range list {
			list[k] = newPosting(moved[p.passage()], p.times)
		}
		if len(list) == 0 && !ix.fixed {
			delete(ix.numbers, term)
			continue
		}
		ix.numbers[term] = int32(len(lists))
		lists = append(lists, list)
	}
	ix.docs, ix.passages, ix.lists, ix.gone = docs, passages, lists, 0
	for i := range docs {
		ix.byID[docs[i].id] = int32(i)
	}
}

// A Match is a text that a search found.
type Match struct {
	ID    int64
	Score float64 // how well the text matches by itself
}

// Search returns the k texts that match a query best, the best first. Words that a text before
// matches count for less. Texts that match none of its words are left out.
func (ix *Index) Search(q Query, k int) []Match {
	best := ix.varied(ix.best(q.terms, max(k, mostVaried)), q.terms)
	matches := make([]Match, min(k, len(best)))
	for n, m := range best[:len(matches)] {
		matches[n] = Match{ix.docs[m.doc].id, float64(m.score)}
	}
	return matches
}

// A match is a doc that a search found.
type match struct {
	doc   int32
	score float32
}

// best returns the k docs that match the terms best, the best first.
func (ix *Index) best(terms []string, k int) []match {
	scores := make([]float32, len(ix.docs))
	for _, term := range terms {
		list := ix.list(term)
		rarity := float32(ix.rarity(list))
		for len(list) > 0 {
			d, often, n := ix.first(list)
			scores[d] += rarity * often
			list = list[n:]
		}
	}
	var best []match
	better := func(a, b match) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(ix.docs[b.doc].id, ix.docs[a.doc].id))
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

// rarity returns the weight of a term with these postings.
func (ix *Index) rarity(list []posting) float64 {
	return math.Log1p((float64(len(ix.passages)-len(list)) + 0.5) / (float64(len(list)) + 0.5))
}

// first returns the doc of the first of some postings, what the doc has of the term,
// and how many of the postings are of this doc. Often is better than once, and among few
// terms is better than among many, but only a little.
func (ix *Index) first(list []posting) (doc int32, often float32, n int) {
	doc = ix.passages[list[0].passage()].doc
	for _, p := range list {
		in := &ix.passages[p.passage()]
		if in.doc != doc {
			break
		}
		times := float32(p.times)
		often = max(often, times*2.2/(times+in.length))
		n++
	}
	return doc, often, n
}

// mostVaried is how many of the best matches varied puts in another order.
const mostVaried = 20

// varied orders matches so that each term counts half for each match before that has
// it. The best one stays the first.
func (ix *Index) varied(best []match, terms []string) []match {
	pool := slices.Clone(best[:min(len(best), mostVaried)])
	adds := make([][]float32, len(pool)) // what each term adds to a score
	for i := range adds {
		adds[i] = make([]float32, len(terms))
	}
	worth := make([]float32, len(terms))
	for t, term := range terms {
		list := ix.list(term)
		worth[t] = float32(ix.rarity(list))
		for i, m := range pool {
			at, ok := slices.BinarySearchFunc(list, m.doc, func(p posting, doc int32) int { return cmp.Compare(ix.passages[p.passage()].doc, doc) })
			if ok {
				_, often, _ := ix.first(list[at:])
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
