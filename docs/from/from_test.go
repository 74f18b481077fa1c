package from_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// must returns v. It stands where a program in Rust has a question mark, and a
// program in Go returns the error.
func must[T any](v T, err error) T {
	check(err)
	return v
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// model stands for a call of a model. It lists a folder before it answers a user
// who asks for one.
func model(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
	msgs := s.Messages()
	last := msgs[len(msgs)-1]
	answer := convo.Assistant("There you are.")
	if last.Role == convo.RoleUser && strings.Contains(last.Text(), "folder") {
		answer = convo.Assistant("", convo.ToolCall{ID: "c1", Name: "list", Arguments: "{}"})
	}
	return convo.Reply{Messages: []convo.Message{answer}, Usage: convo.Usage{Input: s.Tokens() + 50}}, nil
}

// run stands for a tool.
func run(call convo.ToolCall) string {
	return call.Name + ": " + strings.Repeat("a file, ", 20) + "a file"
}

// summarize stands for a call of a small model.
func summarize(_ context.Context, req convo.SummaryRequest) (convo.Summary, error) {
	return convo.Summary{Text: fmt.Sprint("What was said in ", len(req.Messages), " messages.")}, nil
}

// programs are the examples of this folder, by the name of their file, with the
// place on the page where each is.
var programs = map[string]string{
	"llm_kernel": "llm-kernel", "defect_agent": "defect-agent", "ailoop": "ailoop", "crabtalk": "crabtalk", "ds_api": "ds-api",
}

// bodyOf returns the lines of the example in a file without those of its output,
// and how many lines the program has here and there. A comment in it is a line of
// the other system. A line that only prints for the output counts on neither side.
func bodyOf(t *testing.T, name string) (body []string, here, there int) {
	t.Helper()
	source, err := os.ReadFile(name + "_test.go")
	require.NoError(t, err)
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, name+"_test.go", source, parser.ParseComments)
	require.NoError(t, err)
	lines := strings.Split(string(source), "\n")
	var example *ast.FuncDecl
	for _, d := range f.Decls {
		if d, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(d.Name.Name, "Example_") {
			example = d
		}
	}
	require.NotNil(t, example, name)
	comments := map[int]int{} // the column of the comment of a line
	end := files.Position(example.Body.Rbrace).Line
	for _, group := range f.Comments {
		for _, c := range group.List {
			at := files.Position(c.Pos())
			if strings.HasPrefix(c.Text, "// Output:") {
				end = min(end, at.Line)
			}
			comments[at.Line] = at.Column
		}
	}
	for n := files.Position(example.Body.Lbrace).Line + 1; n < end; n++ {
		line := lines[n-1]
		body = append(body, strings.TrimPrefix(line, "\t"))
		code := line
		if column, ok := comments[n]; ok {
			code = line[:column-1]
			there++
		} else if strings.HasPrefix(strings.TrimSpace(code), "fmt.Print") {
			continue
		}
		if strings.TrimSpace(code) != "" {
			here++
		}
	}
	return body, here, there
}

// The page shows each program as it is, and says how many lines it has.
func TestPage(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	page := string(text)
	for name, anchor := range programs {
		body, here, there := bodyOf(t, name)
		assert.Contains(t, page, "## "+anchor+"\n")
		assert.Contains(t, page, "```go\n"+strings.Join(body, "\n")+"\n```\n", name)
		assert.Contains(t, page, fmt.Sprintf("[%s_test.go](%[1]s_test.go): %d lines here, %d there", name, here, there))
		row := regexp.MustCompile(fmt.Sprintf(`\(#%s\) \| [^|]+ \| %d \| %d \|\n`, anchor, there, here))
		assert.Regexp(t, row, page, "the table at the top")
	}
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	assert.Len(t, files, len(programs)+1, "each other file is a program of the page")
}
