package cuts_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-c1b73e60/convo/internal/cuts"
)

// listOf returns a list with an exchange of ten tokens for each letter of each turn: a user
// message (u, and U for one of a document), a note (n), a message of a host (h),
// an answer (a), a spared one (s), one of the floor (f), and a last resort (l).
func listOf(turns string) *cuts.List {
	l, kinds := new(cuts.List), strings.ReplaceAll(turns, " ", "")
	l.IsHosts = func(i int) bool { return kinds[i] == 'h' }
	l.Repeats = func(int) bool { return false }
	for turn, letters := range strings.Split(turns, " ") {
		for _, c := range letters {
			x := cuts.Exchange{From: len(l.Exchanges), To: len(l.Exchanges) + 1, Tokens: 10, Turn: turn}
			switch c {
			case 'U':
				x.User, x.Tokens = true, 40
			case 'u', 'h':
				x.User = true
			case 'n':
				x.User, x.Note = true, true
			}
			x.Spared, x.Floor, x.LastResort = c == 's', c == 'f', c == 'l'
			l.Exchanges = append(l.Exchanges, x)
		}
	}
	return l
}

func sum(all []cuts.Exchange) (tokens int64) {
	for _, x := range all {
		tokens += x.Tokens
	}
	return tokens
}

func TestList_Cut(t *testing.T) {
	for _, tt := range []struct {
		list   string
		target int64
		share  int64
		limit  int64
		keep   int
		want   string // what is dropped
	}{
		{"aaaa aaaa f", 50, 50, 0, 9, "0 1 2 3"},
		{"aaaa aaaa f", 40, 40, 0, 9, "0 1 2 3 4"},
		{"aaaa aaaa f", 40, 40, 0, 3, "0 1 2"},
		{"uaaa uaaa f", 50, 50, 0, 9, "0 1 2 3"},
		{"uaaa uaaa f", 20, 300, 0, 9, ""},
		{"uaaa uaaa f", 20, 300, 20, 9, "1 2 3 4 5 6 7"},
		{"Uaaa naaa f", 50, 400, 0, 9, "0 1 2 3"},
		{"haaa uaaa f", 40, 300, 30, 9, "0 1 2 3 5"},
		{"asaa lsaa f", 20, 20, 0, 9, "0 2 3 4 6 7"},
		{"aaaaaaaaaaaa aaaa f", 60, 60, 0, 17, "0 1 2 3 4 5 6 7 8 9 10 11"},
	} {
		l := listOf(tt.list)
		r := cuts.Room{Target: tt.target, Share: tt.share, Limit: cuts.NoMark, Most: cuts.NoMark}
		if tt.limit > 0 {
			r.Limit = tt.limit
		}
		var got []string
		for _, x := range l.Cut(r, sum(l.Exchanges), 10, 0, tt.keep) {
			got = append(got, fmt.Sprint(x.From))
		}
		assert.Equal(t, tt.want, strings.Join(got, " "), "%+v", tt)
	}
}

func TestRoom(t *testing.T) {
	r := cuts.Room{Target: 100, Share: 80, Limit: cuts.NoMark, Most: cuts.NoMark}
	assert.EqualValues(t, 40, r.Tail(60, 0))
	assert.EqualValues(t, 20, r.Tail(90, 0))
	assert.EqualValues(t, 15, r.Tail(60, 15))
	assert.Zero(t, r.Tail(60, -1))
	assert.Equal(t, cuts.Room{Target: 70, Share: 80, Limit: cuts.NoMark, Most: cuts.NoMark}, r.Less(30))
	r.Limit, r.Most = 120, 100
	assert.EqualValues(t, 10, r.Tail(100-10, 0), "Most")
	assert.Equal(t, cuts.Room{Target: 90, Share: 80, Limit: 110, Most: 90}, r.Less(10))
	r.Most = 1000
	assert.EqualValues(t, 5, r.Tail(110, 0), "half the room below the limit")
	assert.EqualValues(t, 3, r.Large())
}

func TestSurplus(t *testing.T) {
	free, kept, last := cuts.Medium{Free: true}, cuts.Medium{}, cuts.Medium{Free: true, Last: true}
	large := cuts.Medium{Free: true, Large: true}
	for _, tt := range []struct {
		all   []cuts.Medium
		most  int
		large bool
		want  []int
	}{
		{[]cuts.Medium{free, free}, 0, false, nil},
		{[]cuts.Medium{free, free}, 2, false, nil},
		{[]cuts.Medium{free, free, free, free, last}, 4, false, []int{0, 1, 2}},
		{[]cuts.Medium{kept, free, last, last}, 3, false, []int{1}},
		{[]cuts.Medium{kept, last, last, last}, 2, false, []int{1, 2}},
		{[]cuts.Medium{kept, kept, last}, 1, false, nil},
		{[]cuts.Medium{free, free, large, free}, 3, true, []int{2}},
		{[]cuts.Medium{free, free, free}, 2, true, nil},
		{[]cuts.Medium{last, large, large, last}, 3, true, []int{1, 2}},
	} {
		assert.Equal(t, tt.want, cuts.Surplus(tt.all, tt.most, tt.large), "%+v", tt)
	}
}

func TestList_Window(t *testing.T) {
	for _, tt := range []struct {
		list        string
		least, most int
		want        int
	}{
		{"", 0, 1, 0},
		{"uaa uaa", 0, 9, 0},
		{"uaa uaa", 0, 6, 0},
		{"uaa uaa", 0, 5, 2}, // with the user message of the turn
		{"uaa uaa", 0, 4, 3},
		{"uaa uaa", 0, 3, 3},
		{"uaa uaa", 0, 2, 5},
		{"uaa uaa", 0, 1, 6}, // there is no room for the user message as well
		{"uaa uaa", 3, 9, 3},
		{"uuaa", 0, 3, 3},
	} {
		l := listOf(tt.list)
		assert.Equal(t, tt.want, l.Window(tt.least, tt.most, len(l.Exchanges)), "%+v", tt)
	}
}
