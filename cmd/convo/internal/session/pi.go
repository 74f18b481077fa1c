package session

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/seed-c1b73e60/convo"
)

// The session files of pi and of kit, version 3. They are nearly the same: pi writes names
// in camelCase and kit in snake_case, and messages differ. Source: badlogic/pi-mono at
// 83378aa, packages/coding-agent/docs/session.md; mark3labs/kit at a374387,
// internal/session/entry.go, tree_manager.go and internal/message/content.go.
//
// A file is a tree of entries, one for each line, after a head. The live branch is the path
// from the last entry to the root. Older files of pi, version 1, have no IDs; each entry follows
// the one in the line before it.

// piSilent are entries that are not part of the conversation as it is sent.
var piSilent = []string{"custom", "label", "session_info", "thinking_level_change", "model_change", "extension_data", "incomplete_output", "ephemeral"}

// A piRecord is an entry of the tree.
type piRecord struct {
	parent  int // index of the entry before it on its branch, or -1
	msgs    []convo.Message
	usage   *convo.Usage
	model   string
	time    time.Time
	compact *Compaction
	kept    int // index of the first entry that a compaction kept, or -1
	live    bool
}

type piReader struct {
	in      *input
	s       *Session
	records []piRecord
	byID    map[string]int
	lines   []int  // for each line, the index of its entry, or -1
	model   string // of a model_change
}

func readPi(in *input) (*Session, error) {
	r := &piReader{in: in, s: &Session{Format: Pi}, byID: make(map[string]int)}
	for all, err := range in.records(&r.s.Counts) {
		if err == nil {
			err = r.line(all)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := r.finish(); err != nil {
		return nil, err
	}
	return r.s, nil
}

// either returns the text of the first of two fields that has one.
func (o object) either(a, b string) string { return cmp.Or(o.text(a), o.text(b)) }

// line reads a line that is an object.
func (r *piReader) line(all object) error {
	entry := len(r.records)
	err := r.record(all)
	if entry == len(r.records) {
		entry = -1
	}
	r.lines = append(r.lines, entry)
	return err
}

func (r *piReader) record(all object) error {
	s := r.s
	kind := all.text("type")
	switch kind {
	case "session":
		r.header(all)
		return nil
	case "system_prompt":
		s.Format = Kit
		if text := all.text("content"); text != "" {
			s.System = []convo.Message{convo.System(text)}
		}
		return nil
	case "session_info":
		s.Title = cmp.Or(all.text("name"), s.Title)
	case "model_change":
		r.model = all.either("modelId", "model_id")
	}
	if all["parent_id"] != nil || all["parts"] != nil {
		s.Format = Kit
	}
	id := all.text("id")
	if _, twice := r.byID[id]; twice && id != "" {
		s.Counts.Dropped++
		return nil
	}
	rec := piRecord{parent: r.parent(all, id), time: all.time("timestamp"), kept: -1}
	switch {
	case kind == "message" && all.kind("message") == '{':
		r.piMessage(all.object("message"), &rec)
	case kind == "message" && all["role"] != nil:
		r.kitMessage(all, &rec)
	case kind == "compaction":
		rec.compact = &Compaction{
			Summary: all.text("summary"),
			Before:  max(all.tokens("tokensBefore"), all.tokens("tokens_before")),
			After:   max(all.tokens("tokens_after"), all.tokens("tokensAfter")),
		}
		rec.kept = r.firstKept(all)
	case kind == "branch_summary":
		if text := all.text("summary"); text != "" {
			rec.msgs = []convo.Message{convo.User(text)}
		}
	case kind == "custom_message":
		rec.msgs = hosts(piContent(convo.RoleUser, all["content"]))
	case slices.Contains(piSilent, kind):
	default:
		s.Counts.Unknown++
	}
	i := len(r.records)
	r.records = append(r.records, rec)
	if id != "" {
		r.byID[id] = i
	}
	return r.in.hold(128 + 2*len(id) + sizeOf(rec.msgs))
}

// firstKept returns the index of the first entry that a compaction kept, or -1. It is named by
// its ID, and in older files of pi by the number of its line, from 0.
func (r *piReader) firstKept(all object) int {
	if i, ok := r.byID[all.either("firstKeptEntryId", "first_kept_entry_id")]; ok {
		return i
	}
	if n := all.number("firstKeptEntryIndex"); n > 0 && n < len(r.lines) {
		return r.lines[n]
	}
	return -1
}

func (r *piReader) header(all object) {
	s := r.s
	if s.ID != "" {
		return
	}
	s.ID = all.text("id")
	if v := all["version"]; v != nil {
		s.Version = cmp.Or(textOf(v), string(v[:min(len(v), 16)]))
	}
	s.Parent = cmp.Or(all.text("parentSession"), all.text("branchedFrom"))
	if parent := all.either("parent_session_id", "parent_session"); parent != "" {
		s.Parent, s.Format = parent, Kit
	}
	r.model = all.text("modelId")
}

// parent returns the index of the entry before a new one on its branch. It is always less
// than that of the new one, so that there is no cycle. A parent that was not written before
// is replaced by the entry in the line before.
func (r *piReader) parent(all object, id string) int {
	prev := len(r.records) - 1
	parent := all.either("parentId", "parent_id")
	if parent == "" {
		if id == "" || r.records == nil {
			return prev
		}
		return -1
	}
	if i, ok := r.byID[parent]; ok {
		return i
	}
	return prev
}

// piMessage reads a message of pi.
func (r *piReader) piMessage(m object, rec *piRecord) {
	switch role := m.text("role"); role {
	case "user":
		rec.msgs = piContent(convo.RoleUser, m["content"])
	case "custom", "hookMessage":
		rec.msgs = hosts(piContent(convo.RoleUser, m["content"]))
	case "assistant":
		rec.msgs = piContent(convo.RoleAssistant, m["content"])
		rec.model = cmp.Or(m.text("model"), r.model)
		rec.msgs[0].Origin.Model = rec.model
		r.usage(m.object("usage"), rec)
	case "toolResult":
		content := piContent(convo.RoleUser, m["content"])[0]
		rec.msgs = []convo.Message{{Role: convo.RoleTool, Parts: []convo.Part{convo.ToolResult{
			CallID: m.text("toolCallId"), Name: m.text("toolName"), Parts: content.Parts, IsError: m.flag("isError"),
		}}}}
	case "bashExecution":
		if !m.flag("excludeFromContext") {
			rec.msgs = hosts([]convo.Message{convo.User("Ran `" + m.text("command") + "`\n" + m.text("output"))})
		}
	case "branchSummary", "compactionSummary":
		if text := m.text("summary"); text != "" {
			rec.msgs = []convo.Message{convo.User(text)}
		}
	default:
		r.s.Counts.Unknown++
	}
}

// usage reads the usage of an answer. Cached tokens are not part of its input.
func (r *piReader) usage(u object, rec *piRecord) {
	if u == nil {
		return
	}
	read, write := u.number("cacheRead"), u.number("cacheWrite")
	usage := convo.Usage{Input: sum(u.number("input"), read, write), CacheRead: read, CacheWrite: write, Output: u.number("output")}
	if usage != (convo.Usage{}) {
		rec.usage = &usage
	}
}

// piContent returns a message with the content of pi: a text, or a list of blocks.
func piContent(role convo.Role, raw json.RawMessage) []convo.Message {
	m := convo.Message{Role: role}
	if text := textOf(raw); text != "" {
		m.Parts = []convo.Part{convo.Text(text)}
	}
	for _, raw := range listOf(raw) {
		b := objectOf(raw)
		switch b.text("type") {
		case "text":
			m.Parts = append(m.Parts, convo.Text(b.text("text")))
		case "thinking":
			m.Parts = append(m.Parts, convo.Reasoning{Text: b.text("thinking"), Signature: b.text("thinkingSignature")})
		case "toolCall":
			m.Parts = append(m.Parts, convo.ToolCall{ID: b.text("id"), Name: b.text("name"), Arguments: string(b["arguments"])})
		case "image":
			m.Parts = append(m.Parts, convo.Media{MIME: b.text("mimeType"), Data: b.text("data")})
		}
	}
	return []convo.Message{m}
}

// kitMessage reads a message of kit.
func (r *piReader) kitMessage(all object, rec *piRecord) {
	m := convo.Message{Role: convo.Role(all.text("role"))}
	switch m.Role {
	case convo.RoleAssistant:
		rec.model = cmp.Or(all.text("model"), r.model)
		m.Origin.Model = rec.model
	case convo.RoleUser, convo.RoleTool, convo.RoleSystem:
	default:
		r.s.Counts.Unknown++
		return
	}
	for _, raw := range all.list("parts") {
		part := objectOf(raw)
		data := part.object("data")
		switch part.text("type") {
		case "text":
			m.Parts = append(m.Parts, convo.Text(data.text("text")))
		case "reasoning":
			m.Parts = append(m.Parts, convo.Reasoning{Text: data.text("thinking"), Signature: data.text("signature")})
		case "tool_call":
			m.Parts = append(m.Parts, convo.ToolCall{ID: data.text("id"), Name: data.text("name"), Arguments: data.text("input")})
		case "tool_result":
			result := convo.ToolResult{CallID: data.text("tool_call_id"), Name: data.text("name"), IsError: data.flag("is_error")}
			if text := data.text("content"); text != "" {
				result.Parts = []convo.Part{convo.Text(text)}
			}
			m.Parts = append(m.Parts, result)
		case "image":
			m.Parts = append(m.Parts, convo.Media{MIME: data.text("media_type"), Data: data.text("data")})
		}
	}
	rec.msgs = []convo.Message{m}
}

func (r *piReader) finish() error {
	s := r.s
	for i := len(r.records) - 1; i >= 0; i = r.records[i].parent {
		r.records[i].live = true
	}
	var events []Event
	var said []convo.Message // on the live branch so far
	var at []int             // for each entry, how much was said before it
	for i := range r.records {
		rec := &r.records[i]
		at = append(at, len(said))
		switch {
		case !rec.live:
			s.Counts.Dropped += len(rec.msgs)
		case rec.compact != nil:
			c := rec.compact
			var view []convo.Message
			if c.Summary != "" {
				view = append(view, convo.User(c.Summary))
			}
			if rec.kept >= 0 && r.records[rec.kept].live {
				kept := said[at[rec.kept]:]
				if err := r.in.hold(sizeOfView(kept)); err != nil {
					return err
				}
				view = append(view, kept...)
			}
			c.View, c.Hidden = normalView(view), c.Summary == ""
			events = append(events, Event{Time: rec.time, Compaction: c})
		case len(rec.msgs) > 0:
			said = append(said, rec.msgs...)
			events = append(events, Event{Time: rec.time, Messages: slices.Clone(rec.msgs), Usage: rec.usage, Model: rec.model})
		}
	}
	r.records, r.byID, r.lines = nil, nil, nil
	s.Events = normalize(events, &s.Counts)
	return nil
}
