package bpe_test

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A source gives text of one class, chunk by chunk; false when it has no more.
type source struct {
	class  string
	weight int // its share
	next   func() (string, bool)
}

// longestChunk keeps the oracle from stalling.
const longestChunk = 16 << 10

// fileClasses tells the text files of a Go installation apart by their names.
var fileClasses = map[string]string{
	".go": "Go", ".md": "Markdown", ".html": "HTML", ".json": "JSON files", ".txt": "text", ".golden": "text", ".s": "assembly",
	".c": "other code", ".h": "other code", ".py": "other code", ".js": "other code", ".css": "other code", ".sh": "other code", ".bash": "other code", ".pl": "other code", ".f": "other code",
}

// fileSources are the files of the Go installation and of the module cache, by
// class, in an order that seed decides: code, the prose of its comments,
// documents, test data.
func fileSources(t testing.TB, seed uint64) []source {
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT", "GOMODCACHE").Output()
	require.NoError(t, err)
	goroot, modules, ok := strings.Cut(strings.TrimSpace(string(out)), "\n")
	require.True(t, ok, "%s", out)

	byClass := map[string][]string{}
	var order []string
	add := func(class, path string) {
		if byClass[class] == nil {
			order = append(order, class)
		}
		byClass[class] = append(byClass[class], path)
	}
	walk := func(root string, classOf func(path string) string) {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil // a file that cannot be read is no text
			}
			if class := classOf(path); class != "" {
				add(class, path)
			}
			return nil
		})
		require.NoError(t, err)
	}
	for _, dir := range []string{"src", "test", "doc", "api", "misc"} {
		walk(filepath.Join(goroot, dir), func(path string) string {
			class := fileClasses[filepath.Ext(path)]
			if class == "" && strings.Contains(path, "testdata") {
				class = "other test data"
			}
			if class == "Go" {
				add("comments", path)
			}
			return class
		})
	}
	walk(strings.TrimSpace(modules), func(path string) string {
		if strings.Contains(path, filepath.Join("cache", "download")) || fileClasses[filepath.Ext(path)] == "" {
			return ""
		}
		return "modules"
	})
	require.NotEmpty(t, byClass["Go"], "no source in GOROOT %s", goroot)

	rng := rand.New(rand.NewPCG(seed, 1))
	var sources []source
	for _, class := range order {
		paths := byClass[class]
		rng.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
		read := os.ReadFile
		if class == "comments" {
			read = readComments
		}
		sources = append(sources, source{class, 4, chunks(paths, read, rand.New(rand.NewPCG(seed, 2)))})
	}
	return sources
}

// chunks takes a chunk of every file in turn, cut anywhere, and begins again
// with what is left of them.
func chunks(paths []string, read func(string) ([]byte, error), rng *rand.Rand) func() (string, bool) {
	type rest struct {
		path string
		at   int
	}
	queue := make([]rest, len(paths))
	for i, path := range paths {
		queue[i] = rest{path: path}
	}
	return func() (string, bool) {
		for len(queue) > 0 {
			f := queue[0]
			queue = queue[1:]
			data, err := read(f.path)
			if err != nil || f.at >= len(data) {
				continue
			}
			end := min(len(data), f.at+1+rng.IntN(longestChunk))
			queue = append(queue, rest{f.path, end})
			return string(data[f.at:end]), true
		}
		return "", false
	}
}

// readComments reads the prose of a Go file: its line comments.
func readComments(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	var b strings.Builder
	for line := range strings.Lines(string(data)) {
		if prose, ok := strings.CutPrefix(strings.TrimLeft(line, "\t "), "//"); ok {
			b.WriteString(strings.TrimPrefix(prose, " "))
		}
	}
	return []byte(b.String()), err
}
