package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Flags stand before and after other arguments, with one dash or two, and none after "--".
func TestFlags_Parse(t *testing.T) {
	for _, c := range []struct {
		args string
		rest string
		name string
		all  bool
		code int
	}{
		{"", "", "", false, OK},
		{"-name x a b", "a b", "x", false, OK},
		{"a --name x b -all", "a b", "x", true, OK},
		{"a --name=x --all=false b", "a b", "x", false, OK},
		{"-name -- a", "a", "--", false, OK},
		{"-all -- -name x", "-name x", "", true, OK},
		{"- -all", "-", "", true, OK},
		{"-name", "", "", false, Usage},
		{"a -all=maybe", "", "", false, Usage},
		{"--no", "", "", false, Usage},
		{"---all", "", "", false, Usage},
		{"a -h", "", "", false, OK},
	} {
		var out, errs bytes.Buffer
		f := NewFlags("test", "FILE", "Tests.")
		name, all := f.String("name", "", "a `NAME`"), f.Bool("all", false, "all")
		rest, code, ok := f.Parse(NewEnv(nil, &out, &errs), strings.Fields(c.args))
		assert.Equal(t, c.code, code, c.args)
		if asked := strings.HasSuffix(c.args, "-h"); asked {
			assert.False(t, ok)
			assert.Contains(t, out.String(), "  -name NAME\n        a NAME\n")
			continue
		}
		assert.Equal(t, c.code == OK, ok, c.args)
		assert.Equal(t, c.code != OK, errs.Len() > 0, c.args)
		if ok {
			assert.Equal(t, []string{c.rest, c.name}, []string{strings.Join(rest, " "), *name}, c.args)
			assert.Equal(t, c.all, *all, c.args)
		}
	}
}

// A value that a flag does not take is refused with what it takes.
func TestFlags_Values(t *testing.T) {
	for args, want := range map[string]string{
		"-n 200k":                 `test: -n "200k": want a number in digits, such as 200000`,
		"-n 200,000":              `test: -n "200,000": want a number in digits, such as 200000`,
		"-n 99999999999999999999": `test: -n "99999999999999999999": the number is too large`,
		"-seq -1":                 `test: -seq "-1": want a number in digits, such as 200000`,
		"-pause 5":                `test: -pause "5": want a time such as 90s, 5m or 1h`,
	} {
		var out, errs bytes.Buffer
		f := NewFlags("test", "FILE", "Tests.")
		f.Int("n", 0, "a number")
		f.Uint64("seq", 0, "a number")
		f.Duration("pause", 0, "a pause")
		_, code, ok := f.Parse(NewEnv(nil, &out, &errs), strings.Fields(args))
		assert.False(t, ok)
		assert.Equal(t, Usage, code)
		assert.Contains(t, errs.String(), want+"\n")
	}
}

func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"plain\n\tè 漢 👩\u200d🚀":        "plain\n\tè 漢 👩\u200d🚀",
		"\x1b[2J\r\x00\x7f":            `\x1b[2J\x0d\x00\x7f`,
		"\u009b\u202e\ufeff\U000e0041": `\u009b\u202e\ufeff\U000e0041`,
		"a\xffb\ufffd":                 "a\\xffb\ufffd",
	} {
		assert.Equal(t, want, Visible(text))
	}
	assert.Equal(t, "1234567 9…", Line("1234567\n  9 1234", 10))
	assert.Equal(t, "漢漢漢…", Line("漢漢漢漢漢漢", 8))
	assert.LessOrEqual(t, Columns(Line(strings.Repeat("漢", 1000), 30)), 30)
	assert.Equal(t, "-1,234,567", Number(-1234567))
}
