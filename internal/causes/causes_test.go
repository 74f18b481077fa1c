package causes

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A hostile error wraps itself, or panics.
type hostile struct{ panics bool }

func (h *hostile) Error() string { return "hostile" }

func (h *hostile) Unwrap() error {
	if h.panics {
		panic("no")
	}
	return h
}

func (h *hostile) Is(error) bool { panic("no") }

func TestEach(t *testing.T) {
	a, b := errors.New("a"), errors.New("b")
	both := errors.Join(fmt.Errorf("x: %w", a), b)
	var seen []string
	Each(both, func(err error) { seen = append(seen, err.Error()) })
	assert.Equal(t, []string{"x: a\nb", "x: a", "a", "b"}, seen)

	for _, tt := range []struct {
		err  error
		want int
	}{{nil, 0}, {a, 1}, {&hostile{}, most}, {&hostile{panics: true}, 1}, {errors.Join(&hostile{panics: true}, a), 3}} {
		n := 0
		Each(tt.err, func(error) { n++ })
		assert.Equal(t, tt.want, n, "%v", tt.err)
	}
}

func TestIs(t *testing.T) {
	a := errors.New("a")
	assert.True(t, Is(fmt.Errorf("x: %w", a), a))
	assert.False(t, Is(errors.New("a"), a))
	assert.False(t, Is(&hostile{}, a))
}

func TestReworded(t *testing.T) {
	a := errors.New("convo: the door is shut")
	err := fmt.Errorf("x: %s: %w", "as the door is shut", a)
	other := func(e error) string {
		if e == a {
			return "closed"
		}
		return ""
	}
	assert.Equal(t, "x: as closed: convo: closed", Reworded(err.Error(), err, other))
	assert.Equal(t, "the door is shut", Reworded("the door is shut", errors.New("y"), other))
}

func TestOnly(t *testing.T) {
	yes, no := errors.New("yes"), errors.New("no")
	judge := func(err error) (accepted, known bool) { return err == yes, err == yes || err == no }
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{nil, false}, {yes, true}, {no, false}, {errors.New("other"), false}, {fmt.Errorf("x: %w", yes), true}, {fmt.Errorf("x: %w", no), false},
		{errors.Join(yes, fmt.Errorf("%w", yes)), true}, {errors.Join(yes, errors.New("other")), false}, {fmt.Errorf("%w (%w)", yes, no), false},
	} {
		assert.Equal(t, tt.want, Only(tt.err, judge), "%v", tt.err)
	}
	assert.False(t, Only(yes, func(error) (bool, bool) { panic("x") }))
	circle := new(loop)
	circle.err = circle
	assert.False(t, Only(circle, judge))
}

// A loop wraps an error that may be itself.
type loop struct{ err error }

func (*loop) Error() string   { return "loop" }
func (l *loop) Unwrap() error { return l.err }
