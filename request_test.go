package convo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
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
