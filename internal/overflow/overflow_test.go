package overflow

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A body is an answer of a provider or a server, from testdata/overflow.jsonl.
type body struct {
	Provider string
	Source   string // where it was published
	Overflow bool

	// The numbers that an overflow states, or 0.
	Limit, Prompt, Output, Total int

	Status int // the HTTP status of the answer, if it matters
	Text   string
}

func bodies(t testing.TB) (all []body) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "overflow.jsonl"))
	require.NoError(t, err)
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var b body
		require.NoError(t, json.Unmarshal(lines.Bytes(), &b), lines.Text())
		all = append(all, b)
	}
	return all
}

// figuresOf returns the numbers of tokens that an error states.
func figuresOf(err error) (limit, prompt, output, total int) {
	f := Read(err)
	return f.Limit, f.Prompt, f.Output, f.Total
}

// A clientError has the methods with which the clients of providers return the answer.
// The text of Error contains none of it.
type clientError struct {
	status             int
	raw, code, message string
}

func (e *clientError) Error() string        { return "API error: 400 Bad Request" }
func (e *clientError) RawJSON() string      { return e.raw }
func (e *clientError) ErrorCode() string    { return e.code }
func (e *clientError) ErrorMessage() string { return e.message }
func (e *clientError) HTTPStatusCode() int  { return e.status }

// Published bodies are recognized in every form in which a client returns them, and their
// numbers are read.
func TestIs_Bodies(t *testing.T) {
	providers := map[string]bool{}
	for _, b := range bodies(t) {
		encoded, err := json.Marshal(map[string]string{"message": b.Text})
		require.NoError(t, err)
		for form, err := range map[string]error{
			"text":    fmt.Errorf("send: %w", errors.Join(errors.New("attempt 1"), errors.New(b.Text))),
			"body":    &clientError{status: b.Status, raw: b.Text},
			"message": fmt.Errorf("send: %w", &clientError{status: b.Status, code: "ValidationException", message: b.Text}),
			"encoded": errors.New(string(encoded)),
		} {
			assert.Equal(t, b.Overflow, Is(err), "%s, as %s: %s", b.Provider, form, b.Text)
			if limit, prompt, output, total := figuresOf(err); b.Overflow {
				assert.Equal(t, [4]int{b.Limit, b.Prompt, b.Output, b.Total}, [4]int{limit, prompt, output, total},
					"%s, as %s: limit, prompt, output, total of %s", b.Provider, form, b.Text)
			}
		}
		if b.Overflow {
			providers[b.Provider] = true
		}
		assert.Regexp(t, `^https://\S+$`, b.Source)
	}
	assert.GreaterOrEqual(t, len(providers), 15)
}

func TestIs_Status(t *testing.T) {
	assert.True(t, Is(&clientError{status: 413, raw: "<html>cloudfront</html>"}))
	assert.False(t, Is(&clientError{status: 413, raw: "the image is larger than 20 MB"}))
	assert.False(t, Is(&clientError{status: 429, raw: "context_length_exceeded"}))
	assert.False(t, Is(&clientError{status: 400}))
	assert.False(t, Is(nil))
}

// No other error is recognized as an overflow. The texts are those of providers, servers,
// gateways, databases, tools and the standard library, and each is wrapped in every form
// in which clients return answers.
func TestIs_OtherErrors(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "other_errors.txt"))
	require.NoError(t, err)
	seen := map[string]bool{}
	for text := range strings.Lines(string(data)) {
		text = strings.TrimSpace(text)
		quoted, err := json.Marshal(text)
		require.NoError(t, err)
		openAI := fmt.Sprintf(`{"error":{"message":%s,"type":"invalid_request_error","param":null,"code":null}}`, quoted)
		for _, err := range []error{
			errors.New(text),
			fmt.Errorf(`POST "https://api.openai.com/v1/chat/completions": 400 Bad Request %s`, openAI),
			fmt.Errorf(`POST "https://api.anthropic.com/v1/messages": 400 Bad Request {"type":"error","error":{"type":"invalid_request_error","message":%s}}`, quoted),
			fmt.Errorf("Error 400, Message: %s, Status: INVALID_ARGUMENT, Details: []", text),
			fmt.Errorf("operation error Bedrock Runtime: Converse, https response error StatusCode: 400, RequestID: 5c1f, ValidationException: %s", text),
			&clientError{status: 500, raw: openAI},
		} {
			said := err.Error()
			if c, ok := err.(*clientError); ok {
				said = c.raw
			}
			assert.False(t, Is(err), said)
			seen[said] = true
		}
	}
	assert.GreaterOrEqual(t, len(seen), 1000)
	t.Logf("%d texts", len(seen))
}

// Texts of clients and of small servers for which no whole body was published.
func TestIs_Phrases(t *testing.T) {
	for _, text := range []string{
		"Input length 131393 exceeds the maximum allowed input length of 131040 tokens.",
		"Input length (265330) exceeds model's maximum context length (262144).",
		"Requested token count exceeds the model's maximum context length of 262144 tokens.",
		"Requested token count exceeds the model's maximum context length of 131072 tokens. You requested a total of 140000 tokens: 139000 tokens from the input messages and 1000 tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.",
		"Cannot truncate to 89998, required 355220: text:355351, control:9",
		"put value error: prompt is [[440009]] long while only 4096 is supported",
		"Prompt length 5000 is greater than max_seq_len 4096",
		"Context length 5000 is greater than max_seq_len 4096",
		"Input length (1000) exceeds maximum input length (512)",
		"Prompt too long: 5152 tokens exceeds max_seq_len 2048",
		"Prompt has 2000 tokens, but the configured context size is 1000 tokens",
		"400 Bad Request: Too many input tokens. Max input tokens: 8192, request input token count: 10145",
		"request (40966 tokens) exceeds the available context size (32768 tokens), try increasing it",
	} {
		err := errors.New(text)
		assert.True(t, Is(err), text)
		limit, prompt, _, _ := figuresOf(err)
		assert.NotZero(t, limit, text)
		if !strings.HasSuffix(text, "length of 262144 tokens.") {
			assert.NotZero(t, prompt, text)
		}
	}
}

// The address of a request, or notes of a gateway or of another attempt, do not hide the
// provider's text.
func TestIs_Beside(t *testing.T) {
	const (
		large = `: 413 Request Entity Too Large {"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`
		body  = "400 Bad Request: This model's maximum context length is 128000 tokens. However, your messages resulted in 140113 tokens."
	)
	rate := errors.New("429 Too Many Requests: rate limit reached for requests, limit: 3 + 4 > 5")
	for _, err := range []error{
		errors.New(`POST "https://bedrock-runtime.us-east-1.amazonaws.com/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A123%3Ainference-profile%2Fus.anthropic.claude/invoke"` + large),
		errors.New(`POST "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash-image:generateContent"` + large),
		errors.New("model gemini-2.5-flash-image, profile us, answered immediately" + large),
		errors.New("POST https://gateway/quota/v1/chat/completions: context window exceeded"),
		errors.New("quota-service gateway: " + body),
		errors.New("attempt 1: 429 Too Many Requests rate limit reached\nattempt 2: " + body),
		errors.Join(rate, errors.New(body)),
		errors.Join(&clientError{status: 429, message: "slow down"}, &clientError{status: 400, message: "context window exceeded"}),
		fmt.Errorf("all attempts failed: %w, %w", errors.New("the file could not be read"), &clientError{status: 413}),
		errors.Join(errors.New("max_tokens exceeds the context window"), errors.New(body)),
		errors.New("cannot summarise the file: prompt is too long: 9000 tokens > 8000 maximum"),
		errors.New("the tool description is too long. The request exceeds the context window"),
		errors.New("the description exceeds the context length, and so the messages exceed the context length"),
		errors.New("2000 bytes sent, input exceeds the context window of 8000 tokens (65536 bytes)"),
		errors.New("proxy: 413 Payload Too Large"),
	} {
		assert.True(t, Is(err), err.Error())
		if strings.Contains(err.Error(), "140113") {
			limit, prompt, output, total := figuresOf(err)
			assert.Equal(t, [4]int{128000, 140113, 0, 0}, [4]int{limit, prompt, output, total}, err.Error())
		}
	}
	assert.False(t, Is(errors.Join(rate, &clientError{status: 429, code: "context_length_exceeded"})))
	assert.False(t, Is(errors.New("the input_file of this request"+large)))
}

// The requested answer is too long only if it exceeds the window alone.
func TestIs_AnswerBesidePrompt(t *testing.T) {
	assert.False(t, Is(errors.New("Requested token count exceeds the model's maximum context length of 32768 tokens. You requested a total of 35505 tokens: "+
		"2737 tokens from the input messages and 32768 tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.")))
	for _, text := range []string{
		"input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or max_tokens and try again",
		"User input + max tokens requested exceeds model context window",
		"max_tokens and the prompt exceed the context window",
		"prompt of 7500 tokens with max_tokens=1024 exceeds the context window",
		"max_tokens + input length exceed the context window",
		"This model's maximum context length is 8192 tokens, but max_tokens is 1024 and the prompt has 7500 tokens",
	} {
		assert.True(t, Is(errors.New(text)), text)
	}
}

// A number ends where a word begins, and may count thousands or millions.
func TestIs_Units(t *testing.T) {
	for said, want := range map[string]int{
		"128k tokens": 128_000, "128K tokens": 128_000, "1.5k": 1_500, "1m tokens": 1_000_000, "1,048,576.": 1_048_576,
		"128kb": 0, "128000ish": 0, "9999m": 0, "131_072, which": 131_072,
	} {
		limit, prompt, output, total := figuresOf(errors.New("maximum context length is " + said +
			" However, you requested 140000 tokens (135904 in the messages, 4096 in the completion)"))
		assert.Equal(t, [4]int{want, 135_904, 4_096, 140_000}, [4]int{limit, prompt, output, total}, said)
	}
}

// A countedError counts how often it is read. It can wrap any error, even itself.
type countedError struct {
	text  string
	wraps []error
	read  int
}

func (e *countedError) Error() string   { e.read++; return e.text }
func (e *countedError) Unwrap() []error { return e.wraps }

// A panicError panics in every method, like the error of a client that was made without a
// request.
type panicError struct{}

func (panicError) Error() string        { panic("no request") }
func (panicError) RawJSON() string      { panic("no body") }
func (panicError) HTTPStatusCode() int  { panic("no answer") }
func (panicError) Unwrap() error        { panic("nothing inside") }
func (panicError) ErrorMessage() string { return "prompt is too long: 12 tokens > 10 maximum" }

func TestIs_Hostile(t *testing.T) {
	circle := &countedError{text: "round and round"}
	circle.wraps = []error{circle, circle}
	assert.False(t, Is(circle))
	assert.LessOrEqual(t, circle.read, 64)

	wide := &countedError{text: "wide"}
	wide.wraps = make([]error, 1<<20)
	for i := range wide.wraps {
		wide.wraps[i] = circle
	}
	circle.read = 0
	assert.False(t, Is(wide))
	assert.LessOrEqual(t, circle.read, 64)

	assert.True(t, Is(panicError{}))
	assert.True(t, Is(fmt.Errorf("a: %w", errors.Join(errors.New("b"), &clientError{code: "context_length_exceeded"}))))

	const said = "prompt is too long: 203000 tokens > 200000 maximum"
	long := strings.Repeat("context length 123 exceeded, said the user. ", 250_000)[:10<<20]
	inner := errors.New(strings.Repeat("[{\"a\":\\", 1<<20))
	for _, text := range []string{said + long, strings.ReplaceAll(long, "exceeded", "") + said} {
		assert.True(t, Is(fmt.Errorf("%w, %w", errors.New(text), inner)))
	}
	assert.False(t, Is(inner))
	limit, _, _, _ := figuresOf(errors.New("prompt is too long: 12 tokens > 99999999999999999999 maximum"))
	assert.Zero(t, limit, "no number of tokens")
}

// Reading any error ends, does not panic, and gives numbers that a window can have. The
// result does not depend on how often the text was encoded.
func FuzzIs(f *testing.F) {
	for _, b := range bodies(f) {
		f.Add(b.Text, b.Text, b.Status, uint8(1))
	}
	f.Add("prompt is too long: 0 tokens > 0 maximum", "{}", 413, uint8(255))
	f.Add("limit: 1 + 2 > 3 exceed context", "\\\\u003e \\u", 0, uint8(3))
	f.Fuzz(func(t *testing.T, text, raw string, status int, depth uint8) {
		plain := errors.New(text)
		err := error(&clientError{status: status, raw: raw, message: text})
		root := &countedError{text: text, wraps: []error{err, nil}}
		for range depth % 8 {
			err = fmt.Errorf("%w: %w", root, err)
		}
		root.wraps = append(root.wraps, err) // a circle
		Is(root)
		limit, prompt, output, total := figuresOf(root)
		for _, n := range []int{limit, prompt, output, total} {
			assert.GreaterOrEqual(t, n, 0)
			assert.Less(t, int64(n), int64(1)<<32)
		}
		assert.Equal(t, Is(plain), Is(fmt.Errorf("%w", plain)))
	})
}

// isAboutAnswer reads each clause once; here each parameter looks at its whole clause.
func TestIsAboutAnswer_EqualsTheSlowRule(t *testing.T) {
	slow := func(text string) bool {
		for at := 0; ; {
			name, ok := answerName.pattern().find(text, at)
			if !ok {
				return false
			}
			at = name.to
			before := text[strings.LastIndexAny(text[:name.from], ".:;{}\"")+1 : name.from]
			exceeds, ok := answerExceeds.pattern().find(text[at:], 0)
			if ok && !otherSubject.pattern().in(before) && !otherSubject.pattern().in(text[at:at+exceeds.to]) {
				return true
			}
		}
	}
	words := []string{"max_tokens", "max_output_tokens", "budget_tokens", "the prompt", "messages", "and", "+", " exceeds", " must be less than", "a", ".", "; ", ":", "\"", " ", " ", " "}
	random := rand.New(rand.NewPCG(1, 2))
	about := 0
	for range 20_000 {
		var b strings.Builder
		for range random.IntN(12) {
			b.WriteString(words[random.IntN(len(words))])
		}
		want := slow(b.String())
		if want {
			about++
		}
		require.Equal(t, want, (&providerError{text: b.String()}).isAboutAnswer(), "%q", b.String())
	}
	assert.Greater(t, about, 100)
}

func BenchmarkIsAboutAnswer(b *testing.B) {
	for _, n := range []int{1_000, 4_000, 16_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			e := &providerError{text: strings.Repeat("max_tokens ", n)}
			for b.Loop() {
				e.isAboutAnswer()
			}
		})
	}
}
