package convo

import (
	"strings"
	"unicode/utf8"
)

// HostMeta is the Meta of a user message that no person wrote, such as a reminder, the output
// of a hook, a description of the environment or the news that a task has ended. The mark may be
// followed by a space and a text of the application.
//
// A compaction treats it like a tool result: it leaves before what the user said.
// A summarizer's transcript marks it if its Meta says so.
// A message with an Author is what that person said. A message with neither counts as the
// host's if its text is wrapped whole in tags, such as <system-reminder>, unless a tag is that
// of a prompt, such as <task>. So does one of at least 100 bytes that three newer ones repeat
// but for numbers, paths and identifiers.
const HostMeta = "host"

// isHosts reports whether m is a user message that no person wrote, as far as the message
// itself shows it; see HostMeta.
func (m *Message) isHosts() bool {
	switch {
	case m.isMarkedHosts():
		return true
	case m.Role != RoleUser || m.Author != "":
		return false
	}
	wrapped := false
	for _, p := range m.Parts {
		t, ok := p.(Text)
		if !ok || t != "" && !isWrapped(string(t)) {
			return false
		}
		wrapped = wrapped || t != ""
	}
	return wrapped
}

// isMarkedHosts reports whether the application has said that no person wrote m.
func (m *Message) isMarkedHosts() bool {
	return m.Role == RoleUser && m.Author == "" && (m.Meta == HostMeta || strings.HasPrefix(m.Meta, HostMeta+" "))
}

// promptTags are the tags that people and applications put around what a user wants.
var promptTags = map[string]bool{
	"goal": true, "input": true, "instruction": true, "instructions": true, "message": true, "prompt": true, "query": true, "question": true,
	"request": true, "task": true, "user": true, "user_input": true, "user_message": true, "user_query": true, "user_request": true,
}

// isWrapped reports whether a text is one element after another, none of which has a prompt
// tag, with nothing between them.
func isWrapped(s string) bool {
	if s != "" && isTagByte(s[0]) { // most texts begin with a letter
		return false
	}
	s = strings.TrimSpace(s)
	for n := 0; s != ""; n++ {
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

// An echoes finds messages that repeat but for numbers, paths and identifiers. It is asked
// about the messages of a list, the newest first. Of patterns with the same place, it knows
// the last.
type echoes [256]struct {
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

// has reports whether at least mostEchoed newer messages were like m, and adds m.
func (e *echoes) has(m *Message) bool {
	if m.Author != "" || len(m.Parts) != 1 {
		return false
	}
	t, _ := m.Parts[0].(Text)
	if len(t) < leastEchoed {
		return false
	}
	p := pattern{hash: fnvOffset}
	p.add(string(t[:echoedHead]))
	p.add(string(t[len(t)-echoedTail:]))
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

// The 64-bit FNV-1a hash.
const fnvOffset, fnvPrime = 14695981039346656037, 1099511628211

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
			word = (word ^ uint64(c)) * fnvPrime
		case endsWord:
			if !varies {
				p.hash = word
				p.words++
			}
			p.hash = (p.hash ^ ' ') * fnvPrime
			word, varies = p.hash, false
		case variesWord:
			varies = true
		case wideWord: // many scripts have no spaces
			p.hash = (p.hash ^ uint64(c)) * fnvPrime
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

// wordCounts holds how often words are in some texts, by a hash. Different words may have the
// same place, so that a word may seem less rare than it is.
type wordCounts [1 << 14]uint8

// add counts words.
func (c *wordCounts) add(words []uint16) {
	for _, hash := range words {
		if n := &c[hash]; *n < 255 {
			*n++
		}
	}
}

// rare returns how many words of one of n texts are in at most one in 50 of them.
func (c *wordCounts) rare(words []uint16, n int) (rare int) {
	most := uint8(min(max(n/50, 1), 254))
	for _, hash := range words {
		if c[hash] <= most {
			rare++
		}
	}
	return rare
}

// hashedWords appends the place of each word of a text in wordCounts. Of scripts other than
// Latin, a word is each pair of letters.
func hashedWords(words []uint16, s string) []uint16 {
	const places = uint64(len(wordCounts{}))
	word, last := uint64(0), rune(0) // 0: none
	for _, r := range s {
		isLatin := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		if isLatin {
			if word == 0 {
				word = fnvOffset
			}
			word = (word ^ uint64(r)) * fnvPrime
			last = 0
			continue
		}
		if word != 0 {
			words = append(words, uint16(word>>40%places))
		}
		word = 0
		if r < utf8.RuneSelf {
			last = 0
			continue
		}
		if last != 0 {
			words = append(words, uint16((uint64(last)<<21^uint64(r))*fnvPrime>>20%places))
		}
		last = r
	}
	if word != 0 {
		words = append(words, uint16(word>>40%places))
	}
	return words
}
