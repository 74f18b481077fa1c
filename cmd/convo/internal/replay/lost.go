package replay

import (
	"encoding/json"
	"hash/maphash"
	"iter"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/cmd/convo/internal/session"
	"github.com/seed-c1b73e60/convo/internal/names"
	"github.com/seed-c1b73e60/convo/recall"
)

// A Compaction is what one compaction of the other program removed, and what was used of it
// later.
//
// A string counts as used if it stood in a message before the compaction, and its first
// mention after the compaction is in an answer: what a result or the user brought back is no
// use of what was kept. Strings are paths, identifiers, numbers with a form, and quoted
// values, of those that stand in at most 8 messages of the session. A string that the
// messages of both views still hold at that moment is left aside: neither policy had
// removed it.
type Compaction struct {
	Request int    `json:"request"` // how many requests were before it
	Trigger string `json:"trigger,omitempty"`
	Hidden  bool   `json:"hidden,omitempty"` // it left something that only the provider can read

	Before          int `json:"before,omitempty"` // as the program recorded it; 0: it did not
	After           int `json:"after,omitempty"`
	EstimatedBefore int `json:"estimated_before"`
	EstimatedAfter  int `json:"estimated_after"`
	PrefixLost      int `json:"prefix_lost"` // estimated tokens that the provider has to read anew

	// The estimated tokens of the first request after it, and how often convo had compacted
	// by then. A larger view holds more.
	NextRecorded     int `json:"next_recorded"`
	NextConvo        int `json:"next_convo"`
	ConvoCompactions int `json:"convo_compactions"`

	Used   Strings `json:"used"`
	More   int     `json:"more,omitempty"` // strings beyond these that were not looked for
	Chance Strings `json:"chance"`         // as many strings, drawn by chance from all that stood before the compaction

	Repeats int `json:"repeats"` // calls after it with the tool and the arguments of a call before it
}

// Strings says where strings were when they were used.
type Strings struct {
	All      int   `json:"all"`
	Recorded Where `json:"recorded"`
	Convo    Where `json:"convo"`
}

// A Where counts strings by where they were. Each string is in one of the places.
type Where struct {
	View    int `json:"view"`    // in a message of the request
	Summary int `json:"summary"` // only in the summary
	Recall  int `json:"recall"`  // in neither; a search for what stands around the use finds a message with it
	Gone    int `json:"gone"`    // in neither, and not found
}

// Held is how many strings the request held.
func (w Where) Held() int { return w.View + w.Summary }

func (w *Where) plus(o Where) {
	w.View += o.View
	w.Summary += o.Summary
	w.Recall += o.Recall
	w.Gone += o.Gone
}

func (s *Strings) plus(o Strings) {
	s.All += o.All
	s.Recorded.plus(o.Recorded)
	s.Convo.plus(o.Convo)
}

const (
	everywhere = 8    // a string of more messages is known anyway
	draws      = 100  // attempts to draw a string by chance that a policy has removed
	mostHits   = 5    // messages that a search finds
	mostSought = 1000 // strings that are looked for in one session, so that the work does not grow with its square
)

// A tracker follows where strings are. Strings have numbers in the order in which they first
// stand in a message. Their texts are not kept: a session holds very many of them.
type tracker struct {
	convo *convoPolicy

	msgs  []*convo.Message
	ids   map[uint64]int32 // by hash
	strs  [][]int32        // by message: its strings, each once
	times []uint8          // by string: the number of messages with it, at most everywhere+1
	first []int32          // by string: the first message that holds it

	ours    []int32            // by string: the number of messages in convo's view with it
	shown   map[uint64][]int32 // by the key of a message in convo's view: its strings
	before  map[uint64][]int32 // shown of the view before
	summary string             // convo's

	compaction *Compaction // the newest; nil: none yet
	number     int32       // its number, from 1
	most       int         // strings that are looked for after each
	sought     int         // strings that were looked for
	old        int32       // the number of strings that stood before it
	view       []int32     // by string: the number of the last compaction whose view holds it
	after      []int32     // by string: the number of the last compaction after which it was mentioned
	theirs     string      // the recorded summary
	random     *rand.Rand
}

func newTracker(s *session.Session, p *convoPolicy) *tracker {
	t := &tracker{convo: p, ids: map[uint64]int32{}, shown: map[uint64][]int32{}, random: rand.New(rand.NewPCG(27, 1))}
	compactions := 0
	for i := range s.Events {
		if s.Events[i].Compaction != nil {
			compactions++
		}
		for j := range s.Events[i].Messages {
			t.msgs = append(t.msgs, &s.Events[i].Messages[j])
		}
	}
	t.learn()
	t.most = max(mostSought/max(compactions, 1), 1)
	for i := range s.System {
		for _, id := range t.known(&s.System[i]) {
			t.times[id] = everywhere + 1
		}
	}
	n := len(t.first)
	t.ours, t.view, t.after = make([]int32, n), make([]int32, n), make([]int32, n)
	p.grown, p.rebuilt, p.archive = t.grown, t.rebuilt, newArchive()
	return t
}

// learn gives the strings of all messages their numbers. The messages are read on all
// processors.
func (t *tracker) learn() {
	const most = 1024 // messages read before their strings get numbers
	hashes := make([][]uint64, min(most, len(t.msgs)))
	last := []int32{} // by string: the newest message with it
	t.strs = make([][]int32, 0, len(t.msgs))
	for part := range slices.Chunk(t.msgs, most) {
		var readers sync.WaitGroup
		n := runtime.GOMAXPROCS(0)
		for k := range n {
			readers.Go(func() {
				for i := k; i < len(part); i += n {
					hashes[i] = slices.AppendSeq(hashes[i][:0], hashesIn(part[i]))
				}
			})
		}
		readers.Wait()
		for i := range part {
			at := int32(len(t.strs))
			var ids []int32
			for _, h := range hashes[i] {
				id, ok := t.ids[h]
				if !ok {
					id = int32(len(t.first))
					t.ids[h] = id
					t.first, t.times, last = append(t.first, at), append(t.times, 0), append(last, -1)
				}
				if last[id] != at {
					last[id] = at
					t.times[id] = min(t.times[id]+1, everywhere+1)
					ids = append(ids, id)
				}
			}
			t.strs = append(t.strs, slices.Clip(ids))
		}
	}
}

// hashesIn yields the hashes of the strings in a message.
func hashesIn(m *convo.Message) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for s := range stringsIn(m) {
			if !yield(maphash.String(seed, s)) {
				return
			}
		}
	}
}

// known returns the numbers of the strings in a message, each once.
func (t *tracker) known(m *convo.Message) (ids []int32) {
	for h := range hashesIn(m) {
		if id, ok := t.ids[h]; ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// text returns the text of a string.
func (t *tracker) text(id int32) string { return t.find(t.msgs[t.first[id]], id) }

// find returns the text of a string that a message holds.
func (t *tracker) find(m *convo.Message, id int32) string {
	for s := range stringsIn(m) {
		if known, ok := t.ids[maphash.String(seed, s)]; ok && known == id {
			return s
		}
	}
	return ""
}

// rebuilt begins another view of convo.
func (t *tracker) rebuilt(s *convo.Snapshot) {
	clear(t.ours)
	t.shown, t.before = map[uint64][]int32{}, t.shown
	sum, _ := s.Summary()
	t.summary = sum.Text + "\n" + sum.Names
}

// grown follows a message at the end of convo's view.
func (t *tracker) grown(key uint64, m *convo.Message) {
	ids, ok := t.shown[key]
	if !ok {
		if ids, ok = t.before[key]; !ok {
			ids = t.known(m)
		}
		t.shown[key] = ids
	}
	for _, id := range ids {
		t.ours[id]++
	}
}

// compacted begins the count for a compaction before the message at.
func (t *tracker) compacted(c *session.Compaction, report *Compaction, at int) {
	t.compaction, t.number = report, t.number+1
	old, _ := slices.BinarySearch(t.first, int32(at))
	t.old = int32(old)
	t.theirs = c.Summary
	for i := range c.View {
		m := &c.View[i]
		if c.Summary != "" {
			if text := said(m); strings.Contains(text, c.Summary) {
				m = new(convo.User(strings.Replace(text, c.Summary, "\n", 1)))
			}
		}
		for _, id := range t.known(m) {
			t.view[id] = t.number
		}
	}
}

// append follows a message, which convo's view holds under the key unless convo changed it.
// If it is an answer, its request has been made.
func (t *tracker) append(m *convo.Message, at int, key uint64) {
	ids := t.strs[at]
	t.shown[key] = ids
	if t.compaction != nil && m.Role == convo.RoleAssistant {
		for _, id := range ids {
			if id < t.old && t.after[id] != t.number {
				t.use(m, id)
			}
		}
	}
	for _, id := range ids {
		t.after[id] = t.number
	}
}

// isRare reports whether a string counts.
func (t *tracker) isRare(id int32) bool { return t.times[id] <= everywhere }

// stays reports whether the messages of both views hold a string.
func (t *tracker) stays(id int32) bool { return t.isInTheirs(id) && t.ours[id] > 0 }

func (t *tracker) isInTheirs(id int32) bool {
	return t.view[id] == t.number || t.after[id] == t.number
}

// use counts a string that an answer uses, and another drawn by chance.
func (t *tracker) use(m *convo.Message, id int32) {
	if !t.isRare(id) || t.stays(id) {
		return
	}
	c := t.compaction
	if c.Used.All >= t.most || t.sought >= mostSought {
		c.More++
		return
	}
	t.sought++
	text := t.find(m, id)
	c.Used.All++
	count(&c.Used.Recorded, t.isInTheirs(id), strings.Contains(t.theirs, text), false)
	inView, inSummary := t.ours[id] > 0, strings.Contains(t.summary, text)
	isFound := false
	if !inView && !inSummary {
		isFound = t.recalls(said(m), text)
	}
	count(&c.Used.Convo, inView, inSummary, isFound)

	for range draws {
		id := t.random.Int32N(t.old)
		if !t.isRare(id) || t.stays(id) {
			continue
		}
		text := t.text(id)
		c.Chance.All++
		count(&c.Chance.Recorded, t.isInTheirs(id), strings.Contains(t.theirs, text), false)
		count(&c.Chance.Convo, t.ours[id] > 0, strings.Contains(t.summary, text), false)
		return
	}
}

func count(w *Where, inView, inSummary, isFound bool) {
	switch {
	case inView:
		w.View++
	case inSummary:
		w.Summary++
	case isFound:
		w.Recall++
	default:
		w.Gone++
	}
}

// recalls reports whether one of the messages that package recall finds for what stands around
// a string in a text holds the string.
func (t *tracker) recalls(text, s string) bool {
	query := strings.ReplaceAll(around(text, strings.Index(text, s)), s, " ")
	for _, hit := range t.convo.archive.search(query) {
		if strings.Contains(said(&hit.Entry.Message), s) {
			return true
		}
	}
	return false
}

// An archive holds what has left the view of a History. It is filled on another processor.
type archive struct {
	index   recall.Index
	reports chan convo.Report
	open    sync.WaitGroup // reports that are not in the index yet
}

func newArchive() *archive {
	a := &archive{reports: make(chan convo.Report)}
	go func() {
		for r := range a.reports {
			a.index.Observe(r)
			a.open.Done()
		}
	}()
	return a
}

func (a *archive) observe(r convo.Report) {
	a.open.Add(1)
	a.reports <- r
}

func (a *archive) search(query string) []recall.Hit {
	a.open.Wait()
	return a.index.Search(query, mostHits)
}

func (a *archive) close() {
	a.open.Wait()
	close(a.reports)
}

// around returns the part of a text around an offset, 200 bytes to each side.
func around(text string, at int) string {
	at = max(at, 0)
	return strings.ToValidUTF8(text[max(at-200, 0):min(at+200, len(text))], "")
}

// said returns the text of a message, as texts yields it.
func said(m *convo.Message) string {
	var all []string
	for text := range texts(m) {
		all = append(all, text)
	}
	return strings.Join(all, "\n")
}

// texts yields the texts of a message, the arguments of its calls and its results. Strings in
// arguments are decoded and quoted. The names of tools are left out: their definitions hold
// them.
func texts(m *convo.Message) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, p := range m.Parts {
			text := ""
			switch p := p.(type) {
			case convo.Text:
				text = string(p)
			case convo.ToolCall:
				text = decoded(p.Arguments)
			case convo.ToolResult:
				text = p.Text()
			default:
				continue
			}
			if !yield(text) {
				return
			}
		}
	}
}

// decoded returns the keys and values of a JSON text in their order, each on a line, values
// that are short in quotes. Any other text is returned as it is.
func decoded(text string) string {
	if !json.Valid([]byte(text)) {
		return text
	}
	var b strings.Builder
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	for t, err := d.Token(); err == nil; t, err = d.Token() {
		switch t := t.(type) {
		case json.Delim:
		case string:
			if len(t) <= longestQuote && !strings.ContainsAny(t, "\"\n") {
				t = `"` + t + `"`
			}
			b.WriteString(t + "\n")
		case json.Number:
			b.WriteString(t.String() + "\n")
		}
	}
	return b.String()
}

const (
	shortestQuote = 6
	longestQuote  = 60
)

// stringsIn yields the strings of the texts of a message, with repetitions.
func stringsIn(m *convo.Message) iter.Seq[string] {
	return func(yield func(string) bool) {
		for text := range texts(m) {
			for s := range stringsOf(text) {
				if !yield(s) {
					return
				}
			}
		}
	}
}

// stringsOf yields the strings of a text that cannot be paraphrased, with repetitions: names,
// and what stands in double quotes or back quotes and has at least two words.
func stringsOf(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for s := range names.Of(text) {
			if len(s) >= shortestQuote && !yield(s) {
				return
			}
		}
		for s := text; ; {
			at := 0
			for at < len(s) && s[at] != '"' && s[at] != '`' {
				at++
			}
			if at == len(s) {
				return
			}
			quote := s[at]
			s = s[at+1:]
			end := strings.IndexByte(s[:min(len(s), longestQuote+1)], quote)
			if end < 0 {
				continue
			}
			value := s[:end]
			if len(value) >= shortestQuote && strings.Contains(value, " ") && !strings.ContainsAny(value, "\n\t") && strings.TrimSpace(value) == value {
				if !yield(value) {
					return
				}
				s = s[end+1:]
			}
		}
	}
}
