package mirror_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/mirror"
)

// counting returns a codec with Same, and where it counts the calls of Decode.
func counting(codec mirror.Codec[*line]) (mirror.Codec[*line], *int) {
	n := new(int)
	decode := codec.Decode
	codec.Same = sameLine
	codec.Decode = func(l *line) ([]convo.Message, error) { *n++; return decode(l) }
	return codec, n
}

func clones(list []*line) (all []*line) {
	for _, l := range list {
		all = append(all, l.clone())
	}
	return all
}

func TestSame_DecodesWhatIsNew(t *testing.T) {
	everywhere(t, func(t *testing.T, codec mirror.Codec[*line], opts *convo.Options) {
		opts.TagKey = "restart"
		codec, n := counting(codec)
		h, m := newMirror(t, opts, codec)
		list := append([]*line{newLine(convo.RoleSystem, "Be brief."), newLine("ui", "session 1"), newLine(convo.RoleUser, "Hello")}, step("looking", 2, 1)...)
		shows := func(decoded int) {
			t.Helper()
			*n = 0
			require.NoError(t, m.Sync(list))
			assert.Equal(t, decoded, *n)
			same(t, slices.Concat(list[:1], list[2:]), look(t, h, m))
			assert.Equal(t, decoded, *n, "View")
		}
		shows(5)
		list = append(list, newLine(convo.RoleAssistant, "answer"), newLine(convo.RoleUser, "more"))
		shows(2)
		shows(0)
		list = clones(list)
		shows(0)
		list[0], list[1] = newLine(convo.RoleSystem, "Be long."), newLine("ui", "session 2")
		shows(2)

		data, err := m.Decisions()
		require.NoError(t, err)
		again, _, err := mirror.Resume(data, list, codec, opts)
		require.NoError(t, err)
		defer again.History().Close()
		h, m = again.History(), again
		shows(len(list))
		shows(0)
	})
}

// What has to be appended again is decoded then, and nothing else.
func TestSame_AppendedAgain(t *testing.T) {
	everywhere(t, func(t *testing.T, codec mirror.Codec[*line], opts *convo.Options) {
		codec, n := counting(codec)
		h, m := newMirror(t, opts, codec)
		list := talk(5)
		syncs(t, h, m, list)
		require.NoError(t, h.RewindTo(5))
		*n = 0
		syncs(t, h, m, list)
		assert.Equal(t, len(list)-5, *n)

		_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: ids(2, 3)})
		require.NoError(t, err)
		require.NoError(t, m.Sync(list))
		*n = 0
		back := append(slices.Clone(list[:1]), list[1].clone(), newLine(convo.RoleAssistant, "another"))
		done, err := m.Follow(back)
		require.NoError(t, err)
		assert.NotNil(t, done.Past)
		same(t, back, look(t, h, m))
		assert.Equal(t, 2, *n, "the answer, and the question that had left")
	})
}

// A key that a new value shares with one that is known is an error, whichever comes first.
func TestSame_KeyTwice(t *testing.T) {
	codec, _ := counting(byKey)
	h, m := newMirror(t, nil, codec)
	list := talk(2)
	syncs(t, h, m, list)
	for _, at := range []int{1, 4} {
		twice := slices.Clone(list)
		twice[at] = newLine(convo.RoleUser, "another")
		twice[at].ID = list[2].ID
		require.ErrorContains(t, m.Sync(twice), fmt.Sprintf("mirror: message %d: convo: row", max(at, 2)))
	}
	same(t, list, look(t, h, m))
}

func TestSame_Errors(t *testing.T) {
	codec, _ := counting(byPlace)
	codec.Same = func(was, now *line) bool { return was.Text != "same" || sameLine(was, now) }
	h, m := newMirror(t, nil, codec)
	list := talk(2)
	require.NoError(t, m.Sync(list))
	list[1] = &line{Role: "ui"} // Same does not tell the truth
	require.NoError(t, m.Sync(list))
	require.NoError(t, h.RewindTo(1))
	require.ErrorContains(t, m.Sync(list), "mirror: message 1: the value is the same as before")
	assert.Equal(t, 1, h.Len(), "nothing has changed")

	codec.Same = func(was, now *line) bool { return was.Calls[7] == now.Text }
	_, m = newMirror(t, nil, codec)
	list = talk(2)
	require.NoError(t, m.Sync(list))
	err := m.Sync(list)
	require.ErrorAs(t, err, new(*convo.PanicError))
	require.ErrorContains(t, err, "mirror: message 0: ")
}

// Values of the newest list stay, and those of the list before go.
func TestSame_KeepsTheNewestList(t *testing.T) {
	codec, _ := counting(byPlace)
	h, m := newMirror(t, &convo.Options{KeepOriginals: -1}, codec)
	var refs []weak.Pointer[line]
	syncNew := func() {
		list := talk(5)
		require.NoError(t, m.Sync(list))
		for _, l := range list {
			refs = append(refs, weak.Make(l))
		}
	}
	living := func() (n int) {
		runtime.GC()
		for _, r := range refs {
			if r.Value() != nil {
				n++
			}
		}
		return n
	}
	syncNew()
	_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: ids(2, 9)})
	require.NoError(t, err)
	look(t, h, m)
	assert.Equal(t, 11, living())
	syncNew()
	assert.Equal(t, 11, living())
	require.NoError(t, h.RewindTo(0))
	require.NoError(t, m.Sync([]*line{newLine(convo.RoleUser, "Hello")}))
	assert.Zero(t, living())
	runtime.KeepAlive(m)
}

// A note that stands in front of the list now is the value that the list has for it.
func TestSame_NoteBecomesSystem(t *testing.T) {
	codec := byKey
	codec.Same = sameLine
	h, m := newMirror(t, nil, codec)
	user, first, second := newLine(convo.RoleUser, "Hello"), newLine(convo.RoleSystem, "one"), newLine(convo.RoleSystem, "two")
	require.NoError(t, m.Sync([]*line{user, first, second}))
	var list []*line
	for _, l := range []*line{second, first, user} {
		again := *l
		list = append(list, &again)
	}
	_, err := m.Follow(list)
	require.NoError(t, err)
	view := look(t, h, m)
	require.Len(t, view, 3)
	for i, l := range list {
		assert.Same(t, l, view[i])
	}
}

// A Mirror that compares beside one that decodes: whatever the list and the History go through,
// also lists that no framework makes, they show the same values and decide the same.
func TestSame_IsWhatDecodeSays(t *testing.T) {
	count := map[string]int{}
	for seed := range long.Or[uint64](100, 10_000) {
		r := rand.New(rand.NewPCG(seed, 3))
		codec := byPlace
		if seed%2 == 0 {
			codec = byKey
		}
		codec.Decode = func(l *line) ([]convo.Message, error) { // as decode, with IDs in results of lines that have calls
			msgs, err := decode(l)
			for _, m := range msgs {
				for i, p := range m.Parts {
					if res, ok := p.(convo.ToolResult); ok && i < len(l.Calls) {
						res.CallID, m.Parts[i] = l.Calls[i], res
					}
				}
			}
			return msgs, err
		}
		codecs := [2]mirror.Codec[*line]{codec, codec}
		codecs[1].Same = sameLine
		var hs [2]*convo.History
		var ms [2]*mirror.Mirror[*line]
		opts := &convo.Options{TagKey: "restart", MaxResult: 200}
		if seed%4 > 1 {
			opts.Roles = convo.Relaxed()
		}
		for i := range ms {
			hs[i], ms[i] = newMirror(t, opts, codecs[i])
		}
		var list, synced []*line
		var reports [2][]convo.Report
		trace := ""
		both := func(what string, do func(i int) (any, error)) (err error) {
			trace += "; " + what
			a, err := do(0)
			b, err2 := do(1)
			require.Equal(t, fmt.Sprint(err), fmt.Sprint(err2), "seed %d: %s", seed, trace)
			require.Equal(t, a, b, "seed %d: %s", seed, trace)
			return err
		}
		random := func(role convo.Role) *line {
			l := newLine(role, fmt.Sprint("text ", r.IntN(3)))
			switch {
			case role == convo.RoleTool || role == convo.RoleUser && r.IntN(4) == 0:
				for i := range 1 + r.IntN(3) {
					l.Results = append(l.Results, fmt.Sprint("result ", i))
					if r.IntN(4) == 0 {
						l.Results[i] += string(make([]byte, 300))
					}
					if r.IntN(3) == 0 && i == len(l.Calls) {
						l.Calls = append(l.Calls, fmt.Sprint("c", r.IntN(3)))
					}
				}
			case role == convo.RoleAssistant:
				for i := range r.IntN(4) {
					l.Calls = append(l.Calls, fmt.Sprint("c", i))
				}
			}
			l.Once = r.IntN(15) == 0
			return l
		}
		roles := []convo.Role{convo.RoleUser, convo.RoleUser, convo.RoleAssistant, convo.RoleAssistant, convo.RoleTool, convo.RoleTool, convo.RoleSystem, "ui"}
		for range 60 {
			list = slices.Clone(list)
			at := r.IntN(len(list) + 1)
			switch op := r.IntN(24); {
			case op < 10:
				list = append(list, random(roles[r.IntN(len(roles))]))
			case op == 10:
				list = slices.Insert(list, at, random(roles[r.IntN(len(roles))]))
			case op == 11 && at < len(list):
				list = slices.Delete(list, at, at+1)
			case op == 12 && at < len(list):
				list[at] = list[at].clone()
				list[at].Text += "x"
			case op == 13 && at < len(list): // the same in other words
				list[at] = list[at].clone()
				if list[at].Text != "" {
					list[at].Text += " "
				}
			case op == 14 && at < len(list):
				list[at] = random(roles[r.IntN(len(roles))])
			case op == 15 && len(list) > 1:
				list[at%len(list)], list[0] = list[0], list[at%len(list)]
			case op == 16:
				list = clones(list)
			case op == 17:
				list = slices.Clone(synced)
			case op == 18:
				l := random(roles[r.IntN(2)])
				_ = both("add", func(i int) (any, error) { return nil, ms[i].Add(l) })
				if r.IntN(2) == 0 {
					list = append(list, l)
				}
			case op == 19 && at < len(list) && len(list[at].Results) > 1 && list[at].Role == convo.RoleTool: // a row for each
				var rows []*line
				for i, text := range list[at].Results {
					l := list[at].clone()
					l.Results, l.Calls = []string{text}, l.Calls[min(i, len(l.Calls)):min(i+1, len(l.Calls))]
					if i > 0 {
						l.ID = newLine(convo.RoleTool, "").ID
					}
					rows = append(rows, l)
				}
				list = slices.Replace(list, at, at+1, rows...)
			case op == 20 && at+1 < len(list) && list[at].Role == convo.RoleTool && list[at+1].Role == convo.RoleTool: // one for both
				l := list[at].clone()
				l.Results, l.Calls = slices.Concat(l.Results, list[at+1].Results), slices.Concat(l.Calls, list[at+1].Calls)
				list = slices.Replace(list, at, at+2, l)
			case op == 19 && len(list) > 0 && list[0].Role == convo.RoleSystem:
				list[0] = newLine(convo.RoleSystem, fmt.Sprint("It is day ", r.IntN(9)))
			case op == 20 && hs[0].Len() > 0:
				e, _ := hs[0].Snapshot().At(r.IntN(hs[0].Len()))
				_ = both("rewind", func(i int) (any, error) { return nil, hs[i].RewindTo(e.ID) })
			case op == 21:
				if hs[0].Len() > 3 {
					e, _ := hs[0].Snapshot().At(r.IntN(hs[0].Len()))
					edit := convo.Edit{Drop: []convo.ID{e.ID}}
					if r.IntN(2) == 0 {
						edit.Summary = &convo.Summary{Text: "What was said."}
					}
					_ = both("apply", func(i int) (any, error) {
						rep, err := hs[i].Apply(hs[i].Snapshot(), edit)
						if err == nil {
							reports[i] = append(reports[i], rep)
						}
						return nil, err
					})
				}
			case op == 22 && len(reports[0]) > 0:
				_ = both("undo", func(i int) (any, error) { return nil, hs[i].Undo(reports[i][len(reports[i])-1]) })
			case op == 23:
				var data [2][]byte
				if both("decisions", func(i int) (_ any, err error) { data[i], err = ms[i].Decisions(); return nil, err }) == nil {
					was := ms
					err := both("resume", func(i int) (any, error) {
						m, done, err := mirror.ResumeShorter(data[i], list, codecs[i], opts)
						if err == nil {
							ms[i], hs[i] = m, m.History()
							t.Cleanup(func() { m.History().Close() })
						}
						return done.String(), err
					})
					if err == nil {
						count["resume"]++
						for _, m := range was {
							m.History().Close()
						}
						reports = [2][]convo.Report{}
					}
				}
			}
			err := both("sync "+fmt.Sprint(at), func(i int) (any, error) { return nil, ms[i].Sync(list) })
			if err != nil {
				count["refused"]++
				if r.IntN(2) == 0 {
					err = both("follow", func(i int) (any, error) {
						done, err := ms[i].Follow(list)
						if done.Past != nil {
							count["back"]++
						}
						return done.String(), err
					})
				}
			}
			if err == nil {
				synced = list
				count["synced"]++
			} else if r.IntN(2) == 0 {
				list = slices.Clone(synced)
			}
			var views [2][]*mirrorLine
			_ = both("view", func(i int) (any, error) {
				view, err := ms[i].View(hs[i].Snapshot())
				for _, v := range view {
					views[i] = append(views[i], &mirrorLine{v, v.from})
				}
				return texts(view), err
			})
			require.Equal(t, len(views[0]), len(views[1]))
			for i, a := range views[0] {
				b := views[1][i]
				isMade := a.is.ID == "made" || a.from != nil
				require.True(t, a.is == b.is || isMade && a.from == b.from, "seed %d, value %d: %s", seed, i, trace)
			}
			_ = both("decisions", func(i int) (any, error) {
				data, err := ms[i].Decisions()
				return string(times.ReplaceAll(data, nil)), err
			})
			if r.IntN(8) == 0 {
				_ = both("compact", func(i int) (any, error) {
					rep, err := hs[i].Compact(context.Background(), "")
					if err == nil {
						reports[i] = append(reports[i], rep)
					}
					return nil, err
				})
			}
		}
		for _, h := range hs {
			h.Close()
		}
	}
	t.Log(count)
	for _, what := range []string{"synced", "refused", "back", "resume"} {
		require.Positive(t, count[what], what)
	}
}

// A mirrorLine is a value of a view, and what it was made of.
type mirrorLine struct{ is, from *line }
