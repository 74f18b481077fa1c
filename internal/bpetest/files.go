package bpetest

import (
	"io/fs"
	"iter"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/internal/udhr"
)

// A source provides text of one class, chunk by chunk.
type source struct {
	class  string
	weight int                   // its share of the mixed text, relative to the other sources
	next   func() (string, bool) // returns false when there is no more text
}

// longestChunk is the maximum length of a chunk in bytes. The oracle would take
// too long with longer ones.
const longestChunk = 16 << 10

// fileClasses has the class of a text file by the extension of its name.
var fileClasses = map[string]string{
	".go": "Go", ".md": "Markdown", ".html": "HTML", ".json": "JSON files", ".txt": "text", ".golden": "text", ".s": "assembly",
	".c": "other code", ".h": "other code", ".py": "other code", ".js": "other code", ".css": "other code", ".sh": "other code", ".bash": "other code", ".pl": "other code", ".f": "other code",
}

// fileSources returns a source for each class of text in files: code, the prose
// of its comments, documents and test data of this repository and, in the long
// form, of the Go installation, and the declarations of package udhr. The seed
// decides the order of the files.
func fileSources(t testing.TB, seed uint64) []source {
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
				return nil // skip what cannot be read
			}
			if class := classOf(path); class != "" {
				add(class, path)
			}
			return nil
		})
		require.NoError(t, err)
	}
	if long.On() {
		out, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
		require.NoError(t, err)
		goroot := strings.TrimSpace(string(out))
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
		require.NotEmpty(t, byClass["Go"], "no source in GOROOT %s", goroot)
	}
	walk(filepath.Join("..", ".."), func(path string) string {
		if fileClasses[filepath.Ext(path)] == "" {
			return ""
		}
		return "repository"
	})
	require.NotEmpty(t, byClass["repository"])

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
	next, stop := iter.Pull2(udhr.Texts())
	t.Cleanup(stop)
	return append(sources, source{"declarations", 4, func() (string, bool) {
		_, text, ok := next()
		return text, ok
	}})
}

// chunks returns a function that takes one chunk of each file in turn, and then
// starts again with the rest of each file. Chunks end anywhere, even inside a
// character.
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

// readComments returns the text of the line comments of a Go file.
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
