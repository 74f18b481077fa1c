package main

import (
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// The program is stopped in a tool. After the restart the tool runs again, unless it must
// not run twice.
func TestAgent_Restart(t *testing.T) {
	for name, tt := range map[string]struct {
		once bool
		want string
	}{
		"once":  {true, "the program was stopped while the tool ran; ask the user whether it has done its work"},
		"again": {false, "booked"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, runs, stops := t.TempDir(), 0, true
			start := func() *agent {
				a := &agent{dir: dir, out: io.Discard, send: model, tools: map[string]tool{"book": {once: tt.once, run: func(string) string {
					if runs++; stops {
						runtime.Goexit() // nothing after it runs
					}
					return "booked"
				}}}}
				require.NoError(t, a.open())
				return a
			}
			a := start()
			stopped := make(chan struct{})
			go func() {
				defer close(stopped)
				_ = a.ask(t.Context(), "Book a table for two.")
			}()
			<-stopped
			stops = false
			a = start()
			require.NoError(t, a.ask(t.Context(), ""))
			assert.Equal(t, map[bool]int{true: 1, false: 2}[tt.once], runs)
			all := seen(a.h)
			assert.Equal(t, "The tool says: "+tt.want, all[len(all)-1])

			// The conversation goes on, through compactions, and each row is there once.
			for range 50 {
				require.NoError(t, a.ask(t.Context(), "Book another table. "+strings.Repeat("Please. ", 20)))
				again := start()
				require.Equal(t, seen(a.h), seen(again.h))
				a = again
			}
			assert.Equal(t, 4*51, count(t, a))
		})
	}
}

// A question that never fits is taken back with its row, and the next one is answered.
func TestAgent_GiveUp(t *testing.T) {
	a := &agent{dir: t.TempDir(), out: io.Discard, send: model, tools: map[string]tool{"book": {run: func(string) string { return "booked" }}}}
	require.NoError(t, a.open())
	require.NoError(t, a.ask(t.Context(), "Book a table for two."))
	err := a.ask(t.Context(), strings.Repeat("Read all of this. ", 2000))
	require.True(t, errors.As(err, new(*convo.FloorError)), "%v", err)
	assert.Equal(t, 4, count(t, a))
	require.NoError(t, a.open())
	require.NoError(t, a.ask(t.Context(), "Book another table."))
	assert.Equal(t, 8, count(t, a))
	assert.Equal(t, 8, a.h.Len())
}

func count(t *testing.T, a *agent) (n int) {
	for _, err := range a.rows(nil, "") {
		require.NoError(t, err)
		n++
	}
	return n
}

func seen(h *convo.History) (all []string) {
	for _, m := range h.Snapshot().Messages() {
		all = append(all, m.Text())
	}
	return all
}
