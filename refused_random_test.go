package convo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/wire"
)

// A refusal is what a provider in TestRefused_Random refuses, by a text that stands in it.
type refusal struct {
	text, message string
}

// A refusingTalk is a conversation with a provider that refuses some of its parts.
type refusingTalk struct {
	t       *testing.T
	rand    *rand.Rand
	name    string // of the provider
	h       *convo.History
	encoder wire.Encoder // of some of the requests
	rows    []convo.Message
	bad     []refusal
	pinned  map[convo.ID]bool
	told    []convo.Report
	n       int // makes names
	asked   int
	lies    bool // it names another place, always the same; what stands there may be cleared if that helps by chance
	lie     string
	echoes  bool // it writes what a tool has written in front
	forever bool // it refuses again whatever was cleared
}

func (r *refusingTalk) text(kind string) string {
	r.n++
	return fmt.Sprintf("%s number %d of this talk", kind, r.n)
}

// badOrNot returns the text of a part, and sometimes adds it to what is refused.
func (r *refusingTalk) badOrNot(text, message string) {
	if message != "" && r.rand.IntN(5) == 0 {
		r.bad = append(r.bad, refusal{text, message})
	}
}

func (r *refusingTalk) media() convo.Part {
	if r.rand.IntN(4) == 0 {
		m := convo.NewMedia("application/pdf", []byte("%PDF-1.7 "+r.text("document")))
		r.badOrNot(m.Data, map[string]string{"anthropic": "%s: The PDF specified is password protected.", "gemini": ""}[r.name])
		return m
	}
	m := image(r.text("image"))
	r.badOrNot(m.Data, "%s: Could not process image")
	return m
}

// answer returns an answer, and results of its calls.
func (r *refusingTalk) answer() (msgs []convo.Message) {
	m := convo.Message{Role: convo.RoleAssistant, Origin: convo.Origin{Format: r.format().name}}
	if r.rand.IntN(3) == 0 {
		text := r.text("sealed")
		sealed := convo.Reasoning{Text: "hm", Signature: text}
		message := "%s: Invalid `signature` in `thinking` block"
		if r.name == "responses" {
			sealed = convo.Reasoning{ID: fmt.Sprint("rs_", r.n), Encrypted: text}
			message = fmt.Sprintf("The encrypted content for item rs_%d could not be verified.", r.n)
		}
		if r.name == "anthropic" || r.name == "responses" {
			m.Parts = append(m.Parts, sealed)
			r.badOrNot(text, message)
		}
	}
	if r.name == "anthropic" && r.rand.IntN(3) == 0 {
		id, text := fmt.Sprintf("srvtoolu_%016d", r.n), r.text("found")
		m.Parts = append(m.Parts,
			convo.Opaque{Format: "anthropic", JSON: fmt.Sprintf(`{"type":"server_tool_use","id":%q,"name":"web_search","input":{"query":"x"}}`, id)},
			convo.Opaque{Format: "anthropic", JSON: fmt.Sprintf(`{"type":"web_search_tool_result","tool_use_id":%q,"content":[{"type":"web_search_result","encrypted_content":%q,"title":"t","url":"u"}]}`, id, text)})
		r.badOrNot(text, "%s: Invalid `encrypted_content` in `web_search_result` block")
	}
	m.Parts = append(m.Parts, convo.Text(r.text("said")))
	var calls []convo.ToolCall
	for range r.rand.IntN(3) {
		c := convo.ToolCall{ID: fmt.Sprint("call_", r.n), Name: "read", Arguments: fmt.Sprintf(`{"path":%q}`, r.text("path"))}
		if r.rand.IntN(4) == 0 && (r.name == "chat" || r.name == "responses") {
			c.Arguments = fmt.Sprintf(`{"path":%q}`, strings.Repeat("é", 300)+r.text("long"))
			r.badOrNot(c.Arguments, "Invalid '%s': string too long. Expected a string with maximum length 299, but got a string with length 400 instead.")
		}
		calls = append(calls, c)
		m.Parts = append(m.Parts, c)
	}
	msgs = append(msgs, m)
	for _, c := range calls {
		result := convo.ToolResult{CallID: c.ID, Name: c.Name, Parts: []convo.Part{convo.Text(r.text("result"))}}
		for range r.rand.IntN(3) {
			result.Parts = append(result.Parts, r.media())
		}
		msgs = append(msgs, convo.Message{Role: convo.RoleTool, Parts: []convo.Part{result}})
	}
	return msgs
}

// A grammar is a format, and how its provider names places.
type grammar struct {
	name   string
	format wire.Format
	path   func(steps []any) string
}

func (r *refusingTalk) format() grammar {
	return map[string]grammar{
		"anthropic": {wire.FormatAnthropic, wire.Anthropic{}, dotted},
		"chat":      {wire.FormatOpenAIChat, wire.OpenAIChat{}, bracketed},
		"responses": {wire.FormatOpenAIResponses, wire.OpenAIResponses{}, bracketed},
		"gemini":    {wire.FormatGemini, wire.Gemini{}, bracketed},
	}[r.name]
}

// append appends messages with keys.
func (r *refusingTalk) append(msgs ...convo.Message) {
	for i := range msgs {
		r.n++
		msgs[i].Key = fmt.Sprint("key ", r.n)
	}
	ids, err := r.h.Append(msgs...)
	require.NoError(r.t, err)
	r.rows = append(r.rows, msgs...)
	if r.rand.IntN(8) == 0 {
		require.NoError(r.t, r.h.Pin(ids))
	}
}

// send is the provider.
func (r *refusingTalk) send(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
	r.asked++
	g := r.format()
	var req wire.Request
	var err error
	if r.rand.IntN(2) == 0 {
		if r.encoder.Format == nil {
			r.encoder.Format = g.format
		}
		req, err = r.encoder.Encode(s)
		fresh, _ := g.format.Encode(s)
		require.Equal(r.t, string(fresh.Body()), string(req.Body()))
	} else {
		req, err = g.format.Encode(s)
	}
	require.NoError(r.t, err)
	var v any
	require.NoError(r.t, json.Unmarshal(req.Body(), &v))
	for _, bad := range r.bad {
		steps := stepsTo(v, bad.text)
		if steps == nil && !r.forever {
			continue
		}
		message := bad.message
		if strings.Contains(message, "%s") {
			path := g.path(append([]any{}, steps...))
			if r.lies {
				path = r.lie
			}
			message = fmt.Sprintf(message, path)
		}
		if r.echoes {
			message = "messages.1.content.0.tool_result.content: Input should be a valid string, got " + message
		}
		body, _ := json.Marshal(map[string]any{"error": map[string]any{"type": "invalid_request_error", "message": message}})
		return convo.Reply{}, errors.New([]string{"", "400 Bad Request: ", `POST "https://example.com/v1": 400 Bad Request `}[r.rand.IntN(3)] + string(body))
	}
	return convo.Reply{Messages: r.answer()[:1]}, nil
}

// isBad reports whether a part, or its partner, is refused.
func (r *refusingTalk) isBad(p convo.Part, m convo.Message) bool {
	for _, bad := range r.bad {
		switch p := p.(type) {
		case convo.Media:
			if p.Data == bad.text {
				return true
			}
		case convo.ToolCall:
			if p.Arguments == bad.text {
				return true
			}
		}
		if o, ok := p.(convo.Opaque); ok {
			if strings.Contains(o.JSON, bad.text) {
				return true
			}
			for _, q := range m.Parts {
				if partner, ok := q.(convo.Opaque); ok && strings.Contains(partner.JSON, bad.text) {
					var a, b struct{ ID, Tool_use_id string }
					_ = json.Unmarshal([]byte(o.JSON), &a)
					_ = json.Unmarshal([]byte(partner.JSON), &b)
					if a.ID == b.Tool_use_id {
						return true
					}
				}
			}
		}
	}
	return false
}

// check compares the view with the rows: what differs is refused, and not pinned.
func (r *refusingTalk) check() (cleared int) {
	same := func(was, now convo.Part, m convo.Message, id convo.ID) {
		if assert.ObjectsAreEqual(was, now) {
			return
		}
		cleared++
		assert.True(r.t, r.lies || r.isBad(was, m), "%T was cleared: %v", was, now)
		assert.False(r.t, r.pinned[id], "it was pinned")
		_, isText := was.(convo.Text)
		assert.False(r.t, isText, "a text was cleared")
	}
	i := 0
	for _, e := range r.h.Snapshot().All() {
		row := r.rows[i]
		i++
		require.Equal(r.t, row.Key, e.Message.Key)
		require.Len(r.t, e.Message.Parts, len(row.Parts))
		for k, p := range row.Parts {
			was, isResult := p.(convo.ToolResult)
			if !isResult {
				same(p, e.Message.Parts[k], row, e.ID)
				continue
			}
			now := e.Message.Parts[k].(convo.ToolResult)
			require.Len(r.t, now.Parts, len(was.Parts))
			for j := range was.Parts {
				same(was.Parts[j], now.Parts[j], row, e.ID)
			}
		}
	}
	assert.Equal(r.t, i, len(r.rows))
	return cleared
}

// live is one conversation.
func (r *refusingTalk) live() {
	if r.lies && (r.name == "gemini" || r.name == "chat") {
		r.lies = false // media of results move when others are cleared, so that another part stands at the same place
	}
	for range 2 + r.rand.IntN(5) {
		m := convo.User(r.text("asked"))
		for range r.rand.IntN(3) {
			m.Parts = append(m.Parts, r.media())
		}
		r.append(m)
		r.append(r.answer()...)
	}
	r.append(convo.User("go on"))
	for _, e := range r.h.Snapshot().All() {
		r.pinned[e.ID] = e.Pinned
	}
	before := r.h.Snapshot().Messages()
	refusedPinned := false
	for range 20 {
		r.asked = 0
		reply, err := r.h.Do(r.t.Context(), r.send)
		require.LessOrEqual(r.t, r.asked, 4)
		if err == nil {
			for i := range reply.Messages {
				reply.Messages[i].Key = ""
			}
			last, _ := r.h.Snapshot().At(r.h.Snapshot().Len() - 1)
			r.rows = append(r.rows, last.Message)
			r.check()
			r.restart()
			return
		}
		r.check()
		if strings.Contains(err.Error(), "Unpin it first") {
			refusedPinned = true
			break
		}
		if r.lies || r.echoes || r.forever {
			if !slices.ContainsFunc(r.told, func(r convo.Report) bool { return r.Outcome == convo.OutcomeApplied }) {
				assert.Equal(r.t, before, r.h.Snapshot().Messages())
			}
			return
		}
	}
	assert.True(r.t, refusedPinned || r.lies || r.echoes || r.forever, "it is stuck: %v", r.bad)
}

// restart makes the History again from its Decisions and the rows.
func (r *refusingTalk) restart() {
	g := r.format()
	body := func(h *convo.History) string {
		req, err := g.format.Encode(h.Snapshot())
		require.NoError(r.t, err)
		return string(req.Body())
	}
	data, err := r.h.Decisions()
	require.NoError(r.t, err)
	d, err := convo.ReadDecisions(data)
	require.NoError(r.t, err)
	again, err := convo.Resume(d, rowsOf(r.rows...), nil)
	require.NoError(r.t, err)
	assert.Equal(r.t, body(r.h), body(again))
	reports := slices.Clone(r.told)
	slices.Reverse(reports)
	for _, report := range reports {
		if report.Outcome == convo.OutcomeApplied && len(report.Refused) > 0 {
			require.NoError(r.t, r.h.Undo(report))
		}
	}
	assert.Zero(r.t, r.check())
}

// A provider refuses random parts in the words that are published: what it names is cleared, and
// nothing else, and the conversation goes on.
func TestRefused_Random(t *testing.T) {
	for seed := range long.Or(uint64(300), 100_000) {
		rnd := rand.New(rand.NewPCG(seed, 48))
		r := &refusingTalk{t: t, rand: rnd, name: []string{"anthropic", "chat", "responses", "gemini"}[seed%4], pinned: make(map[convo.ID]bool)}
		switch rnd.IntN(8) {
		case 0:
			r.lies = true
			r.lie = r.format().path([]any{[]string{"messages", "input", "contents"}[rnd.IntN(3)], rnd.IntN(6), []string{"content", "parts"}[rnd.IntN(2)], rnd.IntN(3)})
		case 1:
			r.echoes = true
		case 2:
			r.forever = true
		}
		r.h = historyOf(t, &convo.Options{OnCompaction: func(report convo.Report) { r.told = append(r.told, report) }, Key: func(convo.Message) string { r.n++; return fmt.Sprint("key ", r.n) }})
		r.live()
		if t.Failed() {
			t.Fatalf("seed %d, %s", seed, r.name)
		}
	}
}
