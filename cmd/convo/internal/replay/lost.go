package replay

import (
	"context"
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
	"github.com/seed-c1b73e60/convo/internal/search"
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
	times []uint8          // by string: the number of messages with it, at most everywhere+1
	first []int32          // by message: how many strings the messages before it have; at the end: all
	again []int32          // what messages repeat of the messages before them
	begin []int32          // by message: where its part of again begins; at the end: the length of again

	ours    bits            // strings that a message in convo's view holds
	shown   map[uint64]strs // by the key of a message in convo's view: its strings
	before  map[uint64]strs // shown of the view before
	summary string          // convo's

	compaction *Compaction // the newest; nil: none yet
	number     int         // of compactions so far
	most       int         // strings that are looked for after each
	sought     int         // strings that were looked for
	old        int32       // the number of strings that stood before it
	view       bits        // strings that its view holds
	after      bits        // strings mentioned after it
	theirs     string      // the recorded summary
	random     *rand.Rand
}

// The strs of a message are numbers of strings: those from first to end, and others.
type strs struct {
	first, end int32
	others     []int32
}

// A bits is a set of strings.
type bits []uint64

func newBits(n int) bits { return make(bits, (n+63)/64) }

func (b bits) add(id int32) { b[id/64] |= 1 << (id % 64) }

func (b bits) addAll(s strs) {
	for id := s.first; id < s.end; id++ {
		b.add(id)
	}
	for _, id := range s.others {
		b.add(id)
	}
}

func (b bits) has(id int32) bool { return b[id/64]&(1<<(id%64)) != 0 }

func newTracker(s *session.Session, p *convoPolicy) *tracker {
	t := &tracker{convo: p, ids: map[uint64]int32{}, shown: map[uint64]strs{}, random: rand.New(rand.NewPCG(27, 1))}
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
	n := len(t.times)
	t.ours, t.view, t.after = newBits(n), newBits(n), newBits(n)
	p.grown, p.rebuilt, p.archive = t.grown, t.rebuilt, &archive{}
	return t
}

// learn gives the strings of all messages their numbers. The messages are read on all
// processors.
func (t *tracker) learn() {
	const most = 1024 // messages read before their strings get numbers
	hashes := make([][]uint64, min(most, len(t.msgs)))
	t.first, t.begin = make([]int32, 0, len(t.msgs)+1), make([]int32, 0, len(t.msgs)+1)
	for part := range slices.Chunk(t.msgs, most) {
		onAll(len(part), func(i int) { hashes[i] = slices.AppendSeq(hashes[i][:0], hashesIn(part[i])) })
		for i := range part {
			first, begin := int32(len(t.times)), len(t.again)
			t.first, t.begin = append(t.first, first), append(t.begin, int32(begin))
			for _, h := range hashes[i] {
				id, ok := t.ids[h]
				switch {
				case !ok:
					t.ids[h] = int32(len(t.times))
					t.times = append(t.times, 1)
				case id < first && t.times[id]&counted == 0:
					t.times[id] = min(t.times[id]+1, everywhere+1) | counted
					t.again = append(t.again, id)
				}
			}
			for _, id := range t.again[begin:] {
				t.times[id] &^= counted
			}
		}
	}
	t.first, t.begin = append(t.first, int32(len(t.times))), append(t.begin, int32(len(t.again)))
}

// counted marks a string in times while the strings of a message are counted.
const counted = 1 << 7

// of returns the strings of a message.
func (t *tracker) of(at int) strs {
	return strs{t.first[at], t.first[at+1], t.again[t.begin[at]:t.begin[at+1]]}
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
func (t *tracker) text(id int32) string {
	at, _ := slices.BinarySearch(t.first, id+1) // the message after the one in which it is new
	return t.find(t.msgs[at-1], id)
}

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
	t.shown, t.before = map[uint64]strs{}, t.shown
	sum, _ := s.Summary()
	t.summary = sum.Text + "\n" + sum.Names
}

// grown follows a message at the end of convo's view.
func (t *tracker) grown(key uint64, m *convo.Message) {
	s, ok := t.shown[key]
	if !ok {
		if s, ok = t.before[key]; !ok {
			s = strs{others: t.known(m)}
		}
		t.shown[key] = s
	}
	t.ours.addAll(s)
}

// compacted begins the count for a compaction before the message at.
func (t *tracker) compacted(c *session.Compaction, report *Compaction, at int) {
	t.compaction, t.number, t.old = report, t.number+1, t.first[at]
	clear(t.view)
	clear(t.after)
	t.theirs = c.Summary
	for i := range c.View {
		m := &c.View[i]
		if c.Summary != "" {
			if text := said(m); strings.Contains(text, c.Summary) {
				m = new(convo.User(strings.Replace(text, c.Summary, "\n", 1)))
			}
		}
		for _, id := range t.known(m) {
			t.view.add(id)
		}
	}
}

// append follows a message, which convo's view holds under the key unless convo changed it.
// If it is an answer, its request has been made.
func (t *tracker) append(m *convo.Message, at int, key uint64) {
	s := t.of(at)
	t.shown[key] = s
	if t.compaction != nil && m.Role == convo.RoleAssistant {
		for _, id := range s.others { // the rest are new
			if id < t.old && !t.after.has(id) {
				t.use(m, id)
			}
		}
	}
	t.after.addAll(s)
}

// isRare reports whether a string counts.
func (t *tracker) isRare(id int32) bool { return t.times[id] <= everywhere }

// stays reports whether the messages of both views hold a string.
func (t *tracker) stays(id int32) bool { return t.isInTheirs(id) && t.ours.has(id) }

func (t *tracker) isInTheirs(id int32) bool {
	return t.view.has(id) || t.after.has(id)
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
	s := t.find(m, id)
	c.Used.All++
	count(&c.Used.Recorded, t.isInTheirs(id), strings.Contains(t.theirs, s))
	inView, inSummary := t.ours.has(id), strings.Contains(t.summary, s)
	if inView || inSummary {
		count(&c.Used.Convo, inView, inSummary)
	} else {
		text := said(m)
		query := strings.ReplaceAll(around(text, strings.Index(text, s)), s, " ")
		t.convo.archive.ask(question{query: query, want: s, compaction: t.number - 1})
	}

	for range draws {
		id := t.random.Int32N(t.old)
		if !t.isRare(id) || t.stays(id) {
			continue
		}
		text := t.text(id)
		c.Chance.All++
		count(&c.Chance.Recorded, t.isInTheirs(id), strings.Contains(t.theirs, text))
		count(&c.Chance.Convo, t.ours.has(id), strings.Contains(t.summary, text))
		return
	}
}

func count(w *Where, inView, inSummary bool) {
	switch {
	case inView:
		w.View++
	case inSummary:
		w.Summary++
	default:
		w.Gone++
	}
}

// An archive is what has left the view of a History, and what is to be searched for in it.
// The search is put off to the end: what is searched for is known then, so that the index is
// small, and nothing else but the session is in memory.
type archive struct {
	recorded  []*convo.Message // by ID: the messages of the session
	left      []leaver
	questions []question
}

// A leaver is a message that left the view, or changed in it.
type leaver struct {
	id      convo.ID
	missing int // tokens
	msg     *convo.Message
}

// A question is a search for a string that an answer used.
type question struct {
	left       int // the number of messages that had left
	query      string
	want       string
	compaction int // the index of the last one
}

// appended notes the ID of a message of the session.
func (a *archive) appended(id convo.ID, m *convo.Message) {
	for len(a.recorded) <= int(id) {
		a.recorded = append(a.recorded, nil)
	}
	a.recorded[id] = m
}

// observe notes what a compaction removed or changed.
func (a *archive) observe(r convo.Report) {
	for _, e := range r.Originals() {
		l := leaver{e.ID, e.Missing, &e.Message}
		if int(e.ID) < len(a.recorded) {
			// a message of the session takes no more memory
			if m := a.recorded[e.ID]; m != nil && hashOf(0, m) == hashOf(0, l.msg) {
				l.msg = m
			}
		}
		a.left = append(a.left, l)
	}
}

// ask puts a question about what has left so far.
func (a *archive) ask(q question) {
	q.left, q.want = len(a.left), strings.Clone(q.want) // which may be a part of a long text
	a.questions = append(a.questions, q)
}

// answer calls f for each question, and reports whether one of the messages that package recall
// would find holds the string.
func (a *archive) answer(ctx context.Context, f func(q question, isFound bool)) error {
	ix := search.For(func(yield func(string) bool) {
		for _, q := range a.questions {
			if !yield(q.query) {
				return
			}
		}
	})
	const most = 128 // messages that are read before they are added
	texts := make([]search.Text, min(most, len(a.left)))
	held := map[convo.ID]*leaver{}
	questions, n := a.questions, 0
	for ; len(questions) > 0 && questions[0].left == 0; questions = questions[1:] {
		f(questions[0], false)
	}
	for part := range slices.Chunk(a.left, most) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if len(questions) == 0 {
			return nil
		}
		onAll(len(part), func(i int) { texts[i] = ix.Read(search.TextOf(part[i].msg)) })
		for i := range part {
			l := &part[i]
			if before := held[l.id]; !texts[i].IsBlank() && (before == nil || before.missing >= l.missing) {
				held[l.id] = l
				ix.Add(int64(l.id), texts[i])
			}
			for n++; len(questions) > 0 && questions[0].left == n; questions = questions[1:] {
				f(questions[0], slices.ContainsFunc(ix.Search(search.Ask(questions[0].query), mostHits), func(m search.Match) bool {
					return strings.Contains(said(held[convo.ID(m.ID)].msg), questions[0].want)
				}))
			}
		}
	}
	return nil
}

// onAll calls f with the numbers below n, on all processors.
func onAll(n int, f func(i int)) {
	var all sync.WaitGroup
	procs := runtime.GOMAXPROCS(0)
	for k := range procs {
		all.Go(func() {
			for i := k; i < n; i += procs {
				f(i)
			}
		})
	}
	all.Wait()
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
