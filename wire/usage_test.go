package wire_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/wire"
)

// usages are usage objects of the providers, and what they mean.
var usages = []struct {
	name   string
	format string // of usageAnswers
	usage  string
	want   convo.Usage
	total  int // as the provider reports it, or the sum by its rule; 0: not reported
}{
	// https://platform.openai.com/docs/api-reference/chat/object: prompt and completion
	// make the total, and the details are parts of them.
	{"chat, reasoning", "chat", `{"prompt_tokens":19,"completion_tokens":210,"total_tokens":229,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},
		"completion_tokens_details":{"reasoning_tokens":192,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}`,
		convo.Usage{Input: 19, Output: 210, Reasoning: 192}, 229},
	// https://github.com/openai/openai-python/issues/2554, with an answer added
	{"chat, sound", "chat", `{"prompt_tokens":32,"completion_tokens":50,"total_tokens":82,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":21,"text_tokens":11,"image_tokens":0},
		"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":40,"text_tokens":10}}`,
		convo.Usage{Input: 32, InputAudio: 21, Output: 50, OutputAudio: 40}, 82},
	// CompletionUsagePromptTokensDetails of openai-go v3.96.0 has cache_write_tokens.
	{"chat, cached", "chat", `{"prompt_tokens":2006,"completion_tokens":300,"total_tokens":2306,"prompt_tokens_details":{"cached_tokens":1920,"cache_write_tokens":80}}`,
		convo.Usage{Input: 2006, CacheRead: 1920, CacheWrite: 80, Output: 300}, 2306},
	// https://github.com/Wei-Shaw/sub2api/issues/5771: xAI does not count reasoning in
	// the completion.
	{"chat, reasoning beside", "chat", `{"prompt_tokens":10120,"completion_tokens":1499,"total_tokens":14428,"prompt_tokens_details":{"cached_tokens":128},"completion_tokens_details":{"reasoning_tokens":2809}}`,
		convo.Usage{Input: 10120, CacheRead: 128, Output: 4308, Reasoning: 2809}, 14428},
	{"chat, reasoning beside, no total", "chat", `{"prompt_tokens":5,"completion_tokens":2,"completion_tokens_details":{"reasoning_tokens":30}}`, convo.Usage{Input: 5, Output: 32, Reasoning: 30}, 0},
	// https://api-docs.deepseek.com/api/create-chat-completion
	{"DeepSeek", "chat", `{"completion_tokens":219,"prompt_tokens":340,"prompt_cache_hit_tokens":320,"prompt_cache_miss_tokens":20,"total_tokens":559,"completion_tokens_details":{"reasoning_tokens":205}}`,
		convo.Usage{Input: 340, CacheRead: 320, Output: 219, Reasoning: 205}, 559},
	// Moonshot and others have cached_tokens at the top.
	{"chat, cached at the top", "chat", `{"prompt_tokens":1400,"completion_tokens":5,"total_tokens":1405,"cached_tokens":1360}`, convo.Usage{Input: 1400, CacheRead: 1360, Output: 5}, 1405},
	{"chat, details of other types", "chat", `{"prompt_tokens":7,"completion_tokens":5,"prompt_tokens_details":null,"completion_tokens_details":[],"total_tokens":"12","cached_tokens":1.5}`, convo.Usage{Input: 7, Output: 5}, 0},
	{"chat, a detail above the whole", "chat", `{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12,"prompt_tokens_details":{"audio_tokens":9},"completion_tokens_details":{"reasoning_tokens":9}}`,
		convo.Usage{Input: 7, InputAudio: 7, Output: 5, Reasoning: 5}, 12},
	{"chat, more cached than there is", "chat", `{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":50,"cache_write_tokens":3}}`, convo.Usage{Input: 10, CacheRead: 10, Output: 5}, 0},
	{"chat, more written than is left", "chat", `{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":8,"cache_write_tokens":3}}`, convo.Usage{Input: 10, CacheRead: 8, CacheWrite: 2, Output: 5}, 0},

	// https://platform.openai.com/docs/api-reference/responses/object
	{"responses", "responses", `{"input_tokens":81,"input_tokens_details":{"cached_tokens":0},"output_tokens":1035,"output_tokens_details":{"reasoning_tokens":832},"total_tokens":1116}`,
		convo.Usage{Input: 81, Output: 1035, Reasoning: 832}, 1116},
	// ResponseUsageInputTokensDetails of openai-go v3.96.0
	{"responses, written", "responses", `{"input_tokens":3000,"input_tokens_details":{"cached_tokens":1024,"cache_write_tokens":1900,"cache_write_tokens_details":{"ttl_12h_tokens":1500,"ttl_30m_tokens":400}},"output_tokens":9,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":3009}`,
		convo.Usage{Input: 3000, CacheRead: 1024, CacheWrite: 1900, CacheWriteLong: 1500, Output: 9}, 3009},

	// https://platform.claude.com/docs/en/build-with-claude/prompt-caching: input_tokens
	// are those after the last cache mark.
	{"anthropic, cached", "anthropic", `{"input_tokens":2048,"cache_read_input_tokens":1800,"cache_creation_input_tokens":248,"output_tokens":503,"cache_creation":{"ephemeral_5m_input_tokens":148,"ephemeral_1h_input_tokens":100}}`,
		convo.Usage{Input: 4096, CacheRead: 1800, CacheWrite: 248, CacheWriteLong: 100, Output: 503}, 0},
	// OutputTokensDetails of anthropic-sdk-go v1.84.0
	{"anthropic, thinking", "anthropic", `{"input_tokens":20,"output_tokens":500,"output_tokens_details":{"thinking_tokens":420}}`, convo.Usage{Input: 20, Output: 500, Reasoning: 420}, 0},
	// https://platform.claude.com/docs/en/build-with-claude/compaction: the figures at the
	// top are without the compaction.
	{"anthropic, compaction", "anthropic", `{"input_tokens":23000,"output_tokens":1000,"iterations":[{"type":"compaction","input_tokens":180000,"output_tokens":3500},{"type":"message","input_tokens":23000,"output_tokens":1000}]}`,
		convo.Usage{Input: 203000, Extra: 180000, Output: 4500}, 0},
	// The same on demand: no figures at the top, and no request of known size.
	{"anthropic, only a compaction", "anthropic", `{"input_tokens":0,"output_tokens":0,"iterations":[{"type":"compaction","input_tokens":400,"cache_read_input_tokens":3000,"cache_creation_input_tokens":90,"cache_creation":{"ephemeral_1h_input_tokens":80},"output_tokens":350}]}`,
		convo.Usage{Input: 3490, CacheRead: 3000, CacheWrite: 90, CacheWriteLong: 80, Extra: 3490, Output: 350}, 0},
	// https://platform.claude.com/docs/en/agents-and-tools/tool-use/advisor-tool: the top
	// adds up the two messages.
	{"anthropic, advisor", "anthropic", `{"input_tokens":4727,"output_tokens":3391,"iterations":[{"type":"message","input_tokens":1051,"output_tokens":35},{"type":"advisor_message","input_tokens":2728,"output_tokens":3880},{"type":"message","input_tokens":3676,"output_tokens":3356}]}`,
		convo.Usage{Input: 7455, Extra: 6404, Output: 7271}, 0},
	{"anthropic, compaction in a loop of tools", "anthropic", `{"input_tokens":330,"output_tokens":6,"iterations":[{"type":"message","input_tokens":100,"output_tokens":1},{"type":"message","input_tokens":200,"output_tokens":2},{"type":"compaction","input_tokens":40,"output_tokens":9},{"type":"message","input_tokens":30,"output_tokens":3}]}`,
		convo.Usage{Input: 370, Extra: 340, Output: 15}, 0},
	// BetaFallbackMessageIterationUsage of anthropic-sdk-go v1.84.0
	{"anthropic, fallback", "anthropic", `{"input_tokens":412,"output_tokens":264,"iterations":[{"type":"message","input_tokens":408,"output_tokens":0},{"type":"fallback_message","input_tokens":412,"output_tokens":264}]}`,
		convo.Usage{Input: 412, Output: 264}, 0},
	{"anthropic, one iteration", "anthropic", `{"input_tokens":4,"cache_read_input_tokens":6,"output_tokens":2,"iterations":[{"type":"message","input_tokens":4,"cache_read_input_tokens":6,"output_tokens":2}]}`, convo.Usage{Input: 10, CacheRead: 6, Output: 2}, 0},
	{"anthropic, more than an int", "anthropic", fmt.Sprintf(`{"input_tokens":%d,"cache_read_input_tokens":5,"output_tokens":2}`, math.MaxInt), convo.Usage{Input: math.MaxInt, CacheRead: 5, Output: 2}, 0},
	{"anthropic, an iteration of a new type", "anthropic", `{"input_tokens":10,"output_tokens":5,"iterations":[{"type":"message_v2","input_tokens":10,"output_tokens":5}]}`, convo.Usage{Input: 10, Output: 5}, 0},
	{"anthropic, a new type behind a compaction", "anthropic", `{"input_tokens":10,"output_tokens":5,"iterations":[{"type":"compaction","input_tokens":40,"output_tokens":9},{"type":"message_v2","input_tokens":10,"output_tokens":5}]}`,
		convo.Usage{Input: 50, Extra: 40, Output: 14}, 0},
	{"anthropic, a new type without input", "anthropic", `{"input_tokens":10,"output_tokens":5,"iterations":[{"type":"new","input_tokens":0,"output_tokens":3},{"type":"message_v2","input_tokens":10,"output_tokens":5}]}`,
		convo.Usage{Input: 10, Output: 8}, 0},
	{"anthropic, a new type beside a message", "anthropic", `{"input_tokens":10,"output_tokens":5,"iterations":[{"type":"new","input_tokens":7,"output_tokens":3},{"type":"message","input_tokens":10,"output_tokens":5}]}`,
		convo.Usage{Input: 17, Extra: 7, Output: 8}, 0},
	{"anthropic, a new type with one token", "anthropic", `{"input_tokens":1,"output_tokens":5,"iterations":[{"type":"compaction","input_tokens":40,"output_tokens":9},{"type":"message_v2","input_tokens":1,"output_tokens":5}]}`,
		convo.Usage{Input: 41, Extra: 40, Output: 14}, 0},
	{"anthropic, only an advisor", "anthropic", `{"input_tokens":0,"output_tokens":0,"iterations":[{"type":"advisor_message","input_tokens":20,"output_tokens":3}]}`, convo.Usage{Input: 20, Extra: 20, Output: 3}, 0},
	{"anthropic, iterations of other types", "anthropic", `{"input_tokens":4,"output_tokens":2,"iterations":[7,{"type":"message","input_tokens":"x"},{"type":"message","input_tokens":4}],"cache_creation":7,"output_tokens_details":"x"}`, convo.Usage{Input: 4, Output: 2}, 0},

	// https://github.com/QuantumNous/new-api/issues/2935: the total is prompt,
	// candidates, thoughts and tool use, which genai v1.77.0 also states.
	{"gemini, tools", "gemini", `{"promptTokenCount":151,"candidatesTokenCount":1089,"totalTokenCount":20689,"toolUsePromptTokenCount":18329,"thoughtsTokenCount":1120,
		"promptTokensDetails":[{"modality":"TEXT","tokenCount":151}],"toolUsePromptTokensDetails":[{"modality":"TEXT","tokenCount":18329}]}`,
		convo.Usage{Input: 18480, Extra: 18329, Output: 2209, Reasoning: 1120}, 20689},
	// https://ai.google.dev/gemini-api/docs/caching: the prompt includes cached tokens.
	{"gemini, cached", "gemini", `{"promptTokenCount":696219,"cachedContentTokenCount":696190,"candidatesTokenCount":214,"totalTokenCount":696433}`, convo.Usage{Input: 696219, CacheRead: 696190, Output: 214}, 696433},
	// https://ai.google.dev/gemini-api/docs/tokens: sound is a modality.
	{"gemini, sound", "gemini", `{"promptTokenCount":270,"candidatesTokenCount":60,"totalTokenCount":330,"promptTokensDetails":[{"modality":"TEXT","tokenCount":10},{"modality":"AUDIO","tokenCount":260}],"candidatesTokensDetails":[{"modality":"AUDIO","tokenCount":60}]}`,
		convo.Usage{Input: 270, InputAudio: 260, Output: 60, OutputAudio: 60}, 330},
	{"gemini, snake case", "gemini", `{"prompt_token_count":10,"tool_use_prompt_token_count":5,"candidates_token_count":3,"thoughts_token_count":2,"prompt_tokens_details":[{"modality":"AUDIO","token_count":4}]}`, convo.Usage{Input: 15, InputAudio: 4, Extra: 5, Output: 5, Reasoning: 2}, 0},
	{"gemini, details of other types", "gemini", `{"promptTokenCount":10,"promptTokensDetails":[7,{"modality":"AUDIO","tokenCount":"x"},{"modality":1,"tokenCount":2}],"candidatesTokensDetails":{}}`, convo.Usage{Input: 10}, 0},

	// https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_TokenUsage.html
	// and API_runtime_CacheDetail.html. According to the guide to prompt caching,
	// inputTokens are the tokens that are not cached.
	{"converse", "converse", `{"inputTokens":30,"outputTokens":628,"totalTokens":658}`, convo.Usage{Input: 30, Output: 628}, 658},
	{"converse, cached", "converse", `{"inputTokens":12,"outputTokens":5,"cacheReadInputTokens":1000,"cacheWriteInputTokens":300,"cacheDetails":[{"ttl":"1h","inputTokens":200},{"ttl":"5m","inputTokens":100}],"totalTokens":1317}`,
		convo.Usage{Input: 1312, CacheRead: 1000, CacheWrite: 300, CacheWriteLong: 200, Output: 5}, 1317},
	{"converse, details of other types", "converse", `{"inputTokens":12,"outputTokens":5,"cacheDetails":[null,{"ttl":1},{"ttl":"1h","inputTokens":true}]}`, convo.Usage{Input: 12, Output: 5}, 0},
}

// usageAnswers are answers with a usage, USAGE, and the same as the events of a stream.
var usageAnswers = map[string]struct {
	format wire.Format
	body   string
	events []string
}{
	"chat": {wire.OpenAIChat{}, `{"choices":[{"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}],"usage":USAGE}`, []string{
		`{"choices":[{"index":0,"delta":{"role":"assistant","content":"a"}}],"usage":null}`, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, `{"choices":[],"usage":USAGE}`, `{"choices":[],"usage":USAGE}`}},
	"responses": {wire.OpenAIResponses{}, `{"status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}],"usage":USAGE}`, []string{
		`{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}],"usage":USAGE}}`}},
	"anthropic": {wire.Anthropic{}, `{"role":"assistant","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn","usage":USAGE}`, []string{
		`{"type":"message_start","message":{"role":"assistant","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}`, `{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":USAGE}`, `{"type":"message_stop"}`}},
	"gemini": {wire.Gemini{}, `{"candidates":[{"content":{"role":"model","parts":[{"text":"a"}]},"finishReason":"STOP"}],"usageMetadata":USAGE}`, []string{
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"a"}]}}],"usageMetadata":{"promptTokenCount":1}}`,
		`{"candidates":[{"content":{"role":"model","parts":[]},"finishReason":"STOP"}],"usageMetadata":USAGE}`}},
	"converse": {wire.Converse{}, `{"output":{"message":{"role":"assistant","content":[{"text":"a"}]}},"stopReason":"end_turn","usage":USAGE}`, []string{
		`{"messageStart":{"role":"assistant"}}`, `{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"text":"a"}}}`, `{"contentBlockStop":{"contentBlockIndex":0}}`,
		`{"messageStop":{"stopReason":"end_turn"}}`, `{"metadata":{"usage":USAGE}}`}},
}

// decodeUsage decodes the usage alone and as a stream. It returns the error of Decode,
// and checks that the stream then also fails.
func decodeUsage(t *testing.T, format, usage string) (convo.Usage, error) {
	t.Helper()
	a := usageAnswers[format]
	in, err := a.format.Decode([]byte(strings.Replace(a.body, "USAGE", usage, 1)))
	if strings.Contains(usage, "prompt_token_count") {
		return in.Usage, err // a stream does not convert this spelling
	}
	s := a.format.(wire.Streamer).Stream()
	if err == nil && !strings.HasPrefix(usage, "{") {
		return in.Usage, nil // in a stream, the usage of an earlier event stays
	}
	var failed error
	for _, e := range a.events {
		if _, err := s.Event("", []byte(strings.ReplaceAll(e, "USAGE", usage))); err != nil {
			failed = err
			break
		}
	}
	streamed, end := s.Transcript()
	if failed == nil {
		failed = end
	}
	require.Equal(t, err == nil, failed == nil, "%v and %v", err, failed)
	if err == nil {
		require.Equal(t, in.Usage, streamed.Usage)
	}
	return in.Usage, err
}

func TestDecode_Usage(t *testing.T) {
	for _, tt := range usages {
		t.Run(tt.name, func(t *testing.T) {
			got, err := decodeUsage(t, tt.format, tt.usage)
			require.NoError(t, err)
			assert.Equal(t, tt.want, got)
			if tt.total > 0 {
				assert.Equal(t, tt.total, got.Input+got.Output, "the rule of the total")
			}
			h := historyOf(t, convo.User(strings.Repeat("many words ", 50_000)))
			require.NoError(t, h.RecordUsage(h.Snapshot(), got))
		})
	}
}

// Figures may be written with a decimal point or as a string. Other values of figures
// that every answer has count as 0, and are listed in Lost, as is a usage that is not an
// object. The answer is kept.
func TestDecode_UsageOfOtherTypes(t *testing.T) {
	lost := func(path string) []wire.Loss { return []wire.Loss{{Path: path, What: "a usage that is no number"}} }
	for _, tt := range []struct {
		format, usage string
		input, output int
		lost          []wire.Loss
	}{
		{"chat", `{"prompt_tokens":12.0,"completion_tokens":"3"}`, 12, 3, nil},
		{"chat", `{"prompt_tokens":1.2e1,"completion_tokens":"3.0"}`, 12, 3, nil},
		{"chat", `{"prompt_tokens":"many","completion_tokens":3}`, 0, 3, lost("usage.prompt_tokens")},
		{"chat", `{"prompt_tokens":1.5,"completion_tokens":3}`, 0, 3, lost("usage.prompt_tokens")},
		{"chat", `[]`, 0, 0, lost("usage")},
		{"responses", `{"input_tokens":12.0,"output_tokens":"3"}`, 12, 3, nil},
		{"responses", `{"input_tokens":12,"output_tokens":{}}`, 12, 0, lost("usage.output_tokens")},
		{"responses", `7`, 0, 0, lost("usage")},
		{"anthropic", `{"input_tokens":12.0,"output_tokens":"3"}`, 12, 3, nil},
		{"anthropic", `{"input_tokens":true,"output_tokens":3}`, 0, 3, lost("usage.input_tokens")},
		{"gemini", `{"promptTokenCount":"12","candidatesTokenCount":3.0}`, 12, 3, nil},
		{"gemini", `{"promptTokenCount":[],"candidatesTokenCount":3}`, 0, 3, lost("usageMetadata.promptTokenCount")},
		{"gemini", `"x"`, 0, 0, lost("usageMetadata")},
		{"converse", `{"inputTokens":"12","outputTokens":3.0}`, 12, 3, nil},
		{"converse", `{"inputTokens":"x","outputTokens":3}`, 0, 3, lost("usage.inputTokens")},
	} {
		a := usageAnswers[tt.format]
		in := mustDecode(t, a.format, []byte(strings.Replace(a.body, "USAGE", tt.usage, 1)), "%s %s", tt.format, tt.usage)
		var events []event
		for _, e := range a.events {
			events = append(events, event{"", strings.ReplaceAll(e, "USAGE", tt.usage)})
		}
		streamed, _ := streamed(t, a.format, events)
		for _, got := range []wire.Transcript{in, streamed} {
			require.Len(t, got.Messages, 1)
			assert.Equal(t, "a", got.Messages[0].Text())
			assert.Equal(t, tt.lost, got.Lost, "%s %s", tt.format, tt.usage)
		}
		if tt.input > 0 || strings.HasPrefix(tt.usage, "{") {
			assert.Equal(t, tt.output, in.Usage.Output, "%s %s", tt.format, tt.usage)
			assert.Equal(t, tt.input, in.Usage.Input, "%s %s", tt.format, tt.usage)
			assert.Equal(t, in.Usage, streamed.Usage, "%s %s", tt.format, tt.usage)
		}
	}
}

// A decoded usage is never negative, and no detail is more than the figure that it is
// part of. No figure makes Decode fail.
func TestDecode_UsageOfAnyShape(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	values := []string{"0", "7", "-3", "true", `"9"`, "1.5", "1e3", "[]", "{}", "9223372036854775807", "-9223372036854775808", "99999999999999999999"}
	for range long.Or(1_500, 20_000) {
		tt := usages[rng.IntN(len(usages))]
		var all any
		require.NoError(t, json.Unmarshal([]byte(tt.usage), &all))
		for range 1 + rng.IntN(4) {
			all = scramble(rng, all, values)
		}
		data, err := json.Marshal(all)
		require.NoError(t, err)
		got, err := decodeUsage(t, tt.format, string(data))
		require.NoError(t, err, "%s", data)
		require.GreaterOrEqual(t, min(got.Input, got.CacheRead, got.CacheWrite, got.CacheWriteLong, got.InputAudio, got.Extra, got.Output, got.Reasoning, got.OutputAudio), 0, "%s", data)
		require.LessOrEqual(t, max(got.InputAudio, got.Extra), got.Input, "%s", data)
		require.LessOrEqual(t, max(got.Reasoning, got.OutputAudio), got.Output, "%s", data)
		require.LessOrEqual(t, got.CacheWriteLong, got.CacheWrite, "%s", data)
		require.LessOrEqual(t, got.CacheRead, got.Input, "%s", data)
		require.LessOrEqual(t, got.CacheWrite, got.Input-got.CacheRead, "%s", data)
	}
}

// scramble replaces one value somewhere in all.
func scramble(rng *rand.Rand, all any, values []string) any {
	switch v := all.(type) {
	case map[string]any:
		for key := range v {
			if rng.IntN(len(v)) == 0 {
				v[key] = scramble(rng, v[key], values)
				return v
			}
		}
		return v
	case []any:
		if len(v) > 0 && rng.IntN(4) > 0 {
			i := rng.IntN(len(v))
			v[i] = scramble(rng, v[i], values)
			return v
		}
	}
	return json.RawMessage(values[rng.IntN(len(values))])
}

// The usage of recorded streams agrees with the total that the provider reports.
func TestStream_RecordedTotals(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(streams, "*.txt"))
	require.NoError(t, err)
	if len(files) == 0 {
		t.Skip("no recorded streams, which are not part of the repository")
	}
	checked := 0
	for _, name := range files {
		var f wire.Streamer
		switch base := filepath.Base(name); {
		case strings.HasPrefix(base, "google__google-"):
			f = wire.Gemini{}
		case strings.HasPrefix(base, "amazon-bedrock__"):
			f = wire.Converse{}
		case strings.HasPrefix(base, "deepseek__chat"), strings.HasPrefix(base, "groq__"), strings.HasPrefix(base, "cerebras__"), strings.HasPrefix(base, "openai-compatible__"), strings.HasPrefix(base, "alibaba__"), strings.HasPrefix(base, "moonshotai__"), strings.HasPrefix(base, "mistral__"):
			f = wire.OpenAIChat{}
		default:
			continue
		}
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		s := f.Stream()
		total, read := 0, true
		for line := range strings.Lines(string(data)) {
			line = strings.TrimSpace(strings.TrimPrefix(line, "data:"))
			var all struct {
				Usage, UsageMetadata struct {
					Total  int `json:"total_tokens"`
					Total2 int `json:"totalTokenCount"`
				}
				Metadata struct {
					Usage struct {
						Total int `json:"totalTokens"`
					}
				}
			}
			if json.Unmarshal([]byte(line), &all) != nil {
				continue
			}
			if _, err := s.Event("", []byte(line)); err != nil {
				read = false // several answers in one file
				break
			}
			total = max(total, all.Usage.Total, all.UsageMetadata.Total2, all.Metadata.Usage.Total)
		}
		if in, err := s.Transcript(); read && err == nil && total > 0 {
			checked++
			assert.Equal(t, total, in.Usage.Input+in.Usage.Output, "%s: %s", filepath.Base(name), fmt.Sprintf("%+v", in.Usage))
		}
	}
	assert.Greater(t, checked, 8)
}
