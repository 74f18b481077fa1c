package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/cmd/convo/internal/cli"
	"github.com/seed-c1b73e60/convo/cmd/convo/internal/session"
	"github.com/seed-c1b73e60/convo/wire"
)

// A conversation is what show, count, compact and convert read.
type conversation struct {
	at         string // the file, and the line in it
	format     string // of the input
	sign       string // what shows the format; empty: nothing does
	title      string
	model      string
	window     int             // 0: it is not recorded
	raw        json.RawMessage // the request, if the conversation is one
	msgs       []convo.Message
	rawTool    json.RawMessage // the definitions of the tools as they stand in raw
	tools      []convo.Tool    // the same, as far as they are understood
	toolTokens int             // of rawTool, once history has counted them
	lost       []wire.Loss     // what has no place in msgs
	wire       string          // the format in which the answers came; empty: not known
	measured   int             // what the provider counted for the newest request; 0: not recorded
	asked      []convo.Message // the messages of that request
	unseen     string          // what is not in the file, such as "the tools are"; empty: nothing is missing
	doubtful   bool            // more than one record in a hundred was not understood
	snap       *convo.Snapshot // instead of msgs, for a conversation of convo itself
	notes      []string        // what a person should know about how it was read
}

// A reader says how to read conversations.
type reader struct {
	formats []string // that format may be
	format  string   // empty: recognise it
	model   string   // empty: that of the request
	only    int      // the number of the conversation, from 1; 0: all
}

// addFlags adds the flags that all subcommands have which read conversations.
func (o *reader) addFlags(f *cli.Flags, format string, formats []string) {
	o.formats = formats
	f.StringVar(&o.format, format, "", "the `FORMAT` of the input: "+strings.Join(formats, ", ")+"; recognised if absent")
	f.IntVar(&o.only, "only", 0, "of several conversations, read the one with the number `N`, counted from 1")
}

// check returns an error for a flag that has no meaning.
func (o *reader) check() error {
	if o.only < 0 {
		return fmt.Errorf("-only %d: count from 1", o.only)
	}
	if o.format != "" && !slices.Contains(o.formats, o.format) {
		return fmt.Errorf("there is no format %q here; want one of %s", o.format, strings.Join(o.formats, ", "))
	}
	return nil
}

// readable returns the names of the formats that can be read.
func readable() []string {
	all := slices.Clone(formatNames)
	for _, name := range session.Formats() {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// read yields the conversations of all inputs. An input that cannot be read to its end gives an
// error, and the next follows.
func (o *reader) read(ctx context.Context, env *cli.Env, names []string) iter.Seq2[*conversation, error] {
	return func(yield func(*conversation, error) bool) {
		n, failed := 0, false
		for in, err := range inputs(env, names) {
			if err != nil {
				if failed = true; !yield(nil, err) {
					return
				}
				continue
			}
			for c, err := range o.readInput(in) {
				if ctx.Err() != nil {
					yield(nil, ctx.Err())
					return
				}
				if err != nil {
					failed = true
				} else if n++; o.only > 0 && n != o.only {
					continue
				}
				if !yield(c, err) || n == o.only && err == nil {
					return
				}
			}
		}
		switch {
		case o.only > n:
			yield(nil, &inputError{name: inputNames(names), text: fmt.Sprintf("there is no conversation %d, the last is %d", o.only, n)})
		case n == 0 && !failed:
			yield(nil, &inputError{name: inputNames(names), text: "there is no conversation in it"})
		}
	}
}

// readInput yields the conversations of an input.
func (o *reader) readInput(in *input) iter.Seq2[*conversation, error] {
	decode := o.decode
	switch {
	case isSnapshot(in.head) && o.format == "":
		decode = o.decodeSnapshot
	case !isRequest(in.head), o.format != "" && !slices.Contains(formatNames, o.format):
		return o.readSession(in)
	}
	return func(yield func(*conversation, error) bool) {
		for d, err := range in.documents() {
			var c *conversation
			if err == nil {
				c, err = decode(d)
			}
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}

// decode reads a request, an answer or a list of messages.
func (o *reader) decode(d document) (*conversation, error) {
	c := &conversation{at: d.at(), format: o.format, raw: d.raw, model: o.model}
	if c.format == "" {
		if c.format, c.sign = recognize(d.raw); c.format == "" {
			return nil, &inputError{name: d.name, line: d.line, text: "this is no request, answer or list of messages that is known; name its format with a flag, or see convo help"}
		}
	}
	if c.model == "" {
		c.model = modelOf(d.raw)
	}
	f, err := newFormat(c.format, c.model)
	if err != nil {
		return nil, err
	}
	t, err := f.Decode(d.raw)
	if err != nil {
		text := strings.TrimPrefix(err.Error(), "wire: ")
		if _, ok := errors.AsType[*wire.ProviderError](err); !ok {
			text += "; it was read as " + c.format + ", convo check says more"
		}
		return nil, &inputError{name: d.name, line: d.line, text: text, err: err}
	}
	c.msgs, c.lost = t.Messages, t.Lost
	if c.model == "" {
		c.model = t.Model
	}
	c.rawTool, c.tools = session.Tools(c.format, d.raw)
	return c, nil
}

// history returns a History of the conversation, which takes its messages. Faults are
// repaired, and counted.
func (c *conversation) history(opts convo.Options) (h *convo.History, faults []*convo.SnapshotError, err error) {
	opts.Roles = convo.Relaxed()
	opts.MaxResult = -1
	opts.KeepOriginals = -1
	opts.AsSent = true
	opts.Repair = func(f *convo.SnapshotError) {
		if f.Err != nil {
			faults = append(faults, f)
		}
	}
	if len(c.rawTool) > 0 {
		n, err := wire.ToolTokens(c.model, c.rawTool, opts.Tokenizer)
		if err != nil {
			return nil, nil, &inputError{name: c.at, text: "the tools: " + strings.TrimPrefix(err.Error(), "wire: "), err: err}
		}
		opts.Limits.Tools, c.toolTokens = n, n
	}
	snap := c.snap
	if snap == nil {
		snap = convo.NewSnapshot(c.msgs, &opts)
		c.msgs = nil // the memory of many short messages is mostly here
	}
	h, err = convo.Restore(snap, &opts)
	if err != nil {
		return nil, nil, err
	}
	if c.snap == nil && len(c.rawTool) == 0 && len(c.tools) > 0 {
		if err := h.SetTools(c.tools...); err != nil {
			return nil, nil, err
		}
	}
	return h, faults, nil
}

// overheads returns what messages weigh besides their text.
func (c *conversation) overheads() convo.Overheads {
	name, _, _ := strings.Cut(cmp.Or(c.wire, c.format), "@")
	if f, err := newFormat(name, c.model); err == nil {
		return wire.OverheadsFor(f, c.model)
	}
	o := wire.Overheads(c.model)
	o.Reasoning = convo.ReplayAll
	return o
}

// tell prints the notes of a conversation, and returns the exit code that they ask for.
func (c *conversation) tell(env *cli.Env) int {
	for _, note := range c.notes {
		env.Note("%s: %s", c.at, note)
	}
	if c.doubtful {
		return cli.Findings
	}
	return cli.OK
}

// tellUnseen says that a part of what the program sends is not in the file.
func (c *conversation) tellUnseen(env *cli.Env) {
	if c.unseen != "" {
		env.Note("%s: %s not in the file, so not counted", c.at, c.unseen)
	}
}

// fail prints an error of reading and returns the exit code.
func fail(env *cli.Env, name string, err error) int {
	switch {
	case errors.Is(err, context.Canceled):
		return cli.Interrupted
	case errors.Is(err, errNoInput):
		return env.Fail(cli.Usage, "%s: %w\nconvo %s -h prints the help", name, err, name)
	}
	return env.Fail(cli.Unreadable, "%s", strings.TrimPrefix(err.Error(), "convo: "))
}
