package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// A document is one text. Which documents are held out hangs on the file they
// came from, so no file is in both halves.
type document struct {
	class, text string
	held        bool
	key         uint64
}

// Bytes taken of each class.
const (
	maxFit   = 3 << 20
	maxHeld  = 512 << 10
	maxPiece = 32 << 10 // of one document
	minPiece = 200
	heldOf   = 5 // one file in so many is held out
)

// collect reads every source below dir, in an order that hangs on names and
// contents alone.
func collect(dir string) ([]document, error) {
	var all []document
	for _, s := range allSources(dir) {
		docs, err := read(dir, s)
		if err != nil {
			return nil, err
		}
		all = append(all, docs...)
	}
	all = append(all, synthetic()...)
	return limit(all), nil
}

func allSources(dir string) []source {
	all := slices.Clone(code)
	for _, l := range prose {
		for code := range strings.FieldsSeq(l.codes) {
			for _, p := range places {
				path := strings.ReplaceAll(strings.ReplaceAll(p.dir, "*", code), "+", strings.ToLower(code))
				if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(path))); err == nil {
					all = append(all, source{l.class, path, p.exts, p.form})
				}
			}
			more, _ := filepath.Glob(filepath.Join(dir, "mediawiki/usr/share/mediawiki/extensions-core/*/i18n", code+".json"))
			for _, path := range more {
				rel, _ := filepath.Rel(dir, path)
				all = append(all, source{l.class, filepath.ToSlash(rel), "json", messages})
			}
		}
	}
	return all
}

func read(dir string, s source) ([]document, error) {
	root := filepath.Join(dir, filepath.FromSlash(s.dir))
	var docs []document
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			fmt.Fprintf(os.Stderr, "no %s for %s\n", s.dir, s.class)
			return nil
		case err != nil:
			return err
		case !d.Type().IsRegular() || !named(d.Name(), s.exts):
			return nil
		}
		info, err := d.Info()
		if err != nil || info.Size() > 8<<20 {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text := clean(raw, s.form)
		if text == "" {
			return nil
		}
		rel, _ := filepath.Rel(dir, path)
		docs = append(docs, pieces(s.class, filepath.ToSlash(rel), text)...)
		return nil
	})
	return docs, err
}

func named(name, exts string) bool {
	if exts == "" {
		return filepath.Ext(name) == ""
	}
	for e := range strings.FieldsSeq(exts) {
		if name == e || strings.HasSuffix(name, "."+e) {
			return true
		}
	}
	return false
}

// pieces cuts a text at line ends.
func pieces(class, name, text string) []document {
	sum := sha256.Sum256([]byte(class + "\x00" + name))
	held := binary.LittleEndian.Uint64(sum[:])%heldOf == 0
	var docs []document
	for n := uint64(0); len(text) > 0; n++ {
		end := len(text)
		if end > maxPiece {
			end = maxPiece
			if nl := strings.LastIndexByte(text[:end], '\n'); nl > maxPiece/2 {
				end = nl + 1
			}
			for end < len(text) && !utf8.RuneStart(text[end]) {
				end++
			}
		}
		key := sha256.Sum256(binary.LittleEndian.AppendUint64(sum[:], n))
		if end >= minPiece {
			docs = append(docs, document{class, text[:end], held, binary.LittleEndian.Uint64(key[:])})
		}
		text = text[end:]
	}
	return docs
}

// limit keeps of every class as much as the limits allow, once each text, and
// sorts by class and key. A class that came from too few files to hold any
// out has its documents dealt one by one.
func limit(docs []document) []document {
	slices.SortFunc(docs, func(a, b document) int {
		return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.key, b.key), cmp.Compare(a.text, b.text))
	})
	seen := map[[32]byte]bool{}
	var kept []document
	for len(docs) > 0 {
		n := 1
		for n < len(docs) && docs[n].class == docs[0].class {
			n++
		}
		var total, held, left [2]int
		left = [2]int{maxFit, maxHeld}
		for _, d := range docs[:n] {
			total[0] += len(d.text)
			if d.held {
				held[0] += len(d.text)
			}
		}
		deal := held[0]*20 < total[0] || held[0]*2 > total[0]
		for _, d := range docs[:n] {
			if deal {
				d.held = d.key%heldOf == 0
			}
			half := 0
			if d.held {
				half = 1
			}
			sum := sha256.Sum256([]byte(d.text))
			if seen[sum] || len(d.text) > left[half] {
				continue
			}
			seen[sum] = true
			left[half] -= len(d.text)
			kept = append(kept, d)
		}
		docs = docs[n:]
	}
	return kept
}

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

// clean takes the text out of a file; the empty text if it holds none.
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
			text = "<" + page // of the LibreOffice help, without what all its pages have
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

// untroff keeps the words of a manual page, one paragraph to a line.
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

// values joins the messages of a JSON object that have no templates in them.
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

// translated leaves out the lines of a text in another script that are in
// Latin letters for the most part.
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

// letters counts Latin letters and those of other scripts.
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
