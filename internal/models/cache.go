package models

import (
	"encoding/json"
	"time"
)

// CacheTTL returns how long OpenAI is asked to keep a request in its prompt cache by the
// parameters prompt_cache_options and prompt_cache_retention, or 0.
func CacheTTL(options, retention json.RawMessage) time.Duration {
	var in struct{ TTL string }
	_ = json.Unmarshal(options, &in) // a value of another type asks for nothing
	if in.TTL == "" {
		_ = json.Unmarshal(retention, &in.TTL)
	}
	if in.TTL == "in_memory" || in.TTL == "in-memory" {
		return time.Hour // at most, as documented
	}
	d, _ := time.ParseDuration(in.TTL)
	return max(d, 0)
}
