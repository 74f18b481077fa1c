package wire

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"unicode/utf8"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// betaCompact is the beta of compaction on demand.
const betaCompact = "compact-2026-09-04"

// mostInstruction is how many characters the instruction of a compaction may have.
const mostInstruction = 16_384

// CompactRequest implements [Compacter]. It needs Betas, because without it later requests
// do not hold the block that comes back. An instruction replaces the prompt of the provider.
// The parameters must not include context_management, stop_sequences, an output format or a
// tool_choice that forces a call.
func (f Anthropic) CompactRequest(r Request, instruction string) (Request, error) {
	if !f.Betas {
		return Request{}, &convo.ValueError{Name: "Anthropic.Betas", Value: false, Want: "true, so that later requests may hold the compaction"}
	}
	if n := utf8.RuneCountInString(instruction); n > mostInstruction {
		return Request{}, &convo.ValueError{Name: "the length of the instruction", Value: n, Want: fmt.Sprintf("at most %d characters", mostInstruction)}
	}
	field := `{"type":"summarize"}`
	if !isBlank(instruction) {
		field = string(append(appendStringField([]byte(`{"type":"summarize"`), "instructions", instruction), '}'))
	}
	r.Fields = maps.Clone(r.Fields)
	if r.Fields == nil {
		r.Fields = map[string]json.RawMessage{}
	}
	r.Fields["compaction"] = json.RawMessage(field)
	r.Headers = withHeader(r.Headers, "anthropic-beta", betaCompact)
	return r, nil
}

// DecodeCompaction implements [Compacter].
func (f Anthropic) DecodeCompaction(data []byte) (convo.Summary, error) {
	d := f.decoder()
	all, err := fields("", data)
	if err != nil {
		return convo.Summary{}, err
	}
	if saysError(all["error"]) {
		return convo.Summary{}, reported("", providerError(data))
	}
	blocks, ok := strictjson.SplitArray(all["content"])
	if !ok {
		return convo.Summary{}, unreadable(all, data, "not an answer: want a field content")
	}
	d.model = stringOf(all["model"])
	d.answer(stringOf(all["id"]), d.model)
	d.out.Usage = d.anthropicUsage(all["usage"])
	if len(blocks) != 1 {
		return convo.Summary{Usage: d.out.Usage}, &DecodeError{Path: "content", Reason: fmt.Sprintf("want one compaction block, have %d blocks; the answer ended with %s", len(blocks), cmp.Or(stringOf(all["stop_reason"]), "no reason"))}
	}
	block, err := fields("content[0]", blocks[0])
	switch {
	case err != nil:
		return convo.Summary{}, err
	case stringOf(block["type"]) != "compaction":
		err = &DecodeError{Path: "content[0].type", Reason: "want compaction, have " + quote(stringOf(block["type"]))}
	case isNull(block["content"]) && isNull(block["encrypted_content"]):
		err = &DecodeError{Path: "content[0].content", Reason: "the compaction failed: it has no content"}
	case isNull(block["signature"]):
		err = &DecodeError{Path: "content[0].signature", Reason: "the compaction has no signature"}
	}
	if err != nil {
		return convo.Summary{Usage: d.out.Usage}, err
	}
	return d.compactionOf(stringOf(block["content"]), string(blocks[0])), nil
}

// takesCompaction reports whether the items of a compaction can be sent.
func (f Anthropic) takesCompaction(items []string) bool { return f.Betas && len(items) == 1 }

// compaction implements nativeWriter. The block stands alone in a message, before all
// others.
func (w *anthropicWriter) compaction(items []string) {
	b := append(strictjson.Key(appendStringField(begin(len(items[0])), "role", "assistant"), "content"), '[')
	m := anthropicMessage{role: "assistant", start: len(b), asks: true, native: true, betas: []string{betaCompact}}
	for _, item := range items {
		b = appendElement(b, item)
	}
	m.list, m.solid = b, len(b)
	w.push(m)
}
