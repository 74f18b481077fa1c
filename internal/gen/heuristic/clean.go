package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"html"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

var (
	dropped  = regexp.MustCompile(`(?is)<(head|script|style|nav)\b.*?</(head|script|style|nav)>|<!--.*?-->`)
	block    = regexp.MustCompile(`(?i)</?(p|div|li|h[1-6]|tr|td|title|pre|section|item|br)\b[^>]*>`)
	tag      = regexp.MustCompile(`<[^>]*>`)
	spaces   = regexp.MustCompile(`[ \t]+`)
	newlines = regexp.MustCompile(`\s*\n\s*\n\s*`)
	fold     = regexp.MustCompile(`([^\s>])\n[ \t]*([^\s<])`)
	font     = regexp.MustCompile(`\\f(\[[^\]]*\]|\(..|.)`)
	glyph    = regexp.MustCompile(`\\(\(..|\[[^\]]*\]|[*]\(..|[*].|s[-+]?[0-9]|.)`)
	ansi     = regexp.MustCompile("\x1b\\[[0-9;]*m")
)

// clean returns the text of a file, or the empty string if it holds none. It
// unpacks gzip.
func clean(raw []byte, f form) string {
	if len(raw) > 2 && raw[0] == 0x1f && raw[1] == 0x8b {
		r, err := gzip.NewReader(bytes.NewReader(raw))
		if err != nil {
			return ""
		}
		if raw, err = io.ReadAll(io.LimitReader(r, 8<<20)); err != nil {
			return ""
		}
	}
	var text string
	switch f {
	case messages:
		text = values(raw)
	case catalog:
		text = translations(raw)
	case fluent:
		text = fluentValues(string(raw))
	default:
		text = string(raw)
	}
	if f == messages || f == catalog || f == fluent {
		text = translated(text)
	}
	if !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 {
		return ""
	}
	text = ansi.ReplaceAllString(strings.ReplaceAll(text, "\r\n", "\n"), "")
	switch f {
	case markup:
		if _, page, ok := strings.Cut(text, `id="DisplayArea"`); ok {
			text = "<" + page // LibreOffice help: skip the part that all pages share
		}
		text = dropped.ReplaceAllString(text, " ")
		text = fold.ReplaceAllString(text, "$1 $2")
		text = block.ReplaceAllString(text, "\n")
		text = html.UnescapeString(tag.ReplaceAllString(text, ""))
		text = spaces.ReplaceAllString(text, " ")
		text = strings.TrimSpace(newlines.ReplaceAllString(text, "\n\n"))
	case manual:
		text = untroff(text)
	}
	return text
}

// untroff returns the words of a manual page, one paragraph per line.
func untroff(page string) string {
	var out strings.Builder
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		if line == "" || line[0] == '.' || line[0] == '\'' {
			macro, rest, _ := strings.Cut(line, " ")
			switch macro {
			case ".SH", ".SS", ".PP", ".P", ".TP", ".IP", ".LP", "":
				out.WriteString("\n\n")
			}
			if macro != ".B" && macro != ".I" && macro != ".BR" && macro != ".SH" && macro != ".SS" && macro != ".IR" {
				continue
			}
			line = strings.ReplaceAll(rest, `"`, "")
		}
		line = strings.ReplaceAll(strings.ReplaceAll(line, `\-`, "-"), `\(aq`, "'")
		line = glyph.ReplaceAllString(font.ReplaceAllString(line, ""), "")
		out.WriteString(line)
		out.WriteByte(' ')
	}
	return strings.TrimSpace(newlines.ReplaceAllString(spaces.ReplaceAllString(out.String(), " "), "\n\n"))
}

// values joins the messages of a JSON object, leaving out those with templates.
func values(raw []byte) string {
	var m map[string]any
	if json.Unmarshal(raw, &m) != nil {
		return ""
	}
	var out strings.Builder
	for _, k := range slices.Sorted(func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}) {
		if s, ok := m[k].(string); ok {
			addMessage(&out, s)
		}
	}
	return out.String()
}

// translations joins the translated messages of a GNU .mo file.
func translations(raw []byte) string {
	if len(raw) < 28 || binary.LittleEndian.Uint32(raw) != 0x950412de {
		return ""
	}
	n, at := binary.LittleEndian.Uint32(raw[8:]), binary.LittleEndian.Uint32(raw[16:])
	var out strings.Builder
	for i := uint32(1); i < n; i++ { // the first is the header
		e := uint64(at) + 8*uint64(i)
		if e+8 > uint64(len(raw)) {
			return ""
		}
		size, start := uint64(binary.LittleEndian.Uint32(raw[e:])), uint64(binary.LittleEndian.Uint32(raw[e+4:]))
		if start+size > uint64(len(raw)) {
			return ""
		}
		for s := range strings.SplitSeq(string(raw[start:start+size]), "\x00") {
			addMessage(&out, s)
		}
	}
	return out.String()
}

// fluentValues joins the messages of a Fluent file.
func fluentValues(file string) string {
	var out strings.Builder
	for line := range strings.Lines(file) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		if _, text, ok := strings.Cut(strings.TrimSpace(line), " ="); ok {
			line = text
		}
		addMessage(&out, line)
	}
	return out.String()
}

// translated removes the lines that were not translated from a text in another
// script: those with many Latin letters. It returns other texts unchanged.
func translated(text string) string {
	latin, other := letters(text)
	if other < latin {
		return text
	}
	var out strings.Builder
	for line := range strings.Lines(text) {
		if latin, other := letters(line); other > 4*latin {
			out.WriteString(line)
		}
	}
	return out.String()
}

// letters returns how many letters are Latin, and how many of other scripts.
func letters(text string) (latin, other int) {
	for _, r := range text {
		switch {
		case r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= 0xc0 && r < 0x370 || r >= 0x1e00 && r < 0x1f00:
			latin++
		case r >= 0x370 && !(r >= 0x2000 && r < 0x2e80):
			other++
		}
	}
	return latin, other
}

func addMessage(out *strings.Builder, s string) {
	s = strings.TrimSpace(html.UnescapeString(tag.ReplaceAllString(s, "")))
	if len(s) < 12 || strings.ContainsAny(s, "{}|[]") {
		return
	}
	out.WriteString(s)
	out.WriteByte('\n')
}
