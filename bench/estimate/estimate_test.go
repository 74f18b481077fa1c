package estimate

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/internal/long"
)

// TestTargets limits the errors of messages (mean and 95th percentile) and of
// conversations, averaged over classes. The limits are a tenth above what was
// measured. They are wider for text on this machine, which depends on the Go
// version and the module cache, and is read in the long form only.
func TestTargets(t *testing.T) {
	for _, tt := range []struct {
		name                string
		classes             func() []class
		atLeast             int
		mean, p95, talk     float64
		worstMean, worstP95 float64 // of any class
	}{
		{"on this machine", func() []class { return atHand(256 << 10) }, 12, 0.04, 0.09, 0.03, 0.09, 0.2},
		{"generated", func() []class { return generated(32 << 10) }, 8, 0.04, 0.09, 0.03, 0.09, 0.2},
		{"languages", languages, 12, 0.066, 0.141, 0.047, 0.16, 0.4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "on this machine" {
				long.Only(t, "reads the module cache")
			}
			all := results(tt.classes())
			require.GreaterOrEqual(t, len(all), tt.atLeast)
			assert.Less(t, average(all, 0, errors.mean), tt.mean)
			assert.Less(t, average(all, 0, errors.p95), tt.p95)
			assert.Less(t, average(all, 0, errors.talkMean), tt.talk)
			for _, r := range all {
				e := r.rules[0]
				assert.Less(t, e.mean(), tt.worstMean, r.class)
				assert.Less(t, e.p95(), tt.worstP95, r.class)
				t.Logf("%-30s %5d messages, error %.1f %%, 95th percentile %.0f %%, ratio %.2f", r.class, r.messages, 100*e.mean(), 100*e.p95(), e.ratio)
			}
			for i, rule := range rules[1:] {
				assert.Less(t, 2*average(all, 0, errors.mean), average(all, i+1, errors.mean), rule.name)
			}
		})
	}
}

func TestWrite(t *testing.T) {
	long.Only(t, "reads the module cache")
	var out strings.Builder
	require.NoError(t, Write(&out, true))
	assert.Contains(t, out.String(), "| Go, standard library |")
	assert.Contains(t, out.String(), "| Cyrillic |")
	assert.NotContains(t, out.String(), "NaN")
}
