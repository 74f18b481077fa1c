package provider

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Compaction on demand: in Anthropic's API a request with the field compaction, in OpenAI's
// a request to /responses/compact. The texts of the answer are the summaries, one for each
// block or item: a provider should not give an answer without a text, or with
// several. An answer whose Stop is unavailable is an error of the provider.

// unavailable is the Stop of an Answer that is an error of the provider.
const unavailable = "compaction_unavailable"

// summaries returns the texts of an answer.
func (a Answer) summaries() (texts []string) {
	for _, b := range a.Blocks {
		if text, ok := b.(Text); ok {
			texts = append(texts, string(text))
		}
	}
	return texts
}

// A compacting format may refuse a request in spite of its answer.
type compacting interface {
	refuses(c *call, a Answer) *problem
}

// anthropicCompact is the beta of compaction on demand.
const anthropicCompact = "compact-2026-09-04"

// hasBeta reports whether a request names a beta.
func (c *call) hasBeta(name string) bool {
	return slices.ContainsFunc(c.req.Header.Values("anthropic-beta"), func(values string) bool {
		return slices.ContainsFunc(strings.Split(values, ","), func(v string) bool { return strings.TrimSpace(v) == name })
	})
}

func (anthropic) refuses(c *call, a Answer) *problem {
	if c.all["compaction"] == nil || a.Stop != unavailable {
		return nil
	}
	return &problem{status: 529, kind: "overloaded_error", code: unavailable, text: "Compaction is temporarily unavailable. Please try again."}
}

// compaction answers a request to compact.
func (f anthropic) compaction(c *call, a Answer, u Usage) {
	blocks := []any{}
	stop := a.Stop
	if stop == "" {
		for _, text := range a.summaries() {
			block := object{"type": "compaction", "content": text}
			block["signature"] = newCover(c, block).String()
			blocks = append(blocks, block)
		}
		if stop = "compaction"; len(blocks) == 0 {
			stop = "end_turn"
		}
	}
	message := object{
		"id": fmt.Sprintf("msg_%d", c.id), "type": "message", "role": "assistant", "model": c.req.Model,
		"content": blocks, "stop_reason": stop, "stop_sequence": nil,
		"usage": object{
			"input_tokens": 0, "output_tokens": 0, "iterations": []any{object{
				"type": "compaction", "input_tokens": u.Input - u.CacheRead - u.CacheWrite, "cache_read_input_tokens": u.CacheRead,
				"cache_creation_input_tokens": u.CacheWrite, "output_tokens": u.Output,
			}},
		},
	}
	if c.req.Stream {
		f.stream(c, message)
		return
	}
	c.send(200, message)
}

// compact checks the field compaction.
func (k *anthropicCheck) compact(c *call) {
	field := c.all["compaction"]
	if field == nil {
		return
	}
	add := func(code, format string, args ...any) { k.fail(code, fmt.Sprintf(format, args...)) }
	all := obj(field)
	choice, _ := obj(c.all["tool_choice"])["type"].(string)
	switch instructions := all["instructions"]; {
	case !c.hasBeta(anthropicCompact):
		add("", "compaction: The `compaction` parameter requires anthropic-beta: %s", anthropicCompact)
	case all["type"] != "summarize":
		add("", "compaction.type: Input should be 'summarize'")
	case utf8.RuneCountInString(str(instructions)) > 16_384:
		add("", "compaction.instructions: String should have at most 16384 characters")
	case c.all["context_management"] != nil, c.all["stop_sequences"] != nil:
		add("", "compaction: cannot be combined with `context_management` or `stop_sequences`")
	case choice == "any" || choice == "tool":
		add("", "compaction: cannot be combined with a `tool_choice` of type `%s`", choice)
	case !slices.ContainsFunc(list(c.all["messages"]), func(m any) bool { return obj(m)["role"] != "system" }):
		add("compaction_nothing_to_summarize", "messages: there is nothing to summarize")
	case k.endsInCall():
		add("compaction_incomplete_turn", "messages: the last `assistant` turn ends in a tool call with no result; send that turn's tool results first")
	}
}

// endsInCall reports whether the request ends with a turn of the assistant that has calls.
func (k *anthropicCheck) endsInCall() bool {
	n := len(k.turns)
	return n > 0 && k.turns[n-1].role == "assistant" && slices.ContainsFunc(k.turns[n-1].blocks, func(b placed) bool { return b.kind() == "tool_use" })
}

// compactions checks the signed blocks of compactions.
func (k *anthropicCheck) compactions(c *call) {
	var found []placed
	for _, t := range k.turns {
		for _, b := range t.blocks {
			if b.kind() == "compaction" && b.object["signature"] != nil {
				found = append(found, b)
			}
		}
	}
	if len(found) == 0 {
		return
	}
	b := found[0]
	cover, ok := readCover(str(b.object["signature"]))
	switch {
	case !c.hasBeta(anthropicCompact):
		k.fail("", fmt.Sprintf("%s: Input tag 'compaction' found using 'type' does not match any of the expected tags", b.path))
	case b.path != "messages.0.content.0":
		k.fail("compaction_block_misplaced", b.path+": `compaction` block must be sent first, in place of the messages it summarizes; remove those messages")
	case len(found) > 1:
		k.fail("compaction_block_ambiguous", "messages: more than one `compaction` block; send only the block that was returned last")
	case !ok:
		k.fail("compaction_signature_invalid", b.path+".signature: Invalid `signature` in `compaction` block")
	case cover.content != contentOf(b.object):
		k.fail("compaction_content_mismatch", b.path+": the content of the `compaction` block does not match its signature")
	}
}

// fail adds a fault with a code.
func (k *anthropicCheck) fail(code, text string) {
	if len(k.faults) == 0 {
		k.code = code
	}
	k.add("%s", text)
}

// contentOf identifies the content of a block.
func contentOf(block object) [sealSize]byte {
	block = maps.Clone(block)
	delete(block, "signature")
	return sealOf(block)
}

// A cover is what the signature of a compaction holds: its content, and the states of the
// seals at the end of what was compacted. There is one for each way in which reasoning
// before it may have been signed.
type cover struct {
	content [sealSize]byte
	states  []sealState
}

// newCover returns the cover of the block that answers a request.
func newCover(c *call, block object) cover {
	v := cover{content: contentOf(block)}
	if c.s.opts.Checks(c.req.Model) { // otherwise the model signs nothing that is checked
		w := AnthropicSeals.walkMessages(c.all, list(c.all["messages"]))
		for _, s := range w.states {
			if s.system == w.system && s.tools == w.tools {
				v.states = append(v.states, s)
			}
		}
	}
	return v
}

type coverJSON struct {
	Content []byte
	States  []stateJSON
}

type stateJSON struct {
	Role                    string
	System, Tools, Messages []byte
}

// String returns the signature, which ends with a checksum.
func (v cover) String() string {
	out := coverJSON{Content: v.content[:]}
	for _, s := range v.states {
		out.States = append(out.States, stateJSON{s.role, s.system[:], s.tools[:], s.messages[:]})
	}
	data, _ := json.Marshal(out)
	text := base64.StdEncoding.EncodeToString(data)
	sum := sealOf(text)
	return text + "." + base64.StdEncoding.EncodeToString(sum[:])
}

// readCover reads a signature, and reports whether String wrote it.
func readCover(signature string) (v cover, ok bool) {
	text, _, _ := strings.Cut(signature, ".")
	data, err := base64.StdEncoding.DecodeString(text)
	var in coverJSON
	if err != nil || json.Unmarshal(data, &in) != nil {
		return v, false
	}
	copy(v.content[:], in.Content)
	for _, s := range in.States {
		state := sealState{role: s.Role}
		copy(state.system[:], s.System)
		copy(state.tools[:], s.Tools)
		copy(state.messages[:], s.Messages)
		v.states = append(v.states, state)
	}
	return v, v.String() == signature
}

// responsesCompact is the endpoint /responses/compact.
type responsesCompact struct{ responses }

// compactFields are the fields that the endpoint takes.
var compactFields = []string{
	"model", "input", "instructions", "previous_response_id", "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options", "service_tier",
}

func (f responsesCompact) check(c *call) *problem {
	for _, key := range sortedKeys(c.all) {
		if !slices.Contains(compactFields, key) {
			return &problem{status: 400, kind: "invalid_request_error", code: "unknown_parameter", param: key, text: fmt.Sprintf("Unknown parameter: '%s'.", key)}
		}
	}
	return f.responses.check(c)
}

func (responsesCompact) refuses(_ *call, a Answer) *problem {
	if a.Stop != unavailable {
		return nil
	}
	return &problem{status: 503, kind: "server_error", code: "server_error", text: "The server is currently unable to compact this conversation. Please try again later."}
}

// write answers with the messages of the user and a compaction of the rest.
func (f responsesCompact) write(c *call, a Answer, u Usage) {
	output := []any{}
	for i, item := range list(c.all["input"]) {
		item := obj(item)
		if item["role"] != "user" {
			continue
		}
		content := item["content"]
		if text, ok := content.(string); ok {
			content = []any{object{"type": "input_text", "text": text}}
		}
		id := str(item["id"])
		if id == "" {
			id = c.newID("msg_", i)
		}
		output = append(output, object{"id": id, "type": "message", "status": "completed", "role": "user", "content": content})
	}
	for i, text := range a.summaries() {
		item := object{"id": c.newID("cmp_", i), "type": "compaction"}
		item["encrypted_content"] = seal{model: sealOf(c.req.Model), messages: sealOf(text)}.String()
		output = append(output, item)
	}
	c.send(200, object{
		"id": fmt.Sprintf("resp_%d", c.id), "object": "response.compaction", "created_at": c.id, "output": output,
		"usage": object{
			"input_tokens": u.Input, "input_tokens_details": object{"cached_tokens": u.CacheRead},
			"output_tokens": u.Output, "output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": u.Input + u.Output,
		},
	})
}

// compaction checks an item that an answer of the endpoint held.
func (k *responsesCheck) compaction(path, id string, item object) {
	encrypted := str(item["encrypted_content"])
	if _, ok := readSeal(encrypted); encrypted == "" {
		k.missing(path + ".encrypted_content")
	} else if !ok {
		k.add("invalid_encrypted_content", "", unverified, id)
	}
}
