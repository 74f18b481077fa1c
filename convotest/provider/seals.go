package provider

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Seals is a model of how providers bind signed reasoning to what precedes it. It works
// on the JSON of requests and answers alone.
//
// Each block of reasoning in an answer is signed with the model, with the tools, the
// system text and everything else in the request and the answer before the block, and
// with the block of reasoning before it. Reasoning itself, cache marks, fields that are
// null, and other parameters of the request do not count.
//
// A later request may hold the block where the same precedes it. All reasoning before a
// block may be left out; if only some is left out, the block is refused. Blocks that
// another model signed are ignored.
//
// A request that begins with the compaction of a Server, alone in a message, may hold the
// blocks that were signed after what the compaction covers, if the tools and the system
// text are those with which it was made.
type Seals struct {
	tools, model string
	content      []string                                   // where an answer holds its blocks
	reasoning    func(block map[string]any) (r sealedBlock) // with no fields if the block is no reasoning
}

// AnthropicSeals checks requests of Anthropic's Messages API.
var AnthropicSeals = Seals{
	tools: "tools", model: "model", content: []string{"content"},
	reasoning: anthropicReasoning,
}

func anthropicReasoning(b map[string]any) sealedBlock {
	switch b["type"] {
	case "thinking":
		return sealedBlock{b, "signature"}
	case "redacted_thinking":
		return sealedBlock{b, "data"}
	}
	return sealedBlock{}
}

// ConverseSeals checks requests of the Converse API of Amazon Bedrock, whose model is not
// part of the request.
var ConverseSeals = Seals{
	tools: "toolConfig", model: "modelId", content: []string{"output", "message", "content"},
	reasoning: converseReasoning,
}

func converseReasoning(b map[string]any) sealedBlock {
	outer, _ := b["reasoningContent"].(map[string]any)
	if inner, ok := outer["reasoningText"].(map[string]any); ok {
		return sealedBlock{inner, "signature"}
	}
	return sealedBlock{}
}

// A sealedBlock is an object that holds a signature.
type sealedBlock struct {
	fields map[string]any
	key    string // of the signature
}

// A SealFault is a block of reasoning that a provider refuses.
type SealFault struct {
	Path  string // such as "messages.3.content.0"
	Cause string // a sentence of the provider about what has changed; empty if it says nothing
}

// Sign returns the answer to a request, with a signature in each block of reasoning.
func (s Seals) Sign(request, answer []byte) ([]byte, error) {
	w, err := s.walk(request)
	if err != nil {
		return nil, err
	}
	var all map[string]any
	if err := decode(answer, &all); err != nil {
		return nil, fmt.Errorf("provider: the answer is no JSON object: %w", err)
	}
	at := any(all)
	for _, key := range s.content {
		m, _ := at.(map[string]any)
		at = m[key]
	}
	blocks, ok := at.([]any)
	if !ok {
		return nil, fmt.Errorf("provider: the answer has no list of blocks at %s", strings.Join(s.content, "."))
	}
	w.sign(blocks)
	return marshal(all), nil
}

// sign signs the blocks of reasoning of an answer.
func (w *sealWalk) sign(blocks []any) {
	w.turn("assistant")
	for _, b := range blocks {
		block, _ := b.(map[string]any)
		if r := w.seals.reasoning(block); r.fields != nil {
			w.previous = w.seal().String()
			r.fields[r.key] = w.previous
			continue
		}
		w.block(block)
	}
}

// Check returns how many blocks of reasoning a request holds that its model signed, and
// which of them the provider refuses.
func (s Seals) Check(request []byte) (sent int, refused []SealFault, err error) {
	w, err := s.walk(request)
	return w.sent, w.refused, err
}

// A sealWalk reads a request from the front.
type sealWalk struct {
	seals    Seals
	model    string
	tools    [sealSize]byte
	system   [sealSize]byte
	states   []sealState // the first is that of the request as it stands, the others are for what a compaction stands for
	previous string      // the signature of the last block of reasoning
	sent     int
	refused  []SealFault
}

// A sealState is what reasoning is signed with, apart from the model.
type sealState struct {
	tools    [sealSize]byte
	system   [sealSize]byte
	messages [sha256.Size]byte
	role     string
	begins   bool // nothing has followed the compaction that it is of
}

const sealSize = 9

func (s Seals) walk(request []byte) (*sealWalk, error) {
	var all map[string]any
	if err := decode(request, &all); err != nil {
		return &sealWalk{}, fmt.Errorf("provider: the request is no JSON object: %w", err)
	}
	messages, ok := all["messages"].([]any)
	if !ok {
		return &sealWalk{}, fmt.Errorf("provider: the request has no list of messages")
	}
	return s.walkMessages(all, messages), nil
}

func (s Seals) walkMessages(all map[string]any, messages []any) *sealWalk {
	w := &sealWalk{seals: s, tools: sealOf(all[s.tools]), system: sealOf(all["system"])}
	w.model, _ = all[s.model].(string)
	w.states = []sealState{{tools: w.tools, system: w.system}}
	for i, m := range messages {
		m, _ := m.(map[string]any)
		w.message(fmt.Sprintf("messages.%d.content", i), m)
	}
	return w
}

func (w *sealWalk) message(path string, m map[string]any) {
	role, _ := m["role"].(string)
	blocks, isList := m["content"].([]any)
	if !isList {
		blocks = []any{map[string]any{"type": "text", "text": m["content"]}}
	}
	var covered []sealState
	if len(w.states) == 1 && w.states[0].role == "" && len(blocks) > 0 {
		covered = coveredBy(obj(blocks[0]))
	}
	if len(covered) > 0 && len(blocks) == 1 {
		w.turn(role)
		w.block(obj(blocks[0]))
		w.states = append(w.states, covered...)
		return
	}
	w.turn(role)
	for i, b := range blocks {
		block, _ := b.(map[string]any)
		if r := w.seals.reasoning(block); r.fields != nil {
			signature, _ := r.fields[r.key].(string)
			w.judge(fmt.Sprintf("%s.%d", path, i), signature)
			continue
		}
		w.block(block)
	}
}

// coveredBy returns what a block stands for that is the compaction of a provider.
func coveredBy(block object) []sealState {
	if block["type"] != "compaction" {
		return nil
	}
	v, _ := readCover(str(block["signature"]))
	for i := range v.states {
		v.states[i].begins = true
	}
	return v.states
}

// turn begins a message. Messages of one role that follow each other are one turn. What
// follows a compaction must begin a turn, and not with a message of the system.
func (w *sealWalk) turn(role string) {
	w.states = slices.DeleteFunc(w.states, func(s sealState) bool { return s.begins && (s.role == role || role == "system") })
	for i := range w.states {
		s := &w.states[i]
		if s.begins = false; role != s.role {
			s.role = role
			s.write("role", role)
		}
	}
}

// block adds a block that is not reasoning.
func (w *sealWalk) block(b map[string]any) {
	if b["cachePoint"] == nil {
		for i := range w.states {
			w.states[i].write("block", b)
		}
	}
}

// judge checks a block of reasoning.
func (w *sealWalk) judge(path, signature string) {
	have, ok := readSeal(signature)
	want := w.seal()
	for _, s := range w.states[1:] { // the seal that comes closest
		if s.tools == w.tools && s.system == w.system && have.messages == [sealSize]byte(s.messages[:]) {
			want.messages = have.messages
		}
	}
	if ok && have.model != want.model {
		return // the provider leaves it out
	}
	first := w.previous == ""
	w.sent++
	w.previous = signature
	switch {
	case !ok:
		w.refused = append(w.refused, SealFault{Path: path})
	case have.system != want.system:
		w.refused = append(w.refused, SealFault{path, "The `system` prompt differs from the one this block was created with."})
	case have.tools != want.tools, have.messages != want.messages:
		w.refused = append(w.refused, SealFault{path, ""})
	case have.previous != want.previous && !first:
		w.refused = append(w.refused, SealFault{path, "The `thinking` block that preceded this one when it was created is missing from this request."})
	}
}

// A seal is what a signature holds.
type seal struct{ model, tools, system, messages, previous [sealSize]byte }

// seal returns what a signature at this place holds.
func (w *sealWalk) seal() seal {
	return seal{model: sealOf(w.model), tools: w.tools, system: w.system, messages: [sealSize]byte(w.states[0].messages[:]), previous: sealOf(w.previous)}
}

// String returns the signature, which ends with a checksum.
func (s seal) String() string {
	b := slices.Concat(s.model[:], s.tools[:], s.system[:], s.messages[:], s.previous[:])
	sum := sealOf(base64.StdEncoding.EncodeToString(b))
	return base64.StdEncoding.EncodeToString(append(b, sum[:]...))
}

// readSeal reads a signature, and reports whether String wrote it.
func readSeal(signature string) (s seal, ok bool) {
	b, err := base64.StdEncoding.DecodeString(signature)
	if err != nil || len(b) != 6*sealSize {
		return s, false
	}
	for i, part := range []*[sealSize]byte{&s.model, &s.tools, &s.system, &s.messages, &s.previous} {
		*part = [sealSize]byte(b[i*sealSize:])
	}
	return s, s.String() == signature
}

func (s *sealState) write(what string, v any) {
	s.messages = sha256.Sum256(slices.Concat(s.messages[:], marshal([]any{what, unmarked(v)})))
}

// sealOf returns the beginning of a hash of v.
func sealOf(v any) [sealSize]byte {
	sum := sha256.Sum256(marshal(unmarked(v)))
	return [sealSize]byte(sum[:])
}

// unmarked returns a copy of v without cache marks and without fields that are null.
func unmarked(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, x := range v {
			if key != "cache_control" && x != nil {
				out[key] = unmarked(x)
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, x := range v {
			if m, ok := x.(map[string]any); ok && m["cachePoint"] != nil {
				continue
			}
			out = append(out, unmarked(x))
		}
		return out
	}
	return v
}

// decode reads JSON in UTF-8 and keeps numbers as they are written.
func decode(data []byte, v any) error {
	if !utf8.Valid(data) {
		return errors.New("it is not valid UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more follows after the first value")
	}
	return nil
}

// marshal writes what decode has read.
func marshal(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
