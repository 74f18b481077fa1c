package mirror_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/mirror"
)

// A list that a framework has left as an interrupted turn left it: two questions in a row, an
// empty answer, a call without a result. Under Relaxed each value is given back as it is, and
// the History answers the call.
func TestMirror_ListsOfInterruptedTurns(t *testing.T) {
	for name, codec := range codecs {
		t.Run(name, func(t *testing.T) {
			opts := &convo.Options{Roles: convo.Relaxed()}
			h := newHistory(t, opts)
			m := mirror.New(h, codec)
			list := []*line{newLine(convo.RoleUser, "Hello"), newLine(convo.RoleUser, "Anyone?"), newLine(convo.RoleAssistant, ""), newLine(convo.RoleUser, "Look!")}
			list = append(list, step("looking", 2, 1)[0], newLine(convo.RoleUser, "Never mind."), newLine(convo.RoleAssistant, "Done."))
			list = append(list, step("looking again", 1, 1)[0], newLine(convo.RoleUser, "Stop."))
			shows := func(m *mirror.Mirror[*line]) {
				t.Helper()
				view := look(t, m.History(), m)
				made := 0
				for i, l := range view {
					if l.ID == "made" {
						made++
						continue
					}
					require.Same(t, list[i-made], l, "value %d", i)
				}
				assert.Equal(t, 3, made, "the answers to the open calls")
				assert.Len(t, view, len(list)+made)
			}
			for n := range list {
				require.NoError(t, m.Sync(list[:n+1]))
			}
			shows(m)
			require.NoError(t, m.Sync(list))
			shows(m)

			whole := mirror.New(newHistory(t, opts), codec)
			require.NoError(t, whole.Sync(list), "all at once")
			shows(whole)
			require.NoError(t, whole.Sync(list))
			shows(whole)

			data, err := m.Decisions()
			require.NoError(t, err)
			again, _, err := mirror.Resume(data, list, codec, opts)
			require.NoError(t, err)
			defer again.History().Close()
			shows(again)
			list = append(list, newLine(convo.RoleAssistant, "I stop."))
			require.NoError(t, again.Sync(list))
			shows(again)
		})
	}
}

// A list that cannot be appended as a whole is not appended in part, whether the fault
// stands before or after a user message that interrupts calls.
func TestMirror_InterruptedListIsAppendedWhole(t *testing.T) {
	interrupted := func() []*line {
		return []*line{newLine(convo.RoleUser, "Hello"), step("looking", 2, 1)[0], newLine(convo.RoleUser, "Never mind.")}
	}
	stray := step("no call of it", 1, 1)[1]
	for name, c := range map[string]struct {
		roles convo.RolePolicy
		more  []*line
		index int
	}{
		"forbidden":      {convo.RolePolicy{}, nil, 2},
		"fault after it": {convo.Relaxed(), []*line{newLine(convo.RoleAssistant, "Done."), stray}, 4},
		"fault at once":  {convo.Relaxed(), []*line{stray}, 3},
		"fault two on":   {convo.Relaxed(), []*line{step("again", 1, 1)[0], newLine(convo.RoleUser, "Stop."), stray}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory(t, &convo.Options{Roles: c.roles})
			m := mirror.New(h, byKey)
			kept := []*line{newLine(convo.RoleUser, "Before"), newLine(convo.RoleAssistant, "Yes.")}
			require.NoError(t, m.Sync(kept))
			before := h.Snapshot()
			list := append(slices.Clone(kept), append(interrupted(), c.more...)...)
			for range 2 {
				err := m.Sync(list)
				var pair *convo.PairError
				require.ErrorAs(t, err, &pair)
				assert.Equal(t, c.index, pair.Index, "the message among the new ones")
				assert.Equal(t, before.Len(), h.Snapshot().Len())
				same(t, kept, look(t, h, m))
			}
			going := append(slices.Clone(kept), newLine(convo.RoleUser, "Go on"))
			require.NoError(t, m.Sync(going))
			same(t, going, look(t, h, m))
		})
	}
}

// Append replaces invalid UTF-8, which a tool may well return. The values stay those of the
// framework, now and after a restart.
func TestMirror_InvalidUTF8(t *testing.T) {
	for name, codec := range codecs {
		t.Run(name, func(t *testing.T) {
			h := newHistory(t, nil)
			m := mirror.New(h, codec)
			list := append([]*line{newLine(convo.RoleSystem, "s\xff"), newLine(convo.RoleUser, "a\xff\xfeb")}, step("x\xff", 1, 1)...)
			list[3].Results[0] = "\xff"
			require.NoError(t, m.Sync(list))
			same(t, list, look(t, h, m))
			require.NoError(t, m.Sync(list))
			again := resume(t, m, list, codec)
			require.NoError(t, again.Sync(list))
			same(t, list, look(t, again.History(), again))
		})
	}
}
