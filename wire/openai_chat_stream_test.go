package wire_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

func init() {
	ends := func(e event) bool {
		return strings.Contains(e.data, `"finish_reason":"`) || strings.Contains(e.data, `"done":true`)
	}
	for name, f := range map[string]wire.OpenAIChat{
		"chat":                    {Model: "m"},
		"chat, DeepSeek":          {Dialect: wire.DeepSeek},
		"chat, Mistral":           {Dialect: wire.Mistral},
		"chat, Ollama":            {Dialect: wire.Ollama},
		"chat, StrictAlternation": {Dialect: wire.StrictAlternation},
		"chat, a host":            {Host: "h"},
	} {
		streamCases[name] = streamCase{
			format: f,
			answer: func(g *streamGenerator) (string, []event) {
				if f.Dialect == wire.Ollama && g.IntN(3) > 0 {
					return ollamaAnswer(g)
				}
				return chatAnswer(g, f)
			},
			ends: ends,
		}
	}
}

// chatCallPieces returns a call and the elements of tool_calls that stream it, in the
// style of a host. n is the number of calls before.
func chatCallPieces(g *streamGenerator, style, n int) (whole string, pieces []string) {
	id, name, args := fmt.Sprintf("call_%d", n), g.pick("search", "run"), g.arguments()
	q := jsonOf(args)
	whole = fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":%q,"arguments":%s}}`, id, name, q)
	cut := g.cut(args)
	add := func(format string, values ...any) { pieces = append(pieces, fmt.Sprintf(format, values...)) }
	switch style {
	case 0: // OpenAI
		add(`{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":""}}`, n, id, name)
		for _, p := range cut {
			add(`{"index":%d,"function":{"arguments":%s}}`, n, jsonOf(p))
		}
	case 1: // Alibaba: an empty id
		add(`{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":""}}`, n, id, name)
		for _, p := range cut {
			add(`{"index":%d,"id":"","type":"function","function":{"name":"","arguments":%s}}`, n, jsonOf(p))
		}
	case 2: // the id and the name in each chunk
		for _, p := range append([]string{""}, cut...) {
			add(`{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":%s}}`, n, id, name, jsonOf(p))
		}
	case 3: // a new id in each chunk
		add(`{"index":%d,"id":%q,"type":"function","function":{"name":%q}}`, n, id, name)
		for i, p := range cut {
			add(`{"index":%d,"id":"tool-%d-%d","function":{"arguments":%s}}`, n, n, i, jsonOf(p))
		}
	case 4: // Mistral: whole, and without an index
		add(`{"id":%q,"function":{"name":%q,"arguments":%s}}`, id, name, q)
	case 5: // always the same index
		add(`{"index":0,"id":%q,"function":{"name":%q,"arguments":%s}}`, id, name, q)
	case 6: // without an index, in pieces
		add(`{"id":%q,"function":{"name":%q}}`, id, name)
		for _, p := range cut {
			add(`{"function":{"arguments":%s}}`, jsonOf(p))
		}
	case 7: // the name in pieces
		add(`{"index":%d,"id":%q,"function":{"name":%q}}`, n, id, name[:2])
		add(`{"index":%d,"function":{"name":%q}}`, n, name[2:])
		add(`{"index":%d,"function":{"name":null,"arguments":%s}}`, n, q)
	case 8: // an object
		whole = fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":%q,"arguments":%s}}`, id, name, args)
		add(`{"index":%d,"id":%q,"function":{"name":%q,"arguments":%s}}`, n, id, name, args)
	case 9: // no id, and always the same index
		whole = fmt.Sprintf(`{"type":"function","function":{"name":%q,"arguments":%s}}`, name, q)
		add(`{"index":0,"function":{"name":%q,"arguments":%s}}`, name, q)
	case 10: // neither
		whole = fmt.Sprintf(`{"type":"function","function":{"name":%q,"arguments":%s}}`, name, q)
		add(`{"function":{"name":%q,"arguments":%s}}`, name, q)
	case 12: // of a custom tool, as OpenAI does
		text := g.pick(g.text(), args, "")
		whole = fmt.Sprintf(`{"id":%q,"type":"custom","custom":{"name":%q,"input":%s}}`, id, name, jsonOf(text))
		add(`{"index":%d,"id":%q,"type":"custom","custom":{"name":%q,"input":""}}`, n, id, name)
		for _, p := range g.cut(text) {
			add(`{"index":%d,"custom":{"input":%s}}`, n, jsonOf(p))
		}
	case 11: // signed
		whole = strings.TrimSuffix(whole, "}") + `,"extra_content":{"google":{"thought_signature":"c2lnbg=="}}}`
		add(`{"index":%d,"id":%q,"type":"function","extra_content":{"google":{"thought_signature":"c2ln"}},"function":{"name":%q,"arguments":%s}}`, n, id, name, q)
		add(`{"index":%d,"extra_content":{"google":{"thought_signature":"bg=="}}}`, n)
	}
	return whole, pieces
}

// detailPieces appends an entry of reasoning_details, and gives delta the pieces of it.
func detailPieces(g *streamGenerator, i int, entries *[]string, delta func(string, ...any)) {
	entry := func(format string, values ...any) { *entries = append(*entries, fmt.Sprintf(format, values...)) }
	piece := func(format string, values ...any) {
		delta(`{"reasoning_details":[%s]}`, fmt.Sprintf(format, values...))
	}
	text := g.text()
	switch g.IntN(5) {
	case 0: // a summary, the number and the id in each piece
		entry(`{"type":"reasoning.summary","summary":%s,"id":"rs_%d","format":"openai-responses-v1","index":%d}`, jsonOf(text), i, i)
		for _, p := range g.cut(text) {
			piece(`{"type":"reasoning.summary","summary":%s,"id":"rs_%d","format":"openai-responses-v1","index":%d}`, jsonOf(p), i, i)
		}
	case 1: // a text, with nulls until the signature comes
		entry(`{"type":"reasoning.text","text":%s,"signature":"c2ln","id":null,"format":"anthropic-claude-v1","index":%d}`, jsonOf(text), i)
		for _, p := range g.cut(text) {
			piece(`{"type":"reasoning.text","text":%s,"signature":null,"id":null,"format":"anthropic-claude-v1","index":%d}`, jsonOf(p), i)
		}
		piece(`{"type":"reasoning.text","signature":"c2ln","format":"anthropic-claude-v1","index":%d,"id":null}`, i)
	case 2: // an encrypted entry, with the same number in all
		entry(`{"type":"reasoning.encrypted","data":"ZW5j","id":"call_%d","format":"google-gemini-v1","index":0}`, i)
		piece(`{"id":"call_%d","type":"reasoning.encrypted","data":"ZW5j","format":"google-gemini-v1","index":0}`, i)
	case 3: // no number, but an end
		entry(`{"type":"reasoning.text","text":%s,"signature":"c2ln"}`, jsonOf(text))
		for _, p := range g.cut(text) {
			piece(`{"type":"reasoning.text","text":%s}`, jsonOf(p))
		}
		piece(`{"type":"reasoning.text","signature":"c2ln"}`)
	case 4: // an entry of an unknown kind
		entry(`{"type":"reasoning.server_tool_call","name":"f%d","more":{"a":[1,null]}}`, i)
		piece(`{"type":"reasoning.server_tool_call","name":"f%d","more":{"a":[1,null]}}`, i)
	}
}

// chatAnswer returns a random answer of Chat Completions, whole and as chunks.
func chatAnswer(g *streamGenerator, f wire.OpenAIChat) (string, []event) {
	var message, deltas []string
	field := func(key, value string) { message = append(message, fmt.Sprintf("%q:%s", key, value)) }
	delta := func(format string, values ...any) { deltas = append(deltas, fmt.Sprintf(format, values...)) }
	delta("%s", g.pick(`{"role":"assistant","content":""}`, `{"role":"assistant"}`, `{"role":"assistant","content":null,"refusal":null,"tool_calls":[]}`))
	lists := g.IntN(5) == 0
	var parts []string
	if g.IntN(2) == 0 {
		text := g.text()
		switch key := g.pick("reasoning_content", "reasoning"); {
		case lists:
			g.unread = f.Dialect != wire.Mistral
			parts = append(parts, `{"type":"thinking","thinking":[{"type":"text","text":`+jsonOf(text)+`}]}`)
			for _, p := range g.cut(text) {
				delta(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":%s}]}]}`, jsonOf(p))
			}
		case g.IntN(3) == 0: // OpenRouter with several entries, and without the text
			g.unread = f.Dialect == wire.DeepSeek || f.Dialect == wire.Ollama
			var entries []string
			for i := range 1 + g.IntN(4) {
				detailPieces(g, i, &entries, delta)
			}
			field("reasoning_details", "["+strings.Join(entries, ",")+"]")
		case key == "reasoning" && g.IntN(2) == 0: // OpenRouter
			field(key, jsonOf(text))
			field("reasoning_details", `[{"type":"reasoning.text","text":`+jsonOf(text)+`,"format":"x","index":0,"signature":"sig=="},{"type":"reasoning.encrypted","data":"abc"}]`)
			for _, p := range g.cut(text) {
				delta(`{"content":"","reasoning":%[1]s,"reasoning_details":[{"type":"reasoning.text","text":%[1]s,"format":"x","index":0}]}`, jsonOf(p))
			}
			delta(`{"reasoning_details":[{"type":"reasoning.text","signature":"si","index":0}]}`)
			delta(`{"reasoning_details":[{"type":"reasoning.text","signature":"g==","index":0},{"type":"reasoning.encrypted","data":"abc"}]}`)
		default:
			field(key, jsonOf(text))
			for _, p := range g.cut(text) {
				delta(`{%q:%s%s}`, key, jsonOf(p), g.pick("", `,"content":null`, `,"tool_calls":[]`))
			}
		}
	}
	if g.IntN(8) == 0 {
		field("refusal", `""`)
	}
	if text := g.text(); g.IntN(4) > 0 {
		for _, p := range g.cut(text) {
			if lists && g.IntN(2) == 0 {
				delta(`{"content":[{"type":"text","text":%s}]}`, jsonOf(p))
			} else {
				delta(`{"content":%s}`, jsonOf(p))
			}
		}
		if lists {
			parts = append(parts, `{"type":"text","text":`+jsonOf(text)+`}`)
		} else {
			field("content", jsonOf(text))
		}
	}
	if len(parts) > 0 {
		field("content", "["+strings.Join(parts, ",")+"]")
	}
	stop := "stop"
	if g.IntN(2) == 0 {
		stop = "tool_calls"
		style := g.IntN(13)
		var calls []string
		var pieces [][]string
		for range 1 + g.IntN(3) {
			whole, list := chatCallPieces(g, style, len(calls))
			calls, pieces = append(calls, whole), append(pieces, list)
		}
		field("tool_calls", "["+strings.Join(calls, ",")+"]")
		switch g.IntN(4) {
		case 0: // several in one chunk
			var all []string
			for _, list := range pieces {
				all = append(all, list...)
			}
			delta(`{"tool_calls":[%s]}`, strings.Join(all, ","))
		case 1: // calls that have an index or an id in each piece may interleave
			if style <= 2 || style == 7 || style >= 11 {
				for k, open := 0, true; open; k++ {
					open = false
					for _, list := range pieces {
						if k < len(list) {
							open = true
							delta(`{"tool_calls":[%s]}`, list[k])
						}
					}
				}
				break
			}
			fallthrough
		default:
			for _, list := range pieces {
				for _, p := range list {
					delta(`{"tool_calls":[%s]}`, p)
				}
			}
		}
	} else if g.IntN(6) == 0 {
		text := g.text()
		field("refusal", jsonOf(text))
		for _, p := range g.cut(text) {
			delta(`{"refusal":%s}`, jsonOf(p))
		}
	}
	if g.IntN(4) == 0 {
		field("extra_content", `{"google":{"thought_signature":"c2lnbg=="}}`)
		delta(`{"extra_content":{"google":{"thought_signature":"c2ln"}}}`)
		delta(`{"extra_content":{"google":{"thought_signature":"bg=="}}}`)
	}
	if g.IntN(4) == 0 {
		field("annotations", `[{"type":"url_citation","url_citation":{"url":"https://a"}}]`)
		delta(`{"annotations":[{"type":"url_citation","url_citation":{"url":"https://a"}}]}`)
	}
	if g.IntN(8) == 0 {
		stop = "length"
	}
	const usage = `{"prompt_tokens":30,"completion_tokens":7,"total_tokens":37,"prompt_tokens_details":{"cached_tokens":20}}`
	body := fmt.Sprintf(`{"id":"c1","object":"chat.completion","model":"m-1","choices":[{"index":0,"message":{"role":"assistant",%s},"finish_reason":%q}],"usage":%s}`,
		strings.Join(append(message, `"x":null`), ","), stop, usage)

	var out []event
	rotating, chunks := g.IntN(5) == 0, 0
	chunk := func(choices, rest string) {
		id := "c1"
		if chunks++; rotating {
			id = fmt.Sprint("c", chunks)
		}
		head := fmt.Sprintf(`{"id":%q,"object":"chat.completion.chunk","model":"m-1"`, id)
		out = append(out, event{"", head + `,"choices":` + choices + rest + "}"})
	}
	if g.IntN(5) == 0 { // Azure
		out = append(out, event{"", `{"id":"","model":"","object":"","choices":[],"prompt_filter_results":[{"prompt_index":0}]}`})
	}
	beside := g.IntN(3) == 0 // the last delta is in the chunk with the finish_reason
	for i, d := range deltas {
		if beside && i == len(deltas)-1 {
			break
		}
		if g.IntN(20) == 0 {
			out = append(out, event{"ping", `{"type":"ping"}`})
		}
		chunk(`[{"index":0,"delta":`+d+g.pick("", `,"finish_reason":null`, `,"finish_reason":"","logprobs":null`)+"}]", g.pick("", `,"usage":null`, `,"error":null`))
	}
	last := g.pick("{}", `{"content":""}`, `{"content":null,"tool_calls":[]}`)
	if beside {
		last = deltas[len(deltas)-1]
	}
	last = fmt.Sprintf(`[{"delta":%s,"finish_reason":%q}]`, last, stop)
	switch g.IntN(4) {
	case 0:
		chunk(last, `,"usage":`+usage)
	case 1:
		chunk(last, "")
		chunk("[]", `,"usage":`+usage)
	case 2: // twice
		chunk(last, `,"usage":{"prompt_tokens":1,"completion_tokens":7}`)
		chunk("[]", `,"usage":`+usage)
	case 3: // Groq, before it had the other field
		chunk(last, `,"x_groq":{"id":"r","usage":`+usage+`}`)
	}
	if g.IntN(3) > 0 {
		out = append(out, event{"", "[DONE]"})
	}
	return body, out
}

// ollamaAnswer returns a random answer of Ollama's /api/chat, whole and as lines.
func ollamaAnswer(g *streamGenerator) (string, []event) {
	var message []string
	var out []event
	line := func(format string, values ...any) {
		out = append(out, event{"", `{"model":"m-1","created_at":"2026-11-22T12:00:00Z","message":{"role":"assistant",` + fmt.Sprintf(format, values...) + `},"done":false}`})
	}
	if g.IntN(2) == 0 {
		text := g.text()
		message = append(message, `"thinking":`+jsonOf(text))
		for _, p := range g.cut(text) {
			line(`"content":"","thinking":%s`, jsonOf(p))
		}
	}
	text := g.text()
	message = append(message, `"content":`+jsonOf(text))
	for _, p := range g.cut(text) {
		line(`"content":%s`, jsonOf(p))
	}
	var calls []string
	for i := range g.IntN(3) {
		id := ""
		if i > 0 && g.IntN(2) == 0 {
			id = fmt.Sprintf(`"id":"call_%d",`, i)
		}
		call := fmt.Sprintf(`{%s"function":{"index":%d,"name":"f","arguments":%s}}`, id, i, g.arguments())
		calls = append(calls, call)
		line(`"content":"","tool_calls":[%s]`, call)
	}
	if len(calls) > 0 {
		message = append(message, `"tool_calls":[`+strings.Join(calls, ",")+"]")
	}
	end := fmt.Sprintf(`"done_reason":%q,"done":true,"total_duration":5,"prompt_eval_count":26,"eval_count":9`, g.pick("stop", "stop", "length"))
	out = append(out, event{"", `{"model":"m-1","created_at":"2026-11-22T12:00:01Z","message":{"role":"assistant","content":""},` + end + "}"})
	return `{"model":"m-1","created_at":"2026-11-22T12:00:01Z","message":{"role":"assistant",` + strings.Join(message, ",") + "}," + end + "}", out
}

// chatDeltas returns the chunks with these deltas, and the end.
func chatDeltas(deltas ...string) (events []event) {
	for _, d := range deltas {
		events = append(events, event{"", `{"choices":[{"index":0,"delta":` + d + `}]}`})
	}
	return append(events, event{"", `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`})
}

func TestChatStream_Quirks(t *testing.T) {
	const usage = `"usage":{"prompt_tokens":5,"completion_tokens":2}`
	checkQuirks(t, wire.OpenAIChat{}, []quirk{
		{"[DONE] without a finish_reason", chunks(`{"choices":[{"delta":{"content":"a"}}]}`, "[DONE]"), "a", nil, nil, convo.StopDone},
		{"nothing but [DONE]", chunks("[DONE]"), "", nil, nil, convo.StopDone},
		{"an empty choice", chunks(`{"choices":[{"delta":{},"finish_reason":"content_filter"}]}`), "", nil, nil, convo.StopRefused},
		{"a whole answer by a server that does not stream", chunks(`{"id":"1","choices":[{"index":0,"message":{"role":"assistant","content":"whole"},"finish_reason":"length"}],` + usage + `}`), "whole", nil, nil, convo.StopLength},
		{"the whole so far beside the delta", chunks(`{"choices":[{"delta":{"content":"a"},"message":{"role":"assistant","content":"a"}}]}`, `{"choices":[{"delta":{"content":"b"},"message":{"role":"assistant","content":"ab"},"finish_reason":"stop"}]}`), "ab", nil, nil, convo.StopDone},
		{"content behind the finish_reason", chunks(`{"id":"1","choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}`, `{"id":"1","choices":[{"delta":{"content":"b"},"finish_reason":"stop"}]}`, "[DONE]", `{"id":"1","choices":[],`+usage+"}"), "ab", nil, nil, convo.StopDone},
		{"rotating ids behind the finish_reason", chunks(`{"id":"1","choices":[{"delta":{"content":"a"}}]}`, `{"id":"2","choices":[{"delta":{},"finish_reason":"stop"}]}`, `{"id":"3","choices":[{"delta":{"content":"b"}}]}`), "ab", nil, nil, convo.StopDone},
		{"other choices", chunks(`{"choices":[{"index":1,"delta":{"content":"x"}},{"index":0,"delta":{"content":"a"}}]}`, `{"choices":[{"index":1,"delta":{},"finish_reason":"stop"}]}`, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`), "a", nil, []string{"choices[1].message: a choice after the first one"}, convo.StopDone},
		{"half a character", chatDeltas(`{"content":"\ud83d"}`, `{"content":"\ude42"}`), "🙂", nil, nil, convo.StopDone},
		{"an event of another kind", append([]event{{"hermes.tool.progress", `{"tool":"x"}`}}, chatDeltas(`{"content":"a"}`)...), "a", nil, []string{"hermes.tool.progress: an event of an unknown kind"}, convo.StopDone},
		{"no error", append(chunks(`{"error":null,"choices":[]}`, `{"error":{},"choices":[]}`, `{"error":"","choices":[]}`), chatDeltas(`{"content":"a"}`)...), "a", nil, nil, convo.StopDone},
		{"text, then parts, then text", chatDeltas(`{"content":"a"}`, `{"content":[{"type":"text","text":"b"},"c"]}`, `{"content":""}`, `{"content":"d"}`), "abcd", nil, nil, convo.StopDone},

		{"a name that is given again", chatDeltas(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"get"}}]}`, `{"tool_calls":[{"index":0,"function":{"name":"get","arguments":"{}"}}]}`, `{"tool_calls":[{"index":0,"function":{"name":"get","arguments":""}}]}`),
			"", []string{"a get {}"}, nil, convo.StopToolCall},
		{"the name again with each piece", chatDeltas(`{"tool_calls":[{"index":0,"function":{"name":"get","arguments":"{"}}]}`, `{"tool_calls":[{"index":0,"function":{"name":"get","arguments":"}"}}]}`),
			"", []string{"- get {}"}, nil, convo.StopToolCall},
		{"a name in three pieces", chatDeltas(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"get"}}]}`, `{"tool_calls":[{"index":0,"function":{"name":"_the"}}]}`, `{"tool_calls":[{"index":0,"id":"a","function":{"name":"_time"}}]}`),
			"", []string{"a get_the_time "}, nil, convo.StopToolCall},
		{"one index, ids", chatDeltas(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`, `{"tool_calls":[{"index":0,"id":"b","function":{"name":"f","arguments":"{}"}}]}`),
			"", []string{"a f {}", "b f {}"}, nil, convo.StopToolCall},
		{"one index, no ids, one name", chatDeltas(`{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{\"a\":\"}\"}"}}]}`, `{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{\"a\":2}"}}]}`),
			"", []string{`- f {"a":"}"}`, `- f {"a":2}`}, nil, convo.StopToolCall},
		{"one index, no ids, two names, no arguments", chatDeltas(`{"tool_calls":[{"index":0,"function":{"name":"f","arguments":{}}}]}`, `{"tool_calls":[{"index":0,"function":{"name":"g","arguments":{}}}]}`),
			"", []string{`- f {}`, `- g {}`}, nil, convo.StopToolCall},
		{"one index, no ids, two names, broken arguments", chatDeltas(`{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{\"a\":"}}]}`, `{"tool_calls":[{"index":0,"function":{"name":"g","arguments":"{}"}}]}`),
			"", []string{`- f {"a":`, `- g {}`}, nil, convo.StopToolCall},
		{"the name again, and braces in a text", chatDeltas(`{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{\"a\":\"\\\"}"}}]}`, `{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"\"}"}}]}`),
			"", []string{`- f {"a":"\"}"}`}, nil, convo.StopToolCall},
		{"another name for one ID, behind arguments", chatDeltas(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]}`, `{"tool_calls":[{"index":0,"id":"a","function":{"name":"g","arguments":"}"}}]}`),
			"", []string{"a f {}"}, nil, convo.StopToolCall},
		{"no index, ids, interleaved", chatDeltas(`{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{"}},{"id":"b","function":{"name":"g","arguments":"{"}}]}`, `{"tool_calls":[{"id":"a","function":{"arguments":"}"}},{"id":"b","function":{"arguments":"}"}}]}`),
			"", []string{"a f {}", "b g {}"}, nil, convo.StopToolCall},
		{"neither index nor id", chatDeltas(`{"tool_calls":[{"function":{"name":"f"}}]}`, `{"tool_calls":[{"function":{"arguments":"{}"}}]}`, `{"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}`),
			"", []string{"- f {}", "- f {}"}, nil, convo.StopToolCall},
		{"the id comes late", chatDeltas(`{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{"}}]}`, `{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"}"}}]}`),
			"", []string{"a f {}"}, nil, convo.StopToolCall},
		{"a null index", chatDeltas(`{"tool_calls":[{"index":null,"id":"a","function":{"name":"f","arguments":"{"}}]}`, `{"tool_calls":[{"index":null,"id":null,"function":{"arguments":"}"}}]}`),
			"", []string{"a f {}"}, nil, convo.StopToolCall},
		{"a call without a name", chatDeltas(`{"content":"a","tool_calls":[{"index":0,"id":"a","function":{"arguments":"{}"}},{"index":1,"id":"b","function":{"name":"f","arguments":"{}"}}]}`),
			"a", []string{"b f {}"}, []string{"tool_calls[0]: a call without a name"}, convo.StopToolCall},
		{"one ID for two calls", chatDeltas(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}},{"index":1,"id":"a","function":{"name":"g","arguments":"{}"}}]}`),
			"", []string{"a f {}", "- g {}"}, []string{"choices[0].message.tool_calls[1].id: an id that another call of the message has, too"}, convo.StopToolCall},
		{"another field of a call", chatDeltas(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}","mood":7}}]}`),
			"", []string{"a f {}"}, []string{"choices[0].message.tool_calls[0].function.mood: no place for this field"}, convo.StopToolCall},
		{"cut off by the length", chunks(`{"choices":[{"delta":{"content":"a","tool_calls":[{"index":0,"id":"x","function":{"name":"rm"}}]},"finish_reason":"length"}]}`), "a", nil, nil, convo.StopLength},
	})
}

// Fields that stay empty count as missing.
func TestChatStream_EmptyFields(t *testing.T) {
	got, _ := streamed(t, wire.OpenAIChat{}, chatDeltas(`{"content":"","refusal":"","reasoning_content":"","annotations":null}`, `{"reasoning":"r"}`, `{"content":"a"}`))
	assert.Equal(t, []convo.Part{convo.Reasoning{ID: "reasoning", Text: "r"}, convo.Text("a")}, got.Messages[0].Parts)
	assert.Empty(t, got.Lost)
}

func TestChatStream_Usage(t *testing.T) {
	for name, last := range map[string]string{
		"beside the end":       `{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}`,
		"in the choice":        `{"choices":[{"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":5,"completion_tokens":2}}]}`,
		"in a field of Groq's": `{"choices":[{"delta":{},"finish_reason":"stop"}],"x_groq":{"usage":{"prompt_tokens":5,"completion_tokens":2}}}`,
		"both":                 `{"choices":[{"delta":{},"finish_reason":"stop"}],"x_groq":{"usage":{"prompt_tokens":9}},"usage":{"prompt_tokens":5,"completion_tokens":2}}`,
	} {
		got, _ := streamed(t, wire.OpenAIChat{}, chunks(`{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":5,"completion_tokens":1}}`, last))
		want := convo.Usage{Input: 5, Output: 2}
		if strings.HasPrefix(name, "in ") {
			want.Output = 1 // the field with the usual name wins
		}
		assert.Equal(t, want, got.Usage, name)
		got, _ = streamed(t, wire.OpenAIChat{}, chunks(last))
		assert.Equal(t, convo.Usage{Input: 5, Output: 2}, got.Usage, name)
	}
}

func TestChatStream_Errors(t *testing.T) {
	checkErrorEvents(t, wire.OpenAIChat{}, chunks(`{"id":"1","choices":[{"delta":{"content":"so far"}}]}`), []errorQuirk{
		{"OpenAI", event{"", `{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`},
			wire.ProviderError{Type: "invalid_request_error", Code: "context_length_exceeded", Message: "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."}, true},
		{"OpenRouter", event{"", `{"id":"1","error":{"code":502,"message":"Provider disconnected"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`},
			wire.ProviderError{Code: "502", Message: "Provider disconnected"}, false},
		{"OpenRouter, in the choice", event{"", `{"choices":[{"error":{"code":429,"message":"slow down"},"finish_reason":"error"}]}`}, wire.ProviderError{Code: "429", Message: "slow down"}, false},
		{"vLLM", event{"", `{"object":"error","message":"no","type":"BadRequestError","code":400}`}, wire.ProviderError{Type: "BadRequestError", Code: "400", Message: "no"}, false},
		{"a text", event{"", `{"error":"model not found"}`}, wire.ProviderError{Message: "model not found"}, false},
		{"a named event", event{"error", `{"message":"no"}`}, wire.ProviderError{Message: "no"}, false},
		{"a detail", event{"", `{"detail":"no"}`}, wire.ProviderError{Message: "no"}, false},
	}, func(*testing.T, wire.Transcript) {})

	for name, data := range map[string][]string{
		"another answer":                {`{"id":"1","choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}`, `{"id":"2","choices":[{"delta":{"content":"b"}}]}`},
		"another answer behind [DONE]":  {`{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}`, "[DONE]", `{"choices":[{"delta":{"content":"b"}}]}`},
		"content that is no content":    {`{"choices":[{"delta":{"content":7}}]}`},
		"calls that are none":           {`{"choices":[{"delta":{"tool_calls":["x"]}}]}`},
		"choices that are none":         {`{"choices":{}}`},
		"an index that is none":         {`{"choices":[{"index":"x"}]}`},
		"no JSON":                       {`{"choices":`},
		"a delta that is none":          {`{"choices":[{"delta":[]}]}`},
		"an element of content is none": {`{"choices":[{"delta":{"content":[7]}}]}`},
	} {
		s := wire.OpenAIChat{}.Stream()
		var err error
		for _, d := range data {
			require.NoError(t, err, name)
			_, err = s.Event("", []byte(d))
		}
		assert.ErrorAs(t, err, new(*wire.DecodeError), name)
		_, again := s.Transcript()
		assert.Equal(t, err, again, name)
	}
}

// The calls of a stream that broke off count as incomplete, because nothing marks them as
// whole.
func TestChatStream_HalfCalls(t *testing.T) {
	s, _ := feed(t, wire.OpenAIChat{}, chunks(
		`{"choices":[{"delta":{"content":"I will."}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"ls","arguments":"{}"}}]}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"delete_all"}}]}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":2,"id":"c"}]}}]}`))
	got, err := s.Transcript()
	require.Error(t, err)
	require.Len(t, got.Messages, 1)
	assert.Equal(t, []convo.Part{convo.Text("I will.")}, got.Messages[0].Parts)
	assert.Equal(t, &convo.ToolCall{ID: "b", Name: "delete_all"}, got.CutOff)
	assert.Equal(t, []wire.Loss{{"call 0", `the call "ls", which the provider had not ended`}, {"tool_calls[2]", "a call without a name"}}, got.Lost)
}

// The details of reasoning are the same as in an answer that is not streamed, regardless of
// their numbers and ids. TestStream_IsTheWhole streams them.
func TestChatStream_Details(t *testing.T) {
	for _, tt := range []struct{ name, pieces, want string }{
		{"by index", `[{"type":"reasoning.text","text":"a","index":0}] [{"type":"reasoning.text","text":"b","index":0},{"type":"reasoning.encrypted","data":"x","index":1}] [{"type":"reasoning.encrypted","data":"y","index":1}]`,
			`[{"type":"reasoning.text","text":"ab","index":0},{"type":"reasoning.encrypted","data":"xy","index":1}]`},
		{"an index for two kinds", `[{"type":"reasoning.summary","summary":"a","index":0}] [{"type":"reasoning.encrypted","data":"x","index":0}]`,
			`[{"type":"reasoning.summary","summary":"a","index":0},{"type":"reasoning.encrypted","data":"x","index":0}]`},
		{"without an index", `[{"type":"reasoning.text","text":"a"}] [{"type":"reasoning.text","text":"b"}] [{"type":"reasoning.text","signature":"s"}] [{"type":"reasoning.text","signature":"t"}] [{"type":"reasoning.text","text":"c"}]`,
			`[{"type":"reasoning.text","text":"ab","signature":"st"},{"type":"reasoning.text","text":"c"}]`},
		{"by id", `[{"type":"reasoning.text","text":"a","id":"1"}] [{"type":"reasoning.text","text":"b","id":"2"}]`,
			`[{"type":"reasoning.text","text":"a","id":"1"},{"type":"reasoning.text","text":"b","id":"2"}]`},
		{"encrypted", `[{"type":"reasoning.encrypted","data":"a"}] [{"type":"reasoning.encrypted","data":"b"}]`,
			`[{"type":"reasoning.encrypted","data":"a"},{"type":"reasoning.encrypted","data":"b"}]`},
		{"what is nested deeply is replaced", `[{"index":0,"a":{"b":{"c":{"d":"x"}}}}] [{"index":0,"a":{"b":{"c":{"d":"y"}}}}]`,
			`[{"index":0,"a":{"b":{"c":{"d":"y"}}}}]`},
		{"other kinds", `[7] [true,"x"] [null] [{"n":1}]`, `[7,true,"x",null,{"n":1}]`},
		{"one number, several ids", `[{"type":"reasoning.encrypted","id":"a","data":"1","index":0}] [{"type":"reasoning.encrypted","id":"b","data":"2","index":0}]`,
			`[{"type":"reasoning.encrypted","id":"a","data":"1","index":0},{"type":"reasoning.encrypted","id":"b","data":"2","index":0}]`},
		{"an id in the first piece only", `[{"type":"reasoning.text","id":"a","text":"1","index":0}] [{"type":"reasoning.text","id":null,"text":"2","index":0}] [{"type":"reasoning.text","id":"","text":"3","index":0}]`,
			`[{"type":"reasoning.text","id":"a","text":"123","index":0}]`},
		{"a signature of its own entry", `[{"type":"reasoning.text","text":"1","signature":null}] [{"type":"reasoning.text","text":null,"signature":"s"}] [{"type":"reasoning.text","text":"2"}]`,
			`[{"type":"reasoning.text","text":"1","signature":"s"},{"type":"reasoning.text","text":"2"}]`},
		{"another kind between", `[{"type":"reasoning.summary","summary":"1","index":0}] [{"type":"reasoning.encrypted","data":"e","index":0}] [{"type":"reasoning.summary","summary":"2","index":0}]`,
			`[{"type":"reasoning.summary","summary":"12","index":0},{"type":"reasoning.encrypted","data":"e","index":0}]`},
		{"nulls", `[{"type":"reasoning.text","text":"1","signature":null,"format":null,"index":null}]`,
			`[{"type":"reasoning.text","text":"1","signature":null,"format":null,"index":null}]`},
	} {
		assert.Equal(t, tt.want, wire.MergeStreamed(strings.Fields(tt.pieces)...), tt.name)
	}
}

func TestChatStream_Recorded(t *testing.T) {
	n := 0
	for _, host := range []struct {
		prefix string
		f      wire.OpenAIChat
	}{
		{"alibaba__", wire.OpenAIChat{}}, {"cerebras__", wire.OpenAIChat{}}, {"deepseek__", wire.OpenAIChat{Dialect: wire.DeepSeek}},
		{"groq__", wire.OpenAIChat{}}, {"mistral__", wire.OpenAIChat{Dialect: wire.Mistral}}, {"moonshotai__", wire.OpenAIChat{}},
		{"openai-compatible__", wire.OpenAIChat{}}, {"openai__chat__", wire.OpenAIChat{}},
	} {
		recordedEvents(t, host.prefix, func(event) bool { return false }, func(t *testing.T, all []event) {
			id := ""
			var answers [][]event // of a file that holds several
			for _, e := range all {
				var chunk struct{ ID string }
				require.NoError(t, json.Unmarshal([]byte(e.data), &chunk))
				if len(answers) == 0 || chunk.ID != id {
					answers, id = append(answers, nil), chunk.ID
				}
				answers[len(answers)-1] = append(answers[len(answers)-1], e)
			}
			for _, events := range answers {
				n++
				got, deltas := streamed(t, host.f, events)
				require.Len(t, got.Messages, 1)
				assert.NotZero(t, got.Usage.Input)
				assert.NotZero(t, got.Usage.Output)
				assert.NotEmpty(t, got.ID)
				assert.NotEmpty(t, got.Model)
				assert.NotEmpty(t, got.StopReason)
				assert.Empty(t, got.Lost)
				assert.Nil(t, got.CutOff)
				text, reasoning, calls := shown(deltas)
				said, _, made := contentOf(got.Messages)
				assert.Equal(t, said, text)
				assert.Equal(t, made, calls)
				for _, c := range made {
					assert.True(t, c.Valid(), c.Arguments)
					assert.False(t, c.Minted)
				}
				assert.NotEmpty(t, text+reasoning+fmt.Sprint(made))
				historyOf(t, append([]convo.Message{convo.User("x")}, got.Messages...)...)
			}
		})
	}
	t.Logf("%d answers", n)
}

func FuzzChatStream(f *testing.F) {
	for seed := range 20 {
		g := &streamGenerator{Rand: rand.New(rand.NewPCG(uint64(seed), 4))}
		_, events := chatAnswer(g, wire.OpenAIChat{})
		f.Add(uint8(seed)+uint8(seed%2*64), []byte(framings["server-sent events"](events)))
		_, events = ollamaAnswer(g)
		f.Add(uint8(wire.Ollama), []byte(framings["lines"](events)))
	}
	f.Add(uint8(0), []byte(`data: {"choices":[{"message":{"role":"tool","content":[{"type":"x"}]}}]}`))
	f.Add(uint8(0), []byte("data: {\"model\":7,\"choices\":[{\"delta\":{\"name\":{},\"images\":1}}]}\n\ndata: [DONE]"))
	f.Fuzz(func(t *testing.T, dialect uint8, data []byte) {
		f := wire.OpenAIChat{Dialect: wire.Dialect(dialect % 6)}
		if dialect&64 != 0 {
			f.Host = "h"
		}
		checkStreamed(t, f, data)
	})
}
