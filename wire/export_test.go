package wire

import (
	"encoding/json"
	"maps"
	"slices"
)

// MergeStreamed returns the value assembled from pieces.
func MergeStreamed(pieces ...string) string {
	var v streamedValue
	for _, p := range pieces {
		v.add(json.RawMessage(p), 0)
	}
	return string(v.appendTo(nil))
}

// ForeignKinds returns the kinds of blocks that are shown in other formats.
func ForeignKinds() []string { return slices.Sorted(maps.Keys(foreignKinds)) }

// EachRuleCase calls f with each small request that breaks a rule.
func EachRuleCase(f func(rule string, format Format, body string)) {
	for _, c := range ruleCases() {
		f(c.rule, c.f, c.body)
	}
}

// Snake returns a key in snake_case.
func Snake(key string) string { return snake(key) }

// OpenAIRequest sets the limit of a request to OpenAI, in bytes, and returns the one before.
func OpenAIRequest(n int) (before int) {
	before, openAISizes.request = openAISizes.request, n
	return before
}
