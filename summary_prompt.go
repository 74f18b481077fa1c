package convo

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/prompt"
	"github.com/seed-c1b73e60/convo/internal/tags"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// DefaultPrompt is the instruction that [Summarize] gives to the summarizer unless
// Summarize.Prompt is set. It asks for a summary under the headings Goal, Rules, Done, State,
// Failed, Decisions, Where to look, Open and Next step. It comes after the messages to
// summarise, and is followed by text about where these end, how to update a previous summary,
// the focus and the maximum length.
const DefaultPrompt = prompt.Default

// newPrompt returns what the prompts for the summary have in common.
func (w *writer) newPrompt() *prompt.Prompt {
	p := &prompt.Prompt{Key: w.promptKey(), Task: w.task(), Window: w.window, Count: w.count}
	p.SetContext(promptMessages(w.system), promptMessages(w.pinned), promptMessages(w.said))
	for _, src := range w.sources {
		p.List = append(p.List, promptMessage(w.shortened(src.msg)))
	}
	return p
}

// task returns what the model is asked to do.
func (w *writer) task() prompt.Task {
	return prompt.Task{
		Instruction: w.prompt, Focus: w.focus, Border: w.border(), MaxTokens: w.maxTokens,
		Reads: len(w.read) > len(w.said), Said: len(w.said) > 0, Pins: len(w.pinned) > 0, Updates: w.s.summary != nil,
	}
}

// promptKey derives the key of the tags in prompts from the key of a History, so that no
// summarizer sees the key of the tags in the view.
func (w *writer) promptKey() string { return tags.KeyFrom([]byte(w.s.key())) }

// promptMessage returns m as a prompt shows it.
func promptMessage(m *Message) prompt.Message {
	var b strings.Builder
	for _, p := range m.Parts {
		known(p).render(&b)
	}
	return prompt.Message{Role: string(m.Role), Author: text.Shorten(m.Author, 200), IsHosts: m.isMarkedHosts(), Body: b.String()}
}

func promptMessages(sources []source) []prompt.Message {
	list := make([]prompt.Message, len(sources))
	for i := range sources {
		list[i] = promptMessage(sources[i].msg)
	}
	return list
}

// chunks returns the transcript of the sources in pieces; see Chunks of Prompt.
func (w *writer) chunks(p *prompt.Prompt, counted bool) ([]prompt.Chunk, error) {
	chunks, least := p.Chunks(w.previous, counted)
	switch {
	case least > 0:
		remedy := ""
		if w.windowName != "Summarize.Window" {
			remedy = "; if the model that summarises has a larger window, set Summarize.Window"
		}
		return nil, &ValueError{
			Name:  w.windowName,
			Value: w.window,
			Want:  fmt.Sprintf("at least %s tokens, to summarise with room for the prompt, the summary and a part of the transcript%s", grouped(least), remedy),
		}
	case chunks == nil:
		return nil, &RefusedError{Reason: "the tokenizer counts a part of a text as more tokens than the whole text, so the text cannot be split to fit the summarizer's window"}
	}
	return chunks, nil
}

// shortened returns m with its results cut as a transcript shows them, and adds the
// tokens left out to w.unread.
func (w *writer) shortened(m *Message) *Message {
	most := int64(w.maxResult)
	if most == 0 {
		most = int64(w.window) / 8
	}
	if most <= 0 || m.Role != RoleTool {
		return m
	}
	most = max(most, minMaxResult)
	c := newCounter(TokenizerFunc(w.count), Overheads{})
	short := *m
	short.Parts = slices.Clone(m.Parts)
	for i, part := range m.Parts {
		r, ok := part.(ToolResult)
		if !ok {
			continue
		}
		weight := c.content(r.Parts)
		if weight <= most {
			continue
		}
		if cut, ok := c.cutResult(r, most, ""); ok {
			short.Parts[i] = cut
			left := c.content(cut.Parts) - c.leastCut(&r, "") // without the marker
			w.unread = addClamped(w.unread, clampInt(weight-max(left, 0)))
		}
	}
	return &short
}

// firstAfter returns the first message after those to summarise, apart from those that
// were kept. It returns none if there is none.
func (w *writer) firstAfter() []source {
	if len(w.sources) == 0 {
		return nil
	}
	i, _ := index(w.s.list, w.sources[len(w.sources)-1].id+1)
	for ; i < len(w.s.list); i++ {
		if !w.stays(i) {
			return []source{sourceOf(w.s.list[i])}
		}
	}
	return nil
}

// border returns the beginning of w.next, quoted; see prompt.Border.
func (w *writer) border() string {
	if len(w.next) == 0 {
		return ""
	}
	call, next := ToolCall{}, w.next[0].msg
	if calls := next.ToolCalls(); len(calls) > 0 {
		call = calls[0]
	}
	return prompt.Border(next.Text(), call.Name, call.Arguments)
}
