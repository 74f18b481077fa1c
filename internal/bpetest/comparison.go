package bpetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// An Encoder is an encoding of package bpe, or something that could be one.
type Encoder interface {
	Append(dst []uint32, text string) []uint32
	Count(text string) int
}

// A Comparison compares an encoder with an oracle, a tokenizer that is taken to
// be right.
type Comparison struct {
	Ours   Encoder
	Tokens []string                   // the vocabulary
	IDs    func(text string) []uint32 // the oracle
	Judges func(text string) bool     // whether the oracle is right about text; nil means always
	MB     float64                    // megabytes of mixed text to compare
}

func (c *Comparison) judges(text string) bool { return c.Judges == nil || c.Judges(text) }

// Differs describes how our ids or our count of text differ from the oracle's.
// It returns the empty string if they do not.
func (c *Comparison) Differs(text string) string {
	want := c.IDs(text)
	if got := c.Ours.Append(nil, text); !slices.Equal(want, got) {
		return fmt.Sprintf("ids of %d bytes: want %s, got %s", len(text), c.spell(want), c.spell(got))
	}
	for range 2 { // the second time some pieces are cached
		if got := c.Ours.Count(text); got != len(want) {
			return fmt.Sprintf("Count of %d bytes is %d, ids are %d", len(text), got, len(want))
		}
	}
	return ""
}

// spell lists the first ids with their tokens.
func (c *Comparison) spell(ids []uint32) string {
	const most = 60
	var b strings.Builder
	fmt.Fprintf(&b, "%d [", len(ids))
	for _, id := range ids[:min(len(ids), most)] {
		token := "no token"
		if int64(id) < int64(len(c.Tokens)) {
			token = c.Tokens[id]
		}
		fmt.Fprintf(&b, " %d:%q", id, token)
	}
	b.WriteString(" ]")
	return b.String()
}

// minimal describes how the smallest part of text that still differs does so.
func (c *Comparison) minimal(text string) string {
	least := minimise(text, func(s string) bool { return c.judges(s) && c.Differs(s) != "" })
	return c.Differs(least) + " of " + Quoted(least)
}

// minimise removes as much of text as it can while text stays bad.
func minimise(text string, bad func(string) bool) string {
	for size := len(text) / 2; size > 0; {
		smaller := false
		for i := 0; i+size <= len(text); {
			if shorter := text[:i] + text[i+size:]; bad(shorter) {
				text, smaller = shorter, true
			} else {
				i += size
			}
		}
		if !smaller || size > len(text) {
			size /= 2
		}
	}
	return text
}

// Quoted quotes a string, and cuts a long one off.
func Quoted(s string) string {
	const most = 400
	if len(s) > most {
		return fmt.Sprintf("%+q and %d bytes more", s[:most], len(s)-most)
	}
	return fmt.Sprintf("%+q", s)
}

// checks counts the texts that one test compares, and reports the first few
// differences.
type checks struct {
	*Comparison
	t                 *testing.T
	texts, bytes, bad int
	tokens, unjudged  int
}

// check compares text if the oracle judges it.
func (c *checks) check(text string) {
	if !c.judges(text) {
		c.unjudged++
		return
	}
	c.texts++
	c.bytes += len(text)
	c.tokens += c.Ours.Count(text)
	how := c.Differs(text)
	if how == "" {
		return
	}
	if c.bad++; c.bad <= 5 {
		c.t.Errorf("%s\nminimal: %s", how, c.minimal(text))
	}
}

func (c *checks) String() string {
	return fmt.Sprintf("%.3f MB, %d tokens, %d texts, %d not judged, %d mismatches", float64(c.bytes)/1e6, c.tokens, c.texts, c.unjudged, c.bad)
}

func (c *checks) done() {
	c.t.Log(c)
	assert.Zero(c.t, c.bad, "mismatches")
	assert.NotZero(c.t, c.texts)
}

// Run compares ids and counts of texts of every kind: the hard cases, mixed
// text, random strings, pieces that are alike, and invalid UTF-8.
func (c *Comparison) Run(t *testing.T) {
	for _, test := range []struct {
		name string
		run  func(c *checks)
	}{
		{"hard cases", hardCases},
		{"mixed text", mixedText},
		{"random strings", randomStrings},
		{"alike", alike},
		{"invalid UTF-8", invalidUTF8},
		{"invalid UTF-8, long", invalidLong},
	} {
		t.Run(test.name, func(t *testing.T) {
			checks := &checks{Comparison: c, t: t}
			test.run(checks)
			checks.done()
		})
	}
}

func hardCases(c *checks) {
	for _, text := range HardCases {
		c.check(text)
	}
}
