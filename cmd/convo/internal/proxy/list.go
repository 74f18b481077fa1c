package proxy

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/inspect"
	"github.com/seed-c1b73e60/convo/transport"
	"github.com/seed-c1b73e60/convo/wire"
)

// A shown is what is kept of a conversation for the page.
type shown struct {
	number  int
	reports inspect.Reports
	name    string // the first question; empty: not known yet
}

const mostBeginning = 100 // conversations that are not listed yet

// keep returns what is kept of a conversation.
func (p *Proxy) keep(id string) *shown {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.shown[id]
	if s == nil {
		s = &shown{}
		s.number, _ = strconv.Atoi(id)
		p.shown[id] = s
	}
	return s
}

// forget forgets what was kept of conversations that are gone, when one with a number begins.
func (p *Proxy) forget(number int) {
	isThere := map[string]bool{}
	for _, c := range p.transport.Conversations() {
		isThere[c.ID] = true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.shown, func(id string, s *shown) bool { return !isThere[id] && s.number < number-mostBeginning })
}

// list returns the conversations for the page.
func (p *Proxy) list() (all []inspect.Conversation) {
	for _, c := range p.transport.Conversations() {
		s := p.keep(c.ID)
		all = append(all, inspect.Conversation{
			ID: s.number, Name: p.secrets.hide(p.nameOf(s, c)), History: c.History, Reports: &s.reports, Formats: []wire.Format{formats[c.Format]},
			About:   []string{p.secrets.hide(strings.Join(about(c), " · "))},
			Problem: p.secrets.hide(p.problem(c)),
		})
	}
	return all
}

var formats = map[string]wire.Format{wire.FormatAnthropic: wire.Anthropic{}, wire.FormatOpenAIChat: wire.OpenAIChat{}, wire.FormatOpenAIResponses: wire.OpenAIResponses{}, wire.FormatGemini: wire.Gemini{}}

// about returns what the page says of a conversation.
func about(c transport.Conversation) []string {
	requests := "1 request"
	if c.Requests != 1 {
		requests = fmt.Sprint(c.Requests, " requests")
	}
	said := "no answer yet"
	if c.Last.Status != 0 {
		said = fmt.Sprintf("answered %d", c.Last.Status)
	}
	return []string{cmp.Or(c.Program, "a program without a name"), cmp.Or(c.Model, "a model without a name"), requests, "the last at " + c.Used.Format("15:04:05"), said}
}

// problem says what is wrong with a conversation, or returns "".
func (p *Proxy) problem(c transport.Conversation) string {
	var all []string
	if c.Last.Error != "" {
		all = append(all, fmt.Sprintf("The provider refused the last request (%d %s): %s", c.Last.Status, http.StatusText(c.Last.Status), strings.TrimPrefix(c.Last.Error, "wire: the provider reports ")))
	}
	if c.History.Status().Window == 0 {
		all = append(all, "The window of the model is not known; name it with -window.")
	}
	return strings.Join(all, " ")
}

// nameOf returns the first question of the user. Programs often send what they know of the machine
// before it, in tags.
func (p *Proxy) nameOf(s *shown, c transport.Conversation) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.name == "" {
		for _, m := range c.First {
			s.name = cmp.Or(s.name, question(m))
		}
		for _, e := range c.History.Snapshot().All() {
			if s.name = cmp.Or(s.name, question(e.Message)); s.name != "" {
				break
			}
		}
	}
	return s.name
}

// question returns the text of a message of the user without what stands in tags.
func question(m convo.Message) string {
	if m.Role != convo.RoleUser {
		return ""
	}
	for _, part := range m.Parts {
		if text, ok := part.(convo.Text); ok {
			if line := strings.Join(strings.Fields(string(text)), " "); line != "" && line[0] != '<' {
				return line
			}
		}
	}
	return ""
}

// Summary says in lines what has happened, the conversations used last first.
func (p *Proxy) Summary() []string {
	const most = 10
	list := p.transport.Conversations()
	lines := []string{fmt.Sprintf("conversations: %d, requests: %d, compactions: %d, refused: %d", p.made.Load(), p.requests.Load(), p.compactions.Load(), p.refused.Load())}
	for _, c := range list[:min(len(list), most)] {
		s := p.keep(c.ID)
		line := fmt.Sprintf("%.60q (%s): %s", p.nameOf(s, c), c.Model, c.History.Status().String())
		if problem := p.problem(c); problem != "" {
			line += ". " + problem
		}
		lines = append(lines, p.secrets.hide(line))
	}
	return lines
}
