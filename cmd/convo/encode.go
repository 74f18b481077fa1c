package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/cmd/convo/internal/cli"
	"github.com/seed-c1b73e60/convo/internal/formats"
	"github.com/seed-c1b73e60/convo/wire"
)

// An encoded is a conversation as the request of a format.
type encoded struct {
	body  json.RawMessage
	lost  []loss
	found []wire.Finding // what the provider would still refuse
}

// A loss is something of the input that the output does not have.
type loss struct {
	Path string `json:"path,omitempty"` // in the input
	What string `json:"what"`
	Sent string `json:"sent,omitempty"` // instead
}

func (l loss) String() string {
	text := l.What
	if l.Path != "" {
		text = l.Path + ": " + text
	}
	if l.Sent != "" {
		text += ", sent as " + l.Sent
	}
	return text
}

// written are the fields of requests that hold the conversation and its tools.
var written = []string{"messages", "system", "tools", "contents", "systemInstruction", "system_instruction", "input", "instructions", "toolConfig", "previous_response_id"}

// encode returns a conversation as the request of a format. The other fields of the request
// that was read stay if the format is the same, and with keep also what did not change in its
// messages.
func encode(c *conversation, to string, s *convo.Snapshot, keep bool) (*encoded, error) {
	same := to == c.format
	model := ""
	if same {
		model = c.model
	}
	f, err := newFormat(to, model)
	if err != nil {
		return nil, err
	}
	out := &encoded{}
	for _, l := range c.lost {
		out.lost = append(out.lost, loss{Path: l.Path, What: l.What})
	}
	req, err := f.Encode(s)
	if err != nil {
		return nil, err
	}
	for _, o := range req.Lost {
		out.lost = append(out.lost, loss{What: fmt.Sprintf("message %d: %s", o.Entry, o.What), Sent: o.Sent})
	}
	params := map[string]json.RawMessage{}
	var unset []string
	for name, value := range fields(c.raw) {
		switch {
		case slices.Contains(written, name), !isInput(c.raw):
		case same:
			params[name] = value
		default:
			unset = append(unset, name)
		}
	}
	if len(unset) > 0 {
		slices.Sort(unset)
		out.lost = append(out.lost, loss{What: "parameters of the request, which are to be set for the other provider: " + strings.Join(unset, ", ")})
	}
	switch {
	case same && len(c.rawTool) > 0:
		req.Tools = c.rawTool
	case len(c.tools) > 0:
		for _, t := range c.tools {
			if t.Opaque.JSON != "" && t.Opaque.Format != to {
				name := t.Name
				if name == "" {
					name = cli.Line(t.Opaque.JSON, 60)
				}
				out.lost = append(out.lost, loss{Path: "tools", What: "a tool that only " + t.Opaque.Format + " has: " + name})
			}
		}
		if req.Tools, err = f.Tools(c.tools...); err != nil {
			return nil, err
		}
	}
	patched := same && keep && out.patch(c, f, s, req, params)
	if !patched {
		if out.body, err = req.With(params); err != nil {
			return nil, err
		}
		out.found = f.Check(out.body)
	}
	if !patched && same && isList(c.raw) && req.System == nil && len(req.Fields) == 0 {
		out.body = slices.Concat([]byte("["), bytes.Join(toBytes(req.Messages), []byte(",")), []byte("]"))
	}
	return out, nil
}

// patch makes the body of the request that was read, with the messages of s written into its own
// messages, so that those which did not change keep all that they hold. It returns false if that
// is not possible, or if the provider would refuse it.
func (e *encoded) patch(c *conversation, f formats.Format, s *convo.Snapshot, req wire.Request, params map[string]json.RawMessage) bool {
	var was []json.RawMessage
	all := fields(c.raw)
	list := cmp.Or(string(all["messages"]), string(all["contents"]), string(all["input"]))
	if isList(c.raw) {
		list = string(c.raw)
	}
	p, ok := f.(wire.Patcher)
	if !ok || c.snap != nil || json.Unmarshal([]byte(list), &was) != nil {
		return false
	}
	req.System = nil
	for _, name := range []string{"system", "instructions", "systemInstruction", "system_instruction"} {
		if all[name] != nil {
			req.System = all[name]
		}
	}
	var err error
	if req.Messages, err = p.Patch(was, sealed(s, c.format)...); err != nil {
		return false
	}
	if e.body, err = req.With(params); err != nil || len(f.Check(e.body)) > 0 {
		return false
	}
	e.lost = nil
	if isList(c.raw) {
		e.body = slices.Concat([]byte("["), bytes.Join(toBytes(req.Messages), []byte(",")), []byte("]"))
	}
	return true
}

// sealed returns the messages of s without signed reasoning that the provider would refuse, and
// without tags for authors, whose names are in fields.
func sealed(s *convo.Snapshot, format string) (msgs []convo.Message) {
	var unbound []convo.ID
	if format == wire.FormatAnthropic || format == wire.FormatConverse {
		unbound = s.Unbound()
	}
	for i, m := range s.MessagesFrom(0, func(convo.Role, string) bool { return true }) {
		if e, _ := s.At(i); m.Role == convo.RoleAssistant && slices.Contains(unbound, e.ID) {
			m.Parts = slices.DeleteFunc(m.Parts, func(p convo.Part) bool { _, ok := p.(convo.Reasoning); return ok })
		}
		msgs = append(msgs, m)
	}
	return msgs
}

// isList reports whether a document is a list of messages alone.
func isList(raw json.RawMessage) bool { return bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")) }

func toBytes(raw []json.RawMessage) (all [][]byte) {
	for _, r := range raw {
		all = append(all, r)
	}
	return all
}

// isInput reports whether a document is a request, whose other fields are its parameters, and
// not an answer or a message.
func isInput(raw json.RawMessage) bool {
	all := fields(raw)
	return all["messages"] != nil || all["contents"] != nil || all["input"] != nil
}

// write prints a request, and returns the exit code. A request that the provider would refuse
// is not printed.
func (e *encoded) write(env *cli.Env, c *conversation, to string, wrap func() any) int {
	if len(e.found) > 0 {
		env.Note("%s: %s would refuse the result, so it is not written:", c.at, to)
		for _, f := range e.found {
			env.Note("  %s", f.String())
		}
		return cli.Findings
	}
	if wrap != nil {
		writeJSON(env, wrap())
	} else {
		env.WriteJSON(e.body)
	}
	return cli.OK
}

// tellLost prints what was lost.
func (e *encoded) tellLost(env *cli.Env, c *conversation) {
	tellSome(env, c, "lost", len(e.lost), func(i int) string { return e.lost[i].String() })
}

// tellFaults prints what was repaired.
func tellFaults(env *cli.Env, c *conversation, faults []*convo.SnapshotError) {
	var texts []string
	number := map[string]int{}
	for _, f := range faults {
		text := faultText(f)
		if f.Mended != "" {
			text += ": " + f.Mended
		}
		if number[text]++; number[text] == 1 {
			texts = append(texts, text)
		}
	}
	tellSome(env, c, "repaired", len(texts), func(i int) string {
		if n := number[texts[i]]; n > 1 {
			return fmt.Sprintf("%s (%d times)", texts[i], n)
		}
		return texts[i]
	})
}

// faultText returns what was wrong, without what a program that uses convo would do about it,
// which follows the first semicolon.
func faultText(f *convo.SnapshotError) string {
	text, _, _ := strings.Cut(strings.TrimPrefix(f.Err.Error(), "convo: "), ";")
	return text
}

// tellSome prints the first of n things about a conversation.
func tellSome(env *cli.Env, c *conversation, what string, n int, text func(int) string) {
	const most = 8
	for i := range n {
		if i == most && n > most+1 {
			env.Note("%s: %s: and %s more", c.at, what, cli.Number(n-i))
			return
		}
		env.Note("%s: %s: %s", c.at, what, text(i))
	}
}
