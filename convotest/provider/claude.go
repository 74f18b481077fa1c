package provider

import (
	"strconv"
	"strings"
)

// A claude is what the name of a model of Anthropic says. Names that say nothing stand for
// the newest model.
type claude struct {
	family string
	major  int
	minor  int
}

// claudeOf reads names such as claude-opus-5-5, us.anthropic.claude-opus-5-5-20261001-v1:0
// and claude-3-5-sonnet-20241022.
func claudeOf(model string) claude {
	newest := claude{major: 99}
	_, name, ok := strings.Cut(strings.ReplaceAll(strings.ToLower(model), ".", "-"), "claude-")
	if !ok {
		return newest
	}
	var c claude
	var numbers []int
	for _, word := range strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '@' || r == ':' }) {
		n, err := strconv.Atoi(word)
		switch {
		case err == nil && len(word) < 4 && len(numbers) < 2:
			numbers = append(numbers, n)
		case err != nil && c.family == "":
			c.family = word
		}
	}
	if c.family == "" || len(numbers) == 0 {
		return newest
	}
	c.major = numbers[0]
	if len(numbers) > 1 {
		c.minor = numbers[1]
	}
	return c
}

// since reports whether c is at least of a version.
func (c claude) since(major, minor int) bool {
	return c.major > major || c.major == major && c.minor >= minor
}

func (c claude) isFable() bool { return c.family == "fable" || c.family == "mythos" }

// checks reports whether the model checks where signed reasoning stands.
func (c claude) checks() bool { return c.since(5, 5) || c.isFable() && c.since(5, 1) }

// wantsUser reports whether the model refuses a request that ends with the assistant.
func (c claude) wantsUser() bool { return c.since(4, 6) }

// takesSystem reports whether the model takes system messages after others.
func (c claude) takesSystem() bool {
	return c.since(5, 5) || c.since(5, 0) && c.family != "haiku" || c.family == "opus" && c.since(4, 8)
}
