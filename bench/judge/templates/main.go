// Command templates has the chat templates that models were published with judge the
// requests of package wire. The templates are those by which Ollama recognises models;
// gonja runs them. A template refuses a request by an exception.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"

	"github.com/nikolalohinski/gonja/v2"
	"github.com/nikolalohinski/gonja/v2/exec"
	_ "github.com/ollama/ollama/template" // for its module, which holds the templates

	"github.com/seed-c1b73e60/convo/bench/judge"
	"github.com/seed-c1b73e60/convo/wire"
)

func main() {
	judges, err := judges()
	if err != nil {
		fmt.Fprintln(os.Stderr, "templates:", err)
		os.Exit(1)
	}
	judge.Main(judges...)
}

// formats says which formats the models of a template are sent.
var formats = map[string]map[string]wire.Format{
	"gemma-instruct":         judge.Textual,
	"llama2-chat":            judge.Alternating,
	"mistral-instruct":       judge.Textual,
	"starcoder2-instruct":    judge.Textual,
	"magicoder":              judge.Textual,
	"codellama-70b-instruct": judge.Alternating,
	"command-r":              judge.Alternating,
	"alfred":                 judge.Alternating,
	"llama3-instruct":        judge.Llama,
}

// judges returns a judge for each template that can refuse something.
func judges() ([]*judge.Judge, error) {
	dir, err := osexec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/ollama/ollama").Output()
	if err != nil {
		return nil, fmt.Errorf("the module of the templates: %w", err)
	}
	data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "template", "index.json"))
	if err != nil {
		return nil, err
	}
	var index []struct{ Name, Template string }
	if err := json.Unmarshal(data, &index); err != nil {
		return nil, err
	}
	var list []*judge.Judge
	for _, t := range index {
		if formats[t.Name] == nil || !strings.Contains(t.Template, "raise_exception") {
			continue
		}
		parsed, err := gonja.FromString(t.Template)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.Name, err)
		}
		list = append(list, judge.ByTemplate(judge.Template{
			Name: t.Name, Text: t.Template,
			Render: func(variables map[string]any) error { return render(parsed, variables) },
		}, "gonja", formats[t.Name]))
	}
	return list, nil
}

// render runs a template.
func render(t *exec.Template, variables map[string]any) error {
	var raised *judge.Raised
	variables["raise_exception"] = func(why string) (string, error) {
		raised = &judge.Raised{Why: why}
		return "", raised
	}
	_, err := t.ExecuteToString(exec.NewContext(variables))
	switch {
	case raised != nil:
		return raised
	case err != nil:
		return errors.New("does not run")
	}
	return nil
}
