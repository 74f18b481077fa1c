package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"regexp"
)

// An idRule says which tool call ids a provider takes.
type idRule struct {
	valid  func(string) bool
	length int // of one that is made in the place of another, prefix included
	prefix string
}

// assigner gives the calls of one request ids that the provider takes, no two
// the same. An id that may stay stays, the first time it comes; what another
// is given depends on it and on the calls before it alone, so that a request
// begins as the one before it did.
func (r idRule) assigner() *idAssigner {
	return &idAssigner{rule: r, used: make(map[string]bool), next: make(map[string]uint64)}
}

type idAssigner struct {
	rule idRule
	used map[string]bool
	next map[string]uint64 // for ids that came before: how often they were replaced
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

// derive makes the n-th id in the place of another.
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

// Rules of the providers.
var (
	openAIChatIDs      = idRule{valid: func(id string) bool { return len(id) <= 40 }, length: 29, prefix: "call_"}
	openAIResponsesIDs = idRule{valid: func(id string) bool { return len(id) <= 64 }, length: 29, prefix: "call_"}
	anthropicIDs       = idRule{valid: matches(`^[a-zA-Z0-9_-]+$`), length: 30, prefix: "toolu_"}
	converseIDs        = idRule{valid: matches(`^[a-zA-Z0-9_.:-]{1,64}$`), length: 32, prefix: "tooluse_"}
	mistralIDs         = idRule{valid: matches(`^[a-zA-Z0-9]{9}$`), length: 9}
	geminiIDs          = idRule{valid: func(string) bool { return true }, length: 29, prefix: "call_"}
)
