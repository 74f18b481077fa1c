package provider

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"regexp"
	"strings"
)

// converse is the Converse API of Amazon Bedrock. Its model is in the path, and its streams
// are binary.
type converse struct{}

// conversePath is the path of a request.
var conversePath = regexp.MustCompile(`/model/([^/]+)/(converse|converse-stream)$`)

func (converse) cachesAll() bool { return false }

func converseProblem(format string, args ...any) *problem {
	return &problem{status: 400, kind: "ValidationException", text: fmt.Sprintf(format, args...)}
}

func (converse) tooLong(tokens, window int) *problem {
	return converseProblem("The model returned the following errors: prompt is too long: %d tokens > %d maximum", tokens, window)
}

func (converse) fault(c *call, p *problem) any {
	c.w.Header().Set("x-amzn-ErrorType", p.kind)
	return object{"message": p.text}
}

func (converse) parts(c *call) (parts []part) {
	add := func(role string, blocks []any) {
		for _, b := range blocks {
			if n := len(parts); obj(b)["cachePoint"] != nil {
				if n > 0 {
					parts[n-1].marked = true
				}
				continue
			}
			parts = append(parts, newPart(role, b))
		}
	}
	add("tools", list(obj(c.all["toolConfig"])["tools"]))
	add("system", list(c.all["system"]))
	for _, m := range list(c.all["messages"]) {
		add(str(obj(m)["role"]), list(obj(m)["content"]))
	}
	return parts
}

// A converseCheck keeps the first thing that is wrong with a request.
type converseCheck struct {
	first *problem
	open  []string // ids of the calls of the message before
	tools bool     // there was a call or a result
}

func (k *converseCheck) add(format string, args ...any) {
	if k.first == nil {
		k.first = converseProblem(format, args...)
	}
}

func (converse) check(c *call) *problem {
	var k converseCheck
	messages := list(c.all["messages"])
	if len(messages) == 0 {
		k.add("A conversation must start with a user message. Try again with a conversation that starts with a user message.")
	}
	for i, b := range list(c.all["system"]) {
		if text, ok := obj(b)["text"]; ok && strings.TrimSpace(str(text)) == "" {
			k.add("The text field in the SystemContentBlock object at system.%d is blank. Add text to the text field, and try again.", i)
		}
	}
	before := ""
	for i, m := range messages {
		role := str(obj(m)["role"])
		switch {
		case role != "user" && role != "assistant":
			k.add("1 validation error detected: Value '%s' at 'messages.%d.member.role' failed to satisfy constraint: Member must satisfy enum value set: [user, assistant]", role, i+1)
		case i == 0 && role != "user" && !strings.Contains(c.req.Model, "anthropic."):
			k.add("A conversation must start with a user message. Try again with a conversation that starts with a user message.")
		case role == before:
			k.add("A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and assistant roles and try again.")
		}
		before = role
		k.message(i, role, list(obj(m)["content"]))
	}
	if len(k.open) > 0 {
		k.add("Expected toolResult blocks at messages.%d.content for the following Ids: %s", len(messages), strings.Join(k.open, ", "))
	}
	if before == "assistant" && strings.Contains(c.req.Model, "claude") && claudeOf(c.req.Model).wantsUser() {
		k.add("The model returned the following errors: This model does not support assistant message prefill. The conversation must end with a user message.")
	}
	if k.tools && c.all["toolConfig"] == nil {
		k.add("The toolConfig field must be defined when using toolUse and toolResult content blocks.")
	}
	if fault := marksFault(c.all, obj(c.all["toolConfig"])["tools"], "cachePoint"); fault != "" {
		k.add("The model returned the following errors: %s", fault)
	}
	if k.first == nil && strings.Contains(c.req.Model, "claude") {
		k.media(c.req.Model, messages)
	}
	if k.first == nil && c.s.opts.Checks(c.req.Model) {
		for _, f := range ConverseSeals.walkMessages(with(c.all, "modelId", c.req.Model), messages).refused {
			k.add("The model returned the following errors: %s: Invalid `signature` in `thinking` block", f.Path)
		}
	}
	return k.first
}

// converseBlocks are the blocks of a message that are known.
var converseBlocks = map[string]bool{
	"text": true, "image": true, "document": true, "video": true, "toolUse": true, "toolResult": true,
	"guardContent": true, "cachePoint": true, "reasoningContent": true, "citationsContent": true, "searchResult": true,
}

func (k *converseCheck) message(i int, role string, blocks []any) {
	if len(blocks) == 0 {
		k.add("The content field in the Message object at messages.%d is empty. Add a ContentBlock object to the content field and try again.", i)
	}
	var calls, results []string
	for j, b := range blocks {
		block := obj(b)
		at := fmt.Sprintf("messages.%d.content.%d", i, j)
		if len(block) != 1 || !converseBlocks[sortedKeys(block)[0]] {
			k.add("The value at %s is not a union with one known member.", at)
			continue
		}
		switch kind := sortedKeys(block)[0]; kind {
		case "text":
			if strings.TrimSpace(str(block[kind])) == "" {
				k.add("The text field in the ContentBlock object at %s is blank. Add text to the text field, and try again.", at)
			}
		case "toolUse":
			call := obj(block[kind])
			if role != "assistant" {
				k.add("The toolUse block at %s must be in a message of the assistant.", at)
			}
			if _, ok := call["input"].(object); !ok {
				k.add("The format of the value at %s.toolUse.input is invalid. Provide a json object for the field and try again.", at)
			}
			calls = append(calls, str(call["toolUseId"]))
		case "toolResult":
			if role != "user" {
				k.add("The toolResult block at %s must be in a message of the user.", at)
			}
			results = append(results, str(obj(block[kind])["toolUseId"]))
		case "reasoningContent":
			if role != "assistant" {
				k.add("The reasoningContent block at %s must be in a message of the assistant.", at)
			}
		}
	}
	k.pair(i, results)
	k.tools = k.tools || len(calls)+len(results) > 0
	k.open = calls
}

// pair checks that the results of a message answer the calls of the one before.
func (k *converseCheck) pair(i int, results []string) {
	if len(results) > len(k.open) {
		k.add("The number of toolResult blocks at messages.%d.content exceeds the number of toolUse blocks of previous turn.", i)
		return
	}
	answered := map[string]bool{}
	for _, id := range results {
		if answered[id] {
			k.add("The toolResult blocks at messages.%d.content contain duplicate Ids: %s", i, id)
		}
		answered[id] = true
	}
	var missing []string
	for _, id := range k.open {
		if !answered[id] {
			missing = append(missing, id)
		}
	}
	if len(missing) > 0 {
		k.add("Expected toolResult blocks at messages.%d.content for the following Ids: %s", i, strings.Join(missing, ", "))
	}
}

// content returns the blocks of an answer, signed.
func (converse) content(c *call, a Answer) []any {
	blocks := []any{}
	for _, b := range a.Blocks {
		switch b := b.(type) {
		case Text:
			blocks = append(blocks, object{"text": string(b)})
		case Thinking:
			blocks = append(blocks, object{"reasoningContent": object{"reasoningText": object{"text": string(b), "signature": ""}}})
		case Call:
			blocks = append(blocks, object{"toolUse": object{"toolUseId": b.ID, "name": b.Name, "input": value(b.Arguments)}})
		case Raw:
			blocks = append(blocks, value(string(b)))
		}
	}
	ConverseSeals.walkMessages(with(c.all, "modelId", c.req.Model), list(c.all["messages"])).sign(blocks)
	return blocks
}

func (f converse) write(c *call, a Answer, u Usage) {
	stop := a.Stop
	if stop == "" {
		stop = "end_turn"
		if a.calls() {
			stop = "tool_use"
		}
	}
	usage := object{
		"inputTokens": u.Input - u.CacheRead - u.CacheWrite, "cacheReadInputTokens": u.CacheRead,
		"cacheWriteInputTokens": u.CacheWrite, "outputTokens": u.Output, "totalTokens": u.Input + u.Output,
	}
	content := f.content(c, a)
	if !c.req.Stream {
		c.send(200, object{"output": object{"message": object{"role": "assistant", "content": content}}, "stopReason": stop, "usage": usage, "metrics": object{"latencyMs": 1}})
		return
	}
	c.frame("messageStart", object{"role": "assistant"})
	for i, b := range content {
		begin, deltas := f.deltas(obj(b))
		if begin != nil {
			c.frame("contentBlockStart", object{"contentBlockIndex": i, "start": begin})
		}
		for _, d := range deltas {
			c.frame("contentBlockDelta", object{"contentBlockIndex": i, "delta": d})
		}
		c.frame("contentBlockStop", object{"contentBlockIndex": i})
	}
	c.frame("messageStop", object{"stopReason": stop})
	c.frame("metadata", object{"usage": usage, "metrics": object{"latencyMs": 1}})
}

// deltas returns how a block begins in a stream, which only that of a call does, and what is
// added to it.
func (converse) deltas(b object) (begin object, deltas []object) {
	add := func(text string, delta func(string) object) {
		for _, piece := range pieces(text) {
			deltas = append(deltas, delta(piece))
		}
	}
	switch {
	case b["toolUse"] != nil:
		call := obj(b["toolUse"])
		add(string(marshal(call["input"])), func(s string) object { return object{"toolUse": object{"input": s}} })
		return object{"toolUse": object{"toolUseId": call["toolUseId"], "name": call["name"]}}, deltas
	case b["reasoningContent"] != nil:
		text := obj(obj(b["reasoningContent"])["reasoningText"])
		add(str(text["text"]), func(s string) object { return object{"reasoningContent": object{"text": s}} })
		return nil, append(deltas, object{"reasoningContent": object{"signature": text["signature"]}})
	}
	add(str(b["text"]), func(s string) object { return object{"text": s} })
	return nil, deltas
}

// frame sends an event of a stream, as a message of application/vnd.amazon.eventstream.
func (c *call) frame(event string, data any) {
	c.w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
	var headers bytes.Buffer
	for _, h := range [][2]string{{":event-type", event}, {":content-type", "application/json"}, {":message-type", "event"}} {
		headers.WriteByte(byte(len(h[0])))
		headers.WriteString(h[0])
		headers.WriteByte(stringHeader)
		headers.Write(binary.BigEndian.AppendUint16(nil, uint16(len(h[1]))))
		headers.WriteString(h[1])
	}
	payload := marshal(data)
	const preludeLen, sums = 8, 8
	frame := binary.BigEndian.AppendUint32(nil, uint32(preludeLen+sums+headers.Len()+len(payload)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(headers.Len()))
	frame = binary.BigEndian.AppendUint32(frame, crc32.ChecksumIEEE(frame))
	frame = append(append(frame, headers.Bytes()...), payload...)
	frame = binary.BigEndian.AppendUint32(frame, crc32.ChecksumIEEE(frame))
	c.write(frame)
	c.afterEvent(func(name string, data json.RawMessage) { c.frame(name, data) })
}

// stringHeader is the type of a header whose value is a text.
const stringHeader = 7
