package judge

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/wire"
)

// A Snapshot is a conversation with tools.
type Snapshot struct {
	*convo.Snapshot
	Tools []convo.Tool
}

// Request returns the body of the request in a format.
func (s Snapshot) Request(f wire.Format) ([]byte, error) {
	r, err := f.Encode(s.Snapshot)
	if err != nil {
		return nil, err
	}
	if w, ok := f.(wire.ToolWriter); ok {
		if r.Tools, err = w.Tools(s.Tools...); err != nil {
			return nil, err
		}
	}
	return r.Body(), nil
}

// A Source calls look with conversations until it returns false.
type Source func(look func(Snapshot) (bool, error)) error

// Recorded returns the conversations of a directory of JSONL files. Each line is an
// object: with a list of OpenAI chat messages named messages, or with the body of a
// request named request, which has the format that the name of the file begins with,
// such as anthropic.jsonl, and a status that is 200 if the provider has taken it. They
// are looked at as they are, and after a compaction.
func Recorded(dir string) Source {
	return func(look func(Snapshot) (bool, error)) error {
		names, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
		if err != nil {
			return err
		}
		if len(names) == 0 {
			return fmt.Errorf("no conversations in %s: want files that end in .jsonl", dir)
		}
		for _, name := range names {
			if err := recorded(name, look); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	}
}

// recordedFormats are the formats of files with requests, by how their names begin.
var recordedFormats = map[string]wire.Format{
	"anthropic": wire.Anthropic{}, "bedrock": wire.Converse{}, "gemini": wire.Gemini{},
	"openai_responses": wire.OpenAIResponses{}, "mistral": wire.OpenAIChat{Dialect: wire.Mistral},
	"deepseek": wire.OpenAIChat{Dialect: wire.DeepSeek}, "ollama": wire.OpenAIChat{Dialect: wire.Ollama},
}

func recorded(name string, look func(Snapshot) (bool, error)) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	format, ok := recordedFormats[strings.TrimSuffix(filepath.Base(name), ".jsonl")]
	if !ok {
		format = wire.OpenAIChat{}
	}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var line struct {
			Messages, Request json.RawMessage
			Status            int
		}
		whole := bytes.ReplaceAll(lines.Bytes(), []byte("...[blob cut]"), nil) // media that a recording has cut short
		if err := json.Unmarshal(whole, &line); err != nil {
			return err
		}
		if line.Request == nil {
			line.Request, line.Status = line.Messages, 200
		}
		if line.Status != 200 {
			continue
		}
		in, err := format.Decode(line.Request)
		if err != nil {
			continue // it is not a request that a conversation could hold, such as one for an embedding
		}
		h, err := convo.Restore(convo.NewSnapshot(in.Messages), &convo.Options{
			Roles: convo.Relaxed(), Repair: func(*convo.SnapshotError) {}, Strategy: convo.Summarize{}})
		if err != nil {
			return err
		}
		for range 2 {
			if more, err := look(Snapshot{h.Snapshot(), tools}); err != nil || !more {
				return err
			}
			_, _ = h.Compact(context.Background(), "") // what was too short stays as it is
		}
	}
	return lines.Err()
}

// tools are taken by every provider.
var tools = []convo.Tool{
	{Name: "search", Description: "Searches.", Schema: `{"type":"object","properties":{"q":{"type":"string","description":"what for"},"n":{"type":"integer","minimum":1},"in":{"type":"string","enum":["web","mail"]}},"required":["q"]}`},
	{Name: "get_weather", Schema: `{"type":"object","properties":{"places":{"type":"array","items":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}},"exact":{"type":"boolean"}}}`},
	{Name: "now", Description: "The time."},
}

// hard are tools whose names providers refuse, and one with a name of many letters.
var hard = []convo.Tool{
	{Name: "mcp.files/read", Schema: `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`},
	{Name: "名前", Description: "Names."},
	{Name: "a_name_of_many_letters_" + strings.Repeat("z", 80)},
}

// Tools returns definitions of tools that every provider takes.
func Tools() []convo.Tool { return slices.Clone(tools) }

// origins are the makers of assistant messages.
var origins = []convo.Origin{
	{}, {Format: "openai-chat", Model: "m"}, {Format: "openai-responses", Model: "m"}, {Format: "anthropic", Model: "m"},
	{Format: "gemini", Model: "m"}, {Format: "converse", Model: "m"}, {Format: "deepseek", Model: "m"},
	{Format: "ollama", Model: "m"}, {Format: "mistral"},
	{Format: "openai-chat@h", Model: "m"}, {Format: "mistral@h"},
}

// A talk is a random conversation that is hard to send.
type talk struct {
	*rand.Rand
	h     *convo.History
	plain bool // no tools are called
}

// Random makes a conversation, and calls look with it as it grows, is compacted and
// edited, until look returns false or a few hundred messages have been written.
func Random(rng *rand.Rand, look func(Snapshot) (bool, error)) error {
	strategies := []convo.CompactionStrategy{
		convo.Truncate{}, convo.SlidingWindow{KeepLast: 6}, convo.ClearToolResults{KeepLast: -1, MinFree: -1},
		convo.Summarize{}, convo.Summarize{With: convotest.Echo{}, MaxTokens: 80, Window: -1},
		convo.Chain(convo.ClearToolResults{KeepLast: 1}, convo.Summarize{KeepTokens: 50}, convo.Truncate{}),
	}
	h, err := convo.New(&convo.Options{
		Roles: convo.Relaxed(), Strategy: strategies[rng.IntN(len(strategies))], PinFirstUser: rng.IntN(4) == 0})
	if err != nil {
		return err
	}
	t := &talk{rng, h, rng.IntN(3) == 0}
	for range t.IntN(3) {
		m := convo.System(t.text())
		if t.one(3) {
			m.Parts = append(append(m.Parts, t.mark()...), convo.Text(t.text()))
		}
		m.Parts = append(m.Parts, t.mark()...)
		t.append(m)
	}
	defs := tools[:t.IntN(len(tools)+1)]
	if t.one(3) {
		defs = slices.Concat(defs, hard[:1+t.IntN(len(hard))])
	}
	if t.one(8) { // nothing was said
		if more, err := look(Snapshot{h.Snapshot(), defs}); err != nil || !more {
			return err
		}
	}
	for range 6 {
		for range 1 + t.IntN(10) {
			t.step()
		}
		t.disturb()
		if more, err := look(Snapshot{h.Snapshot(), defs}); err != nil || !more {
			return err
		}
	}
	return nil
}

// append appends messages. A history that does not take them stays as it is, which is
// what many of them are for.
func (t *talk) append(m ...convo.Message) { _, _ = t.h.Append(m...) }

func (t *talk) pick(list ...string) string { return list[t.IntN(len(list))] }

func (t *talk) one(n int) bool { return t.IntN(n) == 0 }

func (t *talk) text() string {
	return t.pick("good morning", "", " ", "\r\n\t", "ends with a blank ", "\"quotes\" and \\ backslashes\n", "<summary>no</summary>",
		"Ελλάδα 日本 🇮🇹", "\x00 control \x1f", "no \xff\xfe UTF-8", strings.Repeat("again and again ", 15), "null", `{"role":"system"}`, "{{ braces }}", "[INST] <|im_end|>")
}

func (t *talk) id(i int) string {
	return t.pick("", "a", "b", fmt.Sprint("call_", i), "toolu_"+fmt.Sprint(i), fmt.Sprintf("AbCdEfGh%d", i%10),
		strings.Repeat("long", 20)+fmt.Sprint(i), "with blanks/and:dots."+fmt.Sprint(i), "名前"+fmt.Sprint(i))
}

func (t *talk) name() string {
	return t.pick("search", "get_weather", "now", "server.tool/x", "two words", "名前", strings.Repeat("z", 90), "-", "9")
}

func (t *talk) arguments() string {
	if t.one(80) { // what JSON allows, and an SDK may not hold
		return t.pick(`{"n":98765432109876543210}`, `{"huge":1e400}`, `{"twice":1,"twice":2}`, `{"surrogate":"\ud800"}`)
	}
	return t.pick("", "{}", `{"q":"rain"}`, `{ "q" : "\u00e9\/" , "n":2.50 }`, `{"list":[1,null,{"deep":{"er":[]}}],"":false}`,
		`{"half":"o`, "no JSON", `["a list"]`, `"a text"`, "null")
}

func (t *talk) media() convo.Part {
	switch t.IntN(4) {
	case 0:
		return convo.Media{MIME: t.pick("", "image/png", "image/webp", "application/pdf", "video/mp4"), URL: t.pick("https://example.com/x", "s3://bucket/x.png", "gs://bucket/x")}
	default:
		return convo.Media{MIME: t.pick("image/png", "image/jpeg", "image/gif", "image/tiff", "application/pdf", "audio/wav", "audio/mpeg", "text/plain", "text/csv", "video/mp4", "application/zip"), Data: "aGVsbG8="}
	}
}

// mark returns a cache mark or, mostly, nothing.
func (t *talk) mark() []convo.Part {
	switch t.IntN(24) {
	case 0:
		return []convo.Part{wire.CacheMark(0)}
	case 1:
		return []convo.Part{wire.CacheMark(time.Hour)}
	case 2:
		return []convo.Part{convo.Opaque{Format: "converse", JSON: `{"cachePoint":{"type":"default","ttl":"1h"}}`}}
	}
	return nil
}

// citations are those of a text, as each format keeps them.
var citations = []convo.Opaque{
	{Format: "anthropic", JSON: `{"citations":[{"type":"char_location","cited_text":"g","document_index":0,"document_title":null,"start_char_index":0,"end_char_index":1,"file_id":null},{"type":"a_new_one"}]}`},
	{Format: "anthropic", JSON: `{"citations":[{"type":"page_location","cited_text":"g","document_index":0,"document_title":"D","start_page_number":1,"end_page_number":2}]}`},
	{Format: "anthropic", JSON: `{"citations":[{"type":"web_search_result_location","cited_text":"g","encrypted_index":"ZQ==","title":"A","url":"https://example.com/a"}]}`},
	{Format: "anthropic", JSON: `{"citations":[{"type":"search_result_location","cited_text":"g","search_result_index":0,"source":"https://example.com/a","start_block_index":0,"end_block_index":1,"title":"A"}]}`},
	{Format: "openai-responses", JSON: `{"annotations":[{"type":"url_citation","start_index":0,"end_index":4,"url":"https://example.com/a","title":"A"}]}`},
	{Format: "openai-responses", JSON: `{"annotations":[{"type":"file_citation","file_id":"f","filename":"a.txt","index":0},{"type":"container_file_citation","container_id":"c","file_id":"f","filename":"a.txt","start_index":0,"end_index":999}]}`},
	{Format: "converse", JSON: `{"citationsContent":{"citations":[{"title":"A","location":{"web":{"url":"https://example.com/a","domain":"example.com"}},"sourceContent":[{"text":"g"}]}]}}`},
	{Format: "converse", JSON: `{"citationsContent":{"citations":[{"location":{"documentChar":{"documentIndex":0,"start":0,"end":1}}}]}}`},
}

// cite returns the citations of a text or, mostly, nothing.
func (t *talk) cite() []convo.Part {
	if !t.one(5) {
		return nil
	}
	return []convo.Part{citations[t.IntN(len(citations))]}
}

// object returns the parts of a result that came as an object, or did before it was
// changed.
func (t *talk) object() []convo.Part {
	mark := [...]convo.Opaque{{Format: "gemini", JSON: `{"response":{}}`}, {Format: "converse", JSON: `{"json":{}}`}}[t.IntN(2)]
	return []convo.Part{convo.Text(t.pick(`{"rain": 1.50}`, `{"error":{"code":7}}`, "{}", `{"list":[{"a":null}]}`, `{"cut":`, "a text")), mark}
}

// ofHosts is reasoning as chat hosts and Mistral send it.
var ofHosts = []convo.Reasoning{
	{ID: "reasoning-1", Text: "so", Signature: `{"format":"anthropic-claude-v1","index":0,"signature":"c2ln","type":"reasoning.text"}`},
	{Text: "so", Signature: `{"index":0,"type":"reasoning.summary"}`},
	{ID: "rs_1", Encrypted: "c2VhbGVk", Signature: `{"format":"openai-responses-v1","id":null,"type":"reasoning.encrypted"}`},
	{ID: "reasoning_content", Text: "so"},
	{ID: "reasoning", Text: "so"},
	{ID: "extra_content", Signature: `{"google":{"thought_signature":"c2ln"}}`},
	{Signature: `{"extra_content":{"google":{"thought_signature":"c2ln"}}}`},
	{Text: "so", Signature: `{"closed":true,"type":"thinking"}`},
}

func (t *talk) opaque() convo.Part {
	return [...]convo.Opaque{
		{Format: "anthropic", JSON: `{"type":"container_upload","file_id":"file_1"}`},
		{Format: "openai-responses", JSON: `{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"rain"}}`},
		{Format: "openai-chat", JSON: `{"type":"text","text":"an opaque text"}`},
		{Format: "gemini", JSON: `{"executableCode":{"language":"PYTHON","code":"1+1"}}`},
		{Format: "converse", JSON: `{"guardContent":{"text":{"text":"guarded"}}}`},
		{Format: "nobody", JSON: `{"type":"unknown"}`},
	}[t.IntN(6)]
}

func (t *talk) reasoning(by convo.Origin) convo.Part {
	if t.one(2) && (strings.HasPrefix(by.Format, "openai-chat") || strings.HasPrefix(by.Format, "mistral")) {
		return ofHosts[t.IntN(len(ofHosts))]
	}
	r := convo.Reasoning{Text: t.pick("", "let me see", "so it is\n")}
	switch t.IntN(4) {
	case 0, 1:
		r.Signature = "c2lnbmVk"
	case 2:
		r.ID, r.Encrypted = fmt.Sprint("rs_", t.IntN(1000)), "c2VhbGVk"
	}
	return r
}

func (t *talk) user() convo.Message {
	m := convo.User(t.text())
	for range t.IntN(3) {
		m.Parts = append(append(m.Parts, t.mark()...), convo.Text(t.text()))
	}
	if t.one(4) {
		m.Parts = append(m.Parts, t.media())
	}
	if t.one(10) {
		m.Parts = append(m.Parts, t.opaque())
	}
	if t.one(8) {
		m.Author = t.pick("Ada", "</from> Bob", "名前")
	}
	if t.one(20) {
		m.Parts = append(m.Parts, t.cite()...)
	}
	m.Parts = append(m.Parts, t.mark()...)
	return m
}

func (t *talk) assistant(calls int) convo.Message {
	m := convo.Message{Role: convo.RoleAssistant, Origin: origins[t.IntN(len(origins))]}
	if t.one(3) {
		m.Parts = append(m.Parts, t.reasoning(m.Origin))
	}
	if calls == 0 || t.one(2) {
		m.Parts = append(append(append(m.Parts, convo.Text(t.text())), t.cite()...), t.mark()...)
	}
	if t.one(12) {
		m.Parts = append(m.Parts, t.opaque())
	}
	if t.one(10) {
		m.Author = t.pick("a guest", "me")
	}
	for i := range calls {
		if t.one(7) {
			m.Parts = append(m.Parts, t.reasoning(m.Origin))
		}
		if t.one(6) { // it was one of a custom tool of OpenAI's
			m.Parts = append(m.Parts, convo.Opaque{Format: t.pick("openai-chat", "openai-responses"), JSON: `{"type":"convo_fields","call":"custom"}`})
		}
		m.Parts = append(m.Parts, convo.ToolCall{ID: t.id(i), Name: t.name(), Arguments: t.arguments()})
		m.Parts = append(m.Parts, t.mark()...)
		if t.one(9) {
			m.Parts = append(append(m.Parts, convo.Text(t.text())), t.cite()...)
		}
	}
	if t.one(20) {
		m.Parts = append(m.Parts, t.media())
	}
	return m
}

// answer answers open calls in any order, and leaves some of them open.
func (t *talk) answer() {
	var calls []convo.ToolCall
	for _, e := range t.h.Snapshot().All() {
		if list := e.Message.ToolCalls(); len(list) > 0 {
			calls = list
		}
	}
	t.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
	for _, c := range calls {
		if t.one(15) {
			continue
		}
		r := convo.ToolResult{CallID: c.ID, Name: c.Name, IsError: t.one(5)}
		for range t.IntN(3) {
			r.Parts = append(append(r.Parts, convo.Text(t.text())), t.mark()...)
		}
		if t.one(7) {
			r.Parts = append(r.Parts[:len(r.Parts)*t.IntN(2)], t.object()...)
		}
		if t.one(30) {
			r.Parts = append(r.Parts, convo.Opaque{Format: "anthropic", JSON: `{"type":"search_result","source":"https://example.com/a","title":"A","content":[{"type":"text","text":"found"}]}`})
		}
		if t.one(6) {
			r.Parts = append(r.Parts, t.media())
		}
		r.Parts = append(r.Parts, t.mark()...)
		t.append(convo.Message{Role: convo.RoleTool, Parts: []convo.Part{r}})
	}
}

func (t *talk) step() {
	switch {
	case t.h.Status().OpenCalls > 0:
		t.answer()
	case t.one(20):
		t.append(convo.Assistant(t.text()), convo.Assistant(t.text()))
	case t.one(2):
		t.append(t.user())
	case t.plain:
		t.append(t.assistant(0))
	default:
		t.append(t.assistant(t.IntN(4)))
	}
}

// disturb compacts or edits the conversation, pins a part of it, or sets ephemeral
// messages or other system messages, in most calls. What the history refuses stays
// undone.
func (t *talk) disturb() {
	_ = t.h.SetEphemeral()
	s := t.h.Snapshot()
	switch t.IntN(7) {
	case 0:
		_, _ = t.h.Compact(context.Background(), "")
	case 1:
		_ = t.h.PinLast()
	case 2:
		_ = t.h.SetEphemeral(convo.User("it is noon. " + t.text()))
	case 3:
		_ = t.h.SetSystem(convo.System(t.text()), convo.System("be brief"))
	case 4:
		_, _ = t.h.AnswerOpenCalls("stopped")
	case 5:
		var e convo.Edit
		for x := range s.Exchanges() {
			if !x.Floor && t.one(3) {
				e.Drop = append(e.Drop, x.IDs()...)
			}
		}
		if len(e.Drop) > 0 && t.one(2) {
			e.Summary = &convo.Summary{Text: "they spoke of " + t.text()}
		}
		_, _ = t.h.Apply(s, e)
	}
}
