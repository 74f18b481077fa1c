// Command jinja has the chat templates that models were published with judge the
// requests of package wire. The templates are those of the npm package
// @huggingface/ollama-utils, and @huggingface/jinja runs them; so it needs Node.js.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"

	"github.com/seed-c1b73e60/convo/bench/judge"
	"github.com/seed-c1b73e60/convo/wire"
)

func main() {
	judges, end, err := judges(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "jinja:", err)
		os.Exit(1)
	}
	defer end()
	judge.Main(judges...)
}

// A node is a Node.js that runs judge.mjs.
type node struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// refused is what npm says when a registry does not offer a package, or is not there.
var refused = regexp.MustCompile(`npm (?:error|ERR!) code (?:E403|E404|ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT)`)

// start installs the packages unless they are there, and starts Node.js.
func start(dir string) (*node, error) {
	if _, err := exec.LookPath("node"); err != nil {
		return nil, fmt.Errorf("%w: %w", judge.ErrAbsent, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
		c := exec.Command("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
		c.Dir = dir
		if out, err := c.CombinedOutput(); refused.Match(out) {
			return nil, fmt.Errorf("%w: npm ci: %s", judge.ErrAbsent, refused.Find(out))
		} else if errors.Is(err, exec.ErrNotFound) {
			return nil, fmt.Errorf("%w: %w", judge.ErrAbsent, err)
		} else if err != nil {
			return nil, fmt.Errorf("npm ci: %w: %s", err, out)
		}
	}
	c := exec.Command("node", "judge.mjs")
	c.Dir, c.Stderr = dir, os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &node{c, in, bufio.NewReader(out)}, c.Start()
}

// ask sends a value, unless it is nil, and reads the answer.
func (n *node) ask(v, answer any) error {
	if v != nil {
		data, err := json.Marshal(v)
		if err == nil {
			_, err = n.in.Write(append(data, '\n'))
		}
		if err != nil {
			return err
		}
	}
	line, err := n.out.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, answer)
}

// judges returns a judge for each template of formats, and a function that ends Node.js.
func judges(dir string) ([]*judge.Judge, func() error, error) {
	n, err := start(dir)
	if err != nil {
		return nil, nil, err
	}
	end := func() error { return errors.Join(n.in.Close(), n.Wait()) }
	var list []struct{ Name, Text string }
	if err := n.ask(nil, &list); err != nil {
		return nil, nil, errors.Join(err, end())
	}
	var judges []*judge.Judge
	for i, t := range list {
		if formats[t.Name] == nil {
			continue
		}
		judges = append(judges, judge.ByTemplate(judge.Template{
			Name: t.Name, Text: t.Text,
			Render: func(variables map[string]any) error { return n.render(i, variables) },
		}, "@huggingface/jinja", formats[t.Name]))
	}
	return judges, end, nil
}

func (n *node) render(template int, variables map[string]any) error {
	var answer struct{ Raised, Failed string }
	err := n.ask(map[string]any{"template": template, "variables": variables}, &answer)
	switch {
	case err != nil:
		return fmt.Errorf("no answer of Node.js: %w", err)
	case answer.Raised != "":
		return &judge.Raised{Why: answer.Raised}
	case answer.Failed != "":
		return errors.New("does not run: " + answer.Failed)
	}
	return nil
}

// formats says which formats the models of a template are sent. Other templates of the
// package are left out: those of Llama 3.2 Vision and Llama 4, and one of Gemma 3, want
// text in lists in some messages and as a string in others, and which a request has is
// up to the host.
var formats = map[string]map[string]wire.Format{
	"library/gemma2:2b":                judge.Textual,
	"library/gemma3:270m":              judge.Alternating,
	"library/llama2:7b":                judge.Alternating,
	"library/mistral:7b-instruct-fp16": judge.Textual,
	"library/llava:7b":                 judge.Textual,
	"library/mixtral:8x7b":             judge.Alternating,
	"library/mixtral:8x22b":            judge.Alternating,
	"library/mistral-small:24b":        judge.Alternating,
	"library/mistral-large:123b":       judge.Alternating,
	"library/devstral:latest":          judge.Alternating,
	"library/command-r:35b":            judge.Alternating,
	"library/aya:35b":                  judge.Alternating,
	"library/llama3.1:8b":              judge.Llama,
	"library/llama3.2:3b":              judge.Llama,
	"library/nemotron:70b":             judge.Llama,
}
