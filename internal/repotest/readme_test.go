package repotest_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The front page is short.
func TestREADME_IsShort(t *testing.T) {
	inRoot(t)
	page := read(t, "README.md")
	words := len(strings.Fields(page))
	t.Logf("%d words", words)
	assert.LessOrEqual(t, words, 1200)
	doc := strings.Count(read(t, "doc.go"), "\n")
	t.Logf("doc.go has %d lines", doc)
	assert.LessOrEqual(t, doc, 150)
}

// Each block of Go in the README, in docs, and in the README of each directory is in a file that
// is compiled.
func TestPages_CodeStands(t *testing.T) {
	inRoot(t)
	var source strings.Builder
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".go") {
			source.WriteString(dedent(read(t, path)))
		}
		return err
	})
	require.NoError(t, err)
	pages, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	blocks := 0
	for _, page := range append(append(pages, "README.md"), globs(t, "*/README.md")...) {
		for rest := read(t, page); strings.Contains(rest, "```go\n"); {
			var body string
			body, rest = block(t, rest, "```go\n")
			blocks++
			assert.True(t, strings.Contains(source.String(), dedent(body)), "%s: this block stands in no Go file:\n%s", page, body)
		}
	}
	assert.Greater(t, blocks, 2)
}

// Each line of code in doc.go stands in an example, and each line that it shows as printed is
// printed by one. The examples look at errors where doc.go does not.
func TestDoc_CodeStands(t *testing.T) {
	inRoot(t)
	lines := map[string]bool{}
	examples, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	for _, name := range append(examples, "internal/repotest/pages_test.go") {
		for line := range strings.Lines(read(t, name)) {
			lines[strings.TrimSpace(line)] = true
		}
	}
	for _, line := range []string{ // of TestDoc_FiguresOfRecordUsage and TestDoc_SavingIsAnExample
		"h.RecordUsage(snap, convo.Usage{Input: 5210})",
		`h.Append(convo.Assistant("At 09:10 and 13:45."))`,
		`return errors.New("please say that again")`,
	} {
		lines[line] = true
	}
	known := 0
	for line := range strings.Lines(read(t, "doc.go")) {
		code, ok := strings.CutPrefix(line, "//\t")
		if code = strings.TrimSpace(code); !ok || strings.HasPrefix(code, "// {") {
			continue // prose, or what TestDoc_FiguresOfRecordUsage compares
		}
		if strings.Contains(code, " tokens") || strings.Contains(code, "; free ") { // what an example prints
			code = "// " + code
		}
		known++
		assert.True(t, lines[code], "doc.go: this line stands in no example: %s", code)
	}
	assert.Greater(t, known, 40)
}

// Each topic of doc.go has an example on the package page: Example_requests for "Requests",
// and so on.
func TestDoc_TopicsHaveExamples(t *testing.T) {
	inRoot(t)
	examples := declaredIn(t, globs(t, "*_test.go")...)
	topics := regexp.MustCompile(`(?m)^// # (\w+)`).FindAllStringSubmatch(read(t, "doc.go"), -1)
	require.GreaterOrEqual(t, len(topics), 7)
	for _, topic := range topics {
		name := "Example_" + strings.ToLower(topic[1])
		assert.True(t, examples[name], "doc.go has the topic %s, and there is no %s", topic[1], name)
	}
}

// What the README says that the quickstart prints is what it prints.
func TestREADME_QuickstartPrints(t *testing.T) {
	inRoot(t)
	page := read(t, "README.md")
	refused, rest := block(t, page, "```text\n")
	went, _ := block(t, rest, "```text\n")
	out, err := exec.Command("go", "run", "./examples/quickstart", "-without").Output()
	require.NoError(t, err)
	assert.Equal(t, refused, string(out))
	out, err = exec.Command("go", "run", "./examples/quickstart").Output()
	require.NoError(t, err)
	assert.True(t, strings.HasSuffix(string(out), "\n"+went), "%s", out)
}

// Each test and each file that the README and the pages of docs name exists.
func TestPages_NamesExist(t *testing.T) {
	inRoot(t)
	var all []string
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") {
			all = append(all, path)
		}
		return err
	})
	require.NoError(t, err)
	tests := declaredIn(t, all...)
	pages, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	pages = append(pages, "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "bench/judge/README.md")
	pages = append(pages, globs(t, "*/README.md", "adapters/*/README.md", "clients/*/README.md")...)
	test := regexp.MustCompile("`((?:Test|Example|Fuzz|Benchmark)\\w*)`")
	code := regexp.MustCompile("`[^`\n]*`")
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, page := range pages {
		text := read(t, page)
		for _, m := range test.FindAllStringSubmatch(text, -1) {
			if m[1] == "TestX" || m[1] == "FuzzX" {
				continue // any
			}
			assert.True(t, tests[m[1]], "%s names %s, and there is no such test", page, m[1])
		}
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			path, anchor, _ := strings.Cut(m[1], "#")
			if path = filepath.Join(filepath.Dir(page), path); strings.HasPrefix(m[1], "#") {
				path = page
			}
			_, err := os.Stat(path)
			assert.NoError(t, err, "%s links to %s", page, m[1])
			if anchor != "" && err == nil {
				assert.True(t, anchors(read(t, path))[anchor], "%s links to %s, and there is no such title", page, m[1])
			}
		}
	}
}

// Each page of docs is linked to from its index, and links back to it. Each other page for
// users can be reached from the README by links.
func TestPages_AreReachable(t *testing.T) {
	inRoot(t)
	link := regexp.MustCompile(`\]\(([^)\s#:]+)[)#]`)
	reached := map[string]bool{"README.md": true}
	for pages := []string{"README.md"}; len(pages) > 0; pages = pages[1:] {
		for _, m := range link.FindAllStringSubmatch(read(t, pages[0]), -1) {
			to := filepath.Join(filepath.Dir(pages[0]), m[1])
			if len(globs(t, filepath.Join(to, "README.md"))) > 0 {
				to = filepath.Join(to, "README.md") // which a folder shows
			}
			if strings.HasSuffix(to, ".md") && !reached[to] {
				reached[to] = true
				pages = append(pages, to)
			}
		}
	}
	index := read(t, "docs/README.md")
	for _, page := range globs(t, "docs/*.md") {
		assert.True(t, reached[page], "no links lead from README.md to %s", page)
		if name := filepath.Base(page); name != "README.md" {
			assert.Contains(t, index, "]("+name+")", "docs/README.md does not link to %s", page)
			assert.Contains(t, read(t, page), "](README.md)", "%s does not link to docs/README.md", page)
		}
	}
	for _, page := range append(globs(t, "*/README.md"), "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "bench/judge/README.md") {
		assert.True(t, reached[page], "no links lead from README.md to %s", page)
	}
}

// anchors returns the anchors of the titles of a page.
func anchors(page string) map[string]bool {
	all := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(page, -1) {
		anchor := strings.ReplaceAll(strings.ToLower(m[1]), " ", "-")
		all[regexp.MustCompile(`[^a-z0-9_-]`).ReplaceAllString(anchor, "")] = true
	}
	return all
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

// The versions that the tables of clients and adapters name are those with which the modules
// are tested, and each module stands in a table.
func TestPages_Versions(t *testing.T) {
	inRoot(t)
	for _, dir := range []string{"clients", "adapters"} {
		page := read(t, dir+"/README.md")
		modules := globs(t, dir+"/*/go.mod")
		require.NotEmpty(t, modules)
		for _, path := range modules {
			name := filepath.Base(filepath.Dir(path))
			row := regexp.MustCompile(`(?m)^\| .*\b` + name + `\b.*\b(v\d+\.\d+\.\d+)\b.*$`).FindStringSubmatch(page)
			if !assert.NotNil(t, row, "%s/README.md has no row of %s with a version", dir, name) {
				continue
			}
			named := false
			for line := range strings.Lines(read(t, path)) {
				module, version, ok := strings.Cut(strings.TrimSpace(line), " ")
				named = named || ok && version == row[1] && strings.Contains(row[0], module)
			}
			assert.True(t, named, "%s does not require what %s/README.md says: %s", path, dir, row[0])
		}
	}
}

// The table of the adapters says how many lines the agent of each test takes with the
// framework alone, and with the adapter.
func TestPages_AdapterAgents(t *testing.T) {
	inRoot(t)
	page := read(t, "adapters/README.md")
	added := regexp.MustCompile(`^\s*\w+ := .*\bconvo\w+\.New\(|^\s*Handlers: `)
	changed := regexp.MustCompile(`\ba\.PrepareStep\b|\bw\.Middleware\(\)`)
	for _, path := range globs(t, "adapters/*/go.mod") {
		name := filepath.Base(filepath.Dir(path))
		_, body, ok := strings.Cut(read(t, "adapters/"+name+"/provider_test.go"), "\tturn := func(")
		require.True(t, ok, name)
		body, _, _ = strings.Cut(body, "\n\t}\n")
		with, more, other := 1, 0, 0 // the bracket at the end
		for line := range strings.Lines(body) {
			switch code := strings.TrimSpace(line); {
			case code == "", strings.HasPrefix(code, "//"):
				continue
			case added.MatchString(line):
				more++
			case changed.MatchString(line):
				other++
			}
			with++
		}
		row := regexp.MustCompile(`(?m)^\| \[` + name + `\].*\| (\d+) \| (\d+) \| (\d+) \|$`).FindStringSubmatch(page)
		want := []int{with - more, with, more + other}
		if assert.NotNil(t, row, "adapters/README.md has no row of %s with %v", name, want) {
			assert.Equal(t, fmt.Sprint(want), fmt.Sprint(row[1:]), name)
		}
	}
}

// The table of the adapters says how many lines each takes, and these stand below it.
func TestPages_AdapterLines(t *testing.T) {
	inRoot(t)
	page := read(t, "adapters/README.md")
	rows := regexp.MustCompile(`(?m)^\| \[(\w+)\].*\| (\d+) \|$`).FindAllStringSubmatch(page, -1)
	require.Len(t, rows, len(globs(t, "adapters/*/go.mod")))
	for _, row := range rows {
		_, section, ok := strings.Cut(page, "\n### "+row[1]+"\n")
		require.True(t, ok, row[1])
		section, _, _ = strings.Cut(section, "\n##")
		lines := 0
		for strings.Contains(section, "```go\n") {
			var body string
			body, section = block(t, section, "```go\n")
			lines += strings.Count(body, "\n")
		}
		assert.Equal(t, row[2], strconv.Itoa(lines), row[1])
	}
}

// README.md says how many lines a client adds to a program. They are those of the agent in its
// example, and of the code that calls the agent, that name a package of clients.
func TestPages_ClientLines(t *testing.T) {
	inRoot(t)
	names := regexp.MustCompile(`\b(clients|convo[a-z]+)\.[A-Z]`)
	modules := globs(t, "clients/*/go.mod")
	require.NotEmpty(t, modules)
	for _, path := range modules {
		example := read(t, filepath.Dir(path)+"/example_test.go")
		lines := 0
		for _, start := range []string{"\nfunc agent(", "\nfunc Example() {"} {
			_, body, ok := strings.Cut(example, start)
			require.True(t, ok, path)
			body, _, _ = strings.Cut(body, "\n}\n")
			for line := range strings.Lines(body) {
				code, _, _ := strings.Cut(line, "//")
				if names.MatchString(code) {
					lines++
				}
			}
		}
		version := regexp.MustCompile("(?m)^\\| `" + filepath.Dir(path) + "` \\| .*?(v\\d+\\.\\d+\\.\\d+)").FindStringSubmatch(read(t, "clients/README.md")) // see TestPages_Versions
		require.NotNil(t, version, path)
		row := regexp.MustCompile(`(?m)^\| .* \| (\d+) \| .*` + regexp.QuoteMeta(version[1]) + ` \|$`).FindStringSubmatch(read(t, "README.md"))
		if assert.NotNil(t, row, "README.md has no row of %s", path) {
			assert.Equal(t, row[1], strconv.Itoa(lines), row[0])
		}
	}
}

// clients/README.md says how many lines the agents of bench/README.md take.
func TestPages_GlueLines(t *testing.T) {
	inRoot(t)
	_, section, ok := strings.Cut(read(t, "bench/README.md"), "\n## Glue\n")
	require.True(t, ok)
	section, _, ok = strings.Cut(section, "\n- `bare.go` ")
	require.True(t, ok)
	var least, most [6]int
	rows := rowsOf(section)
	require.Len(t, rows, 5)
	for _, cells := range rows {
		require.Len(t, cells, 6)
		for i, cell := range cells {
			if n, err := strconv.Atoi(cell); err == nil {
				most[i] = max(most[i], n)
				if least[i] == 0 || n < least[i] {
					least[i] = n
				}
			}
		}
	}
	require.Equal(t, least[5], most[5])
	assert.Contains(t, oneLine(read(t, "clients/README.md")), fmt.Sprintf("takes %d to %d lines with the SDK alone, %d to %d with a trim by hand, and %d with a client",
		least[1], most[1], least[2], most[2], least[5]))
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// dedent takes the indentation out of each line.
func dedent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimLeft(line, " \t"))
	}
	return b.String()
}
