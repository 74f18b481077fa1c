package wire

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// Providers report the usage of an answer in different ways; in particular, their figures
// include different things. Values that are not numbers count as 0, so that no answer is
// lost because of them. For figures that every answer has, they are listed in Lost.

// A figures is a JSON object of numbers. It is nil if the value is not an object.
type figures map[string]json.RawMessage

func figuresOf(raw json.RawMessage) figures {
	if kindOf(raw) != '{' {
		return nil
	}
	all, _ := strictjson.SplitObject(raw)
	return all
}

// figure returns the number in a field, or 0 if there is none.
func (o figures) figure(key string) int { return figure(o[key]) }

func figure(raw json.RawMessage) int {
	n, _ := numberIn(raw)
	return max(n, 0)
}

// numberIn reads a whole number, which some servers write with a decimal point or as a
// string.
func numberIn(raw json.RawMessage) (n int, ok bool) {
	text := string(raw)
	if kindOf(raw) == '"' {
		text = stringOf(raw)
	}
	n, err := strconv.Atoi(text)
	if err == nil {
		return n, true
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil && math.Abs(f) < 1<<53 && f == math.Trunc(f) {
		return int(f), true
	}
	return 0, false
}

// lostFigure is the Loss.What of a usage that is not made of numbers.
const lostFigure = "a usage that is no number"

// figures returns the figures of a usage. Each of the names whose value is not a number
// is recorded as lost.
func (d *decoder) figures(path string, raw json.RawMessage, names ...string) figures {
	if isNull(raw) {
		return nil
	}
	all := figuresOf(raw)
	if all == nil {
		d.lose(path, lostFigure)
	}
	return d.figuresIn(path, all, names...)
}

func (d *decoder) figuresIn(path string, all figures, names ...string) figures {
	for _, name := range names {
		if _, ok := numberIn(all[name]); !ok && !isNull(all[name]) {
			d.lose(at(path, name), lostFigure)
		}
	}
	return all
}

// sum adds numbers. Negative numbers count as 0, and a sum that is too large is MaxInt.
func sum(numbers ...int) int {
	total := 0
	for _, n := range numbers {
		n = max(n, 0)
		if n > math.MaxInt-total {
			return math.MaxInt
		}
		total += n
	}
	return total
}

// cleaned returns a usage in which no figure is negative, and none is larger than the
// figure it is a part of. The tokens read from a cache and the tokens written to it do
// not overlap.
func cleaned(u convo.Usage) convo.Usage {
	for _, n := range []*int{&u.Input, &u.CacheRead, &u.CacheWrite, &u.Output} {
		*n = max(*n, 0)
	}
	u.CacheRead = min(u.CacheRead, u.Input)
	u.CacheWrite = min(u.CacheWrite, u.Input-u.CacheRead)
	for _, d := range []struct {
		part  *int
		whole int
	}{{&u.CacheWriteLong, u.CacheWrite}, {&u.InputAudio, u.Input}, {&u.Extra, u.Input}, {&u.Reasoning, u.Output}, {&u.OutputAudio, u.Output}} {
		*d.part = min(max(*d.part, 0), d.whole)
	}
	return u
}

// withReasoning returns the output including reasoning. For most providers the output
// includes it; xAI and others count it separately, which the total shows.
func withReasoning(input, output, reasoning, total int) int {
	if total == sum(input, output, reasoning) || total == 0 && reasoning > output {
		return sum(output, reasoning)
	}
	return output
}

// chatUsage reads the usage of an answer of Chat Completions or of Ollama. Cached and
// written tokens are part of prompt_tokens.
func (d *decoder) chatUsage(all map[string]json.RawMessage, ollama bool) convo.Usage {
	more := d.figures("usage", all["usage"], "prompt_tokens", "completion_tokens")
	prompt, completion := more.figure("prompt_tokens"), more.figure("completion_tokens")
	if ollama {
		own := d.figuresIn("", all, "prompt_eval_count", "eval_count")
		prompt, completion = max(prompt, own.figure("prompt_eval_count")), max(completion, own.figure("eval_count"))
	}
	in, out := figuresOf(more["prompt_tokens_details"]), figuresOf(more["completion_tokens_details"])
	reasoning := out.figure("reasoning_tokens")
	return cleaned(convo.Usage{
		Input:       prompt,
		CacheRead:   max(more.figure("prompt_cache_hit_tokens"), in.figure("cached_tokens"), more.figure("cached_tokens")),
		CacheWrite:  in.figure("cache_write_tokens"),
		InputAudio:  in.figure("audio_tokens"),
		Output:      withReasoning(prompt, completion, reasoning, more.figure("total_tokens")),
		Reasoning:   reasoning,
		OutputAudio: out.figure("audio_tokens"),
	})
}

// responsesUsage reads the usage of a response. Cached and written tokens are part of
// input_tokens.
func (d *decoder) responsesUsage(path string, raw json.RawMessage) convo.Usage {
	more := d.figures(path, raw, "input_tokens", "output_tokens")
	input := more.figure("input_tokens")
	in := figuresOf(more["input_tokens_details"])
	reasoning := figuresOf(more["output_tokens_details"]).figure("reasoning_tokens")
	return cleaned(convo.Usage{
		Input:          input,
		CacheRead:      in.figure("cached_tokens"),
		CacheWrite:     in.figure("cache_write_tokens"),
		CacheWriteLong: figuresOf(in["cache_write_tokens_details"]).figure("ttl_12h_tokens"),
		Output:         withReasoning(input, more.figure("output_tokens"), reasoning, more.figure("total_tokens")),
		Reasoning:      reasoning,
	})
}

// anthropicUsage reads the usage of a message. Cached and written tokens are not part of
// input_tokens. With server tools, the figures are the sums over the iterations that
// wrote the message. The usage of a compaction or of another model is only in its own
// iteration. If no iteration has a type that writes the message, iterations of unknown
// types count as writing it.
func (d *decoder) anthropicUsage(raw json.RawMessage) convo.Usage {
	more := d.figures("usage", raw, anthropicFigures...)
	out := more.anthropic()
	out.Reasoning = figuresOf(more["output_tokens_details"]).figure("thinking_tokens")
	iterations, _ := strictjson.SplitArray(more["iterations"])
	request, known := 0, len(iterations) == 0
	named := slices.ContainsFunc(iterations, func(raw json.RawMessage) bool { return isMessageIteration(figuresOf(raw)) })
	for i, raw := range iterations {
		losses := d.losses
		all := d.figures(atIndex("usage.iterations", i), raw, anthropicFigures...)
		if d.losses > losses {
			continue
		}
		it := all.anthropic()
		kind := stringOf(all["type"])
		if !named && it.Input > 0 && kind != "compaction" && kind != "advisor_message" {
			kind = "message" // an unknown type
		}
		switch kind {
		case "message":
			if !known { // later iterations include what the answer itself added
				request, known = it.Input, true
			}
			continue
		case "fallback_message":
			request, known = it.Input, true // the same request for another model
			continue
		case "compaction":
			request, known = 0, false // what follows is another request
		}
		out.Input, out.Output = sum(out.Input, it.Input), sum(out.Output, it.Output)
		out.CacheRead, out.CacheWrite = sum(out.CacheRead, it.CacheRead), sum(out.CacheWrite, it.CacheWrite)
		out.CacheWriteLong = sum(out.CacheWriteLong, it.CacheWriteLong)
	}
	if len(iterations) > 0 {
		out.Extra = max(out.Input-request, 0)
	}
	return cleaned(out)
}

// appliedEdits returns how many tokens the edits of a context_management in an answer have
// cleared.
func (d *decoder) appliedEdits(raw json.RawMessage) (cleared int) {
	edits, _ := strictjson.SplitArray(figuresOf(raw)["applied_edits"])
	for i, raw := range edits {
		const name = "cleared_input_tokens"
		all := d.figures(atIndex("context_management.applied_edits", i), raw, name)
		cleared = sum(cleared, all.figure(name))
	}
	return cleared
}

// isMessageIteration reports whether the type of an iteration states that it wrote the
// message.
func isMessageIteration(all figures) bool {
	kind := stringOf(all["type"])
	return kind == "message" || kind == "fallback_message"
}

// anthropicFigures are the figures of a message or of an iteration.
var anthropicFigures = []string{"input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens"}

// anthropic returns the usage of a message or of an iteration.
func (o figures) anthropic() convo.Usage {
	read, write := o.figure("cache_read_input_tokens"), o.figure("cache_creation_input_tokens")
	return cleaned(convo.Usage{
		Input: sum(o.figure("input_tokens"), read, write), CacheRead: read, CacheWrite: write, Output: o.figure("output_tokens"),
		CacheWriteLong: figuresOf(o["cache_creation"]).figure("ephemeral_1h_input_tokens"),
	})
}

// geminiUsage reads the usage of an answer. The cached content is part of the prompt;
// thoughts are not part of the candidates, and results of tools are not part of the
// prompt.
func (d *decoder) geminiUsage(path string, raw json.RawMessage) convo.Usage {
	u := d.figures(path, raw)
	var n [5]int
	for i, key := range []string{"promptTokenCount", "cachedContentTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "toolUsePromptTokenCount"} {
		path, raw := pickRaw(u, path, key)
		var ok bool
		n[i], ok = numberIn(raw)
		if !ok && !isNull(raw) {
			d.lose(path, lostFigure)
		}
	}
	return cleaned(convo.Usage{
		Input: sum(n[0], n[4]), CacheRead: n[1], Extra: n[4],
		InputAudio: sum(geminiAudio(u, "promptTokensDetails"), geminiAudio(u, "toolUsePromptTokensDetails")),
		Output:     sum(n[2], n[3]), Reasoning: n[3],
		OutputAudio: geminiAudio(u, "candidatesTokensDetails"),
	})
}

// geminiAudio returns the tokens of sound in a list of tokens by modality.
func geminiAudio(u map[string]json.RawMessage, key string) (tokens int) {
	_, raw := pickRaw(u, "", key)
	list, _ := strictjson.SplitArray(raw)
	for _, raw := range list {
		if all := figuresOf(raw); stringOf(all["modality"]) == "AUDIO" {
			_, count := pickRaw(all, "", "tokenCount")
			tokens = sum(tokens, figure(count))
		}
	}
	return tokens
}

// converseUsage reads the usage of a response. Cached and written tokens are not part of
// inputTokens.
func (d *decoder) converseUsage(raw json.RawMessage) convo.Usage {
	more := d.figures("usage", raw, "inputTokens", "outputTokens", "cacheReadInputTokens", "cacheWriteInputTokens")
	read, write := more.figure("cacheReadInputTokens"), more.figure("cacheWriteInputTokens")
	out := convo.Usage{Input: sum(more.figure("inputTokens"), read, write), CacheRead: read, CacheWrite: write, Output: more.figure("outputTokens")}
	details, _ := strictjson.SplitArray(more["cacheDetails"])
	for _, raw := range details {
		if all := figuresOf(raw); stringOf(all["ttl"]) == "1h" {
			out.CacheWriteLong = sum(out.CacheWriteLong, all.figure("inputTokens"))
		}
	}
	return cleaned(out)
}
