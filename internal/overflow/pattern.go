package overflow

import (
	"strings"
	"unicode/utf8"
)

// A pattern is a compiled expression in a part of the syntax of package regexp, and means
// what it means there: characters, classes such as [^a-z], the escapes \b and \. and so on,
// ^ and $, groups (?:a|b), and the repetitions ?, *, + and {0,n}, also lazy. #l, #p, #o and
// #t are numbers that belong to the field of Figures with this first letter.
//
// Package regexp would make every program that runs a conversation a quarter of a MiB
// larger.
type pattern struct {
	code []instruction
	word string // part of every match; searching for it first saves most of the time
}

// An instruction is a step of a match. Its jumps are relative to its place.
type instruction struct {
	op     operation
	set    set // of accept
	to, or int // of split, in the order of preference, and of jump; to is the number of save
}

type operation byte

const (
	accept   operation = iota // a character of the set
	split                     // two ways to go on
	jump                      // one way
	save                      // remembers a place
	boundary                  // between a word and something else
	begin                     // of the text
	end                       // of the text
)

// A set is a set of characters.
type set struct {
	ascii [2]uint64
	other bool // whether it has all characters that are not ASCII
}

func (s *set) add(from, to byte) {
	for c := int(from); c <= int(to); c++ {
		s.ascii[c/64] |= 1 << (c % 64)
	}
}

func (s *set) has(r rune) bool {
	if r >= utf8.RuneSelf {
		return s.other
	}
	return s.ascii[r/64]&(1<<(r%64)) != 0
}

// number is the expression for #l and the like. figureNames are the letters, in the order of
// the places that a match remembers.
const (
	number      = `[0-9][0-9,_]*(?:(?:\.[0-9]+)?[km])?\b`
	figureNames = "lpot"
)

// compile compiles an expression, which must be right.
func compile(expression string) *pattern {
	c := compiler{rest: expression}
	code := c.alternatives()
	if c.rest != "" {
		panic("overflow: cannot compile " + expression)
	}
	c.endWord()
	return &pattern{code, c.longest}
}

// A compiler reads an expression.
type compiler struct {
	rest          string
	depth         int // of groups
	word, longest string
}

func (c *compiler) take(token string) bool {
	rest, ok := strings.CutPrefix(c.rest, token)
	c.rest = rest
	return ok
}

func (c *compiler) next() byte {
	first := c.rest[0]
	c.rest = c.rest[1:]
	return first
}

// endWord ends the word of characters that each match has.
func (c *compiler) endWord() {
	if len(c.word) > len(c.longest) {
		c.longest = c.word
	}
	c.word = ""
}

func (c *compiler) alternatives() []instruction {
	all := c.sequence()
	for c.take("|") {
		other := c.sequence()
		code := append([]instruction{{op: split, to: 1, or: len(all) + 2}}, all...)
		code = append(code, instruction{op: jump, to: len(other) + 1})
		all = append(code, other...)
	}
	return all
}

func (c *compiler) sequence() (code []instruction) {
	for c.rest != "" && c.rest[0] != '|' && c.rest[0] != ')' {
		literal := c.rest[0]
		atom := c.atom()
		repeated, times := c.repeated(atom)
		if c.depth > 0 || times || len(atom) != 1 || !(literal == '_' || literal == ' ' || 'a' <= literal && literal <= 'z') {
			c.endWord()
		} else {
			c.word += string(literal)
		}
		code = append(code, repeated...)
	}
	return code
}

// atom reads what a repetition applies to.
func (c *compiler) atom() []instruction {
	var s set
	switch first := c.next(); first {
	case '^':
		return []instruction{{op: begin}}
	case '$':
		return []instruction{{op: end}}
	case '.':
		s.add(0, '\n'-1)
		s.add('\n'+1, utf8.RuneSelf-1)
		s.other = true
	case '\\':
		if first = c.next(); first == 'b' {
			return []instruction{{op: boundary}}
		}
		s.add(first, first)
	case '[':
		negated := c.take("^")
		for !c.take("]") {
			from := c.next()
			to := from
			if len(c.rest) > 1 && c.rest[0] == '-' && c.rest[1] != ']' {
				c.next()
				to = c.next()
			}
			s.add(from, to)
		}
		if negated {
			s = set{[2]uint64{^s.ascii[0], ^s.ascii[1]}, true}
		}
	case '(':
		c.take("?:")
		c.depth++
		code := c.alternatives()
		c.depth--
		c.take(")")
		return code
	case '#':
		at := 2 * strings.IndexByte(figureNames, c.next())
		digits := compiler{rest: number}
		code := append([]instruction{{op: save, to: at}}, digits.sequence()...)
		return append(code, instruction{op: save, to: at + 1})
	default:
		s.add(first, first)
	}
	return []instruction{{op: accept, set: s}}
}

// repeated reads a repetition of code, and reports whether there is one.
func (c *compiler) repeated(code []instruction) (all []instruction, ok bool) {
	least, most := 0, 0
	switch {
	case c.take("?"):
		most = 1
	case c.take("*"):
		most = -1 // without end
	case c.take("+"):
		least, most = 1, -1
	case c.take("{"):
		least, most = c.count(','), c.count('}')
	default:
		return code, false
	}
	lazy := c.take("?")
	// unless returns the choice between the next instruction and the end of the repetition.
	unless := func(end int) instruction {
		if lazy {
			return instruction{op: split, to: end, or: 1}
		}
		return instruction{op: split, to: 1, or: end}
	}
	n := len(code)
	for range least {
		all = append(all, code...)
	}
	if most < 0 {
		all = append(append(all, unless(n+2)), code...)
		return append(all, instruction{op: jump, to: -n - 1}), true
	}
	for left := most - least; left > 0; left-- {
		all = append(append(all, unless(left*(n+1))), code...)
	}
	return all, true
}

// count reads a number, and the byte after it.
func (c *compiler) count(after byte) (n int) {
	for {
		b := c.next()
		if b == after {
			return n
		}
		n = 10*n + int(b-'0')
	}
}

// A match is what a pattern finds.
type match struct {
	from, to int
	figures  [2 * len(figureNames)]int // where the numbers begin and end, 0 and 0 if they are missing
}

// find returns the first match in a text that begins at a place or after it.
func (p *pattern) find(text string, at int) (match, bool) {
	if !strings.Contains(text[at:], p.word) {
		return match{}, false
	}
	r := run{pattern: p, text: text}
	for at <= len(text) {
		r.from = at
		if r.match.figures = [len(r.match.figures)]int{}; r.try(0, at) {
			return r.match, true
		}
		if p.code[0].op == begin {
			break
		}
		_, size := utf8.DecodeRuneInString(text[at:])
		at += max(size, 1)
	}
	return match{}, false
}

// in reports whether the pattern matches in a text.
func (p *pattern) in(text string) bool {
	_, ok := p.find(text, 0)
	return ok
}

// replace returns a text with another one in the place of each match.
func (p *pattern) replace(text, with string) string {
	var b strings.Builder
	at := 0
	for {
		m, ok := p.find(text, at)
		if !ok || m.to == m.from {
			return b.String() + text[at:]
		}
		b.WriteString(text[at:m.from] + with)
		at = m.to
	}
}

// A run is a search for a match. It goes back to where there was another way, but never
// takes the same way twice, so its time is linear in the length of the text.
type run struct {
	*pattern
	match
	text  string
	tried map[[2]int]struct{} // splits and where in the text they were reached
}

// try matches the code from an instruction on with the text from a place on.
func (r *run) try(pc, at int) bool {
	for pc < len(r.code) {
		switch i := &r.code[pc]; i.op {
		case accept:
			c, size := utf8.DecodeRuneInString(r.text[at:])
			if size == 0 || !i.set.has(c) {
				return false
			}
			at += size
			pc++
		case split:
			place := [2]int{pc, at}
			if _, ok := r.tried[place]; ok {
				return false
			}
			if r.tried == nil {
				r.tried = map[[2]int]struct{}{}
			}
			r.tried[place] = struct{}{}
			if r.try(pc+i.to, at) {
				return true
			}
			pc += i.or
		case jump:
			pc += i.to
		case save:
			before := r.figures[i.to]
			r.figures[i.to] = at
			if r.try(pc+1, at) {
				return true
			}
			r.figures[i.to] = before
			return false
		case boundary:
			if (at > 0 && isWord(r.text[at-1])) == (at < len(r.text) && isWord(r.text[at])) {
				return false
			}
			pc++
		case begin, end:
			if i.op == begin && at > 0 || i.op == end && at < len(r.text) {
				return false
			}
			pc++
		}
	}
	r.to = at
	return true
}

func isWord(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_' || 'A' <= c && c <= 'Z'
}
