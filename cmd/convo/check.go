package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo/cmd/convo/internal/cli"
	"github.com/seed-c1b73e60/convo/internal/formats"
	"github.com/seed-c1b73e60/convo/wire"
)

// A checked is what check -json writes for each request, in one line.
type checked struct {
	At         string    `json:"at"`
	Format     string    `json:"format"`
	Recognised string    `json:"recognised_by,omitempty"`
	Findings   []finding `json:"findings"`
}

type finding struct {
	Rule    string `json:"rule"`
	Path    string `json:"path"`
	ID      string `json:"id,omitempty"`
	Problem string `json:"problem"`
	Fix     string `json:"fix,omitempty"`
	Error   string `json:"error,omitempty"`
}

func check(ctx context.Context, env *cli.Env, args []string) int {
	flags := cli.NewFlags("check", "[FILE...]", `Says why a provider would refuse a request: the rule, the place in the request, how to mend it, and what the provider answers.

The input is the body of a request as JSON, or one a line. The exit code is 1 if there is a finding.`)
	flags.More = `Examples:
  convo check -format anthropic < request.json
  convo check -history log.jsonl`
	var o reader
	o.addFlags(flags, "format", formatNames)
	asJSON := flags.Bool("json", false, "write an object with the findings for each request")
	history := flags.Bool("history", false, "the requests are those of one conversation, oldest first: also say where one changes what the one before sent, so that signed reasoning is refused or a prompt cache misses")
	names, code, ok := flags.Parse(env, args)
	if !ok {
		return code
	}
	if err := o.check(); err != nil {
		return flags.Misused(env, "%w", err)
	}
	c := &checker{env: env, o: o, json: *asJSON, history: *history}
	n, worst := 0, cli.OK
	for in, err := range inputs(env, names) {
		if err != nil {
			worst = max(worst, fail(env, "check", err))
			continue
		}
		for d, err := range in.documents() {
			if ctx.Err() != nil {
				return cli.Interrupted
			}
			if n++; err == nil && (o.only == 0 || o.only == n) {
				err = c.check(d)
			}
			if err != nil {
				worst = max(worst, fail(env, "check", err))
				break
			}
		}
	}
	switch {
	case c.requests == 0 && worst != cli.OK:
		return worst
	case n == 0 || n < o.only:
		return env.Fail(cli.Unreadable, "%s: there are %s to check", inputNames(names), cli.Plural(n, "request"))
	}
	if c.history {
		c.checkHistory()
	}
	if c.found == 0 {
		env.Note("%s checked, nothing found", cli.Plural(c.requests, "request"))
		return worst
	}
	env.Note("%s checked, %s", cli.Plural(c.requests, "request"), cli.Plural(c.found, "finding"))
	return max(worst, cli.Findings)
}

// A checker checks one request after the other.
type checker struct {
	env     *cli.Env
	o       reader
	json    bool
	history bool

	requests int
	found    int
	said     string // the format that was said to be recognised
	bodies   [][]byte
	format   formats.Format // of bodies
	named    string
	first    string // where the first of bodies is
}

func (c *checker) check(d document) error {
	name, sign := c.o.format, ""
	if name == "" {
		if name, sign = recognize(d.raw); name == "" {
			return &inputError{name: d.name, line: d.line, text: "this is no request that is known; name its format with -format, or, if it is a session, make a request of it with convo convert"}
		}
		if sign == "" {
			sign = "nothing but its messages; if that is wrong, name the format with -format"
		}
		if said := name + ": " + sign; !c.json && said != c.said {
			c.env.Note("%s: taken as %s, by %s", d.at(), name, sign)
			c.said = said
		}
	}
	if isList(d.raw) {
		d.raw = slices.Concat([]byte(`{"`+messagesField(name)+`":`), d.raw, []byte("}"))
	}
	f, err := newFormat(name, modelOf(d.raw))
	if err != nil {
		return err
	}
	c.requests++
	c.report(d.at(), name, sign, f.Check(d.raw))
	if c.history {
		if c.named == "" {
			c.named, c.format, c.first = name, f, d.name
		}
		if name != c.named {
			return &inputError{name: d.name, line: d.line, text: fmt.Sprintf("this request is in the format %s, and the one before in %s; -history compares requests in one format", name, c.named)}
		}
		c.bodies = append(c.bodies, d.raw)
	}
	return nil
}

func (c *checker) checkHistory() {
	found := c.format.CheckHistory(c.bodies...)
	if len(found) > 0 || c.json {
		c.report(c.first, c.named, "", found)
	}
}

// report prints the findings about a request.
func (c *checker) report(at, name, sign string, found []wire.Finding) {
	c.found += len(found)
	if c.json {
		out := checked{At: at, Format: name, Recognised: sign, Findings: []finding{}}
		for _, f := range found {
			out.Findings = append(out.Findings, finding{f.Rule, f.Path, f.ID, f.Problem, f.Fix, f.Error})
		}
		writeJSON(c.env, out)
		return
	}
	for _, f := range found {
		path := f.Path
		if path == "" {
			path = "the request"
		}
		fmt.Fprintln(c.env.Stdout, cli.Visible(fmt.Sprintf("%s: %s: %s: %s", at, path, f.Rule, oneLine(f.Problem))))
		if f.Fix != "" {
			fmt.Fprint(c.env.Stdout, cli.Wrap("fix: "+cli.Visible(oneLine(f.Fix)), c.env.Width, "    "))
		}
		if f.Error != "" && !strings.HasPrefix(f.Error, "(none") {
			fmt.Fprint(c.env.Stdout, cli.Wrap("the provider answers: "+cli.Visible(oneLine(f.Error)), c.env.Width, "    "))
		}
	}
}

// messagesField returns the name of the field with the messages in the requests of a format.
func messagesField(format string) string {
	switch format {
	case wire.FormatGemini:
		return "contents"
	case wire.FormatOpenAIResponses:
		return "input"
	}
	return "messages"
}

// oneLine returns a text with its white space joined.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// writeJSON writes a value in one line.
func writeJSON(env *cli.Env, v any) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err == nil { // all values of convo can be encoded
		env.WriteJSON(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
	}
}
