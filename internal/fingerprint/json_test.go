package fingerprint_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/internal/fingerprint"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

func TestListValue(t *testing.T) {
	for want, list := range map[string][]fingerprint.Sum{
		`""`:                       nil,
		`"AAAAAAAAAAA"`:            {0},
		`"AAAAAAAAAAE__________8"`: {1, 1<<64 - 1},
	} {
		v := fingerprint.ListValue(&list)
		assert.Equal(t, len(list) == 0, v.IsZero())
		assert.Equal(t, want, string(v.Append(nil)))
		var got []fingerprint.Sum
		r := strictjson.NewReader([]byte(want))
		fingerprint.ListValue(&got).Read(r)
		require.NoError(t, r.Err())
		assert.Equal(t, list, got)
	}
}

func TestValues(t *testing.T) {
	a, b := fingerprint.Sum(1), fingerprint.Sum(1<<64-1)
	v := fingerprint.Values{&a, &b}
	assert.False(t, v.IsZero())
	data := v.Append(nil)
	assert.Equal(t, `"AAAAAAAAAAE__________8"`, string(data))
	a, b = 0, 0
	r := strictjson.NewReader(data)
	v.Read(r)
	require.NoError(t, r.Err())
	assert.Equal(t, [2]fingerprint.Sum{1, 1<<64 - 1}, [2]fingerprint.Sum{a, b})
}

func TestValues_Refuses(t *testing.T) {
	for data, want := range map[string]string{
		`"AAAAAAAAAA"`:            "holds no fingerprints of 11 characters",
		`"AAAAAAAAAA*"`:           "is no fingerprint",
		`"AAAAAAAAAAAAAAAAAAAAA"`: "holds no fingerprints",
		`""`:                      "0 fingerprints of 11 characters, want 1",
		`1`:                       "want a string",
	} {
		r := strictjson.NewReader([]byte(data))
		fingerprint.Values{new(fingerprint.Sum)}.Read(r)
		assert.ErrorContains(t, r.Err(), want, data)
	}
}
