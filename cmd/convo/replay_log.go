package main

import (
	"slices"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/cmd/convo/internal/session"
)

// goesOn reports whether a session begins with all that was said in the one before it. So it is
// with the requests of one conversation in a log: each repeats the one before. Two that say the
// same and were both measured are two requests.
func goesOn(before, s *session.Session) bool {
	if before == nil || before.Format != s.Format || !slices.EqualFunc(before.System, s.System, isSame) {
		return false
	}
	was, now := before.Messages(), s.Messages()
	if len(was) == 0 || len(was) > len(now) || len(was) == len(now) && isMeasured(before) && isMeasured(s) {
		return false
	}
	return slices.EqualFunc(was, now[:len(was)], isSame)
}

func isMeasured(s *session.Session) bool {
	return slices.ContainsFunc(s.Events, func(e session.Event) bool { return e.Usage != nil })
}

// isSame reports whether two messages say the same. Reasoning and other parts that a program
// may leave out when it sends an answer again are not compared.
func isSame(a, b convo.Message) bool {
	said := func(m convo.Message) []convo.Part {
		return slices.DeleteFunc(slices.Clone(m.Parts), func(p convo.Part) bool {
			switch p.(type) {
			case convo.Text, convo.ToolCall, convo.ToolResult, convo.Media:
				return false
			}
			return true
		})
	}
	return a.Role == b.Role && slices.EqualFunc(said(a), said(b), isSamePart)
}

func isSamePart(a, b convo.Part) bool {
	switch a := a.(type) {
	case convo.ToolCall:
		b, ok := b.(convo.ToolCall)
		return ok && a.ID == b.ID && a.Name == b.Name && a.Arguments == b.Arguments
	case convo.ToolResult:
		b, ok := b.(convo.ToolResult)
		return ok && a.CallID == b.CallID && a.Text() == b.Text()
	case convo.Text:
		b, ok := b.(convo.Text)
		return ok && a == b
	}
	x, _ := a.(convo.Media)
	y, ok := b.(convo.Media)
	return ok && x.MIME == y.MIME && x.URL == y.URL && x.Data == y.Data
}

// takeOver gives the answers of s the usage that the session before reported for them.
func takeOver(before, s *session.Session) {
	answers := func(s *session.Session) (at []*session.Event) {
		for i := range s.Events {
			if e := &s.Events[i]; len(e.Messages) > 0 && e.Messages[0].Role == convo.RoleAssistant {
				at = append(at, e)
			}
		}
		return at
	}
	now := answers(s)
	for i, e := range answers(before) {
		if now[i].Usage == nil {
			now[i].Usage = e.Usage
		}
		if now[i].Model == "" {
			now[i].Model = e.Model
		}
	}
	s.Counts.Records += before.Counts.Records
	s.Counts.Unknown += before.Counts.Unknown
	s.Counts.Usages += before.Counts.Usages
}
