package clients_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients"
	longform "github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/internal/meter"
	"github.com/seed-c1b73e60/convo/internal/thoughts"
	"github.com/seed-c1b73e60/convo/wire"
)

// A sender is what the modules have. An application may copy it.
type sender struct{ keep int }

// encode checks that a sender writes the request that its format writes.
func (s *sender) encode(t testing.TB, f wire.Format, at *convo.Snapshot) {
	t.Helper()
	want, wantErr := f.Encode(at)
	got, err := clients.Encode(s, s.keep, f, at)
	assert.Equal(t, wantErr, err)
	assert.Equal(t, string(want.Body()), string(got.Body()))
	assert.Equal(t, want.Lost, got.Lost)
	assert.Equal(t, []any{want.NeedsTools, want.NoThinking, want.Headers}, []any{got.NeedsTools, got.NoThinking, got.Headers})
}

// A life is a random conversation.
type life struct {
	*rand.Rand
	h     *convo.History
	n     int
	bad   []string // data of images
	kept  []*convo.Snapshot
	edits []convo.Report
	did   map[string]int
}

func newLife(t testing.TB, seed uint64, did map[string]int) *life {
	h, err := convo.New(&convo.Options{Roles: convo.Relaxed(), OnCompaction: func(convo.Report) {}})
	require.NoError(t, err)
	return &life{Rand: rand.New(rand.NewPCG(seed, 49)), h: h, did: did}
}

func (l *life) text() string {
	l.n++
	return fmt.Sprintf("text %d %s", l.n, strings.Repeat("<and> \"so\" on\n", l.IntN(20)))
}

// turn appends what a user and the model say.
func (l *life) turn() error {
	user := convo.User(l.text())
	if l.IntN(3) == 0 {
		m := convo.NewMedia("image/png", []byte(l.text()))
		user.Parts, l.bad = append(user.Parts, m), append(l.bad, m.Data)
	}
	if _, err := l.h.Append(user); err != nil {
		return err
	}
	for range l.IntN(3) {
		call := convo.ToolCall{ID: fmt.Sprintf("call_%d", l.n), Name: "read", Arguments: fmt.Sprintf(`{"n":%d}`, l.n)}
		m := convo.Assistant(l.text(), call)
		m.Origin = convo.Origin{Format: wire.FormatAnthropic, Model: []string{"claude-opus-5-5", "claude-opus-4-8"}[l.IntN(2)]}
		if l.IntN(3) == 0 {
			m = thoughts.In(m, convo.Reasoning{Text: "hm", Signature: fmt.Sprint("c2ln", l.n)})
		}
		if l.IntN(3) == 0 { // code that the provider runs, in a container
			id := fmt.Sprintf("srvtoolu_%016d", l.n)
			m.Origin.Container = "container_1"
			m.Parts = slices.Insert(m.Parts, len(m.Parts)-1,
				convo.Part(convo.Opaque{Format: wire.FormatAnthropic, JSON: fmt.Sprintf(`{"type":"server_tool_use","id":%q,"name":"code_execution","input":{}}`, id)}),
				convo.Part(convo.Opaque{Format: wire.FormatAnthropic, JSON: fmt.Sprintf(`{"type":"convo_fields","caller":"code_execution_20260120","caller_id":%q}`, id)}))
		}
		if _, err := l.h.Append(m); err != nil {
			return err
		}
		l.kept = append(l.kept, l.h.Snapshot()) // with an open call
		if _, err := l.h.Append(convo.Result(call, l.text())); err != nil {
			return err
		}
	}
	if l.IntN(4) > 0 {
		_, err := l.h.Append(convo.Assistant(l.text()))
		return err
	}
	return nil
}

func (l *life) edit(s *convo.Snapshot, e convo.Edit) error {
	r, err := l.h.Apply(s, e)
	l.edits = append(l.edits, r)
	return err
}

// step changes the conversation.
func (l *life) step(t testing.TB) {
	s := l.h.Snapshot()
	entry := func() convo.Entry {
		e, _ := s.At(l.IntN(s.Len()))
		return e
	}
	op := []string{"turn", "turn", "turn", "system", "tools", "ephemeral", "rewrite", "drop", "undo", "rollback", "compact", "refused", "release", "pin"}[l.IntN(14)]
	var err error
	switch op {
	case "turn":
		require.NoError(t, l.turn())
	case "system":
		err = l.h.SetSystem(slices.Repeat([]convo.Message{convo.System(l.text())}, l.IntN(3))...)
	case "tools":
		err = l.h.SetTools(convo.Tool{Name: fmt.Sprint("read", l.IntN(3)), Schema: `{"type":"object"}`})
	case "ephemeral":
		err = l.h.SetEphemeral(slices.Repeat([]convo.Message{convo.User(l.text())}, l.IntN(2))...)
	case "rewrite", "drop", "undo", "pin":
		if s.Len() == 0 {
			return
		}
		switch e := entry(); op {
		case "rewrite":
			err = l.edit(s, convo.Edit{Rewrite: []convo.Rewrite{{ID: e.ID, Parts: []convo.Part{convo.Text(l.text())}}}})
		case "drop":
			err = l.edit(s, convo.Edit{Drop: []convo.ID{e.ID}, Summary: &convo.Summary{Text: l.text()}})
		case "undo":
			if len(l.edits) == 0 {
				return
			}
			err = l.h.Undo(l.edits[l.IntN(len(l.edits))])
		case "pin":
			err = l.h.Pin(e.ID)
		}
	case "rollback":
		if len(l.kept) == 0 {
			return
		}
		err = l.h.Rollback(l.kept[l.IntN(len(l.kept))])
	case "compact":
		_, err = l.h.Compact(t.Context(), "")
	case "refused":
		if len(l.bad) == 0 {
			return
		}
		var retry bool
		retry, _, err = l.h.Recover(t.Context(), s, errors.New(`400 Bad Request: {"error":{"type":"invalid_request_error","message":"messages.0.content.1.image.source.base64.data: Could not process image"}}`))
		if !retry {
			return
		}
	case "release":
		if err = thoughts.Refuse(t.Context(), l.h); err != nil {
			return
		}
	}
	if err == nil {
		l.did[op]++
	}
	l.kept = append(l.kept, l.h.Snapshot())
}

// A sender writes the bytes that its format writes, whatever happens to its conversations:
// appends, edits, undo, rollback, other system text and tools, refused parts, and other models.
// A copy of the sender, and requests at the same time, change nothing.
func TestEncode_RandomLives(t *testing.T) {
	formats := []wire.Format{
		wire.Anthropic{Cache: true, Model: "claude-opus-5-5"}, wire.Anthropic{Cache: true, Model: "claude-opus-4-8"},
		wire.Converse{Cache: true}, wire.OpenAIChat{Model: "gpt-5.5"}, wire.OpenAIResponses{}, wire.Gemini{Model: "gemini-3.8-flash"},
	}
	did := map[string]int{}
	before := meter.Encoded.Load()
	for seed := range longform.Or[uint64](6, 200) {
		s := &sender{keep: []int{0, 0, 100_000, -1}[seed%4]}
		var lives []*life
		for i := range 3 {
			lives = append(lives, newLife(t, 3*seed+uint64(i), did))
		}
		for round := range 30 {
			copied := *s
			var at []*convo.Snapshot
			for _, l := range lives {
				l.step(t)
				at = append(at, l.h.Snapshot())
				if len(l.kept) > 0 && l.IntN(5) == 0 {
					at = append(at, l.kept[l.IntN(len(l.kept))])
				}
			}
			var wg sync.WaitGroup
			for i, at := range slices.Concat(at, at) { // each of them twice at once
				wg.Go(func() {
					by := s
					if i == 0 {
						by = &copied
					}
					for k := range 2 {
						by.encode(t, formats[(round/4+i+k)%len(formats)], at)
					}
				})
			}
			wg.Wait()
			if t.Failed() {
				t.Fatalf("seed %d, round %d", seed, round)
			}
		}
	}
	t.Log(did, meter.Encoded.Load()-before)
	for _, op := range []string{"turn", "system", "tools", "ephemeral", "rewrite", "drop", "undo", "rollback", "compact", "refused", "release", "pin"} {
		assert.Positive(t, did[op], op)
	}
}

// written returns how many bytes of messages are written for a request.
func written(t testing.TB, s *sender, f wire.Format, at *convo.Snapshot) int64 {
	t.Helper()
	before := meter.Encoded.Load()
	_, err := clients.Encode(s, s.keep, f, at)
	require.NoError(t, err)
	return meter.Encoded.Load() - before
}

// talk returns a conversation of n messages of 100 bytes.
func talk(t testing.TB, n int) *convo.History {
	t.Helper()
	h, err := convo.New(nil)
	require.NoError(t, err)
	text := strings.Repeat("0123456789", 10)
	for range n / 2 {
		_, err := h.Append(convo.User(text), convo.Assistant(text))
		require.NoError(t, err)
	}
	return h
}

// The next request of a conversation writes only what is new, of whichever conversation it is.
// That of another model, and that of a copy of the sender, writes everything.
func TestEncode_WritesWhatIsNew(t *testing.T) {
	f := wire.OpenAIChat{}
	s := new(sender)
	list := []*convo.History{talk(t, 400), talk(t, 1000), talk(t, 4000)}
	for i, n := range []int64{400, 1000, 4000} {
		assert.Equal(t, 100*n, written(t, s, f, list[i].Snapshot()))
	}
	for range 3 {
		for _, h := range list {
			_, err := h.Append(convo.User("and then?"), convo.Assistant("no more"))
			require.NoError(t, err)
			assert.LessOrEqual(t, written(t, s, f, h.Snapshot()), int64(2*100+len("and then?no more")))
		}
	}
	h := list[0]
	all := int64(400*100 + 3*len("and then?no more"))
	assert.Equal(t, all, written(t, s, wire.OpenAIChat{Model: "another"}, h.Snapshot()))
	assert.Less(t, written(t, s, f, h.Snapshot()), int64(300))
	copied := *s
	assert.Equal(t, all, written(t, &copied, f, h.Snapshot()))

	require.NoError(t, h.RewindTo(5)) // the new end is far from the old one
	assert.Equal(t, int64(500), written(t, s, f, h.Snapshot()))
	assert.Less(t, written(t, s, f, list[2].Snapshot()), int64(300))
}

// What is kept has a limit. The request used least recently is dropped first.
func TestEncode_Limit(t *testing.T) {
	f := wire.OpenAIChat{}
	a, b, c := talk(t, 400).Snapshot(), talk(t, 400).Snapshot(), talk(t, 400).Snapshot()
	const room = 400 * (500 + 2*150) // for one request
	for _, tt := range []struct {
		keep int
		new  []bool // of a, b, a, c, a, b
	}{
		{keep: 0, new: []bool{true, true, false, true, false, false}},
		{keep: -1, new: []bool{true, true, true, true, true, true}},
		{keep: 1000, new: []bool{true, true, true, true, true, true}},
		{keep: room, new: []bool{true, true, true, true, true, true}},
		{keep: 2 * room, new: []bool{true, true, false, true, false, true}},
	} {
		s := &sender{keep: tt.keep}
		for i, at := range []*convo.Snapshot{a, b, a, c, a, b} {
			assert.Equal(t, tt.new[i], written(t, s, f, at) == 40_000, "%d: request %d", tt.keep, i)
		}
	}
}

// After five minutes without a request, nothing is kept, so that conversations which are idle
// take no more memory than without a sender.
func TestEncode_Idle(t *testing.T) {
	var list []*convo.Snapshot
	for range 100 {
		list = append(list, talk(t, 400).Snapshot())
	}
	heap := func() int {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	synctest.Test(t, func(t *testing.T) {
		s := new(sender)
		before := heap()
		for _, at := range list {
			written(t, s, wire.Anthropic{}, at)
		}
		assert.Greater(t, heap()-before, 100*40_000)
		time.Sleep(3 * time.Minute)
		written(t, s, wire.Anthropic{}, list[0])
		time.Sleep(2*time.Minute + time.Second)
		synctest.Wait()
		assert.Less(t, written(t, s, wire.Anthropic{}, list[0]), int64(40_000), "it was used three minutes ago")
		assert.Equal(t, int64(40_000), written(t, s, wire.Anthropic{}, list[1]))
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		assert.Less(t, heap()-before, 100_000)
		runtime.KeepAlive(s)
	})
	runtime.KeepAlive(list)
}

// A small request is written anew and takes no memory, however many conversations there are.
func TestEncode_Small(t *testing.T) {
	s, at := new(sender), talk(t, 40).Snapshot()
	for range 2 {
		assert.Equal(t, int64(4000), written(t, s, wire.Anthropic{}, at))
	}
}

// uncomparable is a format that cannot be compared with another.
type uncomparable struct {
	wire.OpenAIChat
	_ []int
}

func TestEncode_Others(t *testing.T) {
	s := new(sender)
	at := talk(t, 2).Snapshot()
	for range 2 {
		_, err := clients.Encode(s, 0, uncomparable{}, at)
		require.NoError(t, err)
		_, err = clients.Encode(s, 0, wire.OpenAIChat{}, nil)
		require.ErrorIs(t, err, wire.ErrEmpty)
		_, err = clients.Encode(s, 0, wire.OpenAIChat{}, new(convo.Snapshot))
		require.ErrorIs(t, err, wire.ErrEmpty)
		_, err = clients.Encode[sender](nil, 0, wire.OpenAIChat{}, at)
		require.NoError(t, err)
		_, err = clients.Encode(s, 0, nil, at)
		require.ErrorAs(t, err, new(*convo.ValueError))
	}
}
