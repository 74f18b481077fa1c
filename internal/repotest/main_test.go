package repotest_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// TestMain fails when a goroutine that runs code of this module outlives the
// tests.
func TestMain(m *testing.M) {
	code := m.Run()
	if leaked := leakedGoroutines(100); code == 0 && leaked != "" {
		fmt.Fprintf(os.Stderr, "goroutines outlive the tests:\n\n%s\n", leaked)
		code = 1
	}
	os.Exit(code)
}

// leakedGoroutines returns the stacks of the goroutines other than its own
// that run code of this module. One that is about to end gets time for that:
// it looks so many times.
func leakedGoroutines(looks int) string {
	var leaked []string
	for range looks {
		buf := make([]byte, 1<<20)
		stacks := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
		leaked = nil
		for _, stack := range stacks[1:] { // the first is this one
			if strings.Contains(stack, "seed-c1b73e60/convo") {
				leaked = append(leaked, stack)
			}
		}
		if len(leaked) == 0 {
			return ""
		}
		time.Sleep(20 * time.Millisecond)
	}
	return strings.Join(leaked, "\n\n")
}

// inRoot makes the root of the repository the current directory of a test. Each test does
// that by itself: go test does not notice what TestMain does to the directory, and would not
// look whether a page has changed since the last run.
func inRoot(t testing.TB) { t.Chdir(filepath.Join("..", "..")) }

// A repo is the code and the pages of the repository.
type repo struct {
	text  map[string]string // of Go files and pages, by their paths from the root
	code  map[string]*ast.File
	set   *token.FileSet
	pages []string
}

var readOnce = sync.OnceValues(func() (*repo, error) {
	r := &repo{text: map[string]string{}, code: map[string]*ast.File{}, set: token.NewFileSet()}
	return r, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		isCode := strings.HasSuffix(path, ".go")
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path == ".git" || d.Name() == "node_modules" || d.Name() == "testdata" && path != "internal/repotest/testdata"):
			return filepath.SkipDir
		case !isCode && !strings.HasSuffix(path, ".md"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		path = filepath.ToSlash(path)
		r.text[path] = string(text)
		if isCode {
			r.code[path], err = parser.ParseFile(r.set, path, text, parser.ParseComments|parser.SkipObjectResolution)
		} else {
			r.pages = append(r.pages, path)
		}
		return err
	})
})

// readRepo makes the root the current directory of a test, and returns what is there.
func readRepo(t *testing.T) *repo {
	t.Helper()
	inRoot(t)
	r, err := readOnce()
	require.NoError(t, err)
	return r
}

// forUsers returns the files of the packages that a program can import, and of the modules
// for users, by path.
func (r *repo) forUsers() map[string]*ast.File {
	files := map[string]*ast.File{}
	for path, file := range r.code {
		top, _, _ := strings.Cut(path, "/")
		if !strings.HasSuffix(path, "_test.go") && !strings.Contains(path, "/internal/") && !slices.Contains([]string{"internal", "bench", "examples", "cmd", "ci"}, top) {
			files[path] = file
		}
	}
	return files
}

// read returns a file.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// globs returns the files that match one of the patterns.
func globs(t *testing.T, patterns ...string) (files []string) {
	t.Helper()
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		files = append(files, found...)
	}
	return files
}

// historyOf makes a History that holds msgs.
func historyOf(t testing.TB, opts *convo.Options, msgs ...convo.Message) *convo.History {
	t.Helper()
	h, err := convo.New(opts)
	require.NoError(t, err)
	mustAppend(t, h, msgs...)
	return h
}

func mustAppend(t testing.TB, h *convo.History, msgs ...convo.Message) convo.ID {
	t.Helper()
	id, err := h.Append(msgs...)
	require.NoError(t, err)
	return id
}

func callOf(id string) convo.ToolCall { return convo.ToolCall{ID: id, Name: "tool", Arguments: "{}"} }

// checkPairs checks that a view has the order that Append leads to, apart from
// what compactions took.
func checkPairs(t testing.TB, s *convo.Snapshot) {
	t.Helper()
	if fault := orderFault(s); fault != "" {
		t.Errorf("%s in %v", fault, s)
	}
}

// orderFault says which rule of every view is broken:
// results directly behind their calls, ascending IDs. It returns an empty string
// when none is.
func orderFault(s *convo.Snapshot) string {
	var open []string
	var last convo.ID
	others := false
	for _, e := range s.All() {
		m := e.Message
		if !others && (m.Role != convo.RoleSystem || e.Turn > 0) { // a note, if that has another turn than system entries
			others, last = true, 0
		}
		if e.ID <= last {
			return fmt.Sprintf("entry %d after %d", e.ID, last)
		}
		last = e.ID
		if m.Role != convo.RoleTool && len(open) > 0 {
			return fmt.Sprintf("entry %d while calls %v are open", e.ID, open)
		}
		for _, c := range m.ToolCalls() {
			open = append(open, c.ID)
		}
		for _, r := range m.ToolResults() {
			i := slices.Index(open, r.CallID)
			if i < 0 {
				return fmt.Sprintf("entry %d answers no open call", e.ID)
			}
			open = slices.Delete(open, i, i+1)
		}
	}
	return ""
}
