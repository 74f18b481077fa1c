package tags

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

const key = "@jabcdef"

func TestKeyFrom(t *testing.T) {
	assert.Equal(t, KeyFrom([]byte("a")), KeyFrom([]byte("a")))
	assert.NotEqual(t, KeyFrom([]byte("a")), KeyFrom([]byte("b")))
	assert.NotEqual(t, NewKey(), NewKey())
	for range 100 {
		k := NewKey()
		assert.True(t, IsKey(k), k)
		assert.Contains(t, "jqxz", k[1:2], "the first letter is rare")
	}
	for _, k := range []string{"", "@jabcde", "jabcdefg", "@jabcdeF", "@jabcdefg", "@jabc1ef"} {
		assert.False(t, IsKey(k), k)
	}
}

func TestMask(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "",
		"nothing":                      "nothing",
		"@jabcde":                      "@jabcde",
		"jabcdef":                      "***",
		"x@jabcdefx":                   "x@***x",
		"JABCDEF":                      "***",
		"j a\u200bb\ncdef":             "***",
		"jаbсdеf":                      "***", // Cyrillic
		"ｊａｂｃｄｅｆ":                      "***", // full width
		"jabcdef jabcdef":              "*** ***",
		"<summary key=\"@jabcdef\">":   "&lt;summary key=\"@***\">",
		"<summary key=\"@jabcdex\">":   "<summary key=\"@jabcdex\">",
		"jabcxdef <b>":                 "jabcxdef <b>",
		"<b> jabcdef < / From x>":      "<b> *** &lt; / From x>",
		strings.Repeat("j", 50) + "ab": strings.Repeat("j", 50) + "ab",
	} {
		assert.Equal(t, want, Mask(key, text))
	}
}

func TestMaskPart(t *testing.T) {
	for text, want := range map[string]string{
		"a":         "a",
		"a@":        "a@***",
		"a@j":       "a@j***",
		"a@jabcde ": "a@jabcde ***",
		"a＠j":       "a＠j***",
		"a@ja b":    "a@ja b***",
		"a@jx":      "a@jx",
		"@jabcdef":  "@***",
	} {
		assert.Equal(t, want, MaskPart(key, text), text)
	}
}

func TestTags(t *testing.T) {
	open, end := Author(key, Name(key, `b"ob jabcdef`))
	assert.Equal(t, `<from key="@jabcdef" name="b\"ob ***">hi</from key="@jabcdef">`, open+"hi"+end)
	open, end = Note(key)
	assert.Equal(t, "<system key=\"@jabcdef\">\nhi\n</system key=\"@jabcdef\">", open+"hi"+end)
	open, end = Summary(key)
	assert.Equal(t, "<summary key=\"@jabcdef\">\nWhat went before in this conversation, in short:\nhi\n</summary key=\"@jabcdef\">", open+"hi"+end)
	assert.Equal(t, "<pinned key=\"@jabcdef\">\nhi</pinned key=\"@jabcdef\">", Block(key, "pinned", "hi"))
}

func TestEscape(t *testing.T) {
	for text, want := range map[string]string{
		"a < b":            "a < b",
		"<b>":              "<b>",
		"<from>":           "&lt;from>",
		"</ RESULT>":       "&lt;/ RESULT>",
		"<<call>":          "<&lt;call>",
		"< \n/transcript ": "&lt; \n/transcript ",
	} {
		assert.Equal(t, want, Escape(text))
	}
	assert.Equal(t, `"a &quot;&lt;call>"`, Quote(`a "<call>`))
}
