package convo

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRefusals_Encoded(t *testing.T) {
	var r refusals
	at := make([]*Snapshot, mostEncodings+1)
	for i := range at {
		at[i] = &Snapshot{state: state{version: uint64(i)}}
		r.encoded(at[i], i)
	}
	format, _ := r.of(at[0])
	assert.Nil(t, format, "the oldest is forgotten")
	format, _ = r.of(at[1])
	assert.Equal(t, 1, format)

	r.encoded(at[1], "again")
	assert.Len(t, r.encodings, mostEncodings)
	format, _ = r.of(at[1])
	assert.Equal(t, "again", format)

	r.settle(2) // a request of that version was accepted
	for i := range at {
		format, _ = r.of(at[i])
		assert.Equal(t, i > 2, format != nil, i)
	}
	r.settle(newestVersion)
	assert.Empty(t, r.encodings)
}

func TestRefusals_Settle(t *testing.T) {
	c := &cure{version: 5}
	cases := []struct {
		name    string
		version uint64
		want    *cure
	}{
		{"a request from before the cure", 4, nil},
		{"the request with the cure", 5, c},
		{"a later one", 6, c},
		{"any", newestVersion, c},
		{"a request was refused for another reason", noVersion, c},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			r := refusals{encodings: []encoding{{at: &Snapshot{}}}}
			r.try(c)
			assert.Same(t, tc.want, r.settle(tc.version))
			_, inPlace := r.of(nil)
			assert.Equal(t, tc.want == nil, inPlace != nil)
			assert.Equal(t, tc.version == noVersion, len(r.encodings) == 1, "a refused request does not prove what its encodings are")
			assert.Nil(t, r.settle(tc.version), "it is told once")
		})
	}
}
