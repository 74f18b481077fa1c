package mirror_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/internal/thoughts"
	"github.com/seed-c1b73e60/convo/mirror"
)

// talk returns a list of a system message and so many questions and answers.
func talk(turns int) []*line {
	list := []*line{newLine(convo.RoleSystem, "Be brief.")}
	for i := range turns {
		list = append(list, newLine(convo.RoleUser, fmt.Sprint("question ", i)), newLine(convo.RoleAssistant, fmt.Sprint("answer ", i)))
	}
	return list
}

// everywhere runs a test by place and by key, under Strict and Relaxed.
func everywhere(t *testing.T, test func(t *testing.T, codec mirror.Codec[*line], opts *convo.Options)) {
	for name, codec := range codecs {
		for what, roles := range map[string]convo.RolePolicy{"strict": convo.RolePolicy{}, "relaxed": convo.Relaxed()} {
			t.Run(name+", "+what, func(t *testing.T) { test(t, codec, &convo.Options{Roles: roles}) })
		}
	}
}

// A page goes back, sends what was typed, and syncs the list that it had: what was taken back is
// in the view again, before what was typed, and the pin of that stays.
func TestSync_AfterRewindAndAdd(t *testing.T) {
	everywhere(t, func(t *testing.T, codec mirror.Codec[*line], opts *convo.Options) {
		h, m := newMirror(t, opts, codec)
		list := talk(3)
		require.NoError(t, m.Sync(list))
		second, _ := h.Snapshot().At(2)
		require.NoError(t, h.RewindTo(second.ID))
		typed := newLine(convo.RoleUser, "typed")
		require.NoError(t, m.Add(typed))
		require.NoError(t, h.PinLast())
		require.NoError(t, m.Sync(list))
		want := append(slices.Clone(list), typed)
		same(t, want, look(t, h, m))
		s := h.Snapshot()
		last, _ := s.At(s.Len() - 1)
		assert.Equal(t, []convo.ID{last.ID}, h.Snapshot().Pinned())
		syncs(t, h, m, append(want, newLine(convo.RoleAssistant, "done")))
	})
}

// Another goroutine sees the view before or after, and nothing between.
func TestSync_IsOneStep(t *testing.T) {
	h, m := newMirror(t, nil, byKey)
	list := talk(3)
	require.NoError(t, m.Sync(list))
	var wg sync.WaitGroup
	done := make(chan struct{})
	var seen sync.Map
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				s := h.Snapshot()
				var all []string
				for i := 3; i < s.Len(); i++ {
					e, _ := s.At(i)
					all = append(all, e.Message.Text())
				}
				seen.Store(strings.Join(all, ";"), true)
			}
		}
	})
	for range 200 {
		second, _ := h.Snapshot().At(2)
		require.NoError(t, h.RewindTo(second.ID))
		require.NoError(t, m.Add(newLine(convo.RoleUser, "typed")))
		require.NoError(t, m.Sync(list))
	}
	close(done)
	wg.Wait()
	const rest = "question 1;answer 1;question 2;answer 2"
	seen.Range(func(k, _ any) bool {
		switch k {
		case "", "typed", rest, rest + ";typed":
		default:
			t.Errorf("a snapshot shows %q", k)
		}
		return true
	})
}

// What Undo of a compaction and a rewind leave is filled up from the list.
func TestSync_AfterUndoAndRewind(t *testing.T) {
	everywhere(t, func(t *testing.T, codec mirror.Codec[*line], opts *convo.Options) {
		h, m := newMirror(t, opts, codec)
		list := talk(12)
		require.NoError(t, m.Sync(list))
		r, err := h.Apply(h.Snapshot(), convo.Edit{Drop: ids(3, 14), Summary: &convo.Summary{Text: "They talked."}})
		require.NoError(t, err)
		require.NoError(t, h.Undo(r))
		require.NoError(t, h.RewindTo(15))
		require.NoError(t, m.Sync(list))
		assert.Equal(t, texts(list), texts(look(t, h, m)))
		assert.Equal(t, len(list), h.Len())
	})
}

func ids(first, last convo.ID) (list []convo.ID) {
	for id := first; id <= last; id++ {
		list = append(list, id)
	}
	return list
}

// A list that goes back behind what the summary stands for is not appended beside it.
func TestSync_BehindTheSummary(t *testing.T) {
	everywhere(t, func(t *testing.T, codec mirror.Codec[*line], opts *convo.Options) {
		var log bytes.Buffer
		opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
		h, m := newMirror(t, opts, codec)
		list := talk(10)
		require.NoError(t, m.Sync(list))
		_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: ids(2, 15), Summary: &convo.Summary{Text: "They talked."}})
		require.NoError(t, err)
		require.NoError(t, h.SetMeta("title", "data"))
		typed := newLine(convo.RoleUser, "typed")
		require.NoError(t, m.Add(typed))
		before := h.Snapshot()
		back := append(slices.Clone(list[:6]), newLine(convo.RoleAssistant, "another answer"))
		var past *mirror.PastError
		require.ErrorAs(t, m.Sync(back), &past)
		assert.Equal(t, before.Version(), h.Snapshot().Version(), "nothing has changed")

		done, err := m.Follow(back)
		require.NoError(t, err)
		assert.True(t, done.Anew)
		assert.Equal(t, past.Index, done.Past.Index)
		same(t, append(slices.Clone(back), typed), look(t, h, m))
		_, has := h.Snapshot().Summary()
		assert.False(t, has)
		title, _ := h.Snapshot().Meta()
		assert.Equal(t, "title", title)
		assert.Contains(t, log.String(), "began anew with the list")
		syncs(t, h, m, append(slices.Clone(back), typed))
	})
}

// Going back behind what Truncate has dropped brings the beginning back, which fits again.
func TestSync_BehindWhatWasDropped(t *testing.T) {
	everywhere(t, func(t *testing.T, codec mirror.Codec[*line], opts *convo.Options) {
		h, m := newMirror(t, opts, codec)
		list := talk(10)
		require.NoError(t, m.Sync(list))
		r, err := h.Apply(h.Snapshot(), convo.Edit{Drop: ids(2, 13)})
		require.NoError(t, err)
		require.Len(t, r.Dropped, 12)
		require.NoError(t, m.Sync(list), "what was compacted stays out")
		assert.Len(t, look(t, h, m), 1+8)
		require.NoError(t, h.RewindTo(5))
		back := append(slices.Clone(list[:5]), newLine(convo.RoleUser, "another question"))
		syncs(t, h, m, back)
	})
}

// What the list holds later at another place moves there.
func TestSync_AddedIsStoredElsewhere(t *testing.T) {
	everywhere(t, func(t *testing.T, codec mirror.Codec[*line], opts *convo.Options) {
		h, m := newMirror(t, opts, codec)
		list := append([]*line{newLine(convo.RoleUser, "Hello")}, step("looking", 2, 1)...)
		require.NoError(t, m.Sync(list))
		typed := newLine(convo.RoleUser, "Also look there.")
		require.NoError(t, m.Add(typed))
		list = append(list, step("looking again", 1, 1)...)
		require.NoError(t, m.Sync(list))
		same(t, slices.Insert(slices.Clone(list), 3, typed), look(t, h, m))
		syncs(t, h, m, append(list, typed))
	})
}

// A message of Add without a row keeps its place when its row has come, also after a restart,
// and an edit of that row is noticed.
func TestAdd_KeyComesLater(t *testing.T) {
	h, m := newMirror(t, small(), byKey)
	list := talk(2)
	require.NoError(t, m.Sync(list))
	typed := newLine(convo.RoleUser, "delete the folder a")
	row := typed.clone()
	typed.ID = ""
	require.NoError(t, m.Add(typed))
	again := resume(t, m, list, byKey)
	for _, m := range []*mirror.Mirror[*line]{m, again} {
		full := append(slices.Clone(list), row)
		require.NoError(t, m.Sync(full))
		assert.Equal(t, texts(full), texts(look(t, m.History(), m)))
		third := resume(t, m, full, byKey)
		require.NoError(t, third.Sync(full))
		assert.Equal(t, texts(full), texts(look(t, third.History(), third)))
		edited := row.clone()
		edited.Text = "delete the folder b"
		for _, m := range []*mirror.Mirror[*line]{m, third} {
			var past *mirror.PastError
			require.ErrorAs(t, m.Sync(append(slices.Clone(list), edited)), &past)
			assert.Equal(t, row.ID, past.Key)
			_, err := m.Follow(append(slices.Clone(list), edited))
			require.NoError(t, err)
			assert.Equal(t, append(texts(list), edited.Text), texts(look(t, m.History(), m)))
		}
	}
	_ = h
}

// A message of Add that the list holds with its key, and other words, is no new message.
func TestAdd_EditedInTheList(t *testing.T) {
	h, m := newMirror(t, nil, byKey)
	list := talk(2)
	require.NoError(t, m.Sync(list))
	typed := newLine(convo.RoleUser, "delete the folder a")
	require.NoError(t, m.Add(typed))
	edited := typed.clone()
	edited.Text = "delete the folder b"
	list = append(list, edited)
	require.ErrorAs(t, m.Sync(list), new(*mirror.PastError))
	_, err := m.Follow(list)
	require.NoError(t, err)
	assert.Equal(t, texts(list), texts(look(t, h, m)))
}

// Add, Save, then Open and New: the list holds the message by now, and the view has it once.
func TestNew_AfterAdd(t *testing.T) {
	ctx := context.Background()
	store := &convotest.MemStore{}
	h, err := convo.Open(ctx, store, "s", nil)
	require.NoError(t, err)
	m := mirror.New(h, byKey)
	list := talk(2)
	require.NoError(t, m.Sync(list))
	typed := newLine(convo.RoleUser, "typed")
	row := typed.clone()
	typed.ID = ""
	require.NoError(t, m.Add(typed))
	require.NoError(t, h.Save(ctx))
	require.NoError(t, h.Close())
	h, err = convo.Open(ctx, store, "s", nil)
	require.NoError(t, err)
	defer h.Close()
	m = mirror.New(h, byKey)
	syncs(t, h, m, append(list, row))
	_, err = m.Decisions()
	require.NoError(t, err)
}

// A message of Add that a compaction has dropped before the list holds it stays out, also after
// a restart.
func TestAdd_LeftBeforeItsRow(t *testing.T) {
	everywhere(t, func(t *testing.T, codec mirror.Codec[*line], opts *convo.Options) {
		opts.Limits, opts.TagKey = small().Limits, "restart"
		h, m := newMirror(t, opts, codec)
		list := append([]*line{newLine(convo.RoleUser, "Hello")}, step("looking", 1, 1)...)
		require.NoError(t, m.Sync(list))
		typed := newLine(convo.RoleUser, "typed")
		require.NoError(t, m.Add(typed))
		list = append(list, step("looking", 1, 1)...)
		list = append(list, newLine(convo.RoleAssistant, "Found."), newLine(convo.RoleUser, "Thanks."))
		require.NoError(t, m.Sync(list))
		require.Equal(t, 8, h.Len())
		_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{4}})
		require.NoError(t, err)
		data, err := m.Decisions()
		require.NoError(t, err)
		full := slices.Insert(slices.Clone(list), 3, typed.clone())
		again, done, err := mirror.Resume(data, list, codec, opts)
		require.NoError(t, err)
		require.Nil(t, done.Past)
		defer again.History().Close()
		for _, m := range []*mirror.Mirror[*line]{m, again} {
			require.NoError(t, m.Sync(full))
			assert.Equal(t, texts(list), texts(look(t, m.History(), m)))
		}
	})
}

// A note is the framework's own value after a restart, also one in front of everything else.
func TestSync_Notes(t *testing.T) {
	everywhere(t, func(t *testing.T, codec mirror.Codec[*line], opts *convo.Options) {
		opts.TagKey = "restart"
		h, m := newMirror(t, opts, codec)
		system := newLine(convo.RoleSystem, "Be brief.")
		note := newLine(convo.RoleSystem, "Never change the exported API.")
		list := []*line{system, newLine(convo.RoleUser, "Hello"), note, newLine(convo.RoleAssistant, "Hi.")}
		syncs(t, h, m, list)
		for range 2 {
			data, err := m.Decisions()
			require.NoError(t, err)
			again, _, err := mirror.Resume(data, list, codec, opts)
			require.NoError(t, err)
			t.Cleanup(func() { again.History().Close() })
			h, m = again.History(), again
			syncs(t, h, m, list)
			list = append(list, newLine(convo.RoleUser, "Go on."), newLine(convo.RoleAssistant, "I do."))
		}
		_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{entryOf(h, "Hello").ID}})
		require.NoError(t, err)
		require.NoError(t, h.RewindTo(entryOf(h, note.Text).ID))
		list[0] = newLine(convo.RoleSystem, "Be long.")
		require.NoError(t, m.Sync(list[:3]), "the view begins with the note")
		assert.Equal(t, []string{"Be long.", note.Text}, texts(look(t, h, m)))
		require.NoError(t, h.SetSystem(convo.System("Be calm.")))
		assert.Equal(t, []string{"Be calm.", note.Text}, texts(look(t, h, m)))
	})
}

func entryOf(h *convo.History, text string) convo.Entry {
	for _, e := range h.Snapshot().All() {
		if e.Message.Text() == text {
			return e
		}
	}
	return convo.Entry{}
}

// What the model does not see may stand before the system message, whose text changes.
func TestSync_UnseenInFront(t *testing.T) {
	everywhere(t, func(t *testing.T, codec mirror.Codec[*line], opts *convo.Options) {
		h, m := newMirror(t, opts, codec)
		list := append([]*line{newLine("ui", "session 1")}, talk(2)...)
		for i := range 3 {
			list[1] = newLine(convo.RoleSystem, fmt.Sprint("It is day ", i))
			require.NoError(t, m.Sync(list))
			same(t, list[1:], look(t, h, m))
		}
	})
}

// The keys of a value of two messages, and of one that is named like its second, are different.
func TestSync_KeysThatLookAlike(t *testing.T) {
	list := append([]*line{newLine(convo.RoleUser, "Hello")}, step("looking", 2, 1)...)
	list[2].ID = "a"
	for _, id := range []string{"a#1", "a/1", "a##1", "#1", "#", "1"} {
		other := newLine(convo.RoleAssistant, "done")
		other.ID = id
		full := append(slices.Clone(list), other)
		h, m := newMirror(t, small(), byKey)
		require.NoError(t, m.Add(&line{Role: convo.RoleUser, Text: "typed, with a key of the Mirror's own"}))
		require.NoError(t, h.RewindTo(0))
		syncs(t, h, m, full)
		again := resume(t, m, full, byKey)
		syncs(t, again.History(), again, full)
	}
}

// A list that has no key of a History that was loaded is refused, and the way that the error
// names works.
func TestNew_ListOfOtherKeys(t *testing.T) {
	h := newHistory(t, nil)
	m := convo.User("Hello")
	m.Key = "old"
	_, err := h.Append(m)
	require.NoError(t, err)
	again := mirror.New(h, byKey)
	list := talk(2)
	for range 2 {
		require.ErrorContains(t, again.Sync(list), "ReplaceRows(0) of the History begins anew")
	}
	_, err = h.ReplaceRows(0)
	require.NoError(t, err)
	syncs(t, h, again, list)
}

// A framework that gives calls other IDs at each step gets views whose calls and results have
// the same ones.
func TestSync_OtherCallIDs(t *testing.T) {
	type msg = convo.Message
	codec := mirror.Codec[*msg]{
		Decode: func(m *msg) ([]convo.Message, error) { return []convo.Message{*m}, nil },
		Encode: func(m convo.Message, _ **msg) (*msg, error) { return &m, nil },
	}
	h, m := newMirror(t, nil, codec)
	for step := 1; step < 5; step++ {
		user := convo.User("Hello")
		list := []*msg{&user}
		for i := range step {
			id := fmt.Sprintf("call-%d-%d", step, i)
			call := convo.Assistant("", convo.ToolCall{ID: id, Name: "read", Arguments: "{}"})
			result := convo.Message{Role: convo.RoleTool, Parts: []convo.Part{convo.ToolResult{CallID: id, Parts: []convo.Part{convo.Text(fmt.Sprint("page ", i))}}}}
			list = append(list, &call)
			if i < step-1 || step%2 == 0 {
				list = append(list, &result)
			}
		}
		require.NoError(t, m.Sync(list))
		view, err := m.View(h.Snapshot())
		require.NoError(t, err)
		require.Len(t, view, len(list))
		open := ""
		for _, v := range view {
			for _, c := range v.ToolCalls() {
				open = c.ID
			}
			for _, r := range v.ToolResults() {
				assert.Equal(t, open, r.CallID)
			}
		}
	}
}

// One bad message leaves nothing behind.
func TestAdd_AllOrNone(t *testing.T) {
	everywhere(t, func(t *testing.T, codec mirror.Codec[*line], opts *convo.Options) {
		opts.Roles.KeepEmpty = false
		h, m := newMirror(t, opts, codec)
		list := append([]*line{newLine(convo.RoleUser, "Hello")}, step("looking", 1, 1)...)
		require.NoError(t, m.Sync(list[:2]))
		good := newLine(convo.RoleUser, "typed")
		for range 2 {
			require.ErrorAs(t, m.Add(good, newLine(convo.RoleUser, "")), new(*convo.MessageError))
		}
		require.NoError(t, m.Sync(list))
		same(t, list, look(t, h, m))
		require.ErrorAs(t, m.Add(step("no call of it", 1, 1)[1]), new(*convo.PairError))
		require.NoError(t, m.Add(good))
		same(t, append(list, good), look(t, h, m))
		if codec.Key != nil {
			require.ErrorAs(t, m.Add(good), new(*convo.RowError), "its key is taken")
		}
	})
}

// The result of an open call does not wait behind what was typed.
func TestAdd_ResultOfAnOpenCall(t *testing.T) {
	everywhere(t, func(t *testing.T, codec mirror.Codec[*line], opts *convo.Options) {
		h, m := newMirror(t, opts, codec)
		list := append([]*line{newLine(convo.RoleUser, "Hello")}, step("looking", 2, 1)...)
		require.NoError(t, m.Sync(list[:2]))
		typed := newLine(convo.RoleUser, "typed")
		require.NoError(t, m.Add(typed))
		require.NoError(t, m.Add(list[2]))
		same(t, append(slices.Clone(list), typed), look(t, h, m))
		require.NoError(t, m.Sync(list))
		same(t, append(slices.Clone(list), typed), look(t, h, m))
	})
}

// The results of parallel calls come one by one, and each is known by its call.
func TestAdd_ResultsOneByOne(t *testing.T) {
	codec := byPlace
	codec.Decode = func(l *line) ([]convo.Message, error) {
		msgs, err := decode(l)
		if l.Role == convo.RoleTool {
			msgs[0].Parts = []convo.Part{convo.ToolResult{CallID: l.Calls[0], Parts: []convo.Part{convo.Text(l.Text)}}}
		}
		return msgs, err
	}
	result := func(call, text string) *line {
		l := newLine(convo.RoleTool, text)
		l.Calls, l.Results = []string{call}, []string{text}
		return l
	}
	h, m := newMirror(t, nil, codec)
	list := []*line{newLine(convo.RoleUser, "Hello"), step("looking", 2, 1)[0]}
	require.NoError(t, m.Sync(list))
	one, two := result("c0", "one"), result("c1", "two")
	require.NoError(t, m.Add(one))
	require.NoError(t, m.Add(two))
	look(t, h, m)
	require.ErrorAs(t, m.Sync(append(slices.Clone(list), one, result("c1", "edited"))), new(*mirror.PastError))
	syncs(t, h, m, append(list, one, two))
}

// A message that waited, and can't be appended any more, is an error once, and takes nothing of
// the list with it.
// The list is what counts, as for any other message.
func TestAdd_ResultEditedInTheList(t *testing.T) {
	everywhere(t, func(t *testing.T, codec mirror.Codec[*line], opts *convo.Options) {
		h, m := newMirror(t, opts, codec)
		list := append([]*line{newLine(convo.RoleUser, "Hello")}, step("looking", 2, 1)...)
		require.NoError(t, m.Sync(list[:2]))
		require.NoError(t, m.Add(list[2]))
		typed := newLine(convo.RoleUser, "typed")
		require.NoError(t, m.Add(typed))
		edited := list[2].clone()
		edited.Results = []string{edited.Results[0], "edited"}
		list = []*line{list[0], list[1], edited}
		var past *mirror.PastError
		require.ErrorAs(t, m.Sync(list), &past)
		assert.Equal(t, 2, past.Index)
		assert.Equal(t, "has different content than before", past.Reason)
		done, err := m.Follow(list)
		require.NoError(t, err)
		assert.Equal(t, past.Reason, done.Past.Reason)
		assert.False(t, done.Anew)
		assert.Equal(t, texts(append(list, typed)), texts(look(t, h, m)))
		syncs(t, h, m, append(list, typed, newLine(convo.RoleAssistant, "done")))
	})
}

func TestSync_BadMessageWaits(t *testing.T) {
	for name, codec := range codecs {
		t.Run(name, func(t *testing.T) {
			m := mirror.New(newHistory(t, &convo.Options{Roles: convo.Relaxed(), TagKey: "restart"}), codec)
			list := append([]*line{newLine(convo.RoleUser, "Hello")}, step("looking", 1, 1)...)
			require.NoError(t, m.Sync(list[:2]))
			good := newLine(convo.RoleUser, "typed")
			require.NoError(t, m.Add(newLine(convo.RoleUser, ""), good))
			data, err := m.Decisions()
			require.NoError(t, err)
			again, _, err := mirror.Resume(data, list, codec, &convo.Options{TagKey: "restart"})
			require.NoError(t, err)
			h := again.History()
			defer h.Close()
			before := h.Snapshot().Version()
			require.ErrorAs(t, again.Sync(list), new(*convo.MessageError))
			assert.Equal(t, before, h.Snapshot().Version())
			require.NoError(t, again.Sync(list))
			assert.Equal(t, append(texts(list), "typed"), texts(look(t, h, again)))
		})
	}
}

// What waits is another message than one that the list has held for long.
func TestAdd_SaidBefore(t *testing.T) {
	everywhere(t, func(t *testing.T, codec mirror.Codec[*line], opts *convo.Options) {
		h, m := newMirror(t, opts, codec)
		list := append([]*line{newLine(convo.RoleUser, "yes"), newLine(convo.RoleAssistant, "done")}, append([]*line{newLine(convo.RoleUser, "Go on.")}, step("looking", 1, 1)...)...)
		require.NoError(t, m.Sync(list[:4]))
		again := newLine(convo.RoleUser, "yes")
		require.NoError(t, m.Add(again), "it waits")
		require.NoError(t, m.Sync(list[:4]))
		require.NoError(t, m.Sync(list))
		same(t, append(slices.Clone(list), again), look(t, h, m))
	})
}

// A message for one request must not follow a call without a result.
func TestPrepare_OpenCallBeforeTheTail(t *testing.T) {
	_, m := newMirror(t, nil, byKey)
	list := append([]*line{newLine(convo.RoleUser, "Hello")}, step("looking", 1, 1)...)
	_, _, err := m.Prepare(t.Context(), list[:2])
	require.NoError(t, err, "a call at the very end is shown as it is")
	once := newLine(convo.RoleUser, "Go on.")
	once.Once = true
	_, _, err = m.Prepare(t.Context(), append(slices.Clone(list[:2]), once))
	var pair *convo.PairError
	require.ErrorAs(t, err, &pair)
	assert.Equal(t, "c0", pair.CallID)
	_, _, err = m.Prepare(t.Context(), append(slices.Clone(list), once))
	require.NoError(t, err)
}

// Rows that say the same in other words: the view keeps the values that were sent.
func TestSync_RowsThatSayTheSame(t *testing.T) {
	type msg = convo.Message
	codec := mirror.Codec[*msg]{
		Decode: func(m *msg) ([]convo.Message, error) { return []convo.Message{*m}, nil },
		Encode: func(m convo.Message, _ **msg) (*msg, error) { return &m, nil },
	}
	result := func(id, text string) convo.Part {
		return convo.ToolResult{CallID: id, Parts: []convo.Part{convo.Text(text)}}
	}
	call := func(id, arguments string) convo.Part {
		return convo.ToolCall{ID: id, Name: "read", Arguments: arguments}
	}
	tool := func(parts ...convo.Part) *msg { return &msg{Role: convo.RoleTool, Parts: parts} }
	answer := func(parts ...convo.Part) *msg { return &msg{Role: convo.RoleAssistant, Parts: parts} }
	user := convo.User("Read them.")
	thought := convo.Reasoning{Text: "hm", Signature: "s"}
	sent := []*msg{&user, answer(thought, convo.Text("I look. "), call("a", `{"x": 1, "y": 2}`), call("b", "")), tool(result("a", "one\n"), result("b", "two"))}
	now := []*msg{&user, answer(convo.Text("I look."), call("a", `{"y":2,"x":1}`), call("b", "{}")), tool(result("b", "two")), tool(result("a", "one"))}
	for _, lists := range [][2][]*msg{{sent, now}, {now, sent}} {
		h, m := newMirror(t, &convo.Options{TagKey: "restart"}, codec)
		view, _, err := m.Prepare(t.Context(), lists[0])
		require.NoError(t, err)
		again, _, err := m.Prepare(t.Context(), lists[1])
		require.NoError(t, err)
		require.Len(t, again, len(view))
		for i := range view {
			assert.Same(t, view[i], again[i])
		}
		data, err := m.Decisions()
		require.NoError(t, err)
		resumed, done, err := mirror.Resume(data, lists[1], codec, &convo.Options{TagKey: "restart"})
		require.NoError(t, err)
		defer resumed.History().Close()
		assert.Nil(t, done.Past)
		assert.Equal(t, h.Len(), resumed.History().Len())
		require.NoError(t, resumed.Sync(lists[1]))
	}
	h, m := newMirror(t, nil, codec)
	require.NoError(t, m.Sync(sent))
	for what, other := range map[string][]*msg{
		"another text":      {&user, answer(convo.Text("I see."), call("a", `{"y":2,"x":1}`), call("b", "{}")), now[2], now[3]},
		"other arguments":   {&user, answer(convo.Text("I look."), call("a", `{"y":2,"x":2}`), call("b", "{}")), now[2], now[3]},
		"results swapped":   {&user, now[1], tool(result("a", "two"), result("b", "one"))},
		"another block":     {&user, answer(convo.Text("I look."), convo.Opaque{Format: "f", JSON: "{}"}, call("a", `{"y":2,"x":1}`), call("b", "{}")), now[2], now[3]},
		"one result less":   {&user, now[1], now[3]},
		"a result an error": {&user, now[1], now[3], tool(convo.ToolResult{CallID: "b", Parts: []convo.Part{convo.Text("two")}, IsError: true})},
	} {
		assert.ErrorAs(t, m.Sync(other), new(*mirror.PastError), what)
	}
	assert.Equal(t, 4, h.Len())

	block := func(json string) *msg { return answer(convo.Text("a"), convo.Opaque{Format: "f", JSON: json}) }
	h, m = newMirror(t, nil, codec)
	require.NoError(t, m.Sync([]*msg{&user, block(`{"a":1}`)}))
	require.NoError(t, m.Sync([]*msg{&user, block(`{ "a": 1 }`)}))
	require.ErrorAs(t, m.Sync([]*msg{&user, block(`{"a":2}`)}), new(*mirror.PastError))
	assert.Equal(t, 2, h.Len())
}

func TestFollow_NothingInCommon(t *testing.T) {
	everywhere(t, func(t *testing.T, codec mirror.Codec[*line], opts *convo.Options) {
		h, m := newMirror(t, opts, codec)
		list := talk(3)
		done, err := m.Follow(list)
		require.NoError(t, err)
		assert.Equal(t, mirror.Followed{}, done)
		before := h.Snapshot().Version()
		for _, other := range [][]*line{nil, list[:1], talk(0), append(talk(0), newLine(convo.RoleUser, "another conversation"))} {
			_, err := m.Follow(other)
			require.ErrorAs(t, err, new(*mirror.PastError))
		}
		assert.Equal(t, before, h.Snapshot().Version())
		syncs(t, h, m, list)
	})
}

func TestFollow_GoesBack(t *testing.T) {
	everywhere(t, func(t *testing.T, codec mirror.Codec[*line], opts *convo.Options) {
		h, m := newMirror(t, opts, codec)
		list := talk(5)
		require.NoError(t, m.Sync(list))
		edited := append(slices.Clone(list[:5]), newLine(convo.RoleUser, "edited"))
		done, err := m.Follow(edited)
		require.NoError(t, err)
		assert.Equal(t, 6, done.Entries)
		assert.False(t, done.Anew)
		assert.Equal(t, 5, done.Past.Index)
		assert.Equal(t, "took back 6 entries: message 5 is a different message than before", done.String())
		same(t, edited, look(t, h, m))
		done, err = m.Follow(list[:3])
		require.NoError(t, err)
		assert.Equal(t, 3, done.Entries)
		same(t, list[:3], look(t, h, m))
	})
}

// What was typed in the part that was taken back stays, behind the list.
func TestFollow_KeepsWhatWasTyped(t *testing.T) {
	everywhere(t, func(t *testing.T, codec mirror.Codec[*line], opts *convo.Options) {
		h, m := newMirror(t, opts, codec)
		list := talk(3)
		require.NoError(t, m.Sync(list))
		typed := newLine(convo.RoleUser, "typed")
		require.NoError(t, m.Add(typed))
		list = append(list[:3], newLine(convo.RoleUser, "edited"), newLine(convo.RoleAssistant, "answer"))
		_, err := m.Follow(list)
		require.NoError(t, err)
		same(t, append(slices.Clone(list), typed), look(t, h, m))
	})
}

// While a Do waits for its answer, nothing is taken back under it.
func TestFollow_WhileDoWaits(t *testing.T) {
	h, m := newMirror(t, nil, byKey)
	list := talk(2)[:4]
	require.NoError(t, m.Sync(list))
	_, err := h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		_, err := m.Follow(append(slices.Clone(list[:3]), newLine(convo.RoleUser, "edited")))
		assert.ErrorIs(t, err, convo.ErrStale)
		return convo.Reply{}, errors.New("stop")
	})
	require.Error(t, err)
	same(t, list, look(t, h, m))
}

func TestResumeShorter(t *testing.T) {
	everywhere(t, func(t *testing.T, codec mirror.Codec[*line], opts *convo.Options) {
		opts.TagKey = "restart"
		_, m := newMirror(t, opts, codec)
		list := talk(5)
		require.NoError(t, m.Sync(list))
		data, err := m.Decisions()
		require.NoError(t, err)
		short := list[:6]
		_, _, err = mirror.Resume(data, short, codec, opts)
		require.ErrorAs(t, err, new(*convo.ValueError))
		again, done, err := mirror.ResumeShorter(data, short, codec, opts)
		require.NoError(t, err)
		defer again.History().Close()
		assert.Equal(t, 5, done.Entries)
		syncs(t, again.History(), again, short)
		again, done, err = mirror.ResumeShorter(data, list, codec, opts)
		require.NoError(t, err)
		defer again.History().Close()
		assert.Nil(t, done.Past)
	})
}

// Rows behind the summary that have changed: the conversation begins anew, with what Add gave.
func TestResume_Anew(t *testing.T) {
	everywhere(t, func(t *testing.T, codec mirror.Codec[*line], opts *convo.Options) {
		opts.TagKey = "restart"
		h, m := newMirror(t, opts, codec)
		list := talk(6)
		require.NoError(t, m.Sync(list))
		require.NoError(t, h.Pin(2))
		_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: ids(4, 9), Summary: &convo.Summary{Text: "They talked."}})
		require.NoError(t, err)
		require.NoError(t, m.Add(newLine(convo.RoleUser, "typed")))
		data, err := m.Decisions()
		require.NoError(t, err)
		other := append(slices.Clone(list[:2]), newLine(convo.RoleAssistant, "another answer"))
		again, done, err := mirror.Resume(data, other, codec, opts)
		require.NoError(t, err)
		defer again.History().Close()
		assert.True(t, done.Anew)
		require.NoError(t, again.Sync(other))
		assert.Equal(t, append(texts(other), "typed"), texts(look(t, again.History(), again)))
	})
}

// After Release, signed reasoning is left out whatever Seals says.
func TestView_Released(t *testing.T) {
	type msg = convo.Message
	codec := mirror.Codec[*msg]{
		Decode: func(m *msg) ([]convo.Message, error) { return []convo.Message{*m}, nil },
		Encode: func(m convo.Message, _ **msg) (*msg, error) { return &m, nil },
		Seals:  func(string) bool { return false },
	}
	h, m := newMirror(t, nil, codec)
	user, answer := convo.User("Hello"), thoughts.In(convo.Assistant("Hi."), convo.Reasoning{Text: "hm", Signature: "s"})
	require.NoError(t, m.Sync([]*msg{&user, &answer}))
	view, err := m.View(h.Snapshot())
	require.NoError(t, err)
	assert.Len(t, view[1].Parts, 2)
	require.NoError(t, thoughts.Refuse(t.Context(), h))
	view, err = m.View(h.Snapshot())
	require.NoError(t, err)
	assert.Len(t, view[1].Parts, 1)
}

// Where an edit leaves the rest of the list as it was, what came by Add stays where it was said.
func TestFollow_AddStandsWhereItWasSaid(t *testing.T) {
	everywhere(t, func(t *testing.T, codec mirror.Codec[*line], opts *convo.Options) {
		h, m := newMirror(t, opts, codec)
		list := talk(2)
		require.NoError(t, m.Sync(list))
		typed := newLine(convo.RoleUser, "typed")
		require.NoError(t, m.Add(typed))
		list = append(list, newLine(convo.RoleAssistant, "answer to typed"), newLine(convo.RoleUser, "last"))
		require.NoError(t, m.Sync(list))
		edited := slices.Clone(list)
		edited[2] = newLine(convo.RoleAssistant, "made again")
		for range 2 {
			_, err := m.Follow(edited)
			require.NoError(t, err)
			same(t, slices.Insert(slices.Clone(edited), 5, typed), look(t, h, m))
		}
	})
}

// Behind an open call, it waits for the result.
func TestFollow_OpenCallAtTheEnd(t *testing.T) {
	everywhere(t, func(t *testing.T, codec mirror.Codec[*line], opts *convo.Options) {
		h, m := newMirror(t, opts, codec)
		list := talk(2)
		require.NoError(t, m.Sync(list))
		typed := newLine(convo.RoleUser, "typed")
		require.NoError(t, m.Add(typed))
		last := step("looking", 1, 1)
		list = append(list[:3:3], newLine(convo.RoleUser, "edited"), last[0])
		_, err := m.Follow(list)
		require.NoError(t, err)
		same(t, list, look(t, h, m))
		list = append(list, last[1])
		require.NoError(t, m.Sync(list))
		same(t, append(slices.Clone(list), typed), look(t, h, m))
	})
}

// Keys with invalid UTF-8 are kept as Append keeps them; two that become one are refused.
func TestSync_InvalidKeys(t *testing.T) {
	h, m := newMirror(t, small(), byKey)
	list := talk(2)
	list[1].ID = "a\xff"
	for n := range list {
		syncs(t, h, m, list[:n+1])
	}
	again := resume(t, m, list, byKey)
	syncs(t, again.History(), again, list)
	list[2].ID = "a\xfe"
	_, m = newMirror(t, nil, byKey)
	require.ErrorAs(t, m.Sync(list), new(*convo.RowError))
}

// A row that was made again with the same words and another key is gone back to.
func TestResume_AnotherKey(t *testing.T) {
	_, m := newMirror(t, small(), byKey)
	list := talk(3)
	require.NoError(t, m.Sync(list))
	data, err := m.Decisions()
	require.NoError(t, err)
	list[6] = list[6].clone()
	list[6].ID = "made again"
	again, done, err := mirror.Resume(data, list, byKey, small())
	require.NoError(t, err)
	defer again.History().Close()
	assert.Equal(t, 1, done.Entries)
	syncs(t, again.History(), again, list)
}

// A value that is a system message and something else is no system message in front.
func TestSync_SystemAndUser(t *testing.T) {
	type msg = []convo.Message
	codec := mirror.Codec[*msg]{
		Decode: func(m *msg) ([]convo.Message, error) { return *m, nil },
		Encode: func(m convo.Message, _ **msg) (*msg, error) { return &msg{m}, nil },
	}
	h, m := newMirror(t, &convo.Options{TagKey: "restart"}, codec)
	list := []*msg{{convo.System("Be brief.")}, {convo.System("Be calm."), convo.User("Hello")}, {convo.Assistant("Hi.")}}
	for range 2 {
		require.NoError(t, m.Sync(list))
		view, err := m.View(h.Snapshot())
		require.NoError(t, err)
		assert.Equal(t, list, view)
		data, err := m.Decisions()
		require.NoError(t, err)
		again, _, err := mirror.Resume(data, list, codec, &convo.Options{TagKey: "restart"})
		require.NoError(t, err)
		t.Cleanup(func() { again.History().Close() })
		h, m = again.History(), again
	}
}

// What was appended before a message is refused is taken back.
func TestAdd_TakesBackWhatItAppended(t *testing.T) {
	h, m := newMirror(t, nil, byKey)
	list := talk(1)
	require.NoError(t, m.Sync(list))
	typed, stray := newLine(convo.RoleUser, "typed"), step("no call of it", 1, 1)[1]
	for range 2 {
		require.ErrorAs(t, m.Add(typed, stray), new(*convo.PairError))
		same(t, list, look(t, h, m))
	}
	require.NoError(t, m.Add(typed))
	same(t, append(list, typed), look(t, h, m))
}

// Notes need keys of their own as well.
func TestSync_KeyOfANote(t *testing.T) {
	for _, twice := range []int{1, 3} {
		_, m := newMirror(t, nil, byKey)
		list := append(talk(1), newLine(convo.RoleSystem, "one"), newLine(convo.RoleSystem, "two"))
		list[4].ID = list[twice].ID
		require.ErrorAs(t, m.Sync(list), new(*convo.RowError))
	}
}

func TestFollow_SaysWhatToDo(t *testing.T) {
	_, m := newMirror(t, nil, byKey)
	list := talk(2)
	require.NoError(t, m.Sync(list))
	list[1] = newLine(convo.RoleUser, "edited")
	require.ErrorContains(t, m.Sync(list), "Follow goes back with the list")
	_, err := m.Follow(list)
	require.ErrorContains(t, err, "make a Mirror of a new History, or call ReplaceRows(0) of this one")
	require.ErrorIs(t, mirror.New(nil, byKey).Sync(list), convo.ErrClosed)
}

// What stays where it is, since the view would begin with an answer otherwise, does not wait as
// well.
func TestSync_KeptOrderBeforeAnOpenCall(t *testing.T) {
	for name, codec := range codecs {
		t.Run(name, func(t *testing.T) {
			h, m := newMirror(t, nil, codec)
			last := step("looking again", 1, 1)
			list := slices.Concat([]*line{newLine(convo.RoleUser, "first")}, step("looking", 1, 1), []*line{newLine(convo.RoleUser, "second"), last[0]})
			require.NoError(t, m.Sync(list))
			_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{1}, Summary: &convo.Summary{Text: "They talked."}})
			require.NoError(t, err)
			require.NoError(t, h.RewindTo(1))
			typed := newLine(convo.RoleUser, "typed")
			require.NoError(t, m.Add(typed))
			require.NoError(t, m.Sync(list))
			list = append(list, last[1])
			require.NoError(t, m.Sync(list))
			same(t, append([]*line{typed}, list[1:]...), look(t, h, m)[1:])
		})
	}
}
