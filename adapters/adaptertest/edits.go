package adaptertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/mirror"
)

// Edits asks an agent questions, and changes the past between the turns: a question is edited,
// the list is cut, turns in the middle are removed, or a question is inserted there. Sometimes
// the framework then starts again with the changed list. No turn may fail. Each request must be
// what the list says, in its order, less what was compacted, and what nothing has changed must
// be the list's own value. same reports whether two values are one.
func Edits[M any](t *testing.T, f Framework[M], same func(want, got M) bool) {
	for seed, strategy := range []convo.CompactionStrategy{
		convo.Truncate{},
		convo.Chain(convo.ClearToolResults{}, convo.Truncate{}),
		convo.Summarize{With: convotest.Canned{Text: "What was said."}},
	} {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			e := &editor[M]{T: t, f: f, r: rand.New(rand.NewPCG(uint64(seed), 1)), same: same, ids: map[string][]convo.ID{}, left: map[convo.ID]bool{}, old: map[string]bool{}, edits: map[string]int{}}
			e.CompactionStrategy = strategy
			e.live()
		})
	}
}

// An editor changes the list of a framework. It knows of a compaction what reports say.
type editor[M any] struct {
	*testing.T
	convo.CompactionStrategy // of the History

	f    Framework[M]
	r    *rand.Rand
	same func(want, got M) bool
	m    *mirror.Mirror[M]
	list []M
	n    int // number of the newest text
	what string

	ids   map[string][]convo.ID // of the entries that have had each mark
	left  map[convo.ID]bool     // dropped
	old   map[string]bool       // changed where nothing was in the view, before a restart
	sent  []shown
	edits map[string]int
}

// A shown is what a request shows, and what it need not show.
type shown struct{ marks, gone []string }

// What is said has a mark that nothing else has.
var mark = regexp.MustCompile(`(?:Question|Edited|Inserted|Answer) \d+\.|page\W+\d+|Page \d+ says`)

func marksOf(t *testing.T, v any) []string {
	data, ok := v.([]byte)
	if !ok {
		var err error
		if data, err = json.Marshal(v); err != nil {
			t.Fatal(err)
		}
	}
	marks := mark.FindAllString(string(data), -1)
	for i := range marks {
		marks[i] = strings.Join(strings.FieldsFunc(marks[i], func(c rune) bool { return strings.ContainsRune(" \\\":", c) }), " ")
	}
	return slices.Compact(marks) // a page says it often
}

// Compact implements convo.CompactionStrategy.
func (e *editor[M]) Compact(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
	e.scan(s)
	return e.CompactionStrategy.Compact(ctx, s, g)
}

// scan notes which entries have which marks, and returns the marks that are in the view.
func (e *editor[M]) scan(s *convo.Snapshot) map[string]convo.ID {
	now := map[string]convo.ID{}
	for _, entry := range s.All() {
		for _, k := range marksOf(e.T, entry.Message) {
			if now[k] = entry.ID; !slices.Contains(e.ids[k], entry.ID) {
				e.ids[k] = append(e.ids[k], entry.ID)
			}
		}
	}
	return now
}

// gone returns the marks that a compaction has removed.
func (e *editor[M]) gone() (marks []string) {
	s := e.m.History().Snapshot()
	now := e.scan(s)
	sum, _ := s.Summary()
	for k, ids := range e.ids {
		if _, isShown := now[k]; !isShown && slices.ContainsFunc(ids, func(id convo.ID) bool {
			_, inView := s.Find(id) // with a result that was cleared
			return !s.TakenBack(id) && (e.left[id] || inView || slices.ContainsFunc(sum.Covers, func(r convo.Range) bool { return r.First <= id && id <= r.Last }))
		}) {
			marks = append(marks, k)
		}
	}
	return marks
}

func (e *editor[M]) live() {
	asked := 0
	p := provider.New(provider.Options{Window: window, Answer: func(r provider.Request) (a provider.Answer) {
		e.sent = append(e.sent, shown{marksOf(e.T, r.Body), e.gone()})
		if asked++; e.f.Thinks {
			a.Blocks = append(a.Blocks, provider.Thinking(fmt.Sprint("thought ", asked)))
		}
		for i := range asked % 3 {
			a.Blocks = append(a.Blocks, provider.Call{Name: "read", Arguments: fmt.Sprintf(`{"page":%d}`, 10*asked+i)})
		}
		if asked%3 == 0 {
			a.Blocks = append(a.Blocks, provider.Text(fmt.Sprintf("Answer %d.", asked)))
		}
		return a
	}})
	server := httptest.NewServer(p)
	defer server.Close()
	compactions := 0
	e.f.Options.Strategy = e
	e.f.Options.OnCompaction = func(r convo.Report) {
		if r.Outcome == convo.OutcomeApplied {
			compactions++
		}
		for _, id := range r.Dropped {
			e.left[id] = true
		}
	}
	limits := convo.Limits{Window: window / 2, Reserve: 400}
	_, e.m = e.f.start(e.T, limits)
	e.f.Options.Limits = limits
	defer func() { _ = e.m.History().Close() }()
	for turn := range 40 {
		if turn > 0 {
			e.change()
		}
		if e.n++; !e.f.Follows {
			takeBack(e.T, e.m, e.list)
		}
		before := len(e.sent)
		list, err := e.f.Turn(e.T, Service{server.URL + e.f.API.Path, "none", e.f.API.Model}, e.m, append(e.list[:len(e.list):len(e.list)], e.f.User(fmt.Sprintf("Question %d.", e.n))))
		if err != nil {
			e.Fatalf("turn %d, after %s: %v", turn, e.what, err)
		}
		e.list = list
		said := marksOf(e.T, list)
		for _, s := range e.sent[before:] {
			e.check(turn, s, said)
		}
		if done, err := e.m.Follow(list); err != nil || done.Past != nil {
			e.Fatalf("turn %d, after %s: the list of the framework is another after its turn: %v, %v", turn, e.what, done, err)
		}
		e.values(turn)
	}
	for _, r := range p.Refused() {
		e.Errorf("refused: %s: %s", r.Error, r.Body)
	}
	e.Logf("%d requests, %d compactions, edits: %v", len(e.sent), compactions, e.edits)
	for _, what := range []string{"edit", "cut", "removal", "insertion", "restart"} {
		if e.edits[what] == 0 || compactions == 0 {
			e.Errorf("%d compactions, no %s among %v", compactions, what, e.edits)
		}
	}
}

// change changes the past.
func (e *editor[M]) change() {
	var asked []int // places of questions after the first one
	for i, v := range e.list {
		if k := marksOf(e.T, v); i > 0 && len(k) == 1 && !strings.HasPrefix(k[0], "Answer") && !strings.HasPrefix(strings.ToLower(k[0]), "page") {
			asked = append(asked, i)
		}
	}
	e.what = "nothing"
	restarts, gone := e.r.IntN(5) == 0, e.gone()
	if len(asked) > 1 {
		i := e.r.IntN(len(asked))
		if i >= len(asked)/2 || e.r.IntN(2) == 0 { // most edits are of the newer half
			i = max(i, len(asked)-1-e.r.IntN(3))
		}
		at, next := asked[i], len(e.list)
		if i+1 < len(asked) {
			next = asked[i+1]
		}
		e.n++
		e.list = slices.Clone(e.list)
		isOld := restarts && slices.Contains(gone, marksOf(e.T, e.list[at])[0]) // Resume looks at what is in the view
		switch op := e.r.IntN(12); {
		case op < 2:
			e.what = "edit"
			e.list[at] = e.f.User(fmt.Sprintf("Edited %d.", e.n))
			e.old[fmt.Sprintf("Edited %d.", e.n)] = isOld
		case op < 3 && len(asked) > 4:
			e.what = "cut"
			e.list = e.list[:at]
		case op < 5:
			e.what = "removal"
			e.list = slices.Delete(e.list, at, next)
		case op < 7:
			e.what = "insertion"
			e.list = slices.Insert(e.list, at, e.f.User(fmt.Sprintf("Inserted %d.", e.n)))
			e.old[fmt.Sprintf("Inserted %d.", e.n)] = isOld
		}
	}
	e.edits[e.what]++
	if restarts {
		e.what += " and a restart"
		e.edits["restart"]++
		e.restart()
	}
}

// restart starts again with the list as it is by now.
func (e *editor[M]) restart() {
	rows, err := json.Marshal(e.list)
	if err != nil {
		e.Fatal(err)
	}
	data, err := e.m.Decisions()
	if err != nil {
		e.Fatal(err)
	}
	_ = e.m.History().Close()
	e.list = nil
	if err := json.Unmarshal(rows, &e.list); err != nil {
		e.Fatal(err)
	}
	m, done, err := mirror.ResumeShorter(data, e.list, e.f.Codec, &e.f.Options)
	if errors.As(err, new(*mirror.PastError)) { // nothing of the view stands where it stood
		_, m = e.f.start(e.T, e.f.Options.Limits)
		done.Anew, err = true, nil
	}
	if err != nil {
		e.Fatalf("after %s: %v", e.what, err)
	}
	if e.m = m; done.Anew {
		clear(e.ids)
		clear(e.left)
	}
}

// check compares a request with what the list says.
func (e *editor[M]) check(turn int, s shown, want []string) {
	e.Helper()
	last := slices.Index(want, s.marks[len(s.marks)-1])
	var missing []string
	i := 0
	for _, k := range want[:last+1] {
		switch {
		case i < len(s.marks) && s.marks[i] == k:
			i++
		case !slices.Contains(s.gone, k) && !e.old[k]:
			missing = append(missing, k)
		}
	}
	if i < len(s.marks) || len(missing) > 0 {
		e.Fatalf("turn %d, after %s: a request lacks %q, and does not go on with the list from %q on:\n%q\nlist:\n%q", turn, e.what, missing, s.marks[i:], s.marks, want)
	}
}

// values checks that what is whole in the view is the list's own value.
func (e *editor[M]) values(turn int) {
	e.Helper()
	s := e.m.History().Snapshot()
	view, err := e.m.View(s)
	if err != nil {
		e.Fatal(err)
	}
	now, unbound := e.scan(s), s.Unbound()
	for i, v := range e.list {
		isWhole := !slices.ContainsFunc(marksOf(e.T, v), func(k string) bool { return now[k] == 0 || slices.Contains(unbound, now[k]) })
		if isWhole && !slices.ContainsFunc(view, func(w M) bool { return e.same(v, w) }) {
			e.Errorf("turn %d, after %s: value %d was made anew: %+v", turn, e.what, i, v)
		}
	}
}
