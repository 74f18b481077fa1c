// Package hosts finds texts in the role of the user that no person wrote.
package hosts

import (
	"strings"
	"unicode/utf8"

	"github.com/seed-c1b73e60/convo/internal/fingerprint"
)

// promptTags are the tags that people and applications put around what a user wants.
var promptTags = map[string]bool{
	"goal": true, "input": true, "instruction": true, "instructions": true, "message": true, "prompt": true, "query": true, "question": true,
	"request": true, "task": true, "user": true, "user_input": true, "user_message": true, "user_query": true, "user_request": true,
}

// IsWrapped reports whether a text is one element after another, none of which has a prompt
// tag, with nothing between them.
func IsWrapped(s string) bool {
	if s != "" && isTagByte(s[0]) { // most texts begin with a letter
		return false
	}
	s = strings.TrimSpace(s)
	for s != "" {
		name, rest, ok := cutElement(s)
		if !ok || promptTags[name] {
			return false
		}
		s = strings.TrimLeft(rest, " \t\r\n")
	}
	return true
}

// cutElement returns the name of the element that a text begins with, and the text after it.
func cutElement(s string) (name, rest string, ok bool) {
	if s[0] != '<' {
		return "", "", false
	}
	n := 1
	for n < len(s) && isTagByte(s[n]) {
		n++
	}
	end := strings.IndexByte(s, '>')
	if n == 1 || n == len(s) || end < n || strings.IndexByte("> \t\r\n/", s[n]) < 0 {
		return "", "", false
	}
	name, rest = s[1:n], s[end+1:]
	if s[end-1] == '/' {
		return name, rest, true
	}
	for {
		i := strings.Index(rest, "</")
		if i < 0 {
			return "", "", false
		}
		rest = rest[i+2:]
		if after, found := strings.CutPrefix(rest, name); found && strings.HasPrefix(after, ">") {
			return name, after[1:], true
		}
	}
}

func isTagByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == ':' || c == '.'
}

// An Echoes finds texts that repeat but for numbers, paths and identifiers. It is asked
// about the texts of a list, the newest first. Of patterns with the same place, it knows
// the last.
type Echoes [256]struct {
	pattern uint64
	n       int
}

// These bound what counts as a repetition.
const (
	leastEchoed = 100 // bytes of a message; people repeat shorter ones
	mostEchoed  = 3   // newest messages that are alike and still count as said
	echoedHead  = 64  // bytes that are compared at the beginning of each message
	echoedTail  = 32  // and at its end
	leastAlike  = 6   // words or wide letters in these that do not vary
)

// Has reports whether at least mostEchoed newer texts were like t, and adds t.
func (e *Echoes) Has(t string) bool {
	if len(t) < leastEchoed {
		return false
	}
	p := pattern{hash: fingerprint.FNVOffset}
	p.add(t[:echoedHead])
	p.add(t[len(t)-echoedTail:])
	if p.words < leastAlike {
		return false
	}
	at := &e[p.hash%uint64(len(e))]
	if at.pattern != p.hash {
		at.pattern, at.n = p.hash, 0
	}
	at.n++
	return at.n > mostEchoed
}

// A pattern is what a text has besides the words that vary from one repetition to the next.
type pattern struct {
	hash  uint64
	words int // that do not vary; each letter that is not ASCII counts as one
}

// add adds a text. Words with a digit or a mark of a path or an identifier vary, and so does
// what stands at the ends of the text, where words are cut off.
func (p *pattern) add(s string) {
	word, varies := p.hash, true
	for i := 0; i < len(s); i++ {
		switch c := s[i]; wordBytes[c] {
		case inWord:
			word = (word ^ uint64(c)) * fingerprint.FNVPrime
		case endsWord:
			if !varies {
				p.hash = word
				p.words++
			}
			p.hash = (p.hash ^ ' ') * fingerprint.FNVPrime
			word, varies = p.hash, false
		case variesWord:
			varies = true
		case wideWord: // many scripts have no spaces
			p.hash = (p.hash ^ uint64(c)) * fingerprint.FNVPrime
			word = p.hash
			if utf8.RuneStart(c) {
				p.words++
			}
		}
	}
}

// What a byte is for pattern.add.
const (
	inWord = iota
	endsWord
	variesWord
	wideWord
)

// wordBytes says what each byte is for pattern.add.
var wordBytes = func() (of [256]uint8) {
	for c := range of {
		switch {
		case c == ' ' || c == '\n' || c == '\t':
			of[c] = endsWord
		case '0' <= c && c <= '9' || c == '/' || c == '_' || c == '\\':
			of[c] = variesWord
		case c >= utf8.RuneSelf:
			of[c] = wideWord
		}
	}
	return of
}()
