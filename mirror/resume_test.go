package mirror_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/mirror"
)

var codecs = map[string]mirror.Codec[*line]{"by place": byPlace, "by key": byKey, "by place, same": comparing(byPlace), "by key, same": comparing(byKey)}

func comparing(codec mirror.Codec[*line]) mirror.Codec[*line] {
	codec.Same = sameLine
	return codec
}

func small() *convo.Options {
	return &convo.Options{Limits: convo.Limits{Window: 2_000, Reserve: 200}, TagKey: "restart"}
}

func resume(t testing.TB, m *mirror.Mirror[*line], list []*line, codec mirror.Codec[*line]) *mirror.Mirror[*line] {
	t.Helper()
	data, err := m.Decisions()
	require.NoError(t, err)
	again, _, err := mirror.Resume(data, list, codec, small())
	require.NoError(t, err)
	t.Cleanup(func() { again.History().Close() })
	return again
}

// What a framework does in a run, at random: steps, texts that the user types in the meantime, which
// the list holds later, at the end, in the middle or not at all, and edits. After each, one
// Mirror goes on, and another one is resumed. Both show the same.
func TestResume_ShowsWhatWouldHaveBeenShown(t *testing.T) {
	for name, codec := range codecs {
		t.Run(name, func(t *testing.T) {
			shorter, typed, edited := 0, 0, 0
			for seed := range long.Or[uint64](10, 30) {
				r := rand.New(rand.NewPCG(seed, 25))
				m := mirror.New(newHistory(t, small()), codec)
				list := []*line{newLine(convo.RoleSystem, "Be brief."), newLine(convo.RoleUser, "Read all pages.")}
				require.NoError(t, m.Sync(list))
				var pending []*line // given to Add, and not in the list
				for n := range 40 {
					again := resume(t, m, list, codec)
					if r.IntN(3) == 0 {
						m, again = again, m // the run goes on with what was resumed
					}
					switch k := r.IntN(10); {
					case k < 6:
						list = append(list, step(fmt.Sprint("page ", n), 1+r.IntN(2), 5+r.IntN(20))...)
					case k < 8:
						list = append(list, newLine(convo.RoleAssistant, fmt.Sprint("Done with ", n)), newLine(convo.RoleUser, fmt.Sprint("Go on with ", n)))
					case k == 8 && !endsWithUser(m): // after a restart, it would join the question
						l := newLine(convo.RoleUser, fmt.Sprint("By the way, ", n))
						require.NoError(t, m.Add(l))
						require.NoError(t, again.Add(l))
						pending = append(pending, l)
						typed++
					case len(list) > 4 && len(pending) == 0:
						var ok bool
						if list, ok = edit(t, list, m, again); ok {
							edited++
						}
					}
					if len(pending) > 0 && r.IntN(3) == 0 {
						if at := len(list) - r.IntN(2); r.IntN(3) > 0 && list[at-1].Role != convo.RoleAssistant {
							own := *pending[0] // another value than Add was given
							list = slices.Insert(slices.Clone(list), at, &own)
						}
						pending = pending[1:]
					}
					want, _, err := m.Prepare(t.Context(), list)
					got, _, err2 := again.Prepare(t.Context(), list)
					require.Equal(t, fmt.Sprint(err), fmt.Sprint(err2), "seed %d, step %d", seed, n)
					if err != nil {
						break
					}
					require.Equal(t, texts(want), texts(got), "seed %d, step %d", seed, n)
					for i := range want {
						if slices.Contains(list, want[i]) {
							require.Same(t, want[i], got[i], "seed %d, step %d, value %d", seed, n, i)
						}
					}
					if len(want) < len(list) {
						shorter++
					}
				}
			}
			t.Logf("%d shorter views, %d typed texts, %d edits", shorter, typed, edited)
			assert.Positive(t, min(shorter, typed, edited))
		})
	}
}

func endsWithUser(m *mirror.Mirror[*line]) bool {
	s := m.History().Snapshot()
	e, _ := s.At(s.Len() - 1)
	return e.Message.Role == convo.RoleUser
}

// edit writes the newest question of list again, if the mirrors can still take it back.
func edit(t testing.TB, list []*line, mirrors ...*mirror.Mirror[*line]) ([]*line, bool) {
	at := len(list) - 1
	for list[at].Role != convo.RoleUser {
		at--
	}
	next := append(slices.Clone(list[:at]), newLine(convo.RoleUser, "In other words: "+list[at].Text))
	failed := 0
	for _, m := range mirrors {
		err := m.Sync(next)
		if past := (*mirror.PastError)(nil); errors.As(err, &past) {
			if err = m.History().RewindTo(past.Last); err == nil {
				err = m.Sync(next)
			}
		}
		if err != nil {
			failed++
		}
	}
	require.Contains(t, []int{0, len(mirrors)}, failed)
	if failed > 0 {
		return list, false
	}
	return next, true
}

// compacted returns a Mirror that has compacted its list, and Decisions of it.
func compacted(t testing.TB, codec mirror.Codec[*line]) ([]*line, []byte) {
	m := mirror.New(newHistory(t, small()), codec)
	list := []*line{newLine(convo.RoleSystem, "Be brief."), newLine(convo.RoleUser, "Read all pages.")}
	for n := range 20 {
		list = append(list, step(fmt.Sprint("page ", n), 1, 40)...)
		if n == 18 {
			require.NoError(t, m.Sync(list))
			require.NoError(t, m.Add(newLine(convo.RoleUser, "By the way,"), newLine(convo.RoleUser, "it waits")))
		}
		_, _, err := m.Prepare(t.Context(), list)
		require.NoError(t, err)
	}
	data, err := m.Decisions()
	require.NoError(t, err)
	return list, data
}

func TestResume_ListsThatDoNotFit(t *testing.T) {
	for name, codec := range codecs {
		t.Run(name, func(t *testing.T) {
			list, data := compacted(t, codec)
			try := func(list []*line) error {
				m, _, err := mirror.Resume(data, list, codec, small())
				assert.Nil(t, m)
				return err
			}
			t.Run("too short", func(t *testing.T) {
				var short *convo.ValueError
				require.ErrorAs(t, try(list[:len(list)-1]), &short)
				assert.EqualError(t, short, "convo: the length of the list, without its system messages, is 40, want at least 41, as when it was synced; ResumeShorter takes a shorter one")
				require.ErrorAs(t, try(nil), &short)
			})
			t.Run("changed", func(t *testing.T) {
				changed := slices.Clone(list)
				changed[len(list)-1] = list[len(list)-1].clone()
				changed[len(list)-1].Results = []string{"another page"}
				goesBack(t, data, changed, codec, 1)
			})
			t.Run("one is missing", func(t *testing.T) {
				goesBack(t, data, append(slices.Delete(slices.Clone(list), len(list)-4, len(list)-2), step("more", 1, 1)...), codec, 4)
			})
			t.Run("undecodable", func(t *testing.T) {
				assert.EqualError(t, try(append(slices.Clone(list), newLine(convo.RoleUser, "undecodable"))), "mirror: message 42: no")
			})
			t.Run("longer", func(t *testing.T) {
				m, _, err := mirror.Resume(data, append(slices.Clone(list), step("more", 1, 1)...), codec, small())
				require.NoError(t, err)
				assert.NoError(t, m.History().Close())
			})
		})
	}
}

// goesBack resumes with a list whose entries in view have changed, the newest ones of them. The
// view then is that of the new list.
func goesBack(t *testing.T, data []byte, list []*line, codec mirror.Codec[*line], entries int) {
	t.Helper()
	m, done, err := mirror.Resume(data, list, codec, small())
	require.NoError(t, err)
	defer m.History().Close()
	require.NotNil(t, done.Past)
	assert.Equal(t, entries, done.Entries, done)
	assert.False(t, done.Anew)
	require.NoError(t, m.Sync(list))
	view := look(t, m.History(), m)
	assert.Contains(t, strings.Join(texts(view), ";"), "cleared", "what was decided stays")
	assert.Contains(t, strings.Join(texts(view), ";"), strings.Join(texts(list[len(list)-2:]), ";"))
	assert.Contains(t, texts(view), "By the way,")
}

func TestResume_OtherData(t *testing.T) {
	list, data := compacted(t, byPlace)
	var good map[string]any
	require.NoError(t, json.Unmarshal(data, &good))
	with := func(name string, v any) []byte {
		other := maps.Clone(good)
		other[name] = v
		data, err := json.Marshal(other)
		require.NoError(t, err)
		return data
	}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"nothing":         {nil, "mirror: not what Decisions has returned: unexpected end of JSON input"},
		"a later version": {with("version", 3), "mirror: Decisions of version 3, want 2; use the release of convo that wrote it, or a later one: convo: unknown format version"},
		"too many rows":   {with("list", []any{map[string]any{"n": 1000, "own": 1}}), "convo: the length of the list, without its system messages, is 41, want at least 1000, as when it was synced; ResumeShorter takes a shorter one"},
		"no sums":         {with("list", []any{map[string]any{"n": 3, "sums": "x"}}), "convo: a run of the list in Decisions is 3, want what Decisions has returned"},
		"behind nothing":  {with("loose", []any{map[string]any{"id": 3, "key": "#9", "behind": -1}}), "convo: the place of a message of Add in Decisions is -1, want what Decisions has returned"},
		"behind too much": {with("loose", []any{map[string]any{"id": 3, "key": "#9", "behind": 1000}}), "convo: the place of a message of Add in Decisions is 1,000, want what Decisions has returned"},
		"no decisions":    {with("decisions", map[string]any{}), "convo: snapshot: unknown format version 0, want 3; use the release of convo that wrote it, or a later one"},
	} {
		t.Run(name, func(t *testing.T) {
			m, _, err := mirror.Resume(c.data, list, byPlace, small())
			assert.EqualError(t, err, c.want)
			assert.Nil(t, m)
		})
	}
}

// A Decode that panics leaves no Mirror.
func TestResume_DecodePanics(t *testing.T) {
	list, data := compacted(t, byPlace)
	m, _, err := mirror.Resume(data, append(slices.Clone(list), nil), byPlace, small())
	require.ErrorAs(t, err, new(*convo.PanicError))
	assert.Nil(t, m)
}

// Whatever the data are, Resume fails, or its Mirror goes on with the list.
func FuzzResume(f *testing.F) {
	list, data := compacted(f, byPlace)
	f.Add(data)
	f.Add([]byte(`{"version":2,"list":[{"n":3,"id":4,"own":1}],"loose":[{"id":3,"key":"#1"}],"decisions":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, _, err := mirror.Resume(data, list, byPlace, small())
		if err != nil {
			return
		}
		defer m.History().Close()
		if err := m.Sync(list); err == nil {
			_, err = m.View(m.History().Snapshot())
			require.NoError(t, err)
		}
	})
}

// The options after a restart may be others than before: the view is theirs, and the run goes
// on with the framework's own values.
func TestResume_OtherOptions(t *testing.T) {
	for name, codec := range codecs {
		for what, opts := range map[string]*convo.Options{
			"none":                nil,
			"a smaller window":    {Limits: convo.Limits{Window: 1_000, Reserve: 100}},
			"a larger window":     {Limits: convo.Limits{Window: 100_000}},
			"shorter results":     {Limits: convo.Limits{Window: 2_000}, MaxResult: 64},
			"other roles":         {Limits: convo.Limits{Window: 2_000}, Roles: convo.Relaxed()},
			"another tag":         {Limits: convo.Limits{Window: 2_000}, TagKey: "another"},
			"a pin, and no whole": {Limits: convo.Limits{Window: 2_000}, PinFirstUser: true, KeepOriginals: -1},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				list, data := compacted(t, codec)
				m, _, err := mirror.Resume(data, list, codec, opts)
				require.NoError(t, err)
				defer m.History().Close()
				for n := range 10 {
					view, s, err := m.Prepare(t.Context(), list)
					require.NoError(t, err)
					if opts != nil {
						assert.LessOrEqual(t, s.Tokens(), opts.Limits.Window)
					}
					newest := list[len(list)-1]
					assert.True(t, slices.ContainsFunc(view, func(l *line) bool { return l == newest || l.from == newest }), "the newest value is in the view")
					list = append(list, step(fmt.Sprint("more ", n), 1, 12)...)
				}
			})
		}
	}
}

// If the view shows nothing of the list, Resume goes on as the Mirror would have done.
func TestResume_NothingOfTheListInView(t *testing.T) {
	for name, codec := range codecs {
		t.Run(name, func(t *testing.T) {
			m := mirror.New(newHistory(t, small()), codec)
			list := []*line{newLine(convo.RoleUser, "Read."), newLine(convo.RoleAssistant, "Done."), newLine(convo.RoleUser, "Thanks."), newLine(convo.RoleAssistant, "Bye.")}
			require.NoError(t, m.Sync(list))
			_, err := m.History().Append(convo.User("This has no key."), convo.Assistant("Nor this."))
			require.NoError(t, err)
			var drop []convo.ID
			for _, e := range m.History().Snapshot().All() {
				if e.Message.Key != "" {
					drop = append(drop, e.ID)
				}
			}
			_, err = m.History().Apply(m.History().Snapshot(), convo.Edit{Drop: drop})
			require.NoError(t, err)
			again := resume(t, m, list, codec)
			assert.Equal(t, m.History().Snapshot().Messages(), again.History().Snapshot().Messages())
			list = append(list, newLine(convo.RoleUser, "And now?"))
			require.NoError(t, m.Sync(list))
			require.NoError(t, again.Sync(list))
			assert.Equal(t, m.History().Snapshot().Messages(), again.History().Snapshot().Messages())
		})
	}
}
