package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A sampleStep is a step of an agent that the samples for replay are made of: what it calls,
// and what comes back.
type sampleStep struct {
	user, says, tool, path, result string
}

// sampleSteps returns the work of an agent on a store of orders: it reads files, which name
// things that it needs later, and edits some.
func sampleSteps() (steps []sampleStep) {
	for i := range 30 {
		path := fmt.Sprintf("internal/orders/part_%02d.go", i%19)
		var file strings.Builder
		for line := range 16 {
			fmt.Fprintf(&file, "%d\tfunc handle%02dStep%d(order string) error { return store.Save(order, %d) }\n", line+1, i, line, 100*i+line)
		}
		fmt.Fprintf(&file, "// see ticket ORD-%d for why the limit is %d.5\n", 4100+7*i, 20+i)
		s := sampleStep{says: fmt.Sprintf("I read %s next.", path), tool: "Read", path: path, result: file.String()}
		switch {
		case i == 0:
			s.user = "The orders of the shop at https://shop.example/orders are saved twice. Find out why. Never touch internal/orders/legal.go."
		case i == 12:
			s.user = "Go on, and keep the limit of ORD-4107."
		case i%5 == 4:
			s.says = fmt.Sprintf("The limit of ORD-%d belongs to handle%02dStep3, so I change %s.", 4100+7*(i-4), i-4, path)
			s.tool, s.result = "Edit", "done"
		}
		steps = append(steps, s)
	}
	return steps
}

// sampleCompaction is the number of the step before which the program compacts.
const sampleCompaction = 21

const sampleSummary = "The orders are saved twice since handle03Step3 retries. Read so far: internal/orders/part_00.go to internal/orders/part_18.go. The limit of ORD-4107 stays. Never touch internal/orders/legal.go."

func sampleLines(t *testing.T, records []map[string]any) string {
	var b strings.Builder
	for _, r := range records {
		data, err := json.Marshal(r)
		require.NoError(t, err)
		b.Write(append(data, '\n'))
	}
	return b.String()
}

type object = map[string]any

func sampleTime(i int) string {
	return time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC).Add(time.Duration(i) * 40 * time.Second).Format(time.RFC3339)
}

// claudeSample returns a session of Claude Code, written by hand after its format.
func claudeSample(t *testing.T) string {
	var records []object
	parent, n, size := any(nil), 0, 15_200
	add := func(kind string, more object) {
		n++
		r := object{
			"type": kind, "uuid": fmt.Sprintf("00000000-0000-4000-8000-%012d", n), "parentUuid": parent, "sessionId": "5e551011-0000-4000-8000-000000000001",
			"timestamp": sampleTime(n), "version": "2.1.0", "cwd": "/home/dev/shop", "isSidechain": false,
		}
		maps.Copy(r, more)
		parent = r["uuid"]
		records = append(records, r)
	}
	said := func(text string) { size += len(text)/4 + 5 }
	for i, s := range sampleSteps() {
		if i == sampleCompaction {
			before := parent
			parent = nil
			add("system", object{"subtype": "compact_boundary", "content": "Conversation compacted", "logicalParentUuid": before, "compactMetadata": object{"trigger": "auto", "preTokens": size}})
			add("user", object{"isCompactSummary": true, "message": object{"role": "user", "content": "This session is being continued from a previous conversation.\n" + sampleSummary}})
			size = 15_200
			said(sampleSummary)
		}
		if s.user != "" {
			add("user", object{"message": object{"role": "user", "content": s.user}})
			said(s.user)
		}
		id := fmt.Sprintf("toolu_%02d", i)
		usage := object{"input_tokens": 4, "cache_read_input_tokens": size - 304, "cache_creation_input_tokens": 300, "output_tokens": 60}
		for _, block := range []object{{"type": "text", "text": s.says}, {"type": "tool_use", "id": id, "name": s.tool, "input": object{"file_path": s.path}}} {
			add("assistant", object{"message": object{"id": fmt.Sprintf("msg_%02d", i), "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": []object{block}, "usage": usage}})
		}
		add("user", object{"message": object{"role": "user", "content": []object{{"type": "tool_result", "tool_use_id": id, "content": s.result}}}})
		said(s.says + s.path + s.result)
	}
	return sampleLines(t, records)
}

// codexSample returns a session of the Codex CLI, written by hand after its format.
func codexSample(t *testing.T) string {
	var records []object
	n, size := 0, 9_000
	add := func(kind string, payload object) {
		n++
		records = append(records, object{"timestamp": sampleTime(n), "type": kind, "payload": payload})
	}
	item := func(payload object) { add("response_item", payload) }
	message := func(role, kind, text string) object {
		return object{"type": "message", "role": role, "content": []object{{"type": kind, "text": text}}}
	}
	add("session_meta", object{"id": "0199-sample", "timestamp": sampleTime(0), "cwd": "/home/dev/shop", "cli_version": "0.50.0", "base_instructions": object{"text": "You are a coding agent. Answer in few words."}})
	add("turn_context", object{"cwd": "/home/dev/shop", "model": "gpt-5-codex", "effort": "medium"})
	for i, s := range sampleSteps() {
		if i == sampleCompaction {
			add("compacted", object{"message": sampleSummary, "replacement_history": []object{
				message("user", "input_text", sampleSteps()[0].user), message("user", "input_text", sampleSteps()[12].user), message("user", "input_text", sampleSummary),
			}})
			size = 9_000 + len(sampleSummary)/4
		}
		if s.user != "" {
			item(message("user", "input_text", s.user))
			size += len(s.user) / 4
		}
		item(message("assistant", "output_text", s.says))
		arguments := fmt.Sprintf(`{"path":%q}`, s.path)
		item(object{"type": "function_call", "name": s.tool, "arguments": arguments, "call_id": fmt.Sprintf("call_%02d", i)})
		usage := object{"input_tokens": size, "cached_input_tokens": size - 500, "output_tokens": 70, "reasoning_output_tokens": 10, "total_tokens": size + 70}
		add("event_msg", object{"type": "token_count", "info": object{"last_token_usage": usage, "total_token_usage": usage, "model_context_window": 32_000}})
		item(object{"type": "function_call_output", "call_id": fmt.Sprintf("call_%02d", i), "output": s.result})
		size += (len(s.says) + len(arguments) + len(s.result)) / 4
	}
	return sampleLines(t, records)
}
