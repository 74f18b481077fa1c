package peer

import (
	"bytes"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMeasure_Weigh(t *testing.T) {
	assert.Equal(t, PerMessage, LenFour(Text))
	call := Call{ID: "12345678", Name: "name", Args: `{"a":1}!`}
	for _, tt := range []struct {
		m              Message
		lenFour, bytes int
	}{
		{Message{Role: "user"}, 0, 5},
		{Message{Role: "user", Text: "12345678"}, 2, 7},
		{Message{Role: "user", Text: "123456789"}, 2, 8},
		{Message{Role: "assistant", Text: "1234", Calls: []Call{call, call}}, 1 + 2*(2+1+2), 5 + (4+2*12)/4},
		{Message{Role: "tool", Text: "1234", Answers: "12345678", Tool: "name"}, 1 + 2, 5 + 2},
	} {
		assert.Equal(t, tt.lenFour, MeasureLenFour.Weigh(tt.m), "%v", tt.m)
		assert.Equal(t, tt.bytes, MeasureBytes.Weigh(tt.m), "%v", tt.m)
	}
	assert.Equal(t, 10, MeasureBytes.WeighAll(make([]Message, 2)))
}

// Unpacking restores what was packed. An unchanged message of the job is packed
// as its number.
func TestRequest_Pack(t *testing.T) {
	job := Job{Messages: []Message{{N: 0, Role: "user", Text: "a"}, {N: 1, Role: "assistant", Calls: []Call{{ID: "1"}}}}}
	changed := job.Messages[1]
	changed.Calls = []Call{{ID: "2"}}
	r := Request{View: []Message{job.Messages[1], changed, {N: Made, Role: "user", Text: "a"}, {N: 7}, job.Messages[0]}, TooLong: true, Apart: []Apart{{1, 2}}}
	p := r.Pack(job)
	var same []bool
	for _, place := range p.View {
		same = append(same, place.M == nil)
	}
	assert.Equal(t, []bool{true, false, false, false, true}, same)
	got, err := p.Unpack(job)
	require.NoError(t, err)
	assert.Equal(t, r, got)
	for _, n := range []int{Made, 2} {
		_, err = Packed{View: []Place{{N: n}}}.Unpack(job)
		assert.ErrorContains(t, err, "of 2")
	}
}

// said is a Keep that records the messages it gets.
type said struct {
	list []string
	err  error
}

func (s *said) Add(m Message) error {
	s.list = append(s.list, m.Text)
	return nil
}

func (s *said) Request() (Request, error) {
	return Request{View: []Message{{N: Made, Text: strings.Join(s.list, " ")}}}, s.err
}

func TestKeeper_Do(t *testing.T) {
	boom := errors.New("boom")
	job := Job{Messages: []Message{{Text: "a"}, {Text: "b"}, {Text: "c"}}, Asks: []int{0, 2, 2, 3}}
	got, err := Keeper{New: func(Job) (Keep, error) { return &said{}, nil }}.Do(job)
	require.NoError(t, err)
	var views []string
	for _, r := range got {
		views = append(views, r.View[0].Text)
	}
	assert.Equal(t, []string{"", "a b", "a b", "a b c"}, views)
	for _, asks := range [][]int{{4}, {2, 1}} {
		_, err = Keeper{New: func(Job) (Keep, error) { return &said{}, nil }}.Do(Job{Messages: job.Messages, Asks: asks})
		assert.ErrorContains(t, err, "of 3")
	}
	_, err = Keeper{New: func(Job) (Keep, error) { return &said{err: boom}, nil }}.Do(job)
	assert.ErrorIs(t, err, boom)
	_, err = Keeper{New: func(Job) (Keep, error) { return nil, boom }}.Do(job)
	assert.ErrorIs(t, err, boom)
}

// A vocabulary is loaded only once, and not while a round is measured.
func TestServe_CountersAreLoadedOnce(t *testing.T) {
	loads := 0
	p := Peer{Counters: []Counter{{Name: "bytes", New: func() (func(string) int, error) {
		loads++
		return func(s string) int { return len(s) }, nil
	}}}}
	order := `{"do":"count","counter":{"name":"bytes","vocabulary":"","texts":["abc"]}}` + "\n"
	var out bytes.Buffer
	require.NoError(t, p.Serve(strings.NewReader(order+order), &out))
	assert.Equal(t, strings.Repeat(`{"counts":[3]}`+"\n", 2), out.String())
	assert.Equal(t, 1, loads)
}

// An invalid order is answered with an error, and the next one is carried out.
func TestServe_OrdersWithoutSense(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, Peer{}.Serve(strings.NewReader(`{"do":"dance"} {"do":"count"} {"do":"keep"} {"do":"round"} {"do":"about"}`), &out))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 5)
	for _, line := range lines[:4] {
		assert.Contains(t, line, `{"error":`)
	}
	assert.Contains(t, lines[4], `{"about":`)
	assert.Error(t, Peer{}.Serve(strings.NewReader("no order"), &out))
}

// Rounds are measured with GOMAXPROCS set to 1, and the setting is restored.
func TestCase_OneProcessor(t *testing.T) {
	before := runtime.GOMAXPROCS(3)
	defer runtime.GOMAXPROCS(before)
	var seen []int
	c := Case{Step: 2, Max: 2, New: func(int) (func(int) error, error) {
		return func(int) error { seen = append(seen, runtime.GOMAXPROCS(0)); return nil }, nil
	}}
	k, once, err := c.Fit(time.Hour)
	require.NoError(t, err)
	assert.Equal(t, 2, k)
	assert.False(t, once)
	_, err = c.Round(k)
	require.NoError(t, err)
	assert.Equal(t, []int{1, 1, 1, 1}, seen)
	assert.Equal(t, 3, runtime.GOMAXPROCS(0))
}
