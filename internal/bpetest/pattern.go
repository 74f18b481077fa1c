package bpetest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
)

// A matcher matches a part of a regular expression by backtracking. It calls
// then with the end of each possible match at text[i], in order of preference,
// until then returns true. It returns whether that happened.
type matcher func(text []rune, i int, then func(end int) bool) bool

// A set is a set of characters: those of some classes and some others, or if not
// is set, all except those.
type set struct {
	classes [256]bool // by the letters of classes.txt
	chars   []rune
	not     bool
}

func (s *set) has(r rune, classes []byte) bool {
	return (s.classes[classes[r]] || slices.Contains(s.chars, r)) != s.not
}

// A compiler turns a pattern into a matcher. Package regexp cannot be used: it
// supports neither (?!\S) nor \s beyond ASCII, and its Unicode version is that of
// the Go release. The compiler accepts what the patterns of the two encodings
// contain. Anything else is an error.
type compiler struct {
	rest    string
	classes []byte
	fold    bool // inside (?i:)
}

func compile(pattern string, classes []byte) (matcher, error) {
	c := &compiler{rest: pattern, classes: classes}
	m, err := c.either()
	if err == nil && c.rest != "" {
		err = fmt.Errorf("unexpected %q", c.rest)
	}
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", pattern, err)
	}
	return m, nil
}

func (c *compiler) take(prefix string) bool {
	rest, ok := strings.CutPrefix(c.rest, prefix)
	c.rest = rest
	return ok
}

// either reads alternatives. The first one that leads to a match is preferred.
func (c *compiler) either() (matcher, error) {
	var options []matcher
	for {
		m, err := c.sequence()
		if err != nil {
			return nil, err
		}
		options = append(options, m)
		if !c.take("|") {
			return func(text []rune, i int, then func(int) bool) bool {
				return slices.ContainsFunc(options, func(m matcher) bool { return m(text, i, then) })
			}, nil
		}
	}
}

func (c *compiler) sequence() (matcher, error) {
	if c.rest == "" || c.rest[0] == '|' || c.rest[0] == ')' {
		return func(_ []rune, i int, then func(int) bool) bool { return then(i) }, nil
	}
	first, err := c.item()
	if err != nil {
		return nil, err
	}
	others, err := c.sequence()
	if err != nil {
		return nil, err
	}
	return func(text []rune, i int, then func(int) bool) bool {
		return first(text, i, func(end int) bool { return others(text, end, then) })
	}, nil
}

// item reads one item of the pattern with its repetition.
func (c *compiler) item() (matcher, error) {
	switch {
	case c.take(`(?!\S)`):
		space := set{}
		space.classes['s'] = true
		return func(text []rune, i int, then func(int) bool) bool {
			return (i == len(text) || space.has(text[i], c.classes)) && then(i)
		}, nil
	case c.take(`(?i:`):
		c.fold = true
		m, err := c.either()
		c.fold = false
		if err == nil && !c.take(")") {
			err = fmt.Errorf("missing ) before %q", c.rest)
		}
		if err != nil || !c.take("?") {
			return m, err
		}
		return func(text []rune, i int, then func(int) bool) bool { return m(text, i, then) || then(i) }, nil
	}
	var chars set
	var err error
	if c.take("[") {
		chars.not = c.take("^")
		for err == nil && !c.take("]") {
			err = c.char(&chars)
		}
	} else {
		err = c.char(&chars)
	}
	least, most := 1, 1
	switch {
	case c.take("?"):
		least = 0
	case c.take("*"):
		least, most = 0, math.MaxInt
	case c.take("+"):
		most = math.MaxInt
	case c.take("{1,3}"):
		most = 3
	}
	return func(text []rune, i int, then func(int) bool) bool {
		n := 0
		for n < most && i+n < len(text) && chars.has(text[i+n], c.classes) {
			n++
		}
		for ; n >= least; n-- {
			if then(i + n) {
				return true
			}
		}
		return false
	}, err
}

// classLetters has the letters of classes.txt for each class of a pattern.
// classes.txt has a single letter for Lu and Lt, and one for Lm and Lo, because
// the patterns always name both.
var classLetters = map[string]string{
	`\p{Lu}\p{Lt}`: "U", `\p{Ll}`: "l", `\p{Lm}\p{Lo}`: "L", `\p{L}`: "UlL", `\p{M}`: "M", `\p{N}`: "N", `\s`: "s",
}

// char reads a character or a class, and adds it to a set.
func (c *compiler) char(to *set) error {
	for name, letters := range classLetters {
		if c.take(name) {
			for _, letter := range []byte(letters) {
				to.classes[letter] = true
			}
			return nil
		}
	}
	switch {
	case c.take(`\r`):
		to.chars = append(to.chars, '\r')
		return nil
	case c.take(`\n`):
		to.chars = append(to.chars, '\n')
		return nil
	case c.rest == "" || strings.ContainsRune(`\^$.|?*+()[]{}`, rune(c.rest[0])):
		return fmt.Errorf("unexpected %q", c.rest)
	}
	r := rune(c.rest[0])
	c.rest = c.rest[1:]
	to.chars = append(to.chars, r)
	if c.fold {
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			to.chars = append(to.chars, other)
		}
	}
	return nil
}
