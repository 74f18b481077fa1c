package provider_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/internal/long"
)

// damaged returns a request with a message or a part of one removed, repeated or moved.
func damaged(t *testing.T, rng *rand.Rand, request []byte) []byte {
	var all map[string]any
	d := json.NewDecoder(bytes.NewReader(request))
	d.UseNumber()
	require.NoError(t, d.Decode(&all))
	damage := func(list []any) []any {
		i, j := rng.IntN(len(list)), rng.IntN(len(list))
		switch rng.IntN(4) {
		case 0:
			return slices.Delete(slices.Clone(list), i, i+1)
		case 1:
			return list[:i+1]
		case 2:
			list[i], list[j] = list[j], list[i]
			return list
		}
		return slices.Insert(slices.Clone(list), j, list[i])
	}
	for _, key := range []string{"messages", "input", "contents"} {
		list, ok := all[key].([]any)
		if !ok || len(list) == 0 {
			continue
		}
		m := list[rng.IntN(len(list))].(map[string]any)
		for _, inner := range []string{"content", "parts"} {
			if parts, ok := m[inner].([]any); ok && len(parts) > 0 && rng.IntN(2) == 0 {
				m[inner] = damage(parts)
			}
		}
		all[key] = damage(list)
	}
	data, err := json.Marshal(all)
	require.NoError(t, err)
	return data
}

// Check finds something in every request that the provider refuses.
func TestCheck_FindsWhatIsRefused(t *testing.T) {
	for _, tt := range formatTests() {
		if tt.client.stream {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			refused := 0
			for seed := range long.Or[uint64](1, 3) {
				for _, r := range converse(t, seed, tt) {
					for range 10 {
						body := damaged(t, rng, r.Body)
						s := provider.New(provider.Options{Checks: func(string) bool { return false }})
						post(t, s, tt.path, string(body))
						for _, r := range s.Refused() {
							refused++
							assert.NotEmpty(t, tt.client.format.Check(body), "%s: %s", r.Error, body)
						}
					}
				}
			}
			t.Log(refused, "requests were refused")
			assert.Greater(t, refused, long.Or(30, 100))
		})
	}
}
