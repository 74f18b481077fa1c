package wire

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/seed-c1b73e60/convo"
)

// Providers report the usage of an answer in ways that differ in what includes what.
// The figures that every answer has must be numbers; details of another type count as
// 0, since no answer should be lost for them.

// A figures is a JSON object of numbers. It is nil for a value of another type.
type figures map[string]json.RawMessage

func figuresOf(raw json.RawMessage) figures {
	if kindOf(raw) != '{' {
		return nil
	}
	all, _ := splitObject(raw)
	return all
}

// figure returns the number in a field, or 0 if there is none.
func (o figures) figure(key string) int { return figure(o[key]) }

func figure(raw json.RawMessage) int {
	n, err := strconv.Atoi(string(raw))
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// sum adds numbers, of which negative ones count as 0. A sum that is too large is
// MaxInt.
func sum(numbers ...int) int {
	total := 0
	for _, n := range numbers {
		if n = max(n, 0); n > math.MaxInt-total {
			return math.MaxInt
		}
		total += n
	}
	return total
}

// cleaned returns a usage without negative figures, and with no detail above what it is
// a part of.
func cleaned(u convo.Usage) convo.Usage {
	for _, n := range []*int{&u.Input, &u.CacheRead, &u.CacheWrite, &u.Output} {
		*n = max(*n, 0)
	}
	for _, d := range []struct {
		part  *int
		whole int
	}{{&u.CacheWriteLong, u.CacheWrite}, {&u.InputAudio, u.Input}, {&u.Extra, u.Input}, {&u.Reasoning, u.Output}, {&u.OutputAudio, u.Output}} {
		*d.part = min(max(*d.part, 0), d.whole)
	}
	return u
}

// withReasoning returns the output, of which reasoning is a part. For most providers it
// is a part of the figure for the output; xAI and others count it beside that, which
// the total shows.
func withReasoning(input, output, reasoning, total int) int {
	if total == sum(input, output, reasoning) || total == 0 && reasoning > output {
		return sum(output, reasoning)
	}
	return output
}

// chatUsage reads the usage of an answer of Chat Completions or of Ollama. Cached and
// written tokens are part of prompt_tokens.
func (f OpenAIChat) chatUsage(all map[string]json.RawMessage) (convo.Usage, error) {
	var u struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Hit        int `json:"prompt_cache_hit_tokens"`
	}
	raw := all["usage"]
	if !isNull(raw) {
		if err := read("usage", "an object of numbers", raw, &u); err != nil {
			return convo.Usage{}, err
		}
	}
	for key, to := range map[string]*int{"prompt_eval_count": &u.Prompt, "eval_count": &u.Completion} {
		if raw := all[key]; f.Dialect == Ollama && !isNull(raw) {
			if err := read(key, "a number", raw, to); err != nil {
				return convo.Usage{}, err
			}
		}
	}
	more := figuresOf(raw)
	in, out := figuresOf(more["prompt_tokens_details"]), figuresOf(more["completion_tokens_details"])
	reasoning := out.figure("reasoning_tokens")
	return cleaned(convo.Usage{
		Input:       u.Prompt,
		CacheRead:   max(u.Hit, in.figure("cached_tokens"), more.figure("cached_tokens")),
		CacheWrite:  in.figure("cache_write_tokens"),
		InputAudio:  in.figure("audio_tokens"),
		Output:      withReasoning(u.Prompt, u.Completion, reasoning, more.figure("total_tokens")),
		Reasoning:   reasoning,
		OutputAudio: out.figure("audio_tokens"),
	}), nil
}

// responsesUsage reads the usage of a response. Cached and written tokens are part of
// input_tokens.
func responsesUsage(path string, raw json.RawMessage) (convo.Usage, error) {
	var u struct {
		Input  int `json:"input_tokens"`
		Output int `json:"output_tokens"`
	}
	if !isNull(raw) {
		if err := read(path, "an object of numbers", raw, &u); err != nil {
			return convo.Usage{}, err
		}
	}
	more := figuresOf(raw)
	in := figuresOf(more["input_tokens_details"])
	reasoning := figuresOf(more["output_tokens_details"]).figure("reasoning_tokens")
	return cleaned(convo.Usage{
		Input:          u.Input,
		CacheRead:      in.figure("cached_tokens"),
		CacheWrite:     in.figure("cache_write_tokens"),
		CacheWriteLong: figuresOf(in["cache_write_tokens_details"]).figure("ttl_12h_tokens"),
		Output:         withReasoning(u.Input, u.Output, reasoning, more.figure("total_tokens")),
		Reasoning:      reasoning,
	}), nil
}

// anthropicUsage reads the usage of a message. Cached and written tokens are beside
// input_tokens. With server tools, the figures add up the iterations in which the
// model has written the message; what a compaction and another model have used is
// beside them, and only the iterations tell it.
func anthropicUsage(raw json.RawMessage) (convo.Usage, error) {
	var u anthropicFigures
	if isNull(raw) {
		return convo.Usage{}, nil
	}
	if err := read("usage", "an object of numbers", raw, &u); err != nil {
		return convo.Usage{}, err
	}
	out := u.usage()
	more := figuresOf(raw)
	out.Reasoning = figuresOf(more["output_tokens_details"]).figure("thinking_tokens")
	iterations, _ := splitArray(more["iterations"])
	request, known := 0, len(iterations) == 0
	for _, raw := range iterations {
		var u anthropicFigures
		if json.Unmarshal(raw, &u) != nil {
			continue
		}
		it := u.usage()
		switch u.Type {
		case "message":
			if !known { // later ones hold what the answer itself has added
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
	return cleaned(out), nil
}

// anthropicFigures are the usage of a message or of an iteration.
type anthropicFigures struct {
	Type   string `json:"type"`
	Input  int    `json:"input_tokens"`
	Read   int    `json:"cache_read_input_tokens"`
	Write  int    `json:"cache_creation_input_tokens"`
	Output int    `json:"output_tokens"`

	Creation json.RawMessage `json:"cache_creation"`
}

func (f *anthropicFigures) usage() convo.Usage {
	return cleaned(convo.Usage{
		Input: sum(f.Input, f.Read, f.Write), CacheRead: f.Read, CacheWrite: f.Write, Output: f.Output,
		CacheWriteLong: figuresOf(f.Creation).figure("ephemeral_1h_input_tokens"),
	})
}

// geminiUsage reads the usage of an answer. The cached content is part of the prompt;
// thoughts are beside the candidates, and what tools returned beside the prompt.
func geminiUsage(path string, raw json.RawMessage) (convo.Usage, error) {
	if raw == nil {
		return convo.Usage{}, nil
	}
	u, err := fields(path, raw)
	if err != nil {
		return convo.Usage{}, err
	}
	var n [5]int
	for i, key := range []string{"promptTokenCount", "cachedContentTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "toolUsePromptTokenCount"} {
		if path, raw := pickRaw(u, path, key); raw != nil {
			if err := read(path, "a number", raw, &n[i]); err != nil {
				return convo.Usage{}, err
			}
		}
	}
	return cleaned(convo.Usage{
		Input: sum(n[0], n[4]), CacheRead: n[1], Extra: n[4],
		InputAudio: sum(geminiAudio(u, "promptTokensDetails"), geminiAudio(u, "toolUsePromptTokensDetails")),
		Output:     sum(n[2], n[3]), Reasoning: n[3],
		OutputAudio: geminiAudio(u, "candidatesTokensDetails"),
	}), nil
}

// geminiAudio returns the tokens of sound in a list of tokens by modality.
func geminiAudio(u map[string]json.RawMessage, key string) (tokens int) {
	_, raw := pickRaw(u, "", key)
	list, _ := splitArray(raw)
	for _, raw := range list {
		if all := figuresOf(raw); stringOf(all["modality"]) == "AUDIO" {
			_, count := pickRaw(all, "", "tokenCount")
			tokens = sum(tokens, figure(count))
		}
	}
	return tokens
}

// converseUsage reads the usage of a response. Cached and written tokens are beside
// inputTokens.
func converseUsage(raw json.RawMessage) (convo.Usage, error) {
	var u struct {
		Input  int `json:"inputTokens"`
		Output int `json:"outputTokens"`
		Read   int `json:"cacheReadInputTokens"`
		Write  int `json:"cacheWriteInputTokens"`
	}
	if isNull(raw) {
		return convo.Usage{}, nil
	}
	if err := read("usage", "an object of numbers", raw, &u); err != nil {
		return convo.Usage{}, err
	}
	out := convo.Usage{Input: sum(u.Input, u.Read, u.Write), CacheRead: u.Read, CacheWrite: u.Write, Output: u.Output}
	details, _ := splitArray(figuresOf(raw)["cacheDetails"])
	for _, raw := range details {
		if all := figuresOf(raw); stringOf(all["ttl"]) == "1h" {
			out.CacheWriteLong = sum(out.CacheWriteLong, all.figure("inputTokens"))
		}
	}
	return cleaned(out), nil
}
