package calibrate

import (
	"fmt"
	"go/build"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-c1b73e60/convo/bench/texts"
	"github.com/seed-c1b73e60/convo/internal/udhr"
)

// sizes are the possible sizes of messages, in bytes.
var sizes = []int{30, 100, 400, 800, 3000, 6000}

// Conversations makes n conversations of 60 messages each, cut from the pools or
// generated as tool results. They are the same each time.
func Conversations(n int) ([][]string, error) {
	pools, err := readPools()
	if err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(7, 11))
	out := make([][]string, n)
	for i := range out {
		// Each conversation has two kinds of text, besides tool results.
		a, b := pools[r.IntN(len(pools))], pools[r.IntN(len(pools))]
		for range 60 {
			pool := a
			switch r.IntN(6) {
			case 0, 1:
				pool = b
			case 2:
				out[i] = append(out[i], toolResult(r))
				continue
			}
			out[i] = append(out[i], cut(r, pool[r.IntN(len(pool))], sizes[r.IntN(len(sizes))]))
		}
	}
	return out, nil
}

// cut returns about size bytes from a random place in text, in whole characters.
func cut(r *rand.Rand, text string, size int) string {
	at := 0
	if len(text) > size {
		at = r.IntN(len(text) - size)
	}
	end := min(at+size, len(text))
	for at < end && !utf8.RuneStart(text[at]) {
		at++
	}
	for end > at && end < len(text) && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[at:end]
}

// toolResult returns JSON like that of a tool.
func toolResult(r *rand.Rand) string {
	var b strings.Builder
	b.WriteString(`{"results":[`)
	for i := range 1 + r.IntN(12) {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":"%08x-%04x","price":%d.%02d,"date":"2026-%02d-%02dT%02d:%02d:00Z","status":%q,"count":%d}`,
			r.Uint32(), r.IntN(1<<16), r.IntN(2000), r.IntN(100), 1+r.IntN(12), 1+r.IntN(28), r.IntN(24), r.IntN(60),
			[]string{"confirmed", "pending", "cancelled"}[r.IntN(3)], r.IntN(100_000))
	}
	b.WriteString("]}")
	return b.String()
}

// readPools returns a pool for each kind of text. Go source, its comments,
// Markdown made of both, and source in other languages come from the Go
// installation. JSON is generated. The last pool is documents in Chinese and
// Japanese.
func readPools() ([][]string, error) {
	const size, piece = 640 << 10, 16 << 10
	var pools [][]string
	var markdown []string
	for _, c := range texts.Classes() {
		switch c.Name {
		case "Go source", "English prose", "markdown", "JSON":
			text, err := c.Make(0, size)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.Name, err)
			}
			pool := texts.Chunks(text, piece)
			pools = append(pools, pool)
			if c.Name == "markdown" {
				markdown = pool
			}
		}
	}
	others, err := otherSource()
	if err != nil {
		return nil, err
	}
	return append(pools, others, mixed(markdown)), nil
}

// otherSource returns files of the Go installation that hold assembler, C, scripts
// and web pages.
func otherSource() ([]string, error) {
	root := filepath.Join(build.Default.GOROOT, "src")
	var all []string
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !slices.Contains([]string{".s", ".c", ".h", ".js", ".html", ".css", ".sh", ".pl", ".yaml"}, filepath.Ext(path)) {
			return err
		}
		data, err := os.ReadFile(path)
		if err == nil && len(data) >= 2000 && len(data) <= 1<<20 && utf8.Valid(data) {
			all = append(all, string(data))
		}
		return err
	})
	if err == nil && len(all) < 5 {
		err = fmt.Errorf("%s has %d source files in other languages than Go, want at least 5", root, len(all))
	}
	return all, err
}

// mixed returns documents such as programmers write in Chinese and Japanese. A
// paragraph in one of these languages, here of the Declaration of Human Rights,
// is followed by English terms, code or tables of about the same length.
func mixed(markdown []string) []string {
	var own []string
	for language, text := range udhr.Texts() {
		if script := udhr.Script(language); script == "Chinese" || script == "Japanese" {
			for line := range strings.Lines(text) {
				if strings.TrimSpace(line) != "" {
					own = append(own, line)
				}
			}
		}
	}
	out := make([]string, len(markdown))
	next := 0
	for i, text := range markdown {
		var b strings.Builder
		for text != "" {
			p := own[next%len(own)]
			next++
			other := texts.Cut(text, len(p))
			text = text[len(other):]
			b.WriteString(p + "\n" + other + "\n\n")
		}
		out[i] = b.String()
	}
	return out
}
