package replay

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/cmd/convo/internal/session"
	"github.com/seed-c1b73e60/convo/internal/long"
)

// modelOf replays a session in a slow and simple way: each request is a list of texts that is
// built anew, and compared with the list of the request before text by text.
func modelOf(t *testing.T, s *session.Session, o Options) map[Policy]*Bill {
	t.Helper()
	window := o.Window
	h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: window, Tools: max(o.Overhead, 0)}, Roles: convo.Relaxed(), TagKey: "convo replay"})
	require.NoError(t, err)
	defer h.Close()
	require.NoError(t, h.SetSystem(s.System...))
	limit := h.Status().Limit
	counter, err := convo.New(nil)
	require.NoError(t, err)
	count := func(m convo.Message) int {
		n, err := counter.Count(m)
		require.NoError(t, err)
		return n
	}

	bills, last := map[Policy]*Bill{}, map[Policy][]weighed{}
	for _, p := range Policies {
		bills[p] = &Bill{}
	}
	var all, recorded []convo.Message
	trimmed := trimModel{limit: limit, overhead: o.Overhead, count: count, system: s.System}
	compactions, requests := 0, 0
	request := func(p Policy, view []weighed) {
		b := bills[p]
		total, shared, same := o.Overhead, o.Overhead, 0
		for _, v := range view {
			total += v.tokens
		}
		for same < min(len(view), len(last[p])) && view[same] == last[p][same] {
			shared += view[same].tokens
			same++
		}
		if requests > 0 {
			b.Later += int64(total)
			b.Shared += int64(shared)
			b.Rewrites += btoi(same < len(last[p]))
		} else {
			shared = 0
		}
		cached := shared
		if cached < o.CacheMin {
			cached = 0
		}
		b.Cached += int64(cached)
		if total < o.CacheMin {
			b.New += int64(total - cached)
		} else {
			b.Written += int64(total - cached)
		}
		b.Input += int64(total)
		b.Largest = max(b.Largest, total)
		b.Over += btoi(total > window)
		b.OverLimit += btoi(total > limit)
		last[p] = view
	}
	listed := func(msgs []convo.Message) (view []weighed) {
		for i, m := range msgs {
			view = append(view, weighed{fmt.Sprint(i, textOf(t, m)), count(m)})
		}
		return view
	}
	for _, e := range s.Events {
		if e.Compaction != nil {
			bills[Recorded].Compactions++
			recorded = append([]convo.Message(nil), e.Compaction.View...)
			continue
		}
		for i, m := range e.Messages {
			if m.Role == convo.RoleAssistant && (i == 0 || e.Messages[i-1].Role != convo.RoleAssistant) {
				system := listed(s.System)
				request(Nothing, append(system[:len(system):len(system)], listed(all)...))
				request(Recorded, append(system[:len(system):len(system)], listed(recorded)...))
				if trimmed.request() {
					compactions++
				}
				var view []weighed
				for _, m := range trimmed.view() {
					view = append(view, weighed{m.Meta + textOf(t, m), count(m)})
				}
				request(Trim, append(system[:len(system):len(system)], view...))

				before := h.Status().LastEdit
				snap, _, _ := h.Prepare(t.Context())
				bills[Convo].Compactions += btoi(h.Status().LastEdit != before)
				_ = before
				view = nil
				for j, m := range snap.Messages() {
					view = append(view, weighed{textOf(t, m), weightOf(snap, j, m, count)})
				}
				request(Convo, view)
				total := o.Overhead
				for _, v := range view {
					total += v.tokens
				}
				require.NoError(t, h.RecordUsage(snap, convo.Usage{Input: total}))
				requests++
			}
			_, err := h.Append(m)
			require.NoError(t, err)
			all, recorded = append(all, m), append(recorded, m)
			m.Meta = fmt.Sprint(len(all))
			trimmed.append(m)
		}
	}
	bills[Trim].Compactions = compactions
	return bills
}

// weighed is a message of a request, and its tokens.
type weighed struct {
	text   string
	tokens int
}

// weightOf returns the tokens of the message with an index in what Messages returns.
func weightOf(s *convo.Snapshot, i int, m convo.Message, count func(convo.Message) int) int {
	_, has := s.Summary()
	system := 0
	for _, e := range s.All() {
		if e.Message.Role != convo.RoleSystem {
			break
		}
		system++
	}
	if has && i == system {
		return count(m)
	}
	if has && i > system {
		i--
	}
	e, _ := s.At(i)
	return e.Tokens
}

func textOf(t *testing.T, m convo.Message) string {
	data, err := json.Marshal(m)
	require.NoError(t, err)
	return string(data)
}

// trimModel drops messages one exchange at a time, from a list of all.
type trimModel struct {
	limit, overhead int
	count           func(convo.Message) int
	system          []convo.Message
	list            [][]convo.Message // exchanges
	first           string            // Meta of the first user message
}

func (m *trimModel) append(msg convo.Message) {
	if msg.Role == convo.RoleUser && m.first == "" {
		m.first = msg.Meta
	}
	if n := len(m.list); msg.Role == convo.RoleTool && n > 0 {
		m.list[n-1] = append(m.list[n-1], msg)
		return
	}
	m.list = append(m.list, []convo.Message{msg})
}

func (m *trimModel) view() (all []convo.Message) {
	for _, x := range m.list {
		all = append(all, x...)
	}
	return all
}

func (m *trimModel) size() (n int) {
	n = m.overhead
	for _, msg := range append(m.view(), m.system...) {
		n += m.count(msg)
	}
	return n
}

func (m *trimModel) request() (did bool) {
	if m.size() <= m.limit {
		return false
	}
	for i := 0; i < len(m.list)-1 && m.size() > m.limit/2; {
		if m.list[i][0].Meta == m.first {
			i++
			continue
		}
		m.list = append(m.list[:i:i], m.list[i+1:]...)
		did = true
	}
	return did
}

// randomSession returns a session with everything that a replay looks at.
func randomSession(r *rand.Rand, events int) *session.Session {
	words := func(n int) string {
		var b strings.Builder
		for range n {
			fmt.Fprintf(&b, "word%d ", r.IntN(60))
			if r.IntN(9) == 0 {
				fmt.Fprintf(&b, "src/file_%d.go ", r.IntN(300))
			}
		}
		return b.String()
	}
	s := &session.Session{ID: "random", Format: "claude-code", Counts: session.Counts{Records: 100}}
	if r.IntN(2) == 0 {
		s.System = []convo.Message{convo.System(words(20))}
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range events {
		at = at.Add(time.Minute)
		switch k := r.IntN(10); {
		case k < 3:
			s.Events = append(s.Events, session.Event{Time: at, Messages: []convo.Message{convo.User(words(1 + r.IntN(40)))}})
		case k < 5:
			s.Events = append(s.Events, session.Event{Time: at, Messages: []convo.Message{convo.Assistant(words(1 + r.IntN(60)))}})
		case k < 9:
			call := convo.ToolCall{ID: fmt.Sprint("c", i), Name: "read", Arguments: fmt.Sprintf(`{"path":"src/file_%d.go"}`, r.IntN(300))}
			s.Events = append(s.Events,
				session.Event{Time: at, Messages: []convo.Message{convo.Assistant(words(r.IntN(9)), call)}},
				session.Event{Time: at, Messages: []convo.Message{convo.Result(call, words(1+r.IntN(200)))}})
		case i > 20 && r.IntN(3) == 0:
			msgs := s.Messages()
			last := len(msgs) - 1
			for last > 0 && msgs[last].Role != convo.RoleUser {
				last--
			}
			summary := words(60)
			view := append([]convo.Message{convo.User("Summary:\n" + summary)}, msgs[last:]...)
			s.Events = append(s.Events, session.Event{Time: at, Compaction: &session.Compaction{Trigger: "auto", Before: 9000, Summary: summary, View: view}})
		}
	}
	return s
}

func TestRun_EqualsModel(t *testing.T) {
	n := long.Or(4, 16)
	compactions := 0
	for seed := range n {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		s := randomSession(r, 20+r.IntN(150))
		o := Options{Window: 1500 + r.IntN(4000), CacheMin: r.IntN(3) * 500}
		if r.IntN(2) == 0 {
			o.Overhead = r.IntN(400)
		}
		report := mustRun(t, s, o)
		want := modelOf(t, s, o)
		for _, p := range Policies {
			assert.Equal(t, *want[p], *report.Policies[p], "seed %d: %s", seed, p)
		}
		consistent(t, report)
		compactions += report.Policies[Convo].Compactions
		if t.Failed() {
			return
		}
	}
	assert.Greater(t, compactions, n, "the sessions are too short to say anything")
}

// consistent checks what holds for any report.
func consistent(t *testing.T, r *Report) {
	t.Helper()
	for _, p := range Policies {
		b := r.Policies[p]
		assert.Equal(t, b.Input, b.New+b.Cached+b.Written, "%s: input", p)
		assert.LessOrEqual(t, b.Shared, b.Later, "%s: shared", p)
		assert.LessOrEqual(t, b.Cached, b.Shared, "%s: cached", p)
		assert.LessOrEqual(t, b.Later, b.Input, "%s: later", p)
		assert.LessOrEqual(t, b.Over, b.OverLimit, "%s: over", p)
		assert.LessOrEqual(t, b.OverLimit, r.Requests, "%s: over the limit", p)
		assert.GreaterOrEqual(t, min(b.New, b.Cached, b.Written, b.Shared), int64(0), "%s: negative", p)
		if r.Sessions == 1 {
			require.Len(t, r.Sizes[p], r.Requests)
			sum, largest := int64(0), 0
			for _, n := range r.Sizes[p] {
				sum += int64(n)
				largest = max(largest, n)
			}
			assert.Equal(t, sum, b.Input)
			assert.Equal(t, largest, b.Largest)
		}
	}
	assert.LessOrEqual(t, r.Policies[Recorded].Input, r.Policies[Nothing].Input+bigger(r), "recorded")
	assert.LessOrEqual(t, r.Policies[Trim].Input, r.Policies[Nothing].Input, "trim sends no more than everything")
	for _, c := range r.Compactions {
		for _, s := range []Strings{c.Used, c.Chance} {
			for _, w := range []Where{s.Recorded, s.Convo} {
				assert.Equal(t, s.All, w.View+w.Summary+w.Recall+w.Gone)
			}
		}
		assert.LessOrEqual(t, c.Chance.All, c.Used.All)
		assert.LessOrEqual(t, c.PrefixLost, c.EstimatedBefore)
	}
	if m := r.Measured; m != nil {
		assert.Equal(t, m.Input, m.New+m.Cached+m.Written)
		assert.LessOrEqual(t, m.Requests, r.Requests)
	}
}

// bigger allows for a compaction that made a view larger.
func bigger(r *Report) int64 {
	if len(r.Compactions) > 0 {
		return 1 << 60
	}
	return 0
}
