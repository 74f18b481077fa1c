package provider_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/wire"
)

// pngOf returns an image in base64.
func pngOf(w, h int) string {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

func jpegOf(w, h int) string {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, w, h)), nil); err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// pdfOf returns a PDF in base64 whose trailer has these entries.
func pdfOf(entries string) string {
	body := "%PDF-1.7\n1 0 obj\n<</Type/Catalog>>\nendobj\n"
	return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%sxref\n0 1\n0000000000 65535 f \ntrailer\n<</Size 1/Root 1 0 R%s>>\nstartxref\n%d\n%%%%EOF\n", body, entries, len(body)))
}

const noImage = "PGh0bWw+"

func TestAnthropic_Media(t *testing.T) {
	small, large := pngOf(9, 9), pngOf(2001, 1)
	block := func(mime, data string) string {
		return `{"type":"image","source":{"type":"base64","media_type":"` + mime + `","data":"` + data + `"}}`
	}
	pdf := func(data string) string {
		return `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"` + data + `"}}`
	}
	user := func(model, blocks string) string {
		return `{"model":"` + model + `","max_tokens":9,"messages":[{"role":"user","content":[` + blocks + `]}]}`
	}
	result := func(blocks string) string {
		return `{"model":"claude-opus-5","max_tokens":9,"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"see"},` + blocks + `]}]}]}`
	}
	many := func(n int, block string) string { return strings.TrimSuffix(strings.Repeat(block+",", n), ",") }
	png := block("image/png", small)
	url := `{"type":"image","source":{"type":"url","url":"https://x/y"}}`
	for _, tt := range []ruleTest{
		{"20 images", user("claude-opus-5", many(19, png)+","+block("image/png", large)), ""},
		{"21 small images", user("claude-opus-5", many(21, png)), ""},
		{"21 images", user("claude-opus-5", many(20, url)+","+block("image/png", large)), "messages.0.content.20.image.source.base64.data: At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels"},
		{"8,001 pixels", result(block("image/jpeg", jpegOf(8001, 1))), "messages.2.content.0.tool_result.content.1.image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000 pixels"},
		{"another type", result(block("image/jpeg", small)), "messages.2.content.0.tool_result.content.1.image.source.base64: The image was specified using the image/jpeg media type, but the image appears to be a image/png image"},
		{"no image", result(block("image/png", noImage)), "Could not process image"},
		{"10 MiB", user("claude-opus-5", block("image/png", small+strings.Repeat("A", 10<<20))), fmt.Sprintf("messages.0.content.0.image.source.base64: image exceeds 10 MB maximum: %d bytes > 10485760 bytes", len(small)+10<<20)},
		{"100 images", user("claude-haiku-4-5", many(100, url)), ""},
		{"100 images and a PDF", user("claude-haiku-4-5", many(100, url)+","+pdf(pdfOf(""))), "too many images and documents: 100 + 1 > 100"},
		{"PDF", user("claude-opus-5", pdf(pdfOf(""))), ""},
		{"PDF with a password", result(pdf(pdfOf("/Encrypt 2 0 R"))), "messages.2.content.0.tool_result.content.1.pdf.source.base64.data: The PDF specified is password protected."},
		{"no PDF", user("claude-opus-5", pdf(noImage)), "messages.0.content.0.pdf.source.base64.data: The PDF specified was not valid."},
	} {
		s := provider.New(provider.Options{})
		post(t, s, "/v1/messages", tt.body)
		all := s.Requests()
		require.Len(t, all, 1, tt.name)
		assert.Equal(t, tt.want, all[0].Error, tt.name)
		found := wire.Anthropic{}.Check([]byte(tt.body))
		if tt.want == "" {
			assert.Empty(t, found, tt.name)
		} else if assert.NotEmpty(t, found, tt.name) {
			assert.Equal(t, tt.want, found[0].Error, "%s: Check says what the provider answers", tt.name)
		}
	}

	_, answer := post(t, provider.New(provider.Options{}), "/v1/messages", strings.Replace(result(many(21, block("image/png", large))), `"content":"q"`, `"content":[`+block("image/png", large)+`]`, 1))
	var e struct {
		Error struct {
			Type    string
			Details struct {
				Code  string   `json:"error_code"`
				Side  int      `json:"max_side_length_pixels"`
				Paths []string `json:"paths"`
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(answer), &e))
	assert.Equal(t, "invalid_request_error", e.Error.Type)
	assert.Equal(t, "image_dimensions_too_large", e.Error.Details.Code)
	assert.Equal(t, 2000, e.Error.Details.Side)
	require.Len(t, e.Error.Details.Paths, 22)
	assert.Equal(t, []string{"messages.0.content.0", "messages.2.content.0.content.1"}, e.Error.Details.Paths[:2])
}

func TestMedia_OtherFormats(t *testing.T) {
	args := strings.Repeat("é", 1<<20)
	chat := func(content string) string {
		return `{"model":"m","messages":[{"role":"user","content":[` + content + `]}]}`
	}
	call := func(args string) string {
		return `{"model":"m","messages":[{"role":"user","content":"q"},{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"` + args + `"}}]},{"role":"tool","tool_call_id":"c","content":"r"}]}`
	}
	item := func(args string) string {
		return `{"model":"m","input":[{"role":"user","content":"q"},{"type":"function_call","call_id":"c","name":"f","arguments":"` + args + `"},{"type":"function_call_output","call_id":"c","output":"r"}]}`
	}
	converse := func(n int, format, data string) string {
		return `{"messages":[{"role":"user","content":[` + strings.TrimSuffix(strings.Repeat(`{"image":{"format":"`+format+`","source":{"bytes":"`+data+`"}}},`, n), ",") + `]}]}`
	}
	gemini := func(mime, data string) string {
		return `{"contents":[{"role":"user","parts":[{"inlineData":{"mimeType":"` + mime + `","data":"` + data + `"}}]}]}`
	}
	const bedrock, noPicture = "The model returned the following errors: ", "The image data you provided does not represent a valid image. Please check your input and try again with one of the supported image formats: ['image/jpeg', 'image/png', 'image/gif', 'image/webp']."
	const long = "string too long. Expected a string with maximum length 1048576, but got a string with length 1048577 instead."
	for _, tt := range []struct {
		path, param, code string
		ruleTest
	}{
		{"/v1/chat/completions", "", "", ruleTest{"arguments", call(args), ""}},
		{"/v1/chat/completions", "messages[1].tool_calls[0].function.arguments", "string_above_max_length", ruleTest{"long arguments", call(args + "x"), "Invalid 'messages[1].tool_calls[0].function.arguments': " + long}},
		{"/v1/chat/completions", "", "", ruleTest{"an image", chat(`{"type":"image_url","image_url":{"url":"data:image/jpeg;base64,` + pngOf(1, 1) + `"}}`), ""}},
		{"/v1/chat/completions", "", "image_parse_error", ruleTest{"no image", chat(`{"type":"image_url","image_url":{"url":"data:image/png;base64,` + noImage + `"}}`), "You uploaded an unsupported image. Please make sure your image is valid."}},
		{"/v1/responses", "", "", ruleTest{"arguments", item(args), ""}},
		{"/v1/responses", "input[1].arguments", "string_above_max_length", ruleTest{"long arguments", item(args + "x"), "Invalid 'input[1].arguments': " + long}},
		{"/v1/responses", "input", "invalid_value", ruleTest{"no image", `{"model":"m","input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,` + noImage + `"}]}]}`, noPicture}},
		{"/v1/responses", "input", "invalid_value", ruleTest{"no image in an output", strings.Replace(item("{}"), `"output":"r"`, `"output":[{"type":"input_image","image_url":"data:image/png;base64,`+noImage+`"}]`, 1), noPicture}},
		{"/v1beta/models/gemini-3-pro:generateContent", "", "", ruleTest{"an image", gemini("image/png", strings.TrimRight(strings.NewReplacer("+", "-", "/", "_").Replace(jpegOf(9, 9)), "=")), ""}},
		{"/v1beta/models/gemini-3-pro:generateContent", "", "", ruleTest{"no image", gemini("image/png", noImage), "Provided image is not valid."}},
		{"/model/us.anthropic.claude-opus-5-v1:0/converse", "", "", ruleTest{"20 images", converse(20, "png", pngOf(2001, 1)), ""}},
		{"/model/us.anthropic.claude-opus-5-v1:0/converse", "", "", ruleTest{"21 images", converse(21, "png", pngOf(2001, 1)), bedrock + "messages.0.content.0.image.source.base64.data: At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels"}},
		{"/model/us.anthropic.claude-opus-5-v1:0/converse", "", "", ruleTest{"another type", converse(1, "gif", pngOf(1, 1)), bedrock + "messages.0.content.0.image.source.base64: The image was specified using the image/gif media type, but the image appears to be a image/png image"}},
		{"/model/amazon.nova-pro-v1:0/converse", "", "", ruleTest{"21 images of another model", converse(21, "png", pngOf(2001, 1)), ""}},
	} {
		s := provider.New(provider.Options{})
		_, answer := post(t, s, tt.path, tt.body)
		assert.Equal(t, tt.want, s.Requests()[0].Error, "%s %s", tt.path, tt.name)
		if tt.code != "" {
			assert.Contains(t, answer, `"code":"`+tt.code+`"`, tt.name)
		}
		if tt.param != "" {
			assert.Contains(t, answer, `"param":"`+tt.param+`"`, tt.name)
		}
	}
}

// A signature that says that there is none is taken as the clients send it.
func TestGemini_AnySignature(t *testing.T) {
	for _, signature := range []string{"skip_thought_signature_validator", "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=", "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I"} {
		s := provider.New(provider.Options{})
		post(t, s, "/v1beta/models/gemini-3-pro:generateContent", `{"contents":[{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"functionCall":{"name":"f"},"thoughtSignature":"`+signature+`"}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{}}}]}]}`)
		assert.Empty(t, s.Requests()[0].Error, signature)
	}
}

// After another key, what was encrypted before is refused until it is gone.
func TestFault_NewKey(t *testing.T) {
	s := provider.New(provider.Options{})
	s.Script(provider.Answer{Blocks: []provider.Block{provider.Thinking("h"), provider.Text("a")}}, provider.Answer{Fault: &provider.Fault{NewKey: true}})
	const ask = `{"role":"user","content":"q"}`
	_, answer := post(t, s, "/v1/responses", `{"model":"m","store":false,"include":["reasoning.encrypted_content"],"input":[`+ask+`]}`)
	var got struct{ Output []json.RawMessage }
	require.NoError(t, json.Unmarshal([]byte(answer), &got))
	require.Len(t, got.Output, 2)
	again := `{"model":"m","store":false,"input":[` + ask + "," + string(got.Output[0]) + "," + string(got.Output[1]) + "," + ask + `]}`
	for range 2 {
		status, answer := post(t, s, "/v1/responses", again)
		assert.Equal(t, 400, status)
		assert.Contains(t, answer, `"code":"invalid_encrypted_content"`)
		assert.Regexp(t, `The encrypted content for item rs_\w+ could not be verified. Reason: Encrypted content could not be decrypted or parsed.`, answer)
	}
	assert.Len(t, s.Refused(), 2)
	status, _ := post(t, s, "/v1/responses", strings.Replace(again, string(got.Output[0])+",", "", 1))
	assert.Equal(t, 200, status)
}

// An agent that takes large screenshots is never refused, though it takes more than a
// request may have.
func TestRun_LargeImages(t *testing.T) {
	for _, tt := range formatTests() {
		if tt.client.stream || tt.path != "/v1/messages" && !strings.Contains(tt.path, "claude") {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			s := provider.New(provider.Options{})
			for i := range 40 {
				s.Script(provider.Answer{Blocks: []provider.Block{provider.Call{ID: fmt.Sprint("c", i), Name: "shot", Arguments: "{}"}}})
			}
			c := serve(t, s, tt)
			h := newHistory(t, &convo.Options{Limits: convo.Limits{Window: 1_000_000}})
			model, _ := c.params["model"].(string)
			if model == "" {
				model = "us.anthropic.claude-opus-5-v1:0"
			}
			require.NoError(t, h.SetModel(model, convo.Limits{}))
			mustAppend(t, h, convo.User("go"))
			data := pngOf(2560, 1440)
			shot := convo.Handler{Tool: convo.Tool{Name: "shot"}, Run: func(context.Context, convo.ToolCall) ([]convo.Part, error) {
				return []convo.Part{convo.Media{MIME: "image/png", Data: data}}, nil
			}}
			_, err := h.Run(t.Context(), c.send, convo.RunOptions{Tools: []convo.Handler{shot}})
			require.NoError(t, err)
			assert.Empty(t, s.Refused())
			assert.Len(t, s.Requests(), 41)
			newest := s.Requests()[40].Body
			kept := bytes.Count(newest, []byte(data))
			assert.True(t, kept >= 10 && kept <= 20, "%d images: half of what the model takes stays at least", kept)
		})
	}
}
