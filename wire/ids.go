package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"regexp"
)

// An idRule says which tool call ids a provider accepts, and how to make them.
type idRule struct {
	valid  func(string) bool
	length int    // of the ids that derive makes, including the prefix
	prefix string // of the ids that derive makes
}

// assigner returns an idAssigner for one request.
func (r idRule) assigner() *idAssigner {
	return &idAssigner{rule: r, used: make(map[string]bool), next: make(map[string]uint64)}
}

// An idAssigner gives each call of a request a valid id that no other call has.
// The first call with a valid id keeps it. The id of any other call depends
// only on its own id and on the calls before it, so that a request still begins
// with the same bytes as the one before it.
type idAssigner struct {
	rule idRule
	used map[string]bool
	next map[string]uint64 // how many ids were derived from an id
}

func (a *idAssigner) assign(id string) string {
	out := id
	for out == "" || a.used[out] || !a.rule.valid(out) {
		out = a.rule.derive(id, a.next[id])
		a.next[id]++
	}
	a.used[out] = true
	return out
}

const idLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// derive returns the n-th id that replaces id. It looks random, so that
// different ids get different replacements.
func (r idRule) derive(id string, n uint64) string {
	sum := sha256.Sum256(binary.LittleEndian.AppendUint64([]byte(id), n))
	out := []byte(r.prefix)
	for i := 0; len(out) < r.length; i++ {
		out = append(out, idLetters[int(sum[i%len(sum)])%len(idLetters)])
	}
	return string(out)
}

func matches(pattern string) func(string) bool {
	return regexp.MustCompile(pattern).MatchString
}

// The id rules of the providers, from their error messages and API references.
var (
	openAIChatIDs      = idRule{valid: func(id string) bool { return len(id) <= 40 }, length: 29, prefix: "call_"}
	openAIResponsesIDs = idRule{valid: func(id string) bool { return len(id) <= 64 }, length: 29, prefix: "call_"}
	anthropicIDs       = idRule{valid: matches(`^[a-zA-Z0-9_-]+$`), length: 30, prefix: "toolu_"}
	converseIDs        = idRule{valid: matches(`^[a-zA-Z0-9_.:-]{1,64}$`), length: 32, prefix: "tooluse_"}
	mistralIDs         = idRule{valid: matches(`^[a-zA-Z0-9]{9}$`), length: 9}
	geminiIDs          = idRule{valid: func(string) bool { return true }, length: 29, prefix: "call_"}
)
