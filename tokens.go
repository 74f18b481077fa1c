package convo

import (
	"math"
	"strings"
)

// A Tokenizer counts the tokens of a text. It must not wait (a History calls
// it without a lock, but inside Append), must give the same answer for the
// same text, and is called from several goroutines at once. What it returns
// below 0 counts as 0.
type Tokenizer interface {
	CountTokens(text string) int
}

// TokenizerFunc makes a function a [Tokenizer].
type TokenizerFunc func(text string) int

// CountTokens calls f.
func (f TokenizerFunc) CountTokens(text string) int { return f(text) }

// Overheads are the tokens that messages weigh beside their texts. Zero is the
// stated default, a negative value is none. Overheads of package wire returns
// those of a model, by the rules of its provider.
type Overheads struct {
	Message int // each message, for its role and frame; 0: 4
	Call    int // each tool call, beside its id, name and arguments; 0: 8
	Result  int // each tool result, beside its id, name and content; 0: 4

	// Media weighs an image, a sound or a document, by a rule of the model's
	// provider and never by its bytes. Nil: 1,600 for an image (about what a
	// large one costs with the major providers), 3,000 for anything else. It
	// is called as a Tokenizer is.
	Media func(Media) int
}

func (o Overheads) withDefaults() Overheads {
	o.Message = orDefault(o.Message, 4)
	o.Call = orDefault(o.Call, 8)
	o.Result = orDefault(o.Result, 4)
	if o.Media == nil {
		o.Media = defaultMediaTokens
	}
	return o
}

// orDefault is value, or def when value is zero, or 0 when it is negative; at
// most what one text may count.
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

// Usage is what a provider reported for one request.
type Usage struct {
	Input      int // all tokens of the request, cached ones included
	CacheRead  int // of Input, read from the provider's cache
	CacheWrite int // of Input, written to it
	Output     int // tokens of the answer
}

func (u Usage) fault() error {
	for _, f := range []struct {
		name  string
		value int
	}{{"Usage.Input", u.Input}, {"Usage.CacheRead", u.CacheRead}, {"Usage.CacheWrite", u.CacheWrite}, {"Usage.Output", u.Output}} {
		if f.value < 0 {
			return &ValueError{Name: f.name, Value: f.value, Want: "0 or more"}
		}
	}
	if u.Input > 0 && (u.CacheRead > u.Input || u.CacheWrite > u.Input-u.CacheRead) {
		return &ValueError{Name: "Usage.Input", Value: u.Input, Want: "all tokens of the request, cached ones included"}
	}
	return nil
}

func (u Usage) plus(v Usage) Usage {
	return Usage{
		Input:      addClamped(u.Input, v.Input),
		CacheRead:  addClamped(u.CacheRead, v.CacheRead),
		CacheWrite: addClamped(u.CacheWrite, v.CacheWrite),
		Output:     addClamped(u.Output, v.Output),
	}
}

// addClamped adds figures that are not negative.
func addClamped(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}

// An Estimate is what the next request weighs, in tokens, overhead included.
// Before any usage report Upper is Tokens and an eighth, or as [Prior] says;
// afterwards only what came or went since the last one is in doubt, by as much
// as reports have differed from estimates.
type Estimate struct {
	Tokens   int // the best guess
	Upper    int // a bound that the true count should stay under; limits go by it
	Measured int // how much of Tokens the last usage report covers
}

// Bounds that keep sums from overflowing: tokens of one text, and any total
// that comes from outside.
const (
	maxTextTokens = math.MaxInt32
	maxTotal      = 1 << 52
)

// A counter counts messages in raw tokens: as its tokenizer and overheads say,
// not calibrated. It calls the caller's code, which may panic.
type counter struct {
	tokenizer Tokenizer
	over      Overheads
	isDefault bool // Heuristic with default overheads
}

func newCounter(t Tokenizer, o Overheads) *counter {
	c := &counter{tokenizer: t, over: o.withDefaults()}
	if t == nil {
		t, c.tokenizer = Heuristic{}, Heuristic{}
	}
	_, plain := t.(Heuristic)
	c.isDefault = plain && o.Message == 0 && o.Call == 0 && o.Result == 0 && o.Media == nil
	return c
}

// text counts one text.
func (c *counter) text(s string) int64 {
	if s == "" {
		return 0
	}
	return clampTokens(c.tokenizer.CountTokens(s))
}

func clampTokens(n int) int64 { return min(max(int64(n), 0), maxTextTokens) }

// message counts m with the tags that name its author.
func (c *counter) message(m *Message) int64 {
	n := int64(c.over.Message)
	if m.isTagged() {
		open, end := authorTags(typicalKey, m.Author)
		n += c.text(open) + c.text(end)
	}
	return n + c.parts(m.Parts)
}

func (c *counter) parts(parts []Part) int64 {
	var n int64
	for _, p := range parts {
		switch p := p.(type) {
		case Text:
			n += c.text(string(p))
		case Reasoning:
			n += c.text(p.Text) + c.text(p.Signature) + c.text(p.Encrypted)
		case ToolCall:
			n += int64(c.over.Call) + c.text(p.ID) + c.text(p.Name) + c.text(p.Arguments)
		case ToolResult:
			n += c.result(&p)
		case Media:
			n += clampTokens(c.over.Media(p))
		case Opaque:
			n += c.text(p.JSON)
		}
	}
	return n
}

func (c *counter) result(r *ToolResult) int64 {
	n := int64(c.over.Result) + c.text(r.CallID) + c.text(r.Name)
	for _, p := range r.Parts {
		if _, nested := p.(ToolResult); !nested {
			n += c.parts([]Part{p})
		}
	}
	return n
}

// clampInt is n as an int, also where int has 32 bits.
func clampInt(n int64) int { return int(min(max(n, math.MinInt), math.MaxInt)) }
