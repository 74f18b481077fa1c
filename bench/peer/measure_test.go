package peer

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

var sink []byte

func TestCase_Do(t *testing.T) {
	boom := errors.New("boom")
	var done []int
	c := Case{New: func(k int) (func(int) error, error) {
		return func(i int) error {
			done = append(done, i)
			if i == 2 {
				return boom
			}
			return nil
		}, nil
	}}
	assert.NoError(t, c.Do(2))
	assert.ErrorIs(t, c.Do(10), boom)
	assert.Equal(t, []int{0, 1, 0, 1, 2}, done)
	assert.ErrorIs(t, Case{New: func(int) (func(int) error, error) { return nil, boom }}.Do(1), boom)
}

func TestCPU(t *testing.T) {
	start := CPU()
	for end := time.Now().Add(5 * time.Millisecond); time.Now().Before(end); {
		sink = make([]byte, 10)
	}
	assert.Greater(t, CPU(), start)
}
