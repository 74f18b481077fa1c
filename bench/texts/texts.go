// Package texts provides text of several classes, from the source of the Go
// standard library and from seeded generators.
package texts

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"go/build"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// A Class is a kind of text. For the same Go release its n-th part is always the
// same, and all parts are different.
type Class struct {
	Name string
	Make func(n, size int) (string, error)
}

// Classes returns all classes.
func Classes() []Class {
	return []Class{
		{"English prose", Prose},
		{"Go source", Source},
		{"JSON", generated(1, writeJSON)},
		{"Chinese and Japanese", generated(2, writeCJK)},
		{"Cyrillic", generated(3, writeCyrillic)},
		{"base64", generated(4, writeBase64)},
		{"markdown", Markdown},
	}
}

// generated returns a function that makes text with a seeded generator.
func generated(kind uint64, write func(*rand.Rand, *strings.Builder)) func(n, size int) (string, error) {
	return func(n, size int) (string, error) {
		r := rand.New(rand.NewPCG(kind, uint64(n)))
		var b strings.Builder
		for b.Len() < size {
			write(r, &b)
		}
		return Cut(b.String(), size), nil
	}
}

// Oddities are short texts for which tokenizers are known to give different
// counts.
var Oddities = []struct{ Name, Text string }{
	{"U+007F", "a\x7fb"},
	{"line, space, line", "a\n \nb"},
	{"line, spaces, lines", "a\n    \n\nb"},
	{"invalid UTF-8", "a\xff\xfeb"},
	{"special token as text", "<|endoftext|>"},
}

// Cut returns the first size bytes of s, or a little less so as not to break a
// character.
func Cut(s string, size int) string {
	if len(s) <= size {
		return s
	}
	for size > 0 && !utf8.RuneStart(s[size]) {
		size--
	}
	return s[:size]
}

// Chunks cuts s into pieces of about size bytes, without breaking a character.
func Chunks(s string, size int) []string {
	var list []string
	for s != "" {
		c := Cut(s, size)
		list = append(list, c)
		s = s[len(c):]
	}
	return list
}

var errNoSource = errors.New("the source of the standard library is missing or too short")

// tree reads the Go files of the packages in roots and below, in the order of
// their names. It calls use with each file until use returns false.
func tree(roots []string, use func(data []byte) bool) error {
	src := filepath.Join(build.Default.GOROOT, "src")
	for _, root := range roots {
		done := errors.New("done")
		err := filepath.WalkDir(filepath.Join(src, root), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && d.Name() == "testdata" {
				return fs.SkipDir
			}
			if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if bytes.Contains(data, []byte("DO NOT EDIT")) {
				return nil
			}
			if !use(data) {
				return done
			}
			return nil
		})
		if errors.Is(err, done) {
			return nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // not every release has every package
			return err
		}
	}
	return fmt.Errorf("%w: %s", errNoSource, src)
}

// part collects text until there are n+1 parts of size bytes, and returns the
// last part.
func part(n, size int, roots []string, take func(data []byte, b *strings.Builder)) (string, error) {
	var b strings.Builder
	skip := n * size
	err := tree(roots, func(data []byte) bool {
		take(data, &b)
		if drop := min(skip, b.Len()); drop > 0 {
			rest := b.String()[drop:]
			skip -= drop
			b.Reset()
			b.WriteString(strings.ToValidUTF8(rest, ""))
		}
		return skip > 0 || b.Len() < size
	})
	return Cut(b.String(), size), err
}

// Source returns Go source of the standard library.
func Source(n, size int) (string, error) {
	roots := []string{"archive", "bufio", "cmd/go", "compress", "crypto", "database", "encoding", "go", "image", "internal"}
	return part(n, size, roots, func(data []byte, b *strings.Builder) { b.Write(data) })
}

// Prose returns the text of comments from other packages of the standard library.
func Prose(n, size int) (string, error) {
	roots := []string{"net", "os", "reflect", "runtime", "cmd/compile", "cmd/link", "syscall", "testing", "text", "time"}
	return commentsOf(n, size, roots)
}

func commentsOf(n, size int, roots []string) (string, error) {
	return part(n, size, roots, func(data []byte, b *strings.Builder) {
		inside := false
		for line := range strings.Lines(string(data)) {
			text, ok := strings.CutPrefix(strings.TrimSpace(line), "// ")
			if ok && !strings.HasPrefix(text, "Copyright") {
				b.WriteString(text + "\n")
			} else if inside {
				b.WriteString("\n")
			}
			inside = ok
		}
	})
}

// Markdown returns Markdown with headings, lists, code, tables and links, made of
// comments and source of the standard library.
func Markdown(n, size int) (string, error) {
	roots := []string{"cmd/internal", "cmd/vendor", "vendor", "cmd/asm", "cmd/cgo", "cmd/dist", "cmd/trace", "cmd/vet",
		"context", "errors", "expvar", "fmt", "hash", "html", "io", "iter", "log", "maps", "math", "mime", "path", "regexp", "slices", "sort",
		"strconv", "strings", "sync", "unicode"}
	prose, err := commentsOf(n, size*3/4, roots)
	if err != nil {
		return "", err
	}
	source, err := part(n, size, roots, func(data []byte, b *strings.Builder) { b.Write(data) })
	if err != nil {
		return "", err
	}
	r := rand.New(rand.NewPCG(7, uint64(n)))
	sentences := strings.FieldsFunc(prose, func(c rune) bool { return c == '\n' })
	lines := strings.Split(source, "\n")
	next := func(list *[]string) string {
		if len(*list) == 0 {
			return ""
		}
		s := (*list)[0]
		*list = (*list)[1:]
		return s
	}
	var b strings.Builder
	for b.Len() < size && len(sentences) > 0 {
		switch r.IntN(6) {
		case 0:
			fmt.Fprintf(&b, "%s %s\n\n", strings.Repeat("#", 1+r.IntN(4)), next(&sentences))
		case 1, 2:
			for range 2 + r.IntN(4) {
				b.WriteString(next(&sentences) + "\n")
			}
			b.WriteString("\n")
		case 3:
			for i := range 2 + r.IntN(5) {
				mark := "- "
				if r.IntN(4) == 0 {
					mark = fmt.Sprintf("%d. ", i+1)
				}
				fmt.Fprintf(&b, "%s**%s**: [see](https://example.com/%d) `%s`\n", mark, next(&sentences), r.IntN(1e6), strings.TrimSpace(next(&lines)))
			}
			b.WriteString("\n")
		case 4:
			b.WriteString("```go\n")
			for range 3 + r.IntN(12) {
				b.WriteString(next(&lines) + "\n")
			}
			b.WriteString("```\n\n")
		case 5:
			b.WriteString("| name | value | note |\n|------|------:|------|\n")
			for range 2 + r.IntN(5) {
				fmt.Fprintf(&b, "| `%s` | %d | %s |\n", strings.TrimSpace(next(&lines)), r.IntN(100000), next(&sentences))
			}
			b.WriteString("\n")
		}
	}
	if b.Len() < size {
		return "", errNoSource
	}
	return Cut(b.String(), size), nil
}

// All returns part n of every class, each of size bytes.
func All(n, size int) (map[string]string, error) {
	texts := map[string]string{}
	for _, c := range Classes() {
		text, err := c.Make(n, size)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
		texts[c.Name] = text
	}
	return texts, nil
}

func writeBase64(r *rand.Rand, b *strings.Builder) {
	data := make([]byte, 57)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	b.WriteString(base64.StdEncoding.EncodeToString(data) + "\n")
}

// writeJSON writes a record like those in tool results, on one line or indented.
func writeJSON(r *rand.Rand, b *strings.Builder) {
	newline, indent := "", ""
	if r.IntN(2) == 0 {
		newline, indent = "\n", "  "
	}
	name := func() string { return pick(r, names) + "_" + pick(r, names) }
	fmt.Fprintf(b, `{%s%s"id": "%08x-%04x-4%03x-%04x-%012x",`, newline, indent, r.Uint32(), r.IntN(1<<16), r.IntN(1<<12), r.IntN(1<<16), r.Uint64N(1<<48))
	fmt.Fprintf(b, `%s%s"created_at": "202%d-%02d-%02dT%02d:%02d:%02d.%03dZ",`, newline, indent, r.IntN(7), 1+r.IntN(12), 1+r.IntN(28), r.IntN(24), r.IntN(60), r.IntN(60), r.IntN(1000))
	for range 2 + r.IntN(6) {
		switch r.IntN(6) {
		case 0:
			fmt.Fprintf(b, `%s%s"%s": %d,`, newline, indent, name(), r.IntN(1000000))
		case 1:
			fmt.Fprintf(b, `%s%s"%s": %.4f,`, newline, indent, name(), r.Float64()*1000)
		case 2:
			fmt.Fprintf(b, `%s%s"%s": %t,`, newline, indent, name(), r.IntN(2) == 0)
		case 3:
			fmt.Fprintf(b, `%s%s"%s": "/%s/%s/%d?%s=%s",`, newline, indent, name(), pick(r, names), pick(r, names), r.IntN(10000), pick(r, names), pick(r, names))
		case 4:
			fmt.Fprintf(b, `%s%s"%s": "%s %s %s %s",`, newline, indent, name(), pick(r, names), pick(r, names), pick(r, names), pick(r, names))
		case 5:
			fmt.Fprintf(b, `%s%s"%s": {"%s": [%d, %d, %d], "%s": null},`, newline, indent, name(), name(), r.IntN(100), r.IntN(1000), r.IntN(10000), name())
		}
	}
	fmt.Fprintf(b, `%s%s"status": %q%s}%s`, newline, indent, pick(r, names), newline, "\n")
}

func pick(r *rand.Rand, list []string) string { return list[r.IntN(len(list))] }

// writeCJK writes words of Chinese or Japanese in the form of a sentence.
func writeCJK(r *rand.Rand, b *strings.Builder) {
	if r.IntN(2) == 0 {
		for i := range 3 + r.IntN(5) {
			if i > 0 {
				b.WriteString(pick(r, []string{"，", "的", "和", "在", "了", "，", "是"}))
			}
			for range 1 + r.IntN(3) {
				b.WriteString(pick(r, chinese))
			}
		}
		b.WriteString(pick(r, []string{"。", "。", "？", "；\n"}))
		return
	}
	for range 2 + r.IntN(4) {
		b.WriteString(pick(r, japanese) + pick(r, []string{"は", "を", "が", "に", "で", "の", "と"}))
	}
	b.WriteString(pick(r, []string{"します", "しました", "あります", "できません", "必要です", "行われます", "確認してください"}) + pick(r, []string{"。", "。", "。\n"}))
}

func writeCyrillic(r *rand.Rand, b *strings.Builder) {
	for i := range 5 + r.IntN(9) {
		w := pick(r, russian)
		if i == 0 {
			first, size := utf8.DecodeRuneInString(w)
			w = strings.ToUpper(string(first)) + w[size:]
		} else {
			b.WriteString(pick(r, []string{" ", " ", " ", " ", ", "}))
		}
		b.WriteString(w)
	}
	b.WriteString(pick(r, []string{". ", ". ", "? ", ".\n\n"}))
}
