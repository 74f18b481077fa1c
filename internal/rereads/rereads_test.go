package rereads

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func none(int64) bool { return false }
func all(int64) bool  { return true }

func TestView_Cleared(t *testing.T) {
	v := new(Past).View()
	v.Add("read a", Read{ID: 3, Tool: "read", Size: 10, End: 10, Cleared: true}, false)
	v.Add("read b", Read{ID: 5, Tool: "read", Size: 10, End: 20}, false)
	v.Add("read a", Read{ID: 7, Tool: "read", Size: 10, End: 30}, true)
	v.Add("read b", Read{ID: 9, Tool: "read", Size: 10, End: 40}, true)
	require.Len(t, v.Again, 1, "the other could be seen")
	assert.Equal(t, Read{ID: 7, Tool: "read", Size: 10, End: 30, Gone: 3, Apart: 20}, *v.Again[0])
	p := Past{}.With(v)
	assert.Equal(t, 1, p.Calls)
	assert.Equal(t, int64(10), p.Tokens)
	assert.True(t, p.IsCareless("read"), "one in two could be seen")
	assert.False(t, p.IsCareless("write"))
	assert.Len(t, v.Newest, 2)
}

func TestPast_Dropped(t *testing.T) {
	v := new(Past).View()
	v.Add("read a", Read{ID: 3, Tool: "read", End: 10}, true)
	assert.Empty(t, v.Again, "it is the first")
	p := Past{}.With(v).After(v, all, false)
	assert.True(t, p.HasDropped())

	v = p.View()
	v.Add("read a", Read{ID: 7, Tool: "read", Size: 5, End: 10}, true)
	require.Len(t, v.Again, 1)
	assert.Equal(t, int64(3), v.Again[0].Gone)
	assert.Zero(t, v.Again[0].Apart, "the last edit has dropped it")
	assert.False(t, new(Past).HasDropped())

	p = p.After(new(Past).View(), none, false) // another edit
	v = p.View()
	v.Add("read a", Read{ID: 9, Tool: "read", Size: 5, End: 10}, true)
	assert.EqualValues(t, far, v.Again[0].Apart)
	assert.False(t, func() bool { q := p.After(v, none, false); return q.HasDropped() }(), "it was made again much later")
}

func TestPast_Bounds(t *testing.T) {
	var p Past
	for i := range int64(mostDropped + 10) {
		v := p.View()
		v.Add(string(rune('a'+i)), Read{ID: i + 1, Tool: string(rune('a' + i))}, true)
		v.Add(string(rune('a'+i)), Read{ID: i + 1, Tool: string(rune('a' + i))}, true)
		p = p.With(v).After(v, all, false)
	}
	assert.Len(t, p.dropped, mostDropped)
	assert.Equal(t, int64(11), p.dropped[0].id, "the oldest are forgotten")
	assert.Len(t, p.tallies, mostTallies)
}

func TestPast_IsUnfit(t *testing.T) {
	var p Past
	var said []int
	for i := range 30 {
		p = p.After(p.View(), none, true)
		if p.IsUnfit() {
			said = append(said, i+1)
		}
	}
	assert.Equal(t, []int{3, 6, 12, 24}, said)
	p = p.After(p.View(), none, false)
	assert.False(t, p.IsUnfit())
	assert.Zero(t, p.row)
}
