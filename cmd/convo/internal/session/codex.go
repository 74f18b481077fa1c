package session

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// The rollout files of Codex CLI, from versions 0.20 to 0.60 and later as far as the same
// records are written. Source: openai/codex, codex-rs/protocol/src/protocol.rs and models.rs,
// codex-rs/history/src/lib.rs at c9b19de.
//
// A line is {timestamp, type, payload}. The conversation is in the items of the type
// response_item; the events repeat them, and only their usage and rollbacks are read. A line
// of the type compacted holds the list that replaces all before it. In older files a line is
// an item.

// codexKinds are the types of lines.
var codexKinds = []string{"session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state", "token_usage_record"}

// A codexReader holds what was read of a file.
type codexReader struct {
	in     *input
	s      *Session
	items  itemReader
	events []Event
	turns  []int           // for each turn on the branch, its first event
	users  []convo.Message // what the user said, for compactions that do not record their view
	total  int             // tokens of the last report of usage
	answer int             // event of the newest answer that has no usage, or -1
	time   time.Time       // of the items
	meta   bool
}

func readCodex(in *input) (*Session, error) {
	r := &codexReader{in: in, s: &Session{Format: Codex}, answer: -1}
	r.items = itemReader{counts: &r.s.Counts, names: make(map[string]string)}
	for all, err := range in.records(&r.s.Counts) {
		if err == nil {
			err = r.record(all)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := r.flush(); err != nil {
		return nil, err
	}
	r.s.Events = normalize(r.events, &r.s.Counts)
	return r.s, nil
}

func (r *codexReader) record(all object) error {
	payload := all.object("payload")
	if t := all.time("timestamp"); !t.IsZero() {
		r.time = t
	}
	switch kind := all.text("type"); {
	case all["record_type"] != nil:
	case all["payload"] == nil:
		if kind == "" && all["id"] != nil {
			r.header(all)
			return nil
		}
		return r.item(all, nil) // an older version
	case kind == "session_meta":
		r.header(payload)
	case kind == "turn_context":
		if model := payload.text("model"); model != "" && model != r.items.model {
			if err := r.flush(); err != nil {
				return err
			}
			r.items.model = model
		}
	case kind == "response_item":
		return r.item(payload, all["payload"])
	case kind == "event_msg":
		return r.event(payload)
	case kind == "compacted":
		return r.compacted(payload)
	case slices.Contains(codexKinds, kind):
	default:
		r.s.Counts.Unknown++
	}
	return nil
}

// header reads the first record. A fork repeats that of its parent after its own.
func (r *codexReader) header(meta object) {
	if meta == nil || r.meta {
		return
	}
	r.meta = true
	s := r.s
	s.ID, s.Version = meta.text("id"), meta.text("cli_version")
	s.Parent = meta.text("forked_from_id")
	if from := meta.object("source").object("subagent"); from != nil && s.Parent == "" {
		s.Parent = cmp.Or(from.text("parent_thread_id"), from.object("thread_spawn").text("parent_thread_id"))
	}
	if text := cmp.Or(meta.object("base_instructions").text("text"), meta.text("base_instructions"), meta.text("instructions")); text != "" {
		s.System = []convo.Message{convo.System(text)}
	}
	for _, raw := range meta.list("dynamic_tools") {
		if o := objectOf(raw); o.text("name") != "" {
			schema := o["parameters"]
			for _, key := range []string{"inputSchema", "input_schema"} {
				if o.kind(key) == '{' {
					schema = o[key]
				}
			}
			s.Tools = append(s.Tools, functionTool(o, schema))
		}
	}
}

// item reads an item of the conversation.
func (r *codexReader) item(all object, raw json.RawMessage) error {
	kind := all.text("type")
	switch {
	case all == nil, kind == "" && all["role"] == nil:
		r.s.Counts.Unknown++
		return nil
	case kind == "ghost_snapshot", kind == "other":
		return nil // not sent
	case kind != "" && !slices.Contains(itemKinds, kind):
		r.s.Counts.Unknown++
		return nil
	}
	if r.items.isOutput(all) {
		return r.in.hold(r.items.add(all, raw))
	}
	if err := r.flush(); err != nil {
		return err
	}
	msgs := markContext(r.items.input(all, raw))
	for _, m := range msgs {
		if m.Role == convo.RoleUser && m.Meta == "" {
			r.turns = append(r.turns, len(r.events))
			r.users = append(r.users, m)
		}
	}
	if len(msgs) > 0 {
		r.events = append(r.events, Event{Time: r.time, Messages: msgs})
	}
	return r.in.hold(sizeOf(msgs))
}

// contextStarts are the beginnings of messages that the program puts in as the user.
var contextStarts = []string{"<environment_context>", "<user_instructions>", "# AGENTS.md", "<INSTRUCTIONS>", "<turn_aborted>", "<skill>", "<user_shell_command>", "<subagent_notification>"}

// isContext reports whether the program put in a message of the user.
func isContext(text string) bool {
	text = strings.TrimSpace(text)
	return slices.ContainsFunc(contextStarts, func(start string) bool { return strings.HasPrefix(text, start) })
}

// markContext marks the messages of the user that the program put in.
func markContext(msgs []convo.Message) []convo.Message {
	for i := range msgs {
		if m := &msgs[i]; m.Role == convo.RoleUser && isContext(m.Text()) {
			m.Meta = convo.HostMeta
		}
	}
	return msgs
}

// flush adds the answer that was read.
func (r *codexReader) flush() error {
	msgs := r.items.flush()
	for i := range msgs {
		r.answer = len(r.events)
		r.events = append(r.events, Event{Time: r.time, Messages: msgs[i : i+1 : i+1], Model: r.items.model})
	}
	return nil
}

// event reads an event of the program.
func (r *codexReader) event(e object) error {
	switch e.text("type") {
	case "token_count":
		if err := r.flush(); err != nil {
			return err
		}
		info := e.object("info")
		r.window(info)
		r.usage(info)
	case "thread_rolled_back":
		if err := r.flush(); err != nil {
			return err
		}
		r.rollBack(e.number("num_turns"))
	case "task_started", "turn_started":
		r.window(e)
	case "":
		r.s.Counts.Unknown++
	}
	return nil
}

func (r *codexReader) window(o object) {
	if n := o.tokens("model_context_window"); n > 0 {
		r.s.Window = n
	}
}

// usage reads the usage of the newest answer. The program repeats its last report when
// something else changes.
func (r *codexReader) usage(info object) {
	last := info.object("last_token_usage")
	if last == nil {
		return
	}
	if total := info.object("total_token_usage"); total != nil {
		sum := total.number("total_tokens")
		if sum > 0 && sum == r.total {
			return
		}
		r.total = sum
	}
	u := convo.Usage{
		Input: last.number("input_tokens"), CacheRead: last.number("cached_input_tokens"), CacheWrite: last.number("cache_write_input_tokens"),
		Output: last.number("output_tokens"), Reasoning: last.number("reasoning_output_tokens"),
	}
	if u == (convo.Usage{}) {
		return
	}
	if r.answer < 0 || !isValid(u) {
		r.s.Counts.Usages++
		return
	}
	r.events[r.answer].Usage = &u
	r.answer = -1
}

// rollBack takes turns away, from what the user said on.
func (r *codexReader) rollBack(turns int) {
	n := len(r.turns)
	if turns <= 0 || n == 0 {
		return
	}
	n -= min(turns, n)
	from := r.turns[n]
	for _, e := range r.events[from:] {
		r.s.Counts.Dropped += len(e.Messages)
	}
	clear(r.events[from:])
	r.events, r.turns, r.users = r.events[:from], r.turns[:n], r.users[:min(n, len(r.users))]
	r.answer = -1
}

// compacted reads a compaction.
func (r *codexReader) compacted(payload object) error {
	if payload == nil {
		r.s.Counts.Unknown++
		return nil
	}
	if err := r.flush(); err != nil {
		return err
	}
	r.answer = -1
	c := &Compaction{Summary: payload.text("message")}
	var view []convo.Message
	if list := payload.list("replacement_history"); payload.kind("replacement_history") == '[' {
		items := itemReader{counts: new(Counts), names: make(map[string]string), model: r.items.model}
		for _, raw := range list {
			o := objectOf(raw)
			if o == nil {
				continue
			}
			if o.has("encrypted_content") && !o.is("type", "reasoning") {
				c.Hidden = true
			}
			if items.isOutput(o) {
				items.add(o, raw)
				continue
			}
			view = append(view, items.flush()...)
			view = append(view, markContext(items.input(o, raw))...)
		}
		view = append(view, items.flush()...)
	} else {
		view = slices.Clone(r.users)
		if c.Summary != "" {
			view = append(view, convo.User(c.Summary))
		}
		c.Hidden = c.Summary == ""
	}
	if err := r.in.hold(sizeOfView(view) + len(payload["replacement_history"])); err != nil {
		return err
	}
	c.View = normalView(view)
	r.events = append(r.events, Event{Time: r.time, Compaction: c})
	return nil
}

// An itemReader reads items of the Responses API. The output of the model between two
// inputs is one message.
type itemReader struct {
	counts *Counts
	model  string
	names  map[string]string // of tools, by the ID of the call
	output bytes.Buffer      // items of the answer, with commas
	n      int               // how many
}

// isOutput reports whether an item is from the model. The output of a tool other than a
// function belongs to the answer that it is in.
func (r *itemReader) isOutput(item object) bool {
	switch kind := item.text("type"); kind {
	case "", "message":
		return item.is("role", "assistant")
	case "function_call_output", "custom_tool_call_output", "mcp_approval_response":
		return false
	default:
		return r.n > 0 || !strings.HasSuffix(kind, "_output")
	}
}

// add adds an item of the model to the answer, and returns its size. raw is its JSON, or
// nil if the item must be written again.
func (r *itemReader) add(item object, raw json.RawMessage) int {
	if id := item.text("call_id"); id != "" {
		name := item.text("name")
		if item.is("type", "local_shell_call") { // the result is that of a function
			name = "local_shell"
			item = object{"type": quote("function_call"), "call_id": quote(id), "name": quote(name), "arguments": quote(string(item["action"]))}
			raw = nil
		}
		r.names[id] = name
	}
	if raw == nil {
		raw = item.document()
	}
	if _, err := (wire.OpenAIResponses{}).Decode(raw); err != nil {
		r.counts.Unknown++
		return 0
	}
	if r.n > 0 {
		r.output.WriteByte(',')
	}
	r.n++
	r.output.Write(raw)
	return len(raw)
}

// flush returns the answer. Texts that follow each other stay separate messages.
func (r *itemReader) flush() []convo.Message {
	if r.n == 0 {
		return nil
	}
	t, err := wire.OpenAIResponses{Model: r.model}.Decode([]byte("[" + r.output.String() + "]"))
	if err != nil {
		r.counts.Unknown += r.n
	}
	r.counts.Merged += max(r.n-len(t.Messages), 0)
	r.n = 0
	if r.output.Reset(); r.output.Cap() > 1<<20 {
		r.output = bytes.Buffer{}
	}
	return t.Messages
}

// input returns the messages of an item that is not from the model. Flush must be called
// before.
func (r *itemReader) input(item object, raw json.RawMessage) []convo.Message {
	if raw == nil {
		raw = item.document()
	}
	if strings.HasSuffix(item.text("type"), "_call_output") && item.text("call_id") != "" {
		// A result is read together with a call.
		id := item.text("call_id")
		if _, ok := r.names[id]; ok && !item.is("type", "function_call_output") && !item.is("type", "custom_tool_call_output") {
			item["type"] = quote("function_call_output")
			raw = item.document()
		}
		call := object{"type": quote("function_call"), "call_id": quote(id), "name": quote(cmp.Or(r.names[id], "unknown")), "arguments": quote("{}")}
		pair := slices.Concat([]byte("["), call.document(), []byte(","), raw, []byte("]"))
		t, err := wire.OpenAIResponses{}.Decode(pair)
		if err != nil {
			r.counts.Unknown++
			return nil
		}
		for _, m := range t.Messages {
			if m.Role == convo.RoleTool {
				return []convo.Message{m}
			}
		}
		r.counts.Unknown++
		return nil
	}
	t, err := wire.OpenAIResponses{}.Decode(raw)
	if err != nil {
		r.counts.Unknown++
		return nil
	}
	return t.Messages
}

// functionTool returns a tool with a name, a description and a schema.
func functionTool(o object, schema json.RawMessage) convo.Tool {
	t := convo.Tool{Name: o.text("name"), Description: o.text("description")}
	if kindOf(schema) == '{' {
		t.Schema = string(schema)
	}
	return t
}
