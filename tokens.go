package convo

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo/internal/bigram"
	"github.com/seed-c1b73e60/convo/internal/bpe"
	"github.com/seed-c1b73e60/convo/internal/calibrate"
	"github.com/seed-c1b73e60/convo/internal/sums"
	"github.com/seed-c1b73e60/convo/internal/wording"
)

// A Tokenizer counts the tokens of texts. It must be safe for concurrent use, should be
// fast and must not block: [History.Append] calls it, without a lock held. It must not
// start a compaction of the History: see [Options].
type Tokenizer interface {
	// CountTokens returns the number of tokens in text. It must return the same number for the
	// same text. A negative number counts as 0.
	CountTokens(text string) int
}

// A TokenizerFunc is a function used as a [Tokenizer].
type TokenizerFunc func(text string) int

// CountTokens returns f(text).
func (f TokenizerFunc) CountTokens(text string) int { return f(text) }

// Heuristic is the default [Tokenizer]. It estimates the number of tokens in a text for o200k,
// the tokenizer of GPT-4o and later models. Its table of 64 KB was fitted to text in all major
// scripts, code and data. It does not allocate. The estimate for a text that is not empty is at
// least 1 and at most its length in bytes. The estimate for two texts joined differs from the
// sum of their estimates by at most 2, unless a long run of one byte extends across the join.
//
// On text that was not used for the fit, the mean error for a message of 200 tokens is 3.7 %
// for the kinds of text fitted to. It is 6 % for prose of another source; docs/counting.md has
// more. A single sentence may be off by a factor of two. Usage reports correct these errors;
// see [History.RecordUsage]. The tokenizers of other vendors may differ more.
type Heuristic struct{}

// CountTokens returns an estimate of the number of tokens in text.
func (Heuristic) CountTokens(text string) int { return bigram.Count(text) }

// Overheads are the tokens that messages take up in a request in addition to their texts.
// A field of 0 means its default; a negative one means 0. The functions Overheads and
// OverheadsFor of package wire return them for a model, by the rules of its provider.
type Overheads struct {
	Message int // for the role and frame of each message; default 4
	Call    int // for each tool call, in addition to its ID, name and arguments; default 8
	Result  int // for each tool result, in addition to its ID, name and content; default 4

	// Reasoning selects the reasoning that requests carry; no other is counted. ReplayDefault
	// is the same as ReplayAll here. With ReplayTools, reasoning is counted if its turn had
	// called a tool when the message was appended or loaded.
	Reasoning Replay

	// Media returns the tokens of an image, a sound or a document, by the rule of the model's
	// provider. It must be safe for concurrent use. A negative result counts as 0. If Media is
	// nil, an image counts as 1,600 tokens, about as many as a large image takes with the major
	// providers, and anything else as 3,000.
	Media func(Media) int
}

// A Replay selects the reasoning of earlier answers that is sent back to the model.
// Formats of package wire use it to write requests, and [Overheads] to count tokens;
// OverheadsFor in package wire makes the two agree. With any value, package wire sends
// reasoning only to the provider that made it, and only in a form that the provider
// accepts.
type Replay uint8

const (
	ReplayDefault Replay = iota // as the provider asks
	ReplayAll                   // all of it
	ReplayTools                 // of each turn, the reasoning with the first tool call and after it
	ReplayNone                  // none
)

func (o Overheads) withDefaults() Overheads {
	o.Message = orDefault(o.Message, 4)
	o.Call = orDefault(o.Call, 8)
	o.Result = orDefault(o.Result, 4)
	if o.Media == nil {
		o.Media = defaultMediaTokens
	}
	return o
}

// orDefault returns def if value is 0, 0 if value is negative, and otherwise value, but
// at most maxTextTokens.
func orDefault(value, def int) int {
	if value == 0 {
		return def
	}
	return min(max(value, 0), maxTextTokens)
}

func defaultMediaTokens(m Media) int {
	if strings.HasPrefix(m.MIME, "image/") {
		return 1600
	}
	return 3000
}

// Usage is the usage that a provider reported for one request, in tokens. Input and
// Output are all that is billed. The other figures are parts of them, which may overlap. A
// part is 0 if the provider does not report it.
type Usage struct {
	Input          int // all tokens that the provider read for the answer
	CacheRead      int // of Input, read from the provider's cache
	CacheWrite     int // of Input, written to the cache
	CacheWriteLong int // of CacheWrite, kept in the cache for the longer of two times: 1 hour at Anthropic and Bedrock, 12 hours at OpenAI
	InputAudio     int // of Input, sound

	// Extra is the part of Input that the provider read beyond the request itself: for its own
	// compaction, for another model that it called, and for further rounds with its own tools,
	// including their results. RecordUsage uses Input - Extra as the size of the request.
	Extra int

	Output      int // all tokens that the provider wrote, shown or not
	Reasoning   int // of Output, reasoning
	OutputAudio int // of Output, sound

	// CacheTTL is how long the provider keeps the request in its prompt cache. It counts, until the
	// next answer, where Options.CacheTTL is 0, but lets no edit wait. The senders of the client
	// modules and package transport set it to what the provider documents for the marks and
	// parameters of the request; your own code may. It is not saved. 0 or less: not known, so that
	// no pause counts.
	CacheTTL time.Duration
}

// String returns the figures that are not 0, as in "12,400 read (11,000 from the cache), 310
// written".
func (u Usage) String() string { return wording.Usage(u).String() }

// figures returns the tokens of u in the order of their declaration.
func (u *Usage) figures() [9]*int {
	return [...]*int{&u.Input, &u.CacheRead, &u.CacheWrite, &u.CacheWriteLong, &u.InputAudio, &u.Extra, &u.Output, &u.Reasoning, &u.OutputAudio}
}

// usageKeys are the names of the fields of a Usage in JSON, in the order of figures.
var usageKeys = [...]string{"input", "cache_read", "cache_write", "cache_write_long", "input_audio", "extra", "output", "reasoning", "output_audio"}

// fault returns a [*ValueError] if u cannot be the usage of a request.
func (u Usage) fault() error {
	if name, value, want := wording.Usage(u).Fault(); name != "" {
		return &ValueError{Name: "Usage." + name, Value: value, Want: want}
	}
	return nil
}

// request returns the size of the request.
func (u Usage) request() int { return u.Input - u.Extra }

// plus returns the sum of two usages, of which v is the later one.
func (u Usage) plus(v Usage) Usage {
	more := v.figures()
	for i, f := range u.figures() {
		*f = addClamped(*f, *more[i])
	}
	u.CacheTTL = v.CacheTTL
	return u
}

// addClamped returns a + b, or MaxInt if that overflows. Neither is negative.
func addClamped(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}

// An Estimate is the estimated size of the next request in tokens, with everything that
// it carries besides messages. Before the first usage report, Upper is an eighth above
// Tokens, or as [Prior] says. After a report, only additions and removals since then are
// uncertain, and Upper is above Tokens by a margin learned from the errors of earlier
// estimates.
type Estimate struct {
	Tokens   int // the best estimate
	Upper    int // a bound that the true count should stay under; limits are compared with it
	Measured int // the part of Tokens that the last usage report measured
}

// These bounds keep sums from overflowing.
const (
	maxTextTokens = math.MaxInt32      // for one text
	maxTotal      = calibrate.MaxTotal // for any total that is reported or read from JSON
)

// A counter counts messages in raw tokens, which are those of its tokenizer and its
// overheads, before any calibration. It calls caller-supplied code, which may panic.
type counter struct {
	tokenizer Tokenizer
	over      Overheads
	isDefault bool // whether it is Heuristic with the default overheads
	ownMedia  bool // whether over.Media is caller-supplied
}

func newCounter(t Tokenizer, o Overheads) *counter {
	c := &counter{tokenizer: t, over: o.withDefaults(), ownMedia: o.Media != nil}
	if t == nil {
		t, c.tokenizer = Heuristic{}, Heuristic{}
	}
	_, plain := t.(Heuristic)
	c.isDefault = plain && o.Message == 0 && o.Call == 0 && o.Result == 0 && o.Reasoning <= ReplayAll && o.Media == nil
	return c
}

// counterVersion is part of the name of every counter. It is incremented whenever a
// change makes any counter count a message differently.
const counterVersion = 1

// name returns a name that is shared only by counters that count every message alike. It
// is empty if c has no such name: for a caller-supplied tokenizer or Media, and for
// ReplayTools, where the tokens of a message depend on the messages before it.
func (c *counter) name() string {
	if c.ownMedia || c.over.Reasoning == ReplayTools {
		return ""
	}
	var tokenizer string
	switch t := c.tokenizer.(type) { // by type: a comparison with one would link its vocabulary
	case Heuristic:
		tokenizer = "heuristic"
	case bpe.Tokenizer:
		tokenizer = t.Name()
	default:
		return ""
	}
	return fmt.Sprintf("%s %d %d %d %d %t", tokenizer, counterVersion, c.over.Message, c.over.Call, c.over.Result, c.over.Reasoning != ReplayNone)
}

// text returns the tokens of s. It is not inlined, because it has many callers and
// each copy makes programs larger.
//
//go:noinline
func (c *counter) text(s string) int64 {
	if s == "" {
		return 0
	}
	return clampTokens(c.tokenizer.CountTokens(s))
}

func clampTokens(n int) int64 { return min(max(int64(n), 0), maxTextTokens) }

// parts returns the tokens of parts.
func (c *counter) parts(parts []Part) int64 {
	return sums.Over(parts, func(p Part) int64 { return known(p).tokens(c) })
}

// clampInt returns n, or the nearest int if int has 32 bits.
func clampInt(n int64) int { return int(min(max(n, math.MinInt), math.MaxInt)) }
