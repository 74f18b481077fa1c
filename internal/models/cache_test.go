package models

import (
	"encoding/json"
	"testing"
	"time"
)

func TestCacheTTL(t *testing.T) {
	for _, tt := range []struct {
		options, retention string
		want               time.Duration
	}{
		{"", "", 0},
		{`{"ttl":"30m"}`, "", 30 * time.Minute},
		{`{"ttl":"12h"}`, `"24h"`, 12 * time.Hour},
		{`{"mode":"explicit"}`, `"24h"`, 24 * time.Hour},
		{"", `"in_memory"`, time.Hour},
		{"", `"in-memory"`, time.Hour},
		{`{"ttl":30}`, `"24h"`, 24 * time.Hour},
		{`"30m"`, "", 0},
		{"null", "null", 0},
		{`{"ttl":"-5m"}`, "", 0},
		{`{"ttl":"soon"}`, `"24h"`, 0},
	} {
		if got := CacheTTL(json.RawMessage(tt.options), json.RawMessage(tt.retention)); got != tt.want {
			t.Errorf("CacheTTL(%s, %s) is %v, want %v", tt.options, tt.retention, got, tt.want)
		}
	}
}
