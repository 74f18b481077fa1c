package session

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// The session files of Claude Code, versions 1.0 to 2.1. The program is not open source;
// the format is known from issues 66947, 92089, 48936, 22526 and 43053 of
// anthropics/claude-code and from programs that read the files: meawoppl/rust-code-agent-sdks
// issue 188, titeya/dms-claudecode issue 52, ccusage/ccusage issue 985.
//
// A file is a tree of records, one for each line. A reply is one record for each of its
// blocks, all with the same message.id and its usage; the last record has the right usage.
// The live branch is the path from the last message to the root. After a compaction, a
// record without a parent says so, and the next message of the user is the summary.

// silentKinds are records that are not part of the conversation as it is sent, or whose
// form as it was sent is not recorded.
var silentKinds = append(slices.Clone(claudeKinds), "summary", "progress", "attachment", "system", "started", "result", "content-replacement", "speculation-accept", "marble-origami-commit", "marble-origami-snapshot", "attribution-snapshot", "agent-setting", "task-summary", "context-collapse")

// A claudeRecord is a record with a place in the tree, or one without a uuid that holds a
// message.
type claudeRecord struct {
	parent  int // index of the record before it on its branch, or -1
	msgs    []convo.Message
	usage   *convo.Usage
	id      string // of the reply
	model   string
	time    time.Time
	compact *claudeBoundary
	near    int  // index of the boundary that comes before it, without a message between them, or -1
	side    bool // of a subagent
	summary bool // the summary of a compaction
	live    bool
}

// A claudeBoundary is the mark of a compaction.
type claudeBoundary struct {
	Compaction
	summary    int   // index of the record with the summary, or -1
	head, tail int   // of the messages that were kept, or -1
	kept       []int // the same as a list
}

// A claudeReader holds what was read of a file.
type claudeReader struct {
	in      *input
	s       *Session
	records []claudeRecord
	byUUID  map[string]int
	prev    [2]int // newest record of the main conversation, and of subagents
	mains   int    // messages of the main conversation
	custom  bool   // the user chose the title
	agent   string // the ID of a subagent
	model   string
}

func readClaude(in *input) (*Session, error) {
	r := &claudeReader{in: in, s: &Session{Format: ClaudeCode}, byUUID: make(map[string]int), prev: [2]int{-1, -1}}
	for all, err := range in.records(&r.s.Counts) {
		if err == nil {
			err = r.record(all)
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

func (r *claudeReader) record(all object) error {
	s := r.s
	if id := all["sessionId"]; kindOf(id) == '"' && string(id[1:len(id)-1]) != s.ID {
		s.ID = textOf(id)
	}
	if v := all["version"]; kindOf(v) == '"' && string(v[1:len(v)-1]) != s.Version {
		s.Version = textOf(v)
	}
	if from := all.object("forkedFrom"); from != nil {
		s.Parent = cmp.Or(from.text("sessionId"), s.Parent)
	}
	kind := all.text("type")
	switch kind {
	case "user", "assistant":
	case "system":
	case "summary":
		r.title(all.text("summary"), false)
		return nil
	case "ai-title", "custom-title":
		r.title(cmp.Or(all.text("title"), all.text("customTitle"), all.text("aiTitle")), kind == "custom-title")
		return nil
	default:
		if !slices.Contains(silentKinds, kind) {
			s.Counts.Unknown++
		}
	}
	return r.place(all, kind)
}

func (r *claudeReader) title(title string, custom bool) {
	if title != "" && (custom || !r.custom) {
		r.s.Title, r.custom = title, custom
	}
}

// place adds a record to the tree.
func (r *claudeReader) place(all object, kind string) error {
	uuid := all.text("uuid")
	isMessage := kind == "user" || kind == "assistant"
	if uuid == "" && !isMessage {
		return nil
	}
	if _, twice := r.byUUID[uuid]; twice && uuid != "" {
		if isMessage {
			r.s.Counts.Dropped++
		}
		return nil
	}
	rec := claudeRecord{side: all.flag("isSidechain"), time: all.time("timestamp")}
	side := 0
	if rec.side {
		side = 1
		r.agent = cmp.Or(r.agent, all.text("agentId"))
	}
	if kind == "system" && all.is("subtype", "compact_boundary") && !rec.side {
		if err := r.boundary(all, &rec); err != nil {
			return err
		}
	}
	rec.summary = all.flag("isCompactSummary")
	rec.parent = r.parent(all, &rec, r.prev[side])
	if isMessage && !(kind == "assistant" && all.flag("isApiErrorMessage")) {
		if !rec.side {
			r.mains++
		}
		if rec.side && r.mains > 0 {
			r.s.Counts.Sidechains++
			rec.msgs = nil
		} else if err := r.message(all["message"], &rec); err != nil {
			return err
		}
		if all.flag("isMeta") {
			hosts(rec.msgs)
		}
	} else if isMessage {
		r.s.Counts.Dropped++ // made by the program, and not sent
	}
	i := len(r.records)
	rec.near = r.near(rec.parent)
	if b := rec.near; b >= 0 && rec.summary && len(rec.msgs) > 0 && r.records[b].compact.summary < 0 {
		r.records[b].compact.summary = i
	}
	r.records = append(r.records, rec)
	if uuid != "" {
		r.byUUID[uuid] = i
	}
	r.prev[side] = i
	return r.in.hold(160 + 2*len(uuid))
}

// parent returns the index of the record before rec on its branch. It is always less than
// that of rec, so that there is no cycle. A parent that was not written before is replaced
// by prev, the record before rec in the file.
func (r *claudeReader) parent(all object, rec *claudeRecord, prev int) int {
	id := all.text("parentUuid")
	if id == "" {
		switch {
		case rec.compact != nil:
			id = all.text("logicalParentUuid")
		case rec.summary: // of a version that wrote no boundary
		case all["parentUuid"] != nil:
			return -1
		}
	}
	if i, ok := r.byUUID[id]; ok && id != "" && (r.records[i].side == rec.side) {
		return i
	}
	return prev
}

// message reads the message of a record.
func (r *claudeReader) message(raw json.RawMessage, rec *claudeRecord) error {
	m := objectOf(raw)
	if m == nil {
		r.s.Counts.Unknown++
		return nil
	}
	content := m["content"]
	if !isThere(content) {
		content = json.RawMessage("[]")
	}
	model := m.text("model")
	if model == "<synthetic>" { // text of the program
		model = ""
	}
	message := object{"role": m["role"], "content": content}.document()
	t, err := wire.Anthropic{}.Decode(asRequest(wire.FormatAnthropic, message, model))
	if err != nil {
		r.s.Counts.Unknown++
		return nil
	}
	rec.msgs = t.Messages
	if m.is("role", "assistant") {
		rec.id = m.text("id")
		if model != r.model {
			r.model = model
		}
		rec.model = r.model
		if m.kind("usage") == '{' {
			t, err := wire.Anthropic{}.Decode(object{"usage": m["usage"]}.document())
			if u := t.Usage; err == nil && u != (convo.Usage{}) {
				rec.usage = &u
			}
		}
	}
	return r.in.hold(sizeOf(rec.msgs))
}

// boundary reads the mark of a compaction.
func (r *claudeReader) boundary(all object, rec *claudeRecord) error {
	meta := all.object("compactMetadata")
	b := &claudeBoundary{Compaction: Compaction{Trigger: meta.text("trigger"), Before: meta.tokens("preTokens"), After: meta.tokens("postTokens")}, summary: -1, head: -1, tail: -1}
	rec.compact = b
	if kept := meta.object("preservedSegment"); kept != nil {
		b.head, b.tail = r.index(kept["headUuid"]), r.index(kept["tailUuid"])
	}
	list := meta.list("preservedMessages")
	if kept := meta.object("preservedMessages"); kept != nil {
		list = kept.list("uuids")
	}
	for _, raw := range list {
		if o := objectOf(raw); o != nil {
			raw = o["uuid"]
		}
		if i := r.index(raw); i >= 0 {
			b.kept = append(b.kept, i)
		}
	}
	return r.in.hold(128 + 8*len(b.kept))
}

// index returns the index of the record with a uuid, or -1.
func (r *claudeReader) index(raw json.RawMessage) int {
	if i, ok := r.byUUID[textOf(raw)]; ok {
		return i
	}
	return -1
}

func (r *claudeReader) finish() error {
	s := r.s
	if r.mains == 0 && r.prev[1] >= 0 { // the file of a subagent
		s.Parent, s.ID = s.ID, r.agent
		for i := range r.records {
			r.records[i].side = !r.records[i].side
		}
	}
	leaf := -1
	for i := range r.records {
		rec := &r.records[i]
		switch {
		case rec.side:
			s.Counts.Sidechains += len(rec.msgs)
			rec.msgs = nil
		case len(rec.msgs) > 0 || rec.compact != nil:
			leaf = i
		}
	}
	for i := leaf; i >= 0; i = r.records[i].parent {
		r.records[i].live = true
	}
	r.addBoundaries(leaf)
	r.addParallel(leaf)

	events := make([]Event, 0, len(r.records))
	reply := claudeReply{counts: &s.Counts}
	for i := range r.records {
		rec := &r.records[i]
		switch {
		case !rec.live && !rec.side:
			s.Counts.Dropped += len(rec.msgs)
		case !rec.live:
		case rec.compact != nil:
			if err := r.compaction(i); err != nil {
				return err
			}
			events = append(events, Event{Time: rec.time, Compaction: &rec.compact.Compaction})
			reply.id = ""
		case rec.summary && len(rec.msgs) > 0:
			if rec.near < 0 { // a version that wrote no boundary
				view := normalView(rec.msgs)
				events = append(events, Event{Time: rec.time, Compaction: &Compaction{Summary: textOfAll(rec.msgs), View: view}})
				reply.id = ""
			}
		default:
			events = reply.add(events, rec)
		}
	}
	r.records, r.byUUID = nil, nil
	s.Events = normalize(events, &s.Counts)
	return nil
}

// near returns the index of the boundary that comes before a record with a parent, without a
// message between them, or -1.
func (r *claudeReader) near(parent int) int {
	switch {
	case parent < 0:
		return -1
	case r.records[parent].compact != nil:
		return parent
	case len(r.records[parent].msgs) > 0:
		return -1
	}
	return r.records[parent].near
}

// addBoundaries adds compactions to the live branch. When the newest messages were kept
// in a compaction, the next message has the last of them as its parent, and the path goes
// around the compaction.
func (r *claudeReader) addBoundaries(leaf int) {
	for i := range leaf {
		rec := &r.records[i]
		if rec.side || rec.compact == nil || rec.live {
			continue
		}
		b := rec.compact
		before := rec.parent
		if b.tail >= 0 {
			before = b.tail
		} else if n := len(b.kept); n > 0 {
			before = b.kept[n-1]
		}
		if before >= 0 && r.records[before].live {
			rec.live = true
			if b.summary >= 0 {
				r.records[b.summary].live = true
			}
		}
	}
}

// addParallel adds to the live branch what belongs to its replies, but is beside it: with
// several calls at once, the result of each has the record of its call as its parent, and
// the path goes through one of them alone.
func (r *claudeReader) addParallel(leaf int) {
	ids := make(map[string]bool)
	open := make(map[string]int) // calls without a result on the branch
	for i := range r.records {
		if rec := &r.records[i]; rec.live && !rec.side {
			if rec.id != "" {
				ids[rec.id] = true
			}
			countCalls(open, rec.msgs)
		}
	}
	for i := range leaf {
		rec := &r.records[i]
		if rec.live || rec.side || len(rec.msgs) == 0 {
			continue
		}
		if rec.id != "" && ids[rec.id] {
			rec.live = true
			countCalls(open, rec.msgs)
			continue
		}
		for _, m := range rec.msgs {
			for _, p := range m.ToolResults() {
				rec.live = rec.live || open[p.CallID] > 0
			}
		}
		if rec.live {
			rec.msgs = slices.DeleteFunc(rec.msgs, func(m convo.Message) bool { return m.Role != convo.RoleTool })
			countCalls(open, rec.msgs)
		}
	}
}

// countCalls adds to open the calls in msgs, and subtracts the results.
func countCalls(open map[string]int, msgs []convo.Message) {
	for _, m := range msgs {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case convo.ToolCall:
				open[p.ID]++
			case convo.ToolResult:
				open[p.CallID]--
			}
		}
	}
}

// compaction completes the compaction of record i: its summary is in one of the next
// records.
func (r *claudeReader) compaction(i int) error {
	c := &r.records[i].compact.Compaction
	var view []convo.Message
	if j := r.records[i].compact.summary; j >= 0 && r.records[j].live {
		c.Summary = textOfAll(r.records[j].msgs)
		view = append(view, r.records[j].msgs...)
	}
	c.Hidden = len(view) == 0
	kept, err := r.kept(i)
	if err != nil {
		return err
	}
	var events []Event
	reply := claudeReply{counts: new(Counts)}
	for _, k := range kept {
		rec := &r.records[k]
		events = reply.add(events, rec)
		if err := r.in.hold(sizeOfView(rec.msgs)); err != nil {
			return err
		}
	}
	for _, e := range events {
		view = append(view, e.Messages...)
	}
	c.View = normalView(view)
	return nil
}

// kept returns the records with the messages that a compaction kept.
func (r *claudeReader) kept(i int) ([]int, error) {
	b := r.records[i].compact
	kept := b.kept
	if len(kept) == 0 && b.head >= 0 && b.tail >= 0 {
		for k := b.tail; k >= b.head; k = r.records[k].parent {
			if err := r.in.hold(32); err != nil {
				return nil, err
			}
			kept = append(kept, k)
		}
		slices.Reverse(kept)
	}
	return slices.DeleteFunc(slices.Clone(kept), func(k int) bool { return r.records[k].side || r.records[k].summary || r.records[k].compact != nil }), nil
}

// A claudeReply joins the records of one reply.
type claudeReply struct {
	counts *Counts
	id     string // of the reply that may go on
	at     int    // its event
	apart  bool   // a message that is no result follows it
}

// goesOn reports whether a record has more of the reply. After a message of the user, an ID is
// not enough, because some gateways give each reply the same: the usage must be that of the
// same request.
func (r *claudeReply) goesOn(events []Event, rec *claudeRecord) bool {
	if rec.id == "" || rec.id != r.id {
		return false
	}
	a, b := events[r.at].Usage, rec.usage
	return !r.apart || a != nil && b != nil && a.Input == b.Input && a.CacheRead == b.CacheRead && a.CacheWrite == b.CacheWrite
}

// add adds the messages of a record to events.
func (r *claudeReply) add(events []Event, rec *claudeRecord) []Event {
	for _, m := range rec.msgs {
		switch {
		case m.Role == convo.RoleAssistant && r.goesOn(events, rec):
			e := &events[r.at]
			e.Messages[0].Parts = append(e.Messages[0].Parts, m.Parts...)
			if rec.usage != nil {
				e.Usage = rec.usage
			}
			r.counts.Merged++
			continue
		case m.Role == convo.RoleAssistant:
			r.id, r.at, r.apart = rec.id, len(events), false
		case m.Role != convo.RoleTool:
			r.apart = true
		}
		m.Parts = slices.Clip(m.Parts) // parts are appended
		e := Event{Time: rec.time, Messages: []convo.Message{m}}
		if m.Role == convo.RoleAssistant {
			e.Usage, e.Model = rec.usage, rec.model
		}
		events = append(events, e)
	}
	return events
}

// textOfAll returns the text of messages.
func textOfAll(msgs []convo.Message) string {
	texts := make([]string, len(msgs))
	for i, m := range msgs {
		texts[i] = m.Text()
	}
	return strings.Join(texts, "\n")
}

// sizeOf estimates the memory of messages.
func sizeOf(msgs []convo.Message) int {
	n := 0
	for _, m := range msgs {
		n += 256 + len(m.Meta) + sizeOfParts(m.Parts)
	}
	return n
}

func sizeOfParts(parts []convo.Part) int {
	n := 0
	for _, p := range parts {
		n += 48
		switch p := p.(type) {
		case convo.Text:
			n += len(p)
		case convo.Reasoning:
			n += len(p.Text) + len(p.Signature) + len(p.Encrypted) + 64
		case convo.ToolCall:
			n += len(p.ID) + len(p.Name) + len(p.Arguments) + 64
		case convo.ToolResult:
			n += 128 + len(p.CallID) + sizeOfParts(p.Parts)
		case convo.Media:
			n += len(p.Data) + len(p.URL) + 64
		case convo.Opaque:
			n += len(p.JSON) + 48
		}
	}
	return n
}

// sizeOfView estimates the memory of messages in a view, which shares their texts.
func sizeOfView(msgs []convo.Message) int {
	n := 0
	for _, m := range msgs {
		n += 256 + 64*len(m.Parts)
	}
	return n
}
