package calibrate

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// sources are modules that this one needs anyway: code, prose in several
// languages, and JSON that nothing was tuned on.
var sources = []string{
	"github.com/tmc/langchaingo", "github.com/cloudwego/eino", "trpc.group/trpc-go/trpc-agent-go", "google.golang.org/adk/v2",
}

// sizes of messages, in bytes.
var sizes = []int{30, 100, 400, 800, 3000, 6000}

// Conversations makes so many conversations of 60 messages, cut from the
// sources and from generated tool results, the same ones each time.
func Conversations(n int) ([][]string, error) {
	pools, err := readPools()
	if err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(7, 11))
	out := make([][]string, n)
	for i := range out {
		// Two kinds of text in each: what is talked about and what tools say.
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

// cut takes about so many bytes from the middle, at the borders of characters.
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

// toolResult is JSON as tools give it.
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

// readPools reads files of the sources, apart by kind.
func readPools() ([][]string, error) {
	kinds := map[string]int{".go": 0, ".md": 1, ".mdx": 1, ".json": 2, ".yaml": 2, ".yml": 2, ".html": 3, ".py": 4, ".ts": 4, ".js": 4, ".css": 3, ".txt": 1}
	pools := make([][]string, 6)
	for _, module := range sources {
		dir, err := moduleDir(module)
		if err != nil {
			return nil, err
		}
		err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			kind, known := kinds[filepath.Ext(path)]
			if err != nil || e.IsDir() || !known || strings.HasSuffix(path, "go.sum") {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil || len(data) < 2000 || len(data) > 1<<20 || !utf8.Valid(data) {
				return err
			}
			text := string(data)
			if kind == 1 && mostlyWide(text) {
				kind = 5
			}
			if len(pools[kind]) < 300 {
				pools[kind] = append(pools[kind], text)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	var out [][]string
	for _, p := range pools {
		if len(p) >= 5 {
			out = append(out, p)
		}
	}
	if len(out) < 3 {
		return nil, fmt.Errorf("the sources hold %d kinds of text, want 3", len(out))
	}
	return out, nil
}

// mostlyWide tells text in Chinese and the like from the rest.
func mostlyWide(text string) bool {
	return float64(utf8.RuneCountInString(text)) < 0.8*float64(len(text))
}

// moduleDir is where a module that this one needs lies.
func moduleDir(module string) (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("where %s lies: %w", module, err)
	}
	dir := strings.TrimSpace(string(out))
	if dir == "" {
		return "", fmt.Errorf("%s is not in the module cache", module)
	}
	return dir, nil
}
