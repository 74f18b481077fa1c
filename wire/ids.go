package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
)

// An idRule defines which tool call ids a provider accepts, and how to make them.
type idRule struct {
	valid  func(string) bool
	length int    // length of the ids that derive makes, including the prefix
	prefix string // prefix of the ids that derive makes
}

// A tally counts how often names of several kinds have occurred. It can go back to an
// earlier count.
type tally struct {
	counts map[tallied]int
	log    []tallied // all names, in order
}

type tallied struct {
	kind tallyKind
	name string
}

type tallyKind uint8

const (
	sentID      tallyKind = iota // an id of a call, as sent
	replacedID                   // an id of a call that was replaced by another id
	itemName                     // an id of an item of OpenAI's Responses
	blockCall                    // an id of a call in an opaque item of Responses
	documentIn                   // the name of a document, in lower case
	documentFor                  // the content of a document that got a name
)

func (t *tally) count(kind tallyKind, name string) int { return t.counts[tallied{kind, name}] }

func (t *tally) has(kind tallyKind, name string) bool { return t.count(kind, name) > 0 }

func (t *tally) add(kind tallyKind, name string) {
	if t.counts == nil {
		t.counts = make(map[tallied]int)
	}
	k := tallied{kind, name}
	t.counts[k]++
	t.log = append(t.log, k)
}

// back removes all names except the first n.
func (t *tally) back(n int) {
	for _, k := range t.log[n:] {
		t.counts[k]--
		if t.counts[k] == 0 {
			delete(t.counts, k)
		}
	}
	clear(t.log[n:])
	t.log = t.log[:n]
}

// assign gives a call a valid id that no other call has. The first call with a valid
// id keeps it. The id of any other call depends only on its own id and on the calls
// before it, so that a request begins with the same bytes as the previous request.
func (t *tally) assign(r idRule, id string) string {
	out := id
	for out == "" || t.has(sentID, out) || !r.valid(out) {
		out = r.derive(id, t.count(replacedID, id))
		t.add(replacedID, id)
	}
	t.add(sentID, out)
	return out
}

// derive returns the n-th id that replaces id. It looks random, so that
// different ids get different replacements.
func (r idRule) derive(id string, n int) string {
	sum := sha256.Sum256(binary.LittleEndian.AppendUint64([]byte(id), uint64(n)))
	out := []byte(r.prefix)
	for i := 0; len(out) < r.length; i++ {
		out = append(out, idLetters[int(sum[i%len(sum)])%len(idLetters)])
	}
	return string(out)
}

// The id rules of the providers, from their error messages and API references.
var (
	alphanumeric       = madeOf("", math.MaxInt)
	openAIChatIDs      = idRule{valid: func(id string) bool { return len(id) <= 40 }, length: 29, prefix: "call_"}
	openAIResponsesIDs = idRule{valid: func(id string) bool { return len(id) <= 64 }, length: 29, prefix: "call_"}
	anthropicIDs       = idRule{valid: madeOf("_-", math.MaxInt), length: 30, prefix: "toolu_"}
	converseIDs        = idRule{valid: madeOf("_.:-", 64), length: 32, prefix: "tooluse_"}
	mistralIDs         = idRule{valid: func(id string) bool { return len(id) == 9 && alphanumeric(id) }, length: 9}
	geminiIDs          = idRule{valid: func(string) bool { return true }, length: 29, prefix: "call_"}
)

// skipSignature is base64 for "skip_thought_signature_validator". Google
// documents it for calls that Gemini did not make.
const skipSignature = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
