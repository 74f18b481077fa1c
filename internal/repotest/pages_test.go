package repotest_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
)

var (
	goBlock  = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")
	anyBlock = regexp.MustCompile("(?ms)^```.*?^```$")
)

// Each block of Go on a page is in a file that is compiled. Each line of code in doc.go is
// in an example, and each line that it shows as printed is printed by one. The examples look
// at errors where doc.go does not.
func TestPages_CodeIsCompiled(t *testing.T) {
	r := readRepo(t)
	var all strings.Builder
	lines := map[string]bool{ // of TestDoc_Figures, and one that an example returns with another value
		"h.RecordUsage(snap, convo.Usage{Input: 5210})":    true,
		`h.Append(convo.Assistant("At 09:10 and 13:45."))`: true,
		`return errors.New("please say that again")`:       true,
	}
	for path, text := range r.text {
		if !strings.HasSuffix(path, ".go") {
			continue
		}
		all.WriteString(dedent(text))
		if strings.HasSuffix(path, "_test.go") && !strings.Contains(path, "/") {
			for line := range strings.Lines(text) {
				lines[strings.TrimSpace(line)] = true
			}
		}
	}
	code, blocks := all.String(), 0
	for _, page := range r.pages {
		for _, m := range goBlock.FindAllStringSubmatch(r.text[page], -1) {
			if page != "CONTRIBUTING.md" {
				blocks++
				assert.True(t, strings.Contains(code, dedent(m[1])), "%s: no Go file has this block:\n%s", page, m[1])
			}
		}
	}
	assert.Greater(t, blocks, 50)
	known := 0
	for line := range strings.Lines(r.text["doc.go"]) {
		code, ok := strings.CutPrefix(line, "//\t")
		if code = strings.TrimSpace(code); !ok || strings.HasPrefix(code, "// {") {
			continue // prose, or what TestDoc_Figures compares
		}
		if strings.Contains(code, " tokens") || strings.Contains(code, "; free ") { // what an example prints
			code = "// " + code
		}
		known++
		assert.True(t, lines[code], "doc.go: no example has this line: %s", code)
	}
	assert.Greater(t, known, 30)
}

// What doc.go shows of Tokens is what a History returns.
func TestDoc_Figures(t *testing.T) {
	doc := readRepo(t).text["doc.go"]
	h := historyOf(t, nil, convo.System("You are a travel agent."), convo.User("Window seats only, I am tall. Flights to Rome?"))
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 5210}))
	assert.Contains(t, doc, fmt.Sprintf("// %+v\n", h.Tokens()))
	mustAppend(t, h, convo.Assistant("At 09:10 and 13:45."))
	assert.Contains(t, doc, fmt.Sprintf("// %+v\n", h.Tokens()))
}

// What pages name exists: the targets and anchors of links, tests, files, exported names and
// commands.
func TestPages_NamesExist(t *testing.T) {
	r := readRepo(t)
	tests, names := map[string]bool{}, map[string]bool{}
	for path, file := range r.code {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasSuffix(path, "_test.go") {
				tests[f.Name.Name], tests[f.Name.Name+" in "+path] = true, true
			}
		}
	}
	add := func(ids ...*ast.Ident) {
		for _, id := range ids {
			names[id.Name] = true
		}
	}
	for _, file := range r.forUsers() {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				add(n.Name)
				return false // not what its body declares
			case *ast.TypeSpec:
				add(n.Name)
			case *ast.ValueSpec:
				add(n.Names...)
			case *ast.Field:
				add(n.Names...)
			}
			return true
		})
	}
	for _, name := range []string{"NO_COLOR", "PROJECT", "LockFileEx", "Retry", "NewTextHandler", "SUBCOMMAND", "FILE", "DIR", "KEY", "MessageParam", "MessageNewParams", "ChatCompletionMessageParamUnion", "OutputConfig", "PROGRAM", "FORMAT", "URL", "Origin"} { // names of others, and arguments
		names[name] = true
	}
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	code := regexp.MustCompile("`([^`\n]+)`")
	test := regexp.MustCompile(`^(Test|Example|Fuzz|Benchmark)\w*$`)
	testIn := regexp.MustCompile("`(\\w+)` in `([\\w/]+_test\\.go)`")
	file := regexp.MustCompile(`^[\w*./-]+\.(go|md|sh|txt)$`)
	exported := regexp.MustCompile(`(^|[^\w"{$-])([A-Z]\w+)`)
	found := map[string]int{}
	for _, page := range r.pages {
		text := anyBlock.ReplaceAllString(r.text[page], "")
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
			if path, anchor, _ := strings.Cut(m[1], "#"); !strings.Contains(path, ":") {
				found["links"]++
				to := filepath.Join(filepath.Dir(page), path)
				if path == "" {
					to = page
				}
				_, err := os.Stat(to)
				assert.NoError(t, err, "%s links to %s", page, m[1])
				assert.True(t, anchor == "" || anchors(r.text[to])[anchor], "%s links to %s, and there is no such title", page, m[1])
			}
		}
		for _, m := range testIn.FindAllStringSubmatch(text, -1) {
			assert.True(t, tests[m[1]+" in "+m[2]], "%s names %s in %s, and it is not there", page, m[1], m[2])
		}
		forUsers := strings.HasPrefix(page, "docs/") || page == "README.md"
		for _, m := range code.FindAllStringSubmatch(text, -1) {
			switch name := m[1]; {
			case name == "TestX" || name == "FuzzX" || name == "x.go" || name == "x_test.go": // any
			case test.MatchString(name):
				found["tests"]++
				assert.True(t, tests[name], "%s names %s, and there is no such test", page, name)
			case file.MatchString(name) && (page == "ARCHITECTURE.md" || page == "CONTRIBUTING.md"):
				found["files"]++
				assert.NotEmpty(t, globs(t, name), "%s names %s, and there is no such file", page, name)
			case forUsers:
				for _, m := range exported.FindAllStringSubmatch(name, -1) {
					found["exported"]++
					assert.True(t, names[m[2]], "%s has `%s`, and nothing declares %s", page, name, m[2])
				}
			}
		}
		for _, command := range commandsOf(r.text[page]) {
			found["commands"]++
			checkCommand(t, r, page, command)
		}
	}
	for kind, least := range map[string]int{"links": 150, "tests": 300, "files": 50, "exported": 400, "commands": 30} {
		assert.Greater(t, found[kind], least, kind)
	}
	for _, page := range globs(t, "docs/*.md") {
		assert.Contains(t, r.text["docs/README.md"]+"](README.md)", "]("+filepath.Base(page)+")", "docs/README.md does not link to %s", page)
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

// commandsOf returns the commands in the text of a page, in its lines that are indented, and
// in its blocks for a shell.
func commandsOf(page string) (commands []string) {
	for _, m := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(page, -1) {
		commands = append(commands, strings.Split(strings.TrimSpace(m[1]), "\n")...)
	}
	for _, m := range regexp.MustCompile("(?m)`((?:go|convo) [^`\n]+)`|^    (go .*)$").FindAllStringSubmatch(page, -1) {
		commands = append(commands, m[1]+m[2])
	}
	return commands
}

// checkCommand checks that there is what a command names: a subcommand of convo or of go, and
// packages and modules of this repository.
func checkCommand(t *testing.T, r *repo, page, command string) {
	t.Helper()
	const module = "github.com/seed-c1b73e60/convo"
	words := strings.Fields(command)
	require.GreaterOrEqual(t, len(words), 2, "%s: %s", page, command)
	switch words[0] {
	case "convo":
		if words[1] != "version" && words[1] != "SUBCOMMAND" {
			assert.Contains(t, r.text["cmd/convo/main.go"], `{Name: "`+words[1]+`", Help: `, "%s: there is no subcommand: %s", page, command)
		}
	case "go":
		assert.Contains(t, []string{"build", "doc", "fix", "get", "install", "mod", "run", "test", "tool", "vet"}, words[1], "%s: %s", page, command)
	default:
		t.Errorf("%s has a command that no test knows: %s", page, command)
	}
	for _, word := range words[2:] {
		dir := strings.TrimSuffix(word, "/...")
		if rest, ok := strings.CutPrefix(strings.TrimSuffix(word, "@latest"), module); ok && !strings.Contains(rest, "=") {
			dir = "./" + rest
			if words[1] == "get" {
				dir += "/go.mod"
			}
		}
		if strings.HasPrefix(dir, "./") {
			exists := false
			for at := page; at != "." && !exists; { // the command runs in a folder above the page
				at = filepath.Dir(at)
				_, err := os.Stat(filepath.Join(at, dir))
				exists = err == nil
			}
			assert.True(t, exists, "%s names what does not exist: %s", page, command)
		}
	}
}

// The pages show whole programs, and what they print. The programs are built as one, with a
// package for each, since to link them takes longer than all else.
func TestPages_ProgramsPrint(t *testing.T) {
	r := readRepo(t)
	root, err := os.Getwd()
	require.NoError(t, err)
	dir, replace, imports, cases := t.TempDir(), map[string]string{}, "", ""
	add := func(path, source string) {
		name := filepath.Join(dir, strconv.Itoa(len(replace))+".go")
		require.NoError(t, os.WriteFile(name, []byte(source), 0o600))
		replace[filepath.Join(root, "examples/all", path)] = name
	}
	programs := append(globs(t, "examples/pages/*/main.go"), "examples/quickstart/main.go", "examples/inspect/main.go")
	require.Greater(t, len(programs), 5)
	for _, path := range programs {
		name := filepath.Base(filepath.Dir(path))
		for _, path := range globs(t, filepath.Dir(path)+"/*.go") {
			if !strings.HasSuffix(path, "_test.go") {
				add(name+"/"+filepath.Base(path), strings.NewReplacer("\npackage main\n", "\npackage "+name+"\n", "\nfunc main() {", "\nfunc Main() {").Replace("\n"+r.text[path]))
			}
		}
		imports += fmt.Sprintf("import %q\n", "github.com/seed-c1b73e60/convo/examples/all/"+name)
		cases += fmt.Sprintf("\tcase %q:\n\t\t%s.Main()\n", name, name)
	}
	add("main.go", "package main\n\nimport \"os\"\n"+imports+"\nfunc main() {\n\tos.Args = os.Args[1:]\n\tswitch os.Args[0] {\n"+cases+"\t}\n}\n")
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600))
	out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-overlay", filepath.Join(dir, "overlay.json"), "-o", filepath.Join(dir, "all"), "./examples/all").CombinedOutput()
	require.NoError(t, err, "%s", out)
	prints := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "all"), args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.NotEmpty(t, out)
		return string(out)
	}
	for _, path := range globs(t, "examples/pages/*/*.go") {
		name := filepath.Base(filepath.Dir(path))
		_, source, _ := strings.Cut("\n"+r.text[path], "\npackage ")
		shown := "```go\npackage " + source + "```\n"
		if name == "costs" && !long.On() {
			t.Log("set CONVO_LONG=1 to run examples/pages/costs too, which makes 600 requests")
		} else if filepath.Base(path) == "main.go" {
			shown += "\n`go run ./examples/pages/" + name + "` prints\n\n```text\n" + prints(name) + "```\n"
		}
		assert.True(t, strings.Contains(r.text["docs/"+name+".md"], shown), "docs/%s.md does not have:\n%s", name, shown)
	}
	assert.Contains(t, r.text["docs/inspect.md"], "```text\n"+prints("inspect")+"```\n")
	readme := r.text["README.md"]
	assert.Contains(t, readme, "`go run ./examples/quickstart -without` prints\n\n```text\n"+prints("quickstart", "-without")+"```\n")
	_, end, _ := strings.Cut(readme, "ends with\n\n```text\n")
	end, _, _ = strings.Cut(end, "```")
	assert.True(t, end != "" && strings.HasSuffix(prints("quickstart"), "\n"+end), "README.md: %s", end)
}

// README.md, ARCHITECTURE.md and what go doc prints are short enough to be read, and README.md has the commands
// that .ci/run takes from it.
func TestPages_AreShort(t *testing.T) {
	r := readRepo(t)
	assert.LessOrEqual(t, len(strings.Fields(r.text["ARCHITECTURE.md"])), 2_500)
	readme := r.text["README.md"]
	assert.LessOrEqual(t, len(strings.Fields(readme)), 1200)
	for _, command := range []string{"\ngo run ./examples/quickstart\n", "\ngo test ./...\n"} {
		assert.Contains(t, readme, command)
	}
	out, err := exec.CommandContext(t.Context(), "go", "doc", "-all", ".").Output()
	require.NoError(t, err)
	assert.LessOrEqual(t, strings.Count(string(out), "\n"), 3_850)
}

// Each package has a comment. Each exported type, function and method of the library has one
// that begins with its name and a whole sentence. A method Error needs none.
func TestDoc_Comments(t *testing.T) {
	r := readRepo(t)
	packages := map[string]bool{} // by folder
	for path, file := range r.code {
		if dir := filepath.Dir(path); !strings.HasSuffix(path, "_test.go") {
			packages[dir] = packages[dir] || file.Doc != nil
		}
	}
	assert.Greater(t, len(packages), 50)
	for dir, has := range packages {
		assert.True(t, has, "the package in %s has no comment", dir)
	}
	names := 0
	check := func(path, name string, doc *ast.CommentGroup) {
		names++
		text := strings.TrimSpace(doc.Text())
		for _, article := range []string{"A ", "An ", "The "} {
			text = strings.TrimPrefix(text, article)
		}
		word, _, _ := strings.Cut(text, " ")
		first, _, _ := strings.Cut(text, "\n\n")
		assert.True(t, strings.Trim(word, ",:.") == name && (strings.Contains(first, ".") || strings.HasSuffix(first, ":")),
			"%s: the comment of %s does not begin with the name and a sentence: %s", path, name, first)
	}
	for path, file := range r.forUsers() {
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Name.Name != "Error" && (d.Recv == nil || ast.IsExported(receiver(d))) {
					check(path, d.Name.Name, d.Doc)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if s, ok := s.(*ast.TypeSpec); ok && s.Name.IsExported() {
						check(path, s.Name.Name, d.Doc)
					}
				}
			}
		}
	}
	assert.Greater(t, names, 500)
}

// receiver returns the name of the type that a method has.
func receiver(d *ast.FuncDecl) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(types.ExprString(d.Recv.List[0].Type), "*"), "[")
	return name
}

// The tables of clients, adapters and README.md name each module with the version of the SDK or
// framework that it is tested with, and say how many lines it adds to a program: those of the
// blocks below the table of the adapters, and of the agent of a client and the code that calls
// the agent, those that name a package of clients.
func TestPages_Modules(t *testing.T) {
	r := readRepo(t)
	ofClients := regexp.MustCompile(`\b(clients|convo[a-z]+)\.[A-Z]`)
	modules := globs(t, "clients/*/go.mod", "adapters/*/go.mod")
	require.Greater(t, len(modules), 8)
	for _, path := range modules {
		dir := filepath.Dir(path)
		page := r.text[filepath.Dir(dir)+"/README.md"]
		row := regexp.MustCompile(`(?m)^\| .*\b` + filepath.Base(dir) + `\b.*\b(v\d+\.\d+\.\d+)\b.*$`).FindStringSubmatch(page)
		require.NotNil(t, row, "there is no row of %s with a version", dir)
		named := false
		for line := range strings.Lines(read(t, path)) {
			module, version, ok := strings.Cut(strings.TrimSpace(line), " ")
			named = named || ok && version == row[1] && strings.Contains(row[0], module)
		}
		assert.True(t, named, "%s does not require what the page says: %s", path, row[0])
		lines := 0
		if _, section, ok := strings.Cut(page, "\n### "+filepath.Base(dir)+"\n"); ok {
			section, _, _ = strings.Cut(section, "\n##")
			for _, m := range goBlock.FindAllStringSubmatch(section, -1) {
				lines += strings.Count(m[1], "\n")
			}
			assert.True(t, strings.HasSuffix(row[0], fmt.Sprintf(" | %d |", lines)), "%s adds %d lines: %s", dir, lines, row[0])
			continue
		}
		for _, start := range []string{"\nfunc agent(", "\nfunc Example() {"} {
			_, body, ok := strings.Cut(r.text[dir+"/example_test.go"], start)
			require.True(t, ok, path)
			body, _, _ = strings.Cut(body, "\n}\n")
			for line := range strings.Lines(body) {
				if code, _, _ := strings.Cut(line, "//"); ofClients.MatchString(code) {
					lines++
				}
			}
		}
		assert.Regexp(t, fmt.Sprintf(`(?m)^\| .* \| %d \| .*%s \|$`, lines, regexp.QuoteMeta(row[1])), r.text["README.md"], dir)
	}
}

// dedent takes the indentation out of each line.
func dedent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimLeft(line, " \t"))
	}
	return b.String()
}
