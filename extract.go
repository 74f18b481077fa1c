package convo

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/extract"
	"github.com/seed-c1b73e60/convo/internal/hosts"
	"github.com/seed-c1b73e60/convo/internal/names"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// Extract is a [Summarizer] that calls no model. Its summary lists what the user said,
// what the assistant said, lines of results, the tools that were called and how often,
// the paths and errors that came up, and the last answer. It is quick, returns the same
// text for the same messages, and never exceeds SummaryRequest.MaxTokens. What no person
// wrote, see [HostMeta], is read like a result.
//
// It fills that room. Up to a third of it goes to what the user said: the first message, and
// then those with words that few others have. Of the rest it prefers lines with names, such as paths,
// identifiers, dates and amounts, which come up again later. A repeated line is listed
// once. Of the oldest results above 2 MB it reads the beginning; Report.Unread counts the rest.
type Extract struct{}

// Summarize extracts a summary from req.Messages, and adds it to req.Previous. If
// req.MaxTokens is not positive, the summary has at most 500 tokens; if req.Count
// is nil, [Heuristic] counts them. The only error is the reason why ctx ended.
func (Extract) Summarize(ctx context.Context, req SummaryRequest) (Summary, error) {
	if ctx.Err() != nil {
		return Summary{}, causeOf(ctx)
	}
	sources := make([]source, len(req.Messages))
	for i := range sources {
		sources[i].msg = &req.Messages[i]
	}
	if req.MaxTokens <= 0 {
		req.MaxTokens = maxSummary(0)
	}
	if req.Count == nil {
		req.Count = Heuristic{}.CountTokens
	}
	n, _ := notesOf(sources)
	return Summary{Text: n.Summary(req.Previous, req.MaxTokens, req.Count)}, nil
}

// nameWeight is the priority of a name by the role of the message that contains it: user
// messages come first, then assistant messages with their calls, then the others.
var nameWeight = map[Role]uint8{RoleUser: 4, RoleAssistant: 3, RoleTool: 2, RoleSystem: 2}

// notesOf reads messages for Extract. It returns how many raw tokens of results it did not read.
func notesOf(sources []source) (n *extract.Notes, unread int64) {
	said, results := 0, 0
	for i := range sources {
		for role, text := range sources[i].msg.texts {
			if role == RoleTool {
				results += len(text)
			} else {
				said += len(text)
			}
		}
	}
	n = new(extract.Notes)
	n.Begin(said, results)
	var alike hosts.Echoes
	for i, src := range slices.Backward(sources) {
		role := src.msg.Role
		if src.msg.isHosts() || role == RoleUser && src.msg.repeats(&alike) {
			role = RoleTool
		}
		n.Next(names.Source{Place: i, Weight: nameWeight[role], Said: role != RoleTool, Paths: role == RoleTool})
		unread += src.note(n, role)
	}
	return n, unread
}

// note adds a message to n. role is its speaker.
func (s *source) note(n *extract.Notes, role Role) (unread int64) {
	m := s.msg
	for media := range m.allMedia {
		if media.Data == "" {
			n.Link(media.URL)
		}
	}
	switch role {
	case RoleUser, RoleSystem:
		for _, text := range m.texts {
			n.Search(text)
		}
		if !m.isEmpty() {
			n.Ask((*asked)(m))
		}
	case RoleAssistant:
		for i, p := range m.Parts {
			switch p := p.(type) {
			case Text:
				n.Say(string(p))
			case ToolCall:
				n.Call(i, p.Name, p.Arguments)
			}
		}
		n.Answer((*asked)(m))
	case RoleTool:
		for i, p := range m.Parts {
			r, ok := p.(ToolResult)
			if ok && r.IsError {
				n.Fail(i, r.Name, r.Text())
			}
			texts := r.Parts
			if !ok { // a user message that no person wrote
				texts = m.Parts[i : i+1]
			}
			for t := range eachOf[Text](texts) {
				unread += portion(s.tokens, int64(n.Result(string(t))), int64(len(t)))
			}
		}
	}
	return unread
}

// An asked is a message as Extract lists it.
type asked Message

func (m *asked) Text() string { return (*Message)(m).Text() }

// Line returns the texts on one line, with what names the media, and the author.
func (m *asked) Line() string {
	line := text.OneLine(m.Text())
	for media := range (*Message)(m).allMedia {
		line = strings.TrimSpace(fmt.Sprintf("%s [%s: %s]", line, media.label(), text.OneLine(media.place())))
	}
	if line != "" && m.Author != "" {
		line = text.OneLine(m.Author) + ": " + line
	}
	return line
}
