package overflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A published is a message that a provider is known to write, and what it refuses.
type published struct {
	message string
	want    Refusal // without Words
}

// publishedMessages are the messages of threads and documents.
var publishedMessages = []published{
	{"messages.5.content.0.tool_result.content.1.image.source.base64.data: Could not process image", Refusal{Kind: Image, Paths: []string{"messages.5.content.0.tool_result.content.1.image.source.base64.data"}}},
	{"messages.5.content.0: Could not process image", Refusal{Kind: Image, Paths: []string{"messages.5.content.0"}}},
	{"Could not process image", Refusal{Kind: Image}},
	{"Unable to process input image. Please retry or report in https://developers.generativeai.google/guide/troubleshooting", Refusal{Kind: Image}},
	{"messages.1.content.0.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes", Refusal{Kind: Image, Paths: []string{"messages.1.content.0.image.source.base64"}}},
	{"messages.42.content.0.image.source.base64.data: At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels", Refusal{Kind: Image, Most: 2000, Paths: []string{"messages.42.content.0.image.source.base64.data"}}},
	{"messages.2.content.1.document.source.base64.data: The PDF specified is password protected.", Refusal{Kind: Document, Paths: []string{"messages.2.content.1.document.source.base64.data"}}},
	{"The PDF specified was not valid.", Refusal{Kind: Document}},
	{"messages.4.content.0.tool_result.content.0: Tool reference 'mcp__Github__get' not found in available tools", Refusal{Kind: Reference, Name: "mcp__Github__get", Paths: []string{"messages.4.content.0.tool_result.content.0"}}},
	{"Tool reference 'X' not found in available tools", Refusal{Kind: Reference, Name: "X"}},
	{"The encrypted content for item rs_0A could not be verified. Reason: Encrypted content could not be decrypted or parsed.", Refusal{Kind: Encrypted, Name: "rs_0A"}},
	{"Invalid 'input[1].arguments': string too long. Expected a string with maximum length 1048576, but got a string with length 1900000 instead.", Refusal{Kind: Arguments, Most: 1048576, Paths: []string{"input[1].arguments"}}},
	{"Invalid 'messages[3].tool_calls[0].function.arguments': string too long. Expected a string with maximum length 1048576, but got a string with length 1900000 instead.", Refusal{Kind: Arguments, Most: 1048576, Paths: []string{"messages[3].tool_calls[0].function.arguments"}}},
	{"messages.3.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation.", Refusal{Kind: Seal, Paths: []string{"messages.3.content.0"}}},
	{"messages.5.content.1: Invalid `data` in `redacted_thinking` block", Refusal{Kind: Seal, Paths: []string{"messages.5.content.1"}}},
	{"messages.1: `web_search` tool use with id `srvtoolu_1` was found without a corresponding `web_search_tool_result` block", Refusal{Kind: Block, Name: "srvtoolu_1", Paths: []string{"messages.1"}}},
	{"Expected container_id: cntr_0a1", Refusal{Kind: Container, Name: "cntr_0a1"}},
	{"Container is expired.", Refusal{Kind: Container}},
}

// frames write a message as clients, gateways and providers do.
var frames = map[string]func(message string) error{
	"a text":  func(m string) error { return errors.New(m) },
	"wrapped": func(m string) error { return fmt.Errorf("turn 3: %w", errors.New(m)) },
	"joined":  func(m string) error { return errors.Join(errors.New("x"), errors.New(m)) },
	"anthropic": func(m string) error {
		return errors.New(`POST "https://api.anthropic.com/v1/messages": 400 Bad Request (Request-ID: req_1) ` + anthropicBody(m))
	},
	"a body":              func(m string) error { return errors.New(anthropicBody(m)) },
	"a status and a body": func(m string) error { return fmt.Errorf("400 Bad Request: %s", anthropicBody(m)) },
	"openai": func(m string) error {
		return errors.New(`POST "https://api.openai.com/v1/responses": 400 Bad Request ` + jsonOf(map[string]any{"message": m, "type": "invalid_request_error", "param": nil, "code": nil}))
	},
	"fields": func(m string) error { return &fieldsError{Message: m, StatusCode: 400} },
	"gemini": func(m string) error {
		return errors.New("Error 400, Message: " + m + ", Status: INVALID_ARGUMENT, Details: []")
	},
	"bedrock": func(m string) error {
		return errors.New("operation error Bedrock Runtime: ConverseStream, https response error StatusCode: 400, RequestID: 8c1f-2, ValidationException: The model returned the following errors: " + m)
	},
	"openrouter": func(m string) error {
		return errors.New(jsonOf(map[string]any{"error": map[string]any{"message": "Provider returned error", "code": 400, "metadata": map[string]any{"raw": anthropicBody(m), "provider_name": "Anthropic"}}}))
	},
	"litellm": func(m string) error {
		return errors.New(jsonOf(map[string]any{"error": map[string]any{"message": "litellm.BadRequestError: AnthropicException - " + anthropicBody(m) + ". Received Model Group=claude", "code": "400"}}))
	},
	"wire": func(m string) error { return errors.New("wire: the provider reports invalid_request_error: " + m) },
}

func anthropicBody(m string) string {
	return jsonOf(map[string]any{"type": "error", "error": map[string]any{"type": "invalid_request_error", "message": m}})
}

func jsonOf(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func TestRefused(t *testing.T) {
	for name, frame := range frames {
		for _, p := range publishedMessages {
			got := Refused(frame(p.message))
			assert.NotEmpty(t, got.Words, "%s: %s", name, p.message)
			got.Words = ""
			assert.Equal(t, p.want, got, "%s: %s", name, p.message)
		}
	}
	typed := `{"type":"error","error":{"type":"image_dimensions_too_large","message":"images are too large","paths":["messages.1.content.0","messages.3.content.2"],"max_side_length_pixels":2000}}`
	got := Refused(errors.New(typed))
	assert.Equal(t, Refusal{Kind: Image, Most: 2000, Paths: []string{"messages.1.content.0", "messages.3.content.2"}, Words: "images are too large"}, got)
	got = Refused(errors.New(`{"error":{"message":"no","code":"invalid_encrypted_content","param":"input[3]"}}`))
	assert.Equal(t, Refusal{Kind: Encrypted, Paths: []string{"input[3]"}, Words: "no"}, got)
	assert.Zero(t, Refused(nil))
}

// What a tool has written, and a provider repeats, refuses nothing.
func TestRefused_Echo(t *testing.T) {
	echoes := []func(m string) string{
		func(m string) string {
			return "messages.3.content.0.tool_result.content: Input should be a valid string, got " + m
		},
		func(m string) string {
			return "messages.3.content.0.tool_result.content: Input should be a valid string [input_value='" + m + "', input_type=str]"
		},
		func(m string) string { return "Invalid value: '" + m + "'. Supported values are: 'text'." },
		func(m string) string { return "Invalid 'input[2].output': " + m },
		func(m string) string { return "Invalid value at 'contents[3].parts[0]' (TYPE_STRING), \"" + m + "\"" },
		func(m string) string { return "tool result: " + m },
		func(m string) string { return "JSONDecodeError: " + m },
		func(m string) string { return "Tool 404 said: " + m },
		func(m string) string { return "Unexpected payload: " + m },
		func(m string) string { return "Unexpected data: " + anthropicBody(m) },
		func(m string) string { return "Invalid tool result " + anthropicBody(m) },
		func(m string) string { return "messages.3.content.0: bad " + anthropicBody(m) },
		func(m string) string { return "messages.3.content.0: status 400: " + anthropicBody(m) },
		func(m string) string { return "'" + m + "' is not of type 'object' - 'messages.1.content'" },
		func(m string) string { return strings.Repeat("x ", 2000) + m },
		func(m string) string { return "the request is not valid\n" + m },
	}
	for name, frame := range frames {
		for _, p := range publishedMessages {
			for _, m := range []string{p.message, p.message[:len(p.message)-3], jsonOf(p.message), anthropicBody(p.message), strings.ReplaceAll(jsonOf(p.message), `"`, `\"`)} {
				for i, echo := range echoes {
					assert.Equal(t, NotRefused, Refused(frame(echo(m))).Kind, "%s, echo %d: %s", name, i, echo(m))
				}
			}
		}
	}
}

// Errors that pass by themselves refuse nothing, whatever they say.
func TestRefused_Passes(t *testing.T) {
	for _, p := range publishedMessages {
		for _, err := range []error{
			&fieldsError{Message: p.message, StatusCode: 429},
			&fieldsError{Message: p.message, StatusCode: 503},
			errors.New(`POST "https://x": 529 Overloaded ` + anthropicBody(p.message)),
			errors.New(jsonOf(map[string]any{"error": map[string]any{"type": "rate_limit_error", "message": p.message}})),
			errors.New(jsonOf(map[string]any{"error": map[string]any{"code": 503, "status": "UNAVAILABLE", "message": p.message}})),
			errors.New(jsonOf(map[string]any{"error": map[string]any{"type": "overloaded_error", "message": p.message}})),
		} {
			assert.Equal(t, NotRefused, Refused(err).Kind, err)
		}
	}
	for _, text := range []string{"Unable to download the file. Please verify the URL and try again.", "Could not fetch image", "", "{", "messages", "messages.", "messages.1", "messages.1: "} {
		assert.Equal(t, NotRefused, Refused(errors.New(text)).Kind, text)
	}
}

func FuzzRefused(f *testing.F) {
	for _, p := range publishedMessages {
		f.Add(p.message)
		f.Add(anthropicBody(p.message))
	}
	f.Fuzz(func(t *testing.T, s string) {
		r := Refused(errors.New(s))
		if len(r.Words) > maxWords {
			t.Errorf("%d bytes of words", len(r.Words))
		}
	})
}
