package convo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/internal/overflow"
	"github.com/seed-c1b73e60/convo/internal/thoughts"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A sentItem is a piece of a request, as a provider's cache compares it.
type sentItem struct {
	kind, content string
	tokens        int
}

// sentItems returns what a request made of s consists of, in the order of the wire.
func sentItems(t *testing.T, s *convo.Snapshot) (items []sentItem) {
	t.Helper()
	add := func(kind string, tokens int, content any) {
		data, err := json.Marshal(content)
		require.NoError(t, err)
		items = append(items, sentItem{kind, string(data), tokens})
	}
	for _, tool := range s.Tools() {
		add("tools", len(tool.Name)+len(tool.Description)+len(tool.Schema), tool)
	}
	list := s.Messages()
	for len(list) > 0 && list[0].Role == convo.RoleSystem {
		add("system", len(list[0].Text()), list[0])
		list = list[1:]
	}
	if sum, ok := s.Summary(); ok {
		add("edit", sum.Tokens, sum.Text)
		list = list[1:]
	} else {
		add("edit", 0, nil)
	}
	var counted []int
	for _, e := range s.All() {
		if e.Message.Role != convo.RoleSystem {
			counted = append(counted, e.Tokens)
		}
	}
	for _, m := range list {
		if !strings.HasPrefix(m.Text(), "moment") {
			add("edit", counted[0], m.Parts)
			counted = counted[1:]
			continue
		}
		if n := len(items) - 1; items[n].kind == "ephemeral" { // a set is the same as a whole
			items[n].content += m.Text()
			items[n].tokens += len(m.Text())
			continue
		}
		add("ephemeral", len(m.Text()), m.Parts)
	}
	return items
}

// keptOf returns the fraction of one request that another begins with, and the kinds of the two
// items that differ first.
func keptOf(a, b []sentItem) (kept float64, ends []string) {
	total, same, i := 0, 0, 0
	for _, item := range a {
		total += item.tokens
	}
	for i < len(a) && i < len(b) && a[i] == b[i] {
		same += a[i].tokens
		i++
	}
	if i == len(a) || same == total {
		return 1, nil
	}
	ends = append(ends, a[i].kind)
	if i < len(b) {
		ends = append(ends, b[i].kind)
	}
	return float64(same) / float64(total), ends
}

// Whatever happens in a conversation, PrefixKept is what a comparison of the two whole requests
// shows.
func TestReport_PrefixKeptAgainstAModel(t *testing.T) {
	for seed := range uint64(300) {
		prefixLife(t, rand.New(rand.NewPCG(seed, 7)), seed)
	}
}

func prefixLife(t *testing.T, rnd *rand.Rand, seed uint64) {
	opts := bare()
	opts.Roles = convo.Relaxed()
	opts.Strategy = convo.Truncate{}
	h := historyOf(t, opts, convo.System("guide"), convo.User("where to"))
	var sent []sentItem
	model, sentModel := "", ""
	exact := true
	var snapshots []*convo.Snapshot
	var prepared *convo.Snapshot // what Prepare has returned last
	var reports []convo.Report
	var log []string
	word := func(kind string) string { return fmt.Sprintf("%s %d", kind, rnd.IntN(5)) }
	tools := func() []convo.Tool {
		list := []convo.Tool{{Name: "read", Description: "reads"}, {Name: "search", Description: "finds"}}
		list[rnd.IntN(2)].Description = word("does")
		return list[:1+rnd.IntN(2)]
	}
	answer := func() {
		at, _, err := h.Prepare(t.Context())
		require.NoError(t, err)
		sent, sentModel, exact = sentItems(t, at), model, true
		if rnd.IntN(4) == 0 {
			mustAppend(t, h, convo.User("meanwhile"))
		}
		m := convo.Assistant(word("answer"))
		switch rnd.IntN(4) {
		case 0:
			_, err = h.AppendReply(at, convo.Reply{Messages: []convo.Message{m}})
		case 1:
			err = h.RecordUsage(at, convo.Usage{Input: at.Tokens()})
		case 2:
			_, err = h.Do(t.Context(), func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
				sent = sentItems(t, s)
				return convo.Reply{Messages: []convo.Message{m}}, nil
			})
		default:
			at, _, err = h.Prepare(t.Context())
			require.NoError(t, err)
			sent = sentItems(t, at)
			if rnd.IntN(2) == 0 { // neither is part of the request
				require.NoError(t, h.Pin(mustAppend(t, h, convo.User("and"))))
			}
			_, err = h.Append(m)
		}
		require.NoError(t, err, "%v", log)
	}
	for range 60 {
		snapshots = append(snapshots, h.Snapshot())
		step := rnd.IntN(16)
		switch step {
		case 0, 1, 2, 3:
			answer()
		case 4, 5:
			mustAppend(t, h, convo.User(word("question")))
		case 6:
			if prepared != nil {
				sent, sentModel, exact = sentItems(t, prepared), model, true
			}
			c := callOf(fmt.Sprint("c", rnd.Int()))
			mustAppend(t, h, convo.Assistant("", c), convo.Result(c, strings.Repeat("road ", 1+rnd.IntN(9))))
		case 7:
			require.NoError(t, h.SetSystem([]convo.Message{convo.System(word("guide")), convo.System(word("date"))}[:1+rnd.IntN(2)]...))
		case 8:
			require.NoError(t, h.SetTools(tools()...))
		case 9:
			var list []convo.Message
			for range rnd.IntN(3) {
				list = append(list, convo.User(word("moment")))
			}
			require.NoError(t, h.SetEphemeral(list...))
		case 10:
			model = word("model")
			require.NoError(t, h.SetModel(model, convo.Limits{}))
		case 11:
			_ = h.Rollback(snapshots[rnd.IntN(len(snapshots))])
		case 12:
			_, _ = h.Rewind(1)
		case 13:
			if len(reports) > 0 && h.Undo(reports[len(reports)-1]) == nil {
				reports = reports[:len(reports)-1]
			}
		case 14:
			s := h.Snapshot()
			ids := idsOf(s)
			e := convo.Edit{Drop: ids[1:min(len(ids), 1+rnd.IntN(4))]}
			if rnd.IntN(2) == 0 {
				e.Summary = &convo.Summary{Text: word("summary")}
			}
			if r, err := h.Apply(s, e); err == nil {
				reports = append(reports, r)
				was, ends := keptOf(sent, sentItems(t, h.Snapshot()))
				if sent != nil && exact && sentModel == model {
					require.InDelta(t, was, r.PrefixKept, 1e-9, "seed %d: %v: %v", seed, log, ends)
				}
			}
		case 15:
			data, err := json.Marshal(h.Snapshot())
			require.NoError(t, err)
			s, before := new(convo.Snapshot), h.Snapshot()
			require.NoError(t, json.Unmarshal(data, s))
			if rnd.IntN(2) == 0 {
				s = before
			}
			h, err = convo.Restore(s, opts)
			require.NoError(t, err)
			snapshots, reports = []*convo.Snapshot{h.Snapshot()}, nil
			exact = exact && s == before
		}
		log = append(log, fmt.Sprint(step))
		at, r, err := h.Prepare(t.Context())
		require.NoError(t, err)
		prepared = at
		if sent == nil {
			require.InDelta(t, 1, r.PrefixKept, 0)
			continue
		}
		want, ends := keptOf(sent, sentItems(t, h.Snapshot()))
		if model != sentModel {
			want, ends = 0, []string{"model"}
		}
		if want == 1 {
			ends = nil
		}
		if exact {
			require.InDelta(t, want, r.PrefixKept, 1e-9, "seed %d: %v: %v", seed, log, ends)
			kind, _, _ := strings.Cut(r.PrefixEnd, ":")
			if kind == "rollback" {
				kind = "edit"
			}
			want := ""
			for _, end := range []string{"model", "tools", "system", "ephemeral", "edit"} {
				if slices.Contains(ends, end) {
					want = end
					break
				}
			}
			require.Equal(t, want, kind, "seed %d: %v", seed, log)
		} else {
			require.LessOrEqual(t, r.PrefixKept, want+1e-9, "seed %d: %v", seed, log)
		}
	}
}

// A change of the system text or a tool after a load is told before anything is sent.
func TestReport_PrefixAfterALoad(t *testing.T) {
	opts := bare()
	var out bytes.Buffer
	opts.Logger = slog.New(slog.NewTextHandler(&out, nil))
	opts.Limits = convo.Limits{Window: 100_000}
	search, read := convo.Tool{Name: "search", Description: "finds"}, convo.Tool{Name: "read", Description: "reads"}
	store := new(shelf)
	h := open(t, store, "k", opts)
	setUp := func(h *convo.History, guide string, tools ...convo.Tool) convo.Report {
		require.NoError(t, h.SetSystem(convo.System(guide)))
		require.NoError(t, h.SetTools(tools...))
		_, r, err := h.Prepare(t.Context())
		require.NoError(t, err)
		return r
	}
	setUp(h, "guide", search, read)
	mustAppend(t, h, convo.User(strings.Repeat("where to ", 5000)))
	at, _, err := h.Prepare(t.Context())
	require.NoError(t, err)
	_, err = h.AppendReply(at, convo.Reply{Messages: []convo.Message{convo.Assistant("there")}})
	require.NoError(t, err)
	save(t, h)
	saved, err := json.Marshal(h.Snapshot())
	require.NoError(t, err)

	for name, load := range map[string]func() *convo.History{
		"Open": func() *convo.History { return open(t, store, "k", opts) },
		"Restore": func() *convo.History {
			s := new(convo.Snapshot)
			require.NoError(t, json.Unmarshal(saved, s))
			h, err := convo.Restore(s, opts)
			require.NoError(t, err)
			return h
		},
	} {
		t.Run(name, func(t *testing.T) {
			out.Reset()
			r := setUp(load(), "guide", search, read)
			assert.InDelta(t, 1, r.PrefixKept, 0)
			assert.Empty(t, out.String())

			r = setUp(load(), "guide 2", search, read)
			assert.InDelta(t, 20.0/45025, r.PrefixKept, 1e-9)
			assert.Equal(t, "system", r.PrefixEnd)
			assert.Contains(t, out.String(), "change=system")
			assert.Equal(t, 1, strings.Count(out.String(), "level=WARN"))

			h := load()
			read.Description += "!"
			r = setUp(h, "guide", search, read)
			assert.InDelta(t, 11.0/45025, r.PrefixKept, 1e-9)
			assert.Equal(t, "tools: read", r.PrefixEnd)
			out.Reset()
			_, _, err := h.Prepare(t.Context())
			require.NoError(t, err)
			assert.Empty(t, out.String(), "told once")
			read.Description = "reads"
			r = setUp(h, "guide", search, read)
			assert.InDelta(t, 1, r.PrefixKept, 0)

			require.NoError(t, h.SetModel("another", convo.Limits{}))
			_, r, err = h.Prepare(t.Context())
			require.NoError(t, err)
			assert.Zero(t, r.PrefixKept)
			assert.Equal(t, "model", r.PrefixEnd)
		})
	}
}

// Decisions hold what was sent, so that a Resume tells a changed system text.
func TestReport_PrefixAfterAResume(t *testing.T) {
	keyed := func(m convo.Message, key string) convo.Message { m.Key = key; return m }
	rows := []convo.Message{keyed(convo.User("where to"), "a"), keyed(convo.Assistant("there"), "b")}
	h := historyOf(t, bare(), convo.System("guide"), rows[0])
	at, _, err := h.Prepare(t.Context())
	require.NoError(t, err)
	_, err = h.AppendReply(at, convo.Reply{Messages: rows[1:]})
	require.NoError(t, err)
	data, err := h.Decisions()
	require.NoError(t, err)
	for _, guide := range []string{"guide", "guide 2"} {
		d, err := convo.ReadDecisions(data)
		require.NoError(t, err)
		h, err := convo.Resume(d, rowsOf(rows...), bare())
		require.NoError(t, err)
		require.NoError(t, h.SetSystem(convo.System(guide)))
		_, r, err := h.Prepare(t.Context())
		require.NoError(t, err)
		if guide == "guide" {
			assert.InDelta(t, 1, r.PrefixKept, 0)
		} else {
			assert.Zero(t, r.PrefixKept)
			assert.Equal(t, "system", r.PrefixEnd)
		}
	}
}

// Do reports a lost prefix although nothing was compacted, once.
func TestDo_ReportsALostPrefix(t *testing.T) {
	h := historyOf(t, bare(), convo.System("guide"), convo.User("where to"))
	send := func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		return convo.Reply{Messages: []convo.Message{convo.Assistant("there")}}, nil
	}
	reply, err := h.Do(t.Context(), send)
	require.NoError(t, err)
	assert.Empty(t, reply.Reports)
	mustAppend(t, h, convo.User("how far"))
	require.NoError(t, h.SetSystem(convo.System("another guide")))
	reply, err = h.Do(t.Context(), send)
	require.NoError(t, err)
	require.Len(t, reply.Reports, 1)
	assert.Equal(t, convo.OutcomeNotNeeded, reply.Reports[0].Outcome)
	assert.Equal(t, "system", reply.Reports[0].PrefixEnd)
	assert.Zero(t, reply.Reports[0].PrefixKept)
	mustAppend(t, h, convo.User("and back"))
	reply, err = h.Do(t.Context(), send)
	require.NoError(t, err)
	assert.Empty(t, reply.Reports)
}

// Reasoning that is released is not sent any more, so the prefix ends there.
func TestReport_PrefixAfterARelease(t *testing.T) {
	h := historyOf(t, bare(), convo.User("where to"))
	answer := func(parts ...convo.Part) {
		at, _, err := h.Prepare(t.Context())
		require.NoError(t, err)
		_, err = h.AppendReply(at, convo.Reply{Messages: []convo.Message{{Role: convo.RoleAssistant, Parts: parts}}})
		require.NoError(t, err)
	}
	answer(convo.Reasoning{Text: "hm", Signature: "sig"}, convo.Text("there"))
	mustAppend(t, h, convo.User("how far"))
	answer(convo.Text("a mile"))
	mustAppend(t, h, convo.User("and back"))
	require.Equal(t, 1, convo.Release(h))
	_, r, err := h.Prepare(t.Context())
	require.NoError(t, err)
	assert.InDelta(t, 8.0/float64(8+2+5+7), r.PrefixKept, 0.15)
	assert.Equal(t, "edit", r.PrefixEnd)
}

// A conversation that is resumed without its newest rows tells that they are gone.
func TestReport_PrefixAfterDecisionsRewind(t *testing.T) {
	keyed := func(m convo.Message, key string) convo.Message { m.Key = key; return m }
	var rows []convo.Message
	h := historyOf(t, bare())
	for i := range 6 {
		rows = append(rows, keyed(convo.User("where to"), fmt.Sprint("u", i)), keyed(convo.Assistant("there"), fmt.Sprint("a", i)))
		mustAppend(t, h, rows[2*i])
		at, _, err := h.Prepare(t.Context())
		require.NoError(t, err)
		_, err = h.AppendReply(at, convo.Reply{Messages: rows[2*i+1:]})
		require.NoError(t, err)
	}
	data, err := h.Decisions()
	require.NoError(t, err)
	d, err := convo.ReadDecisions(data)
	require.NoError(t, err)
	require.NoError(t, d.RewindTo(4))
	h, err = convo.Resume(d, rowsOf(rows[:4]...), bare())
	require.NoError(t, err)
	_, r, err := h.Prepare(t.Context())
	require.NoError(t, err)
	assert.InDelta(t, 26.0/73, r.PrefixKept, 0.02)
	assert.Equal(t, "rollback", r.PrefixEnd)
}

// After a Reload, an own request that is newer than what others have saved is still the last one.
func TestReport_PrefixAfterAReload(t *testing.T) {
	s := new(shelf)
	a := open(t, s, "k", bare())
	mustAppend(t, a, convo.User("where to"))
	save(t, a)
	b := open(t, s, "k", bare())
	mustAppend(t, a, convo.Assistant("there"), convo.User(strings.Repeat("how far ", 60)))
	at, _, err := a.Prepare(t.Context())
	require.NoError(t, err)
	_, err = a.AppendReply(at, convo.Reply{Messages: []convo.Message{convo.Assistant("a mile")}})
	require.NoError(t, err)
	require.NoError(t, b.SetMeta("title", ""))
	save(t, b)
	require.Error(t, a.Save(t.Context()))
	_, _, err = a.Reload(t.Context())
	require.NoError(t, err)
	_, err = a.Rewind(1)
	require.NoError(t, err)
	_, r, err := a.Prepare(t.Context())
	require.NoError(t, err)
	assert.Less(t, r.PrefixKept, 0.1)
	assert.Equal(t, "rollback", r.PrefixEnd)
}

// An agent whose ephemeral messages move with each turn is told once.
func TestReport_PrefixWarnsOnce(t *testing.T) {
	var out bytes.Buffer
	opts := bare()
	opts.Logger = slog.New(slog.NewTextHandler(&out, nil))
	opts.Limits = convo.Limits{Window: 100_000, MinFree: 5}
	h := historyOf(t, opts, convo.User("where to"))
	require.NoError(t, h.SetEphemeral(convo.User("it rains")))
	for i := range 20 {
		at, _, err := h.Prepare(t.Context())
		require.NoError(t, err)
		_, err = h.AppendReply(at, convo.Reply{Messages: []convo.Message{convo.Assistant(strings.Repeat("there ", 9))}})
		require.NoError(t, err)
		mustAppend(t, h, convo.User("and then"))
		if i >= 10 {
			require.NoError(t, h.SetModel(fmt.Sprint("model ", i%2), convo.Limits{}))
		}
	}
	assert.Equal(t, 1, strings.Count(out.String(), "change=ephemeral"), out.String())
	assert.Equal(t, 1, strings.Count(out.String(), "change=model"), out.String())
}

// A request with figures that cannot be is refused with the state that holds it.
func TestSnapshot_BadRequest(t *testing.T) {
	const heads = `,"heads":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAdbwPPYuABDM"`
	for name, tt := range map[string]struct {
		fields string
		ok     bool
	}{
		"many entries":    {heads + `,"sent":[99,1]`, true},
		"large":           {heads + `,"sent":[9007199254740991]`, false},
		"negative":        {heads + `,"sent":[-1]`, false},
		"eleven":          {heads + `,"sent":[1,1,1,1,1,1,1,1,1,1,1,1]`, false},
		"short heads":     {`,"heads":"AAAA","sent":[1]`, false},
		"no heads":        {`,"sent":[1]`, true},
		"no figures":      {heads, true},
		"all are hostile": {heads + `,"sent":[4503599627370496,4503599627370496,4503599627370496,4503599627370496,4503599627370496,4503599627370496,4503599627370496,4503599627370496,4503599627370496,7]`, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := new(convo.Snapshot)
			err := json.Unmarshal([]byte(`{"version":1,"key":"@bcdefgh","last":2,"turn":1,"entries":[{"id":2,"turn":1,"message":{"role":"user","parts":[{"type":"text","text":"hi"}]}}]`+tt.fields+`}`), s)
			if !tt.ok {
				var bad *convo.SnapshotError
				require.ErrorAs(t, err, &bad)
				return
			}
			require.NoError(t, err)
			h, err := convo.Restore(s, nil)
			require.NoError(t, err)
			_, r, err := h.Prepare(t.Context())
			require.NoError(t, err)
			assert.True(t, r.PrefixKept >= 0 && r.PrefixKept <= 1, "%v", r.PrefixKept)
			_, err = h.Rewind(1)
			require.NoError(t, err)
			mustAppend(t, h, convo.User("hi"))
			_, r, err = h.Prepare(t.Context())
			require.NoError(t, err)
			assert.True(t, r.PrefixKept >= 0 && r.PrefixKept <= 1, "%v", r.PrefixKept)
			store := new(shelf)
			require.NoError(t, h.Attach(t.Context(), store, "k"))
			save(t, h)
			open(t, store, "k", nil)
		})
	}
}

// signed returns an answer with signed reasoning.
func signed(text string, calls ...convo.ToolCall) convo.Message {
	return thoughts.In(convo.Assistant(text, calls...), convo.Reasoning{Text: "hm", Signature: "sig of " + text})
}

// Reasoning is bound to what was sent, not to what stands there when the answer arrives.
func TestBound(t *testing.T) {
	start := func(t *testing.T) *convo.History {
		return historyOf(t, &convo.Options{Roles: convo.Relaxed()}, convo.System("guide"), convo.User("one"), convo.Assistant("1"), convo.User("two"))
	}
	answer := func(t *testing.T, h *convo.History) convo.ID {
		_, _, err := h.Prepare(t.Context())
		require.NoError(t, err)
		return mustAppend(t, h, signed("2"))
	}
	for name, tt := range map[string]struct {
		do   func(t *testing.T, h *convo.History) convo.ID
		want bool
	}{
		"an answer":  {answer, true},
		"no Prepare": {func(t *testing.T, h *convo.History) convo.ID { return mustAppend(t, h, signed("2")) }, true},
		"more is appended": {func(t *testing.T, h *convo.History) convo.ID {
			id := answer(t, h)
			mustAppend(t, h, convo.User("three"), signed("3"), convo.User("four"))
			return id
		}, true},
		"after a message that was not sent": {func(t *testing.T, h *convo.History) convo.ID {
			_, _, err := h.Prepare(t.Context())
			require.NoError(t, err)
			return mustAppend(t, h, convo.User("not sent"), signed("2"))
		}, false},
		"after such an answer": {func(t *testing.T, h *convo.History) convo.ID {
			_, _, err := h.Prepare(t.Context())
			require.NoError(t, err)
			return mustAppend(t, h, convo.User("not sent"), signed("2"), convo.User("three"), signed("3"))
		}, true},
		"an edit before it": {func(t *testing.T, h *convo.History) convo.ID {
			id := answer(t, h)
			_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{2, 3}})
			require.NoError(t, err)
			return id
		}, false},
		"an edit before it, undone": {func(t *testing.T, h *convo.History) convo.ID {
			id := answer(t, h)
			r, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{2, 3}})
			require.NoError(t, err)
			require.NoError(t, h.Undo(r))
			return id
		}, true},
		"an edit while the request is under way": {func(t *testing.T, h *convo.History) convo.ID {
			_, _, err := h.Prepare(t.Context())
			require.NoError(t, err)
			_, err = h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{2, 3}})
			require.NoError(t, err)
			return mustAppend(t, h, signed("2"))
		}, false},
		"a message while the request is under way": {func(t *testing.T, h *convo.History) convo.ID {
			s, _, err := h.Prepare(t.Context())
			require.NoError(t, err)
			mustAppend(t, h, convo.User("also"))
			id, err := appendReply(h, s, signed("2"))
			require.NoError(t, err)
			return id
		}, false},
		"AppendReply to an older snapshot": {func(t *testing.T, h *convo.History) convo.ID {
			s := h.Snapshot()
			mustAppend(t, h, convo.Assistant("x"), convo.User("y"))
			_, _, err := h.Prepare(t.Context())
			require.NoError(t, err)
			require.NoError(t, h.Rollback(s))
			id, err := appendReply(h, s, signed("2"))
			require.NoError(t, err)
			return id
		}, true},
		"RecordUsage names the snapshot": {func(t *testing.T, h *convo.History) convo.ID {
			s := h.Snapshot()
			mustAppend(t, h, convo.User("also"))
			require.NoError(t, h.RecordUsage(s, convo.Usage{Input: 50}))
			return mustAppend(t, h, signed("2"))
		}, false},
		"RecordUsage after the answer": {func(t *testing.T, h *convo.History) convo.ID {
			s := h.Snapshot()
			mustAppend(t, h, signed("2"))
			require.NoError(t, h.RecordUsage(s, convo.Usage{Input: 50}))
			mustAppend(t, h, convo.User("more"))
			return mustAppend(t, h, signed("3"))
		}, true},
		"SetSystem": {func(t *testing.T, h *convo.History) convo.ID {
			id := answer(t, h)
			require.NoError(t, h.SetSystem(convo.System("other")))
			return id
		}, false},
		"SetSystem, and back": {func(t *testing.T, h *convo.History) convo.ID {
			id := answer(t, h)
			require.NoError(t, h.SetSystem(convo.System("other")))
			require.NoError(t, h.SetSystem(convo.System("guide")))
			return id
		}, true},
		"a summary": {func(t *testing.T, h *convo.History) convo.ID {
			id := answer(t, h)
			_, err := h.SplicePrefix(h.Snapshot(), 2, "sum")
			require.NoError(t, err)
			return id
		}, false},
		"a summary beside all messages": {func(t *testing.T, h *convo.History) convo.ID {
			id := answer(t, h)
			_, err := h.Apply(h.Snapshot(), convo.Edit{Summary: &convo.Summary{Text: "sum"}})
			require.NoError(t, err)
			return id
		}, false},
		"a second answer without Prepare": {func(t *testing.T, h *convo.History) convo.ID {
			answer(t, h)
			mustAppend(t, h, convo.User("three"))
			return mustAppend(t, h, signed("3"))
		}, true},
		"ephemeral messages before it": {func(t *testing.T, h *convo.History) convo.ID {
			id := answer(t, h)
			require.NoError(t, h.SetEphemeral(convo.User("now")))
			return id
		}, false},
		"ephemeral messages that were sent": {func(t *testing.T, h *convo.History) convo.ID {
			require.NoError(t, h.SetEphemeral(convo.User("now")))
			return answer(t, h)
		}, true},
		"ephemeral messages that have moved": {func(t *testing.T, h *convo.History) convo.ID {
			require.NoError(t, h.SetEphemeral(convo.User("now")))
			id := answer(t, h)
			mustAppend(t, h, convo.User("three"))
			return id
		}, false},
		"a rewrite of its own": {func(t *testing.T, h *convo.History) convo.ID {
			id := answer(t, h)
			_, err := h.Apply(h.Snapshot(), convo.Edit{Rewrite: []convo.Rewrite{{ID: id, Parts: []convo.Part{convo.Reasoning{Text: "hm", Signature: "sig of 2"}, convo.Text("3")}}}})
			require.NoError(t, err)
			return id
		}, false},
		"an answer before it whose reasoning was left out": {func(t *testing.T, h *convo.History) convo.ID {
			first := answer(t, h)
			mustAppend(t, h, convo.User("three"))
			id := mustAppend(t, h, signed("4"))
			e, _ := h.Snapshot().Find(first)
			_, err := h.Apply(h.Snapshot(), convo.Edit{Rewrite: []convo.Rewrite{{ID: first, Parts: []convo.Part{convo.Text(e.Message.Text())}}}})
			require.NoError(t, err)
			return id
		}, true},
		"an answer before it whose reasoning was left out after other reasoning": {func(t *testing.T, h *convo.History) convo.ID {
			answer(t, h)
			mustAppend(t, h, convo.User("three"))
			second := mustAppend(t, h, signed("4"))
			mustAppend(t, h, convo.User("five"))
			id := mustAppend(t, h, signed("6"))
			_, err := h.Apply(h.Snapshot(), convo.Edit{Rewrite: []convo.Rewrite{{ID: second, Parts: []convo.Part{convo.Text("4")}}}})
			require.NoError(t, err)
			return id
		}, false},
		"without a signature": {func(t *testing.T, h *convo.History) convo.ID {
			return mustAppend(t, h, thoughts.In(convo.Assistant("2"), convo.Reasoning{Text: "hm"}))
		}, false},
		"released": {func(t *testing.T, h *convo.History) convo.ID {
			id := answer(t, h)
			s := h.Snapshot()
			mustAppend(t, h, convo.User("x"))
			assert.Equal(t, 1, convo.Release(h))
			assert.Zero(t, convo.Release(h))
			require.NoError(t, h.Rollback(s))
			return id
		}, false},
		"released before it": {func(t *testing.T, h *convo.History) convo.ID {
			convo.Release(h)
			return answer(t, h)
		}, true},
		"an answer beside an open call": {func(t *testing.T, h *convo.History) convo.ID {
			c := callOf("c")
			mustAppend(t, h, convo.Assistant("", c))
			s := h.Snapshot()
			mustAppend(t, h, convo.Result(c, "r"))
			require.NoError(t, h.Rollback(s))
			id, err := appendReply(h, s, convo.Result(c, "r"), signed("2"))
			require.NoError(t, err)
			return id
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t)
			id := tt.do(t, h)
			for _, s := range []*convo.Snapshot{h.Snapshot(), readBack(t, h.Snapshot()), restoreOf(t, h.Snapshot()).Snapshot(), restoreOf(t, readBack(t, h.Snapshot())).Snapshot()} {
				if name != "ephemeral messages that were sent" { // they are not saved
					assert.Equal(t, tt.want || name == "ephemeral messages before it" && s.Version() == 0, s.Bound(id) || name == "ephemeral messages before it" && s.Version() == 0)
				}
			}
			assert.Equal(t, tt.want, h.Snapshot().Bound(id))
			assert.False(t, h.Snapshot().Bound(1000))
		})
	}
}

// What was imported is not bound.
func TestBound_Imported(t *testing.T) {
	h := historyOf(t, nil, convo.User("one"), signed("1"))
	require.True(t, h.Snapshot().Bound(2))
	s := restoreOf(t, convo.NewSnapshot(h.Snapshot().Messages())).Snapshot()
	assert.False(t, s.Bound(2))
	assert.Equal(t, []convo.ID{2}, s.Unbound())
}

func readBack(t *testing.T, s *convo.Snapshot) *convo.Snapshot {
	t.Helper()
	data, err := json.Marshal(s)
	require.NoError(t, err)
	out := new(convo.Snapshot)
	require.NoError(t, json.Unmarshal(data, out))
	return out
}

func restoreOf(t *testing.T, s *convo.Snapshot) *convo.History {
	t.Helper()
	h, err := convo.Restore(s, &convo.Options{Roles: convo.Relaxed()})
	require.NoError(t, err)
	return h
}

// shown returns what a model that checks sees before an entry: all messages without
// reasoning.
func shownBefore(s *convo.Snapshot, i int) string {
	var b strings.Builder
	fmt.Fprint(&b, s.Tools())
	for at, m := range s.MessagesFrom(0, nil) {
		if at >= i && i < s.Len() && at == i && !isEphemeral(s, at, m) {
			break
		}
		var parts []convo.Part
		for _, p := range m.Parts {
			if _, ok := p.(convo.Reasoning); !ok {
				parts = append(parts, p)
			}
		}
		m.Parts = parts
		data, _ := json.Marshal(convo.Message{Role: m.Role, Parts: m.Parts})
		b.Write(data)
	}
	return b.String()
}

// isEphemeral reports whether a message that stands before the entry at is not that entry.
func isEphemeral(s *convo.Snapshot, at int, m convo.Message) bool {
	e, ok := s.At(at)
	return !ok || e.Message.Text() != m.Text() || e.Message.Role != m.Role
}

// After any history, an entry is bound exactly if the model would see before it what was
// sent for it, and no provider has refused it.
func TestBound_Random(t *testing.T) {
	checked, bound := 0, 0
	for seed := range uint64(long.Or(40, 300)) {
		rng := rand.New(rand.NewPCG(seed, 24))
		store := new(convotest.MemStore)
		opts := &convo.Options{Roles: convo.Relaxed(), Limits: convo.Limits{Window: 3000, Reserve: -1}}
		h, err := convo.Open(t.Context(), store, "k", opts)
		require.NoError(t, err)
		made := make(map[string]string) // what was sent, by the text of the answer
		refused := make(map[string]bool)
		var sent *convo.Snapshot
		sentOpen := false // it has an open call
		var marks []*convo.Snapshot
		var report convo.Report
		n := 0
		text := func() string { n++; return "t" + itoa(n) + strings.Repeat(" word", rng.IntN(12)) }
		for range 80 {
			switch rng.IntN(16) {
			case 15:
				require.NoError(t, h.SetTools())
				if rng.IntN(2) == 0 {
					require.NoError(t, h.SetTools(convo.Tool{Name: "t" + itoa(rng.IntN(2))}))
				}
			case 0, 1, 2, 3: // an answer to what was sent
				if sent == nil || len(openCalls(h.Snapshot())) > 0 {
					continue
				}
				name := text()
				var calls []convo.ToolCall
				if rng.IntN(2) == 0 {
					calls = append(calls, callOf("c"+itoa(n)))
				}
				if _, err := appendReply(h, sent, signed(name, calls...)); err == nil {
					made[name] = shownBefore(sent, sent.Len())
					if sentOpen {
						made[name] = "open"
					}
				}
				sent = nil
			case 4, 5, 6:
				s, _, err := h.Prepare(t.Context())
				require.NoError(t, err)
				sent, sentOpen = s, len(openCalls(h.Snapshot())) > 0
			case 7, 8:
				for _, c := range openCalls(h.Snapshot()) {
					mustAppend(t, h, convo.Result(c, text()))
				}
				if rng.IntN(2) == 0 {
					mustAppend(t, h, convo.User(text()))
				}
			case 9:
				require.NoError(t, h.SetSystem(convo.System("rules "+itoa(rng.IntN(2)))))
			case 10:
				if rng.IntN(2) == 0 {
					require.NoError(t, h.SetEphemeral())
				} else {
					require.NoError(t, h.SetEphemeral(convo.User("e"+itoa(rng.IntN(2)))))
				}
			case 11:
				report, _ = h.Compact(t.Context(), "")
			case 12:
				if rng.IntN(2) == 0 {
					_ = h.Undo(report)
				} else {
					_, _ = h.Rewind(1)
				}
			case 13:
				if marks = append(marks, h.Snapshot()); rng.IntN(2) == 0 {
					_ = h.Rollback(marks[rng.IntN(len(marks))])
				}
			case 14:
				switch rng.IntN(4) {
				case 0:
					convo.Release(h)
					s := h.Snapshot()
					for i := range s.Len() {
						e, _ := s.At(i)
						refused[e.Message.Text()] = true
					}
					for name := range made { // those that are not in the view, too
						refused[name] = true
					}
				case 1:
					require.NoError(t, h.SetEphemeral())
					require.NoError(t, h.Save(t.Context()))
					require.NoError(t, h.Close())
					h, err = convo.Open(t.Context(), store, "k", opts)
					require.NoError(t, err)
					sent, marks = nil, nil
				case 2:
					s := readBack(t, h.Snapshot())
					require.NoError(t, h.SetEphemeral())
					for i := range s.Len() {
						e, _ := s.At(i)
						assert.Equal(t, h.Snapshot().Bound(e.ID), s.Bound(e.ID))
					}
				}
			}
			s := h.Snapshot()
			unbound := s.Unbound()
			for i := range s.Len() {
				e, _ := s.At(i)
				name := e.Message.Text()
				if made[name] == "" {
					continue
				}
				want := made[name] == shownBefore(s, i) && !refused[name]
				require.Equal(t, want, s.Bound(e.ID), "seed %d, entry %v: made for\n%s\nnow\n%s", seed, e.ID, made[name], shownBefore(s, i))
				require.Equal(t, !want, containsID(unbound, e.ID))
				if checked++; want {
					bound++
				}
			}
		}
	}
	t.Logf("%d checks, %d bound", checked, bound)
	assert.Greater(t, bound, checked/10)
	assert.Greater(t, checked-bound, checked/10)
}

func containsID(ids []convo.ID, id convo.ID) bool {
	return slices.Contains(ids, id)
}

// openCalls returns the calls of a view that have no result.
func openCalls(s *convo.Snapshot) (open []convo.ToolCall) {
	for x := range s.Exchanges() {
		if !x.Open {
			continue
		}
		answered := make(map[string]bool)
		for _, id := range x.IDs() {
			e, _ := s.Find(id)
			open = append(open, e.Message.ToolCalls()...)
			for _, r := range e.Message.ToolResults() {
				answered[r.CallID] = true
			}
		}
		open = slices.DeleteFunc(open, func(c convo.ToolCall) bool { return answered[c.ID] })
	}
	return open
}

// The answers of a provider that checks, as it words them.
var sealErrors = []string{
	"400 Bad Request: {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"messages.3.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove it.\"}}",
	"ValidationException: messages.1.content.0: Invalid `signature` in `thinking` block",
	"messages.5.content.1: Invalid `data` in `redacted_thinking` block",
}

func TestIsSealBroken(t *testing.T) {
	for _, text := range sealErrors {
		assert.True(t, overflow.IsSealBroken(errors.New(text)), text)
		assert.True(t, overflow.IsSealBroken(fmt.Errorf("send: %w", errors.New(text))), text)
		assert.False(t, convo.IsOverflow(errors.New(text)), text)
	}
	for _, text := range []string{
		"", "prompt is too long: 250000 tokens > 200000 maximum", "Invalid signature in request: check your AWS secret key",
		"messages: Expected `thinking` or `redacted_thinking`, but found `tool_use`", "429 Too Many Requests", "thinking blocks cannot be modified",
		"The request signature we calculated does not match", "Invalid API key",
	} {
		assert.False(t, overflow.IsSealBroken(errors.New(text)), text)
	}
	assert.False(t, overflow.IsSealBroken(nil))
}

// Do sends once more, without the signed reasoning that a provider has refused, and Recover
// lets the caller do so.
func TestRecover_Seal(t *testing.T) {
	for _, text := range sealErrors {
		var told []convo.Report
		h := historyOf(t, &convo.Options{OnCompaction: func(r convo.Report) { told = append(told, r) }}, convo.User("one"), signed("1"), convo.User("two"))
		calls := 0
		reply, err := h.Do(t.Context(), func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
			if calls++; s.Bound(2) {
				return convo.Reply{}, errors.New(text)
			}
			return convo.Reply{Messages: []convo.Message{signed("2")}}, nil
		})
		require.NoError(t, err)
		assert.Equal(t, 2, calls)
		require.Len(t, reply.Reports, 1)
		r := reply.Reports[0]
		assert.Equal(t, convo.ReasonRefused, r.Reason)
		assert.Equal(t, convo.OutcomeApplied, r.Outcome)
		assert.Equal(t, 1, r.Released)
		assert.Equal(t, "signed reasoning of 1 message is left out from now on, because a provider refused it", fmt.Sprint(r))
		assert.Equal(t, told, reply.Reports)
		assert.Equal(t, []convo.ID{2}, h.Snapshot().Unbound(), "the new answer is bound to what was sent")
	}

	h := historyOf(t, nil, convo.User("one"), convo.Assistant("1"), convo.User("two"))
	cause := errors.New(sealErrors[0])
	unchanged(t, h, func() {
		retry, r, err := h.Recover(t.Context(), h.Snapshot(), cause)
		assert.False(t, retry, "nothing can be left out")
		assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome)
		assert.Equal(t, cause, err)
	})
	_, _, err := h.Recover(t.Context(), nil, cause)
	require.ErrorIs(t, err, convo.ErrStale)
	require.ErrorIs(t, err, cause)
	require.NoError(t, h.Close())
	_, _, err = h.Recover(t.Context(), h.Snapshot(), cause)
	require.ErrorIs(t, err, convo.ErrClosed)
	assert.Zero(t, convo.Release(h))
	_, _, err = new(convo.History).Recover(t.Context(), nil, cause)
	require.ErrorIs(t, err, convo.ErrClosed)
	assert.Zero(t, convo.Release(new(convo.History)))
	_, err = appendReply(new(convo.History), nil, signed("1"))
	require.ErrorIs(t, err, convo.ErrClosed)
}

func TestAppendReply_Refuses(t *testing.T) {
	h := historyOf(t, nil, convo.User("one"))
	other := historyOf(t, nil, convo.User("one"))
	for name, at := range map[string]*convo.Snapshot{"nil": nil, "another's": other.Snapshot(), "of none": convo.NewSnapshot(h.Snapshot().Messages())} {
		unchanged(t, h, func() {
			_, err := appendReply(h, at, signed("1"))
			assert.ErrorIs(t, err, convo.ErrStale, name)
		})
	}
	unchanged(t, h, func() {
		_, err := appendReply(h, h.Snapshot(), convo.User("two"))
		_, ok := errors.AsType[*convo.RoleError](err)
		assert.True(t, ok)
		_, err = appendReply(h, h.Snapshot())
		assert.EqualError(t, err, "convo: the answer is empty (stop: done); ask the model again")
	})
}

// appendReply appends messages as a Reply, and returns the ID of the last one.
func appendReply(h *convo.History, at *convo.Snapshot, msgs ...convo.Message) (last convo.ID, err error) {
	reply, err := h.AppendReply(at, convo.Reply{Messages: msgs})
	for _, id := range reply.IDs {
		last = id
	}
	return last, err
}

// An AppendReply that fails does not change what the next answer is bound to.
func TestAppendReply_Fails(t *testing.T) {
	h := historyOf(t, nil, convo.User("one"))
	require.NoError(t, h.SetSystem(convo.System("before")))
	old := h.Snapshot()
	require.NoError(t, h.SetSystem(convo.System("after")))
	_, _, err := h.Prepare(t.Context())
	require.NoError(t, err)
	_, err = appendReply(h, old, convo.Result(callOf("x"), "of no call"))
	require.ErrorAs(t, err, new(*convo.PairError))
	id, err := h.Append(signed("1"))
	require.NoError(t, err)
	assert.True(t, h.Snapshot().Bound(id))
}

// An answer that arrives after a compaction keeps its reasoning out of the next request.
func ExampleHistory_AppendReply() {
	h, _ := convo.New(nil)
	_, _ = h.Append(convo.User("Plan the trip."), convo.Assistant("To Rome?"), convo.User("Yes."))
	sent := h.Snapshot()

	// While the model answers, the oldest messages leave.
	_, _ = h.Apply(sent, convo.Edit{Drop: []convo.ID{1, 2}})

	answer := thoughts.In(convo.Assistant("By train."), convo.Reasoning{Text: "Near.", Signature: "c2ln"})
	reply, _ := h.AppendReply(sent, convo.Reply{Messages: []convo.Message{answer}})
	fmt.Println(reply.IDs, h.Snapshot().Unbound())
	// Output: [4] [4]
}

// An imported conversation is bound if the program says that it stands as it was sent, and
// a change before an answer ends that.
func TestAsSent(t *testing.T) {
	msgs := []convo.Message{convo.System("rules"), convo.User("q"), signed("a"), convo.User("r"), signed("b"), convo.User("s")}
	opts := bare()
	assert.Equal(t, []convo.ID{3, 5}, convo.NewSnapshot(msgs, opts).Unbound())
	opts.AsSent = true
	s := convo.NewSnapshot(msgs, opts)
	assert.Empty(t, s.Unbound())
	for name, from := range map[string]*convo.Snapshot{"bound": s, "unbound": convo.NewSnapshot(msgs), "read": readBack(t, convo.NewSnapshot(msgs))} {
		h, err := convo.Restore(from, opts)
		require.NoError(t, err, name)
		require.Empty(t, h.Snapshot().Unbound(), name)
		h = restoreOf(t, readBack(t, h.Snapshot()))
		assert.Empty(t, h.Snapshot().Unbound(), name)
		apply(t, h, convo.Edit{Drop: []convo.ID{4}})
		assert.Equal(t, []convo.ID{5}, h.Snapshot().Unbound(), name)
	}
	assert.Len(t, convo.NewSnapshot(msgs).Unbound(), 2, "the snapshot that was restored")
}

// BenchmarkSealed does the same to two conversations of 10,000 messages, in turns in one
// run: the reasoning of the one is signed, that of the other is not. It reports the median
// for the signed one, and how many times as long as the other it takes: to append a
// message, to append one and take a snapshot, to compact to half, and to find what is
// bound in a snapshot.
func BenchmarkSealed(b *testing.B) {
	const n = 10_000
	messages := func(signature string) (list []convo.Message) {
		for i := range n / 2 {
			answer := thoughts.In(convo.Assistant(text400), convo.Reasoning{Text: "hm", Signature: signature})
			list = append(list, convo.User(text400+strconv.Itoa(i)), answer)
		}
		return list
	}
	kinds := [2][]convo.Message{messages(""), messages("c2lnbmF0dXJl")}
	fill := func(list []convo.Message, each func(*convo.History)) *convo.History {
		h, err := convo.New(nil)
		if err != nil {
			b.Fatal(err)
		}
		for _, m := range list {
			if _, err := h.Append(m); err != nil {
				b.Fatal(err)
			}
			each(h)
		}
		return h
	}
	work := []struct {
		name string
		per  float64 // how many times it does it
		do   func(list []convo.Message, full *convo.History) time.Duration
	}{
		{"append", n, func(list []convo.Message, _ *convo.History) time.Duration {
			start := time.Now()
			fill(list, func(*convo.History) {})
			return time.Since(start)
		}},
		{"append-snapshot", n, func(list []convo.Message, _ *convo.History) time.Duration {
			start := time.Now()
			fill(list, func(h *convo.History) { h.Snapshot() })
			return time.Since(start)
		}},
		{"compact", 1, func(_ []convo.Message, full *convo.History) time.Duration {
			return compactHalf(b, full, convo.Truncate{})
		}},
		{"check", n, func(_ []convo.Message, full *convo.History) time.Duration {
			s := full.Snapshot()
			start := time.Now()
			if len(s.Unbound()) > 0 {
				b.Fatal("not bound")
			}
			return time.Since(start)
		}},
	}
	full := [2]*convo.History{}
	for i, list := range kinds {
		full[i] = fill(list, func(*convo.History) {})
	}
	took := make([][2][]float64, len(work))
	for b.Loop() {
		for w, work := range work {
			for i, list := range kinds {
				took[w][i] = append(took[w][i], float64(work.do(list, full[i]).Nanoseconds())/work.per)
			}
		}
	}
	median := func(list []float64) float64 { slices.Sort(list); return list[len(list)/2] }
	for w, work := range work {
		plain, signed := median(took[w][0]), median(took[w][1])
		b.ReportMetric(signed, "ns/"+work.name)
		b.ReportMetric(signed/plain, "x-unsigned-"+work.name)
	}
	b.ReportMetric(0, "ns/op")
}
