package mirror_test

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/mirror"
)

// rowsOf yields the framework's list as rows: those with the keys, and all from one on.
func rowsOf(list []*line, keys []string, from string) iter.Seq2[convo.Message, error] {
	return func(yield func(convo.Message, error) bool) {
		begun := from == ""
		for _, l := range list {
			if begun = begun || l.ID == from; !begun && !slices.Contains(keys, l.ID) || l.Role == convo.RoleSystem {
				continue
			}
			msgs, err := decode(l)
			if err == nil && len(msgs) != 1 {
				err = errors.New("a row is one message here")
			}
			if err != nil {
				yield(convo.Message{}, err)
				return
			}
			for i, p := range msgs[0].Parts { // a Mirror has an entry for each result
				one := msgs[0]
				if one.Key = l.ID; one.Role == convo.RoleTool {
					one.Parts = []convo.Part{p}
				}
				if i > 0 {
					one.Key += fmt.Sprint("#", i)
				}
				if one.Role != convo.RoleTool && i > 0 {
					break
				}
				if !yield(one, nil) {
					return
				}
			}
		}
	}
}

// A framework stops and starts again, in any step of a long run, and the view is what it would
// have been: the same texts, and the framework's own values. What convo has decided is all that
// was stored beside the framework's list.
func TestMirror_SurvivesARestart(t *testing.T) {
	opts := &convo.Options{Limits: convo.Limits{Window: 2_000, Reserve: 200}, TagKey: "restart"}
	h := newHistory(t, opts)
	m := mirror.New(h, byKey)
	list := []*line{newLine(convo.RoleSystem, "Be brief."), newLine(convo.RoleUser, "Read all pages.")}
	restarts, compacted := 0, false
	for n := range 60 {
		view, snap, err := m.Prepare(t.Context(), list)
		require.NoError(t, err)
		require.NoError(t, h.RecordUsage(snap, convo.Usage{Input: snap.Tokens() + snap.Tokens()/10, Output: 10}))
		compacted = compacted || len(view) < len(list)

		data, err := h.Decisions()
		require.NoError(t, err)
		d, err := convo.ReadDecisions(data)
		require.NoError(t, err)
		keys, from := d.Needs()
		again, err := convo.Resume(d, rowsOf(list, keys, from), opts)
		require.NoError(t, err, "step %d", n)
		t.Cleanup(func() { again.Close() })
		m2 := mirror.New(again, byKey)
		view2, snap2, err := m2.Prepare(t.Context(), list)
		require.NoError(t, err, "step %d", n)
		require.Equal(t, texts(view), texts(view2), "step %d", n)
		for i := range view {
			if view[i].from == nil && view[i].ID != "made" {
				assert.Same(t, view[i], view2[i], "step %d, value %d", n, i)
			}
		}
		assert.Equal(t, snap.Tokens(), snap2.Tokens(), "step %d", n)
		if n%7 == 6 { // the run goes on with what was made after the restart
			h, m = again, m2
			restarts++
		}
		list = append(list, step(fmt.Sprint("page ", n), 1+n%2, 12)...)
		if n%10 == 9 {
			list = append(list, newLine(convo.RoleAssistant, "So far so good."), newLine(convo.RoleUser, strings.Repeat("Go on. ", 5)))
		}
	}
	assert.True(t, compacted)
	assert.Equal(t, 8, restarts)
}
