package modeltest

import (
	"fmt"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// Print returns everything that a snapshot shows, to compare two snapshots.
func Print(s *convo.Snapshot) string {
	var b strings.Builder
	for i, e := range s.All() {
		fmt.Fprintln(&b, i, e.ID, e.Turn, e.Tokens, e.Pinned, PrintMessage(e.Message))
	}
	sum, ok := s.Summary()
	fmt.Fprintln(&b, sum.Text, sum.Covers, sum.Updates, ok, s.Pinned(), s.Tokens(), s.Version())
	for _, m := range s.Messages() {
		fmt.Fprintln(&b, PrintMessage(m))
	}
	for x := range s.Exchanges() {
		fmt.Fprintln(&b, x.First, x.Last, x.Floor, x.Open, x.Tokens, x.Turn)
	}
	return b.String()
}

// PrintMessage returns the role, the texts, the calls and the results of a
// message.
func PrintMessage(m convo.Message) string {
	var b strings.Builder
	b.WriteString(string(m.Role))
	for _, p := range m.Parts {
		switch p := p.(type) {
		case convo.Text:
			b.WriteString(" " + string(p))
		case convo.Reasoning:
			b.WriteString(" thought " + p.Text)
		case convo.ToolCall:
			b.WriteString(" call " + p.ID + p.Name + p.Arguments)
		case convo.ToolResult:
			b.WriteString(printResult(p.CallID, p.Name, p.Text(), p.IsError, p.Cleared))
		}
	}
	return b.String()
}

func printResult(id, name, text string, isErr, cleared bool) string {
	s := " result " + id + " " + name + " " + text
	if isErr {
		s += " error"
	}
	if cleared {
		s += " cleared"
	}
	return s
}

// print returns the result of PrintMessage for the same message in a History.
func (m message) print() string {
	var b strings.Builder
	b.WriteString(string(m.role))
	if m.thought != "" {
		b.WriteString(" thought " + m.thought)
	}
	if m.text != "" {
		b.WriteString(" " + m.text)
	}
	for i, id := range m.calls {
		b.WriteString(" call " + id + toolName(id) + m.arguments(i))
	}
	for _, r := range m.results {
		b.WriteString(printResult(r.id, toolName(r.id), r.text, r.isErr, r.cleared))
	}
	return b.String()
}
