package main

import (
	"bytes"
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

// ownFormat is the name of the format of snapshots of convo.
const ownFormat = "convo"

// readSession yields the sessions of another program, and messages that stand one a line.
func (o *reader) readSession(in *input) iter.Seq2[*conversation, error] {
	return func(yield func(*conversation, error) bool) {
		format := o.format
		switch format {
		case wire.FormatDeepSeek, wire.FormatMistral, wire.FormatOllama:
			format = wire.FormatOpenAIChat // with which messages and answers are read
		}
		for s, err := range session.Read(in.r, in.name, session.Options{Format: format}) {
			if err != nil {
				yield(nil, in.sessionError(err))
				return
			}
			if !yield(o.sessionOf(in, s), nil) {
				return
			}
		}
	}
}

// sessionError returns an error of package session, which names the input already.
func (in *input) sessionError(err error) error {
	text := strings.TrimPrefix(err.Error(), in.name+": ")
	if u, ok := errors.AsType[*session.UnknownError](err); ok {
		text = u.Reason
	}
	return &inputError{name: in.name, text: text, err: err}
}

// sessionOf returns what a program would send next: all that was said, or, after a compaction
// of its own, what it has put in the place of that.
func (o *reader) sessionOf(in *input, s *session.Session) *conversation {
	c := &conversation{at: in.name, format: s.Format, title: s.Title, model: o.model, window: s.Window, tools: s.Tools}
	if s.ID != "" && s.Title == "" {
		c.title = "session " + s.ID
	}
	msgs := slices.Clone(s.System)
	compactions, hidden := 0, false
	for _, e := range s.Events {
		if k := e.Compaction; k != nil {
			msgs = append(slices.Clone(s.System), k.View...)
			compactions++
			hidden, c.measured = k.Hidden, 0
			continue
		}
		if e.Usage != nil && e.Usage.Input > 0 {
			c.measured, c.asked = e.Usage.Input, slices.Clip(msgs)
		}
		msgs = append(msgs, e.Messages...)
		if e.Model != "" && o.model == "" {
			c.model = e.Model
		}
	}
	c.msgs = slices.DeleteFunc(msgs, func(m convo.Message) bool { return len(m.Parts) == 0 })
	for _, m := range c.msgs {
		if m.Origin.Format != "" {
			c.wire = m.Origin.Format
		}
	}
	isWire := slices.Contains(formatNames, s.Format)
	if !isWire {
		c.unseen = unseen(len(s.System) == 0, len(s.Tools) == 0)
	}
	if c.measured == 0 {
		c.asked = nil
	}
	if compactions > 0 {
		c.notes = append(c.notes, "this is what is left after "+cli.Plural(compactions, "compaction")+" of "+s.Format)
	}
	if hidden {
		c.notes = append(c.notes, "a part of what is left cannot be read, so it is missing here")
	}
	if n := s.Counts; n.Doubtful() {
		c.doubtful = true
		c.notes = append([]string{notUnderstood(n) + ", so much may be missing"}, c.notes...)
	} else if n.Unknown > 0 {
		c.notes = append(c.notes, notUnderstood(n))
	}
	if s.Counts.Torn > 0 {
		c.notes = append(c.notes, "the last line is incomplete, and left out")
	}
	if s.Counts.Sidechains > 0 {
		c.notes = append(c.notes, cli.Plural(s.Counts.Sidechains, "message")+" of subagents are left out")
	}
	if changed := changes(s.Counts); changed != "" {
		c.notes = append(c.notes, changed)
	}
	return c
}

// notUnderstood says how much of a session was not understood.
func notUnderstood(n session.Counts) string {
	verb := "were"
	if n.Unknown == 1 {
		verb = "was"
	}
	return fmt.Sprintf("%s of %s %s not understood", cli.Number(n.Unknown), cli.Plural(n.Records, "record"), verb)
}

// changes says what was changed so that Append takes a session. That the blocks of one reply
// were joined goes without saying.
func changes(n session.Counts) string {
	var said []string
	if n.Dropped > 0 {
		said = append(said, cli.Plural(n.Dropped, "message")+" repeated, empty or on another branch left out")
	}
	if n.Answered > 0 {
		said = append(said, cli.Plural(n.Answered, "call")+" without a result answered")
	}
	if n.Reordered > 0 {
		said = append(said, cli.Plural(n.Reordered, "result")+" put after the call")
	}
	if n.Usages > 0 {
		said = append(said, cli.Plural(n.Usages, "report")+" of usage left out, because of figures that cannot be right or because there is no answer")
	}
	return strings.Join(said, "; ")
}

// unseen says which of the system text and the tools are missing in a file.
func unseen(system, tools bool) string {
	switch {
	case system && tools:
		return "the system text and the tools are"
	case system:
		return "the system text is"
	case tools:
		return "the tools are"
	}
	return ""
}

// isSnapshot reports whether the beginning of an input is that of a snapshot of convo.
func isSnapshot(head []byte) bool {
	return bytes.HasPrefix(head, []byte(`{"version":`)) && bytes.Contains(head[:min(len(head), 200)], []byte(`"key":"@`))
}

// decodeSnapshot reads a snapshot of convo.
func (o *reader) decodeSnapshot(d document) (*conversation, error) {
	c := &conversation{at: d.at(), format: ownFormat, snap: &convo.Snapshot{}}
	if err := json.Unmarshal(d.raw, c.snap); err != nil {
		return nil, &inputError{name: d.name, line: d.line, text: strings.TrimPrefix(err.Error(), "convo: "), err: err}
	}
	c.fromSnapshot(o.model)
	return c, nil
}

// fromSnapshot fills in what is known of a conversation that has a snapshot.
func (c *conversation) fromSnapshot(model string) {
	c.title, _ = c.snap.Meta()
	if c.model = model; model == "" {
		c.model = c.snap.Model()
	}
	c.tools = c.snap.Tools()
	for _, e := range c.snap.All() {
		if f := e.Message.Origin.Format; f != "" {
			c.wire = f
		}
	}
}

// hidden returns how many tokens the tools take, or the tools and the system text, that a
// program sends and does not record: what the provider has counted, less the messages that were
// sent. It is 0 if that is not known.
func (c *conversation) hidden(opts convo.Options) int {
	if c.unseen == "" || len(c.tools) > 0 || c.measured == 0 {
		return 0
	}
	return max(c.measured-convo.NewSnapshot(c.asked, &opts).Tokens(), 0)
}
