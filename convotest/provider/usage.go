package provider

import (
	"crypto/sha256"
	"slices"
)

// A part is a part of a request that is counted on its own, and that the cache holds as a
// whole.
type part struct {
	data   []byte // its JSON, with what else tells it from others, such as a role
	marked bool   // the cache is written up to here
	tokens int
}

// newPart returns a part for a value, which may have a cache mark.
func newPart(role string, v any) part {
	marked := obj(v)["cache_control"] != nil
	for _, inner := range list(obj(v)["content"]) {
		marked = marked || obj(inner)["cache_control"] != nil
	}
	return part{data: marshal([]any{role, unmarked(v)}), marked: marked}
}

// A prefixKey identifies the beginning of requests to a model.
type prefixKey [sha256.Size]byte

// maxLookBack is how many parts before a mark are looked up in the cache.
const maxLookBack = 20

// usage returns the input of a request with these parts, and puts it in the cache. If all
// is set, every part is looked up and written; else those with marks are written, and for
// each mark the parts up to it are looked up.
func (s *Server) usage(model string, parts []part, all bool) (u Usage) {
	keys, sums := make([]prefixKey, len(parts)), make([]int, len(parts))
	key := prefixKey(sha256.Sum256([]byte(model)))
	for i, p := range parts {
		key = prefixKey(sha256.Sum256(slices.Concat(key[:], p.data)))
		u.Input += p.tokens
		keys[i], sums[i] = key, u.Input
	}
	written := 0
	for i, p := range slices.Backward(parts) {
		if !all && !p.marked {
			continue
		}
		written = max(written, sums[i])
		for k := i; k >= 0 && u.CacheRead == 0 && (all || k > i-maxLookBack); k-- {
			if s.cached[keys[k]] {
				u.CacheRead = sums[k]
			}
		}
		if u.CacheRead > 0 || all {
			break
		}
	}
	for i, p := range parts {
		if all || p.marked {
			s.cached[keys[i]] = true
		}
	}
	if !all {
		u.CacheWrite = max(written-u.CacheRead, 0)
	}
	return u
}
