package wire_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/wire"
)

// dot is a PNG of one pixel.
const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"

// pngOf returns the beginning of a PNG of a size, in base64.
func pngOf(w, h int) string {
	b := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR")
	b = binary.BigEndian.AppendUint32(b, uint32(w))
	b = binary.BigEndian.AppendUint32(b, uint32(h))
	return base64.StdEncoding.EncodeToString(append(b, 8, 2, 0, 0, 0))
}

// pdfOf returns a PDF in base64 whose trailer has these entries: after a table of
// references with rows, or as the dictionary of a stream.
func pdfOf(before string, rows int, stream bool, entries string) string {
	var b bytes.Buffer
	b.WriteString(before)
	start := b.Len()
	b.WriteString("%PDF-1.7\n1 0 obj\n<</Type/Catalog/Note(no /Encrypt here)>>\nendobj\n")
	at := b.Len() - start
	if stream {
		fmt.Fprintf(&b, "9 0 obj\n<</Type/XRef/Size 10%s/Length 4>>\nstream\n\x01\x02/Encrypt \nendstream\nendobj\n", entries)
	} else {
		b.WriteString("xref\n0 1\n" + strings.Repeat("0000000000 65535 f \n", rows))
		fmt.Fprintf(&b, "trailer\n<</Size 1/Root 1 0 R%s>>\n", entries)
	}
	fmt.Fprintf(&b, "startxref\n%d\n%%%%EOF\n", at)
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

func TestCheck_Media(t *testing.T) {
	const jpeg, bmp = "/9j/4AAQSkZJRgABAQAAAQABAAD/", "Qk02AAAAAAAAADYAAAAoAAAA"
	image := func(mime, data string) string {
		return `{"type":"image","source":{"type":"base64","media_type":"` + mime + `","data":"` + data + `"}}`
	}
	document := func(data string) string {
		return `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"` + data + `"}}`
	}
	inUser := func(model, blocks string) string {
		return `{"model":"` + model + `","messages":[{"role":"user","content":[` + blocks + `]}]}`
	}
	inResult := func(blocks string) string {
		return `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"see"},` + blocks + `]}]}]}`
	}
	many := func(n int, block string) string { return strings.Repeat(block+",", n-1) + block }
	chatImage := func(url string) string { return `{"type":"image_url","image_url":{"url":"` + url + `"}}` }
	response := func(url string) string {
		return `{"model":"gpt-5","input":[{"role":"user","content":[{"type":"input_image","image_url":"` + url + `"}]}]}`
	}
	geminiPart := func(part string) string {
		return `{"contents":[{"role":"user","parts":[` + part + `]}]}`
	}
	converse := func(model, format, data string, n int) string {
		block := `{"image":{"format":"` + format + `","source":{"bytes":"` + data + `"}}}`
		return `{"modelId":"` + model + `","messages":[{"role":"user","content":[` + many(n, block) + `]}]}`
	}
	const bedrock = "The model returned the following errors: "
	large := pngOf(2001, 9)
	type finding struct{ rule, path, text string }
	for _, tt := range []struct {
		name string
		f    wire.Format
		body string
		want []finding
	}{
		{"20 images, one is large", wire.Anthropic{}, inUser("claude-opus-5", many(19, image("image/png", dot))+","+image("image/png", large)), nil},
		{"21 images of the limit", wire.Anthropic{}, inUser("claude-opus-5", many(21, image("image/png", pngOf(2000, 2000)))), nil},
		{"21 images, one is large", wire.Anthropic{}, inUser("claude-opus-5", many(20, image("image/png", dot))+","+image("image/png", large)),
			[]finding{{"image-pixels", "messages[0].content[20]", "messages.0.content.20.image.source.base64.data: At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels"}}},
		{"21 images, some by their addresses", wire.Anthropic{}, inUser("claude-opus-5", many(20, `{"type":"image","source":{"type":"url","url":"https://x/y.png"}}`)+","+image("image/png", large)),
			[]finding{{"image-pixels", "messages[0].content[20]", "messages.0.content.20.image.source.base64.data: At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels"}}},
		{"20 images and documents, one is large", wire.Anthropic{}, inUser("claude-opus-5", many(19, image("image/png", dot))+","+image("image/png", large)+","+document(pdfOf("", 1, false, ""))), nil},
		{"8,000 pixels", wire.Anthropic{}, inUser("claude-opus-5", image("image/png", pngOf(3, 8000))), nil},
		{"more than 8,000 pixels", wire.Anthropic{}, inResult(image("image/png", pngOf(3, 8001))),
			[]finding{{"image-pixels", "messages[2].content[0].content[1]", "messages.2.content.0.tool_result.content.1.image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000 pixels"}}},
		{"another type", wire.Anthropic{}, inResult(image("image/jpeg", dot)),
			[]finding{{"image-type", "messages[2].content[0].content[1]", "messages.2.content.0.tool_result.content.1.image.source.base64: The image was specified using the image/jpeg media type, but the image appears to be a image/png image"}}},
		{"a JPEG without a size", wire.Anthropic{}, inUser("", image("image/jpeg", jpeg)), nil},
		{"no image", wire.Anthropic{}, inResult(image("image/png", "PGh0bWw+")), []finding{{"image-unreadable", "messages[2].content[0].content[1]", "Could not process image"}}},
		{"a bitmap", wire.Anthropic{}, inUser("", image("image/png", bmp)), []finding{{"image-unreadable", "messages[0].content[0]", "Could not process image"}}},
		{"a PNG without its size", wire.Anthropic{}, inUser("", image("image/png", dot[:20])), []finding{{"image-unreadable", "messages[0].content[0]", "Could not process image"}}},

		{"PDF", wire.Anthropic{}, inUser("", document(pdfOf("", 1, false, ""))), nil},
		{"PDF, a stream", wire.Anthropic{}, inUser("", document(pdfOf("", 0, true, ""))), nil},
		{"PDF, its metadata is plain", wire.Anthropic{}, inUser("", document(pdfOf("", 1, false, "/Info<</EncryptMetadata false>>"))), nil},
		{"PDF with a password", wire.Anthropic{}, inUser("", document(pdfOf("", 1, false, "/Encrypt 5 0 R"))),
			[]finding{{"pdf-encrypted", "messages[0].content[0]", "messages.0.content.0.pdf.source.base64.data: The PDF specified is password protected."}}},
		{"PDF with a password, long", wire.Anthropic{}, inUser("", document(pdfOf("", 3000, false, "/Encrypt<</V 1>>"))),
			[]finding{{"pdf-encrypted", "messages[0].content[0]", "messages.0.content.0.pdf.source.base64.data: The PDF specified is password protected."}}},
		{"PDF with a password, a stream", wire.Anthropic{}, inResult(document(pdfOf("", 0, true, "/Encrypt\n5 0 R"))),
			[]finding{{"pdf-encrypted", "messages[2].content[0].content[1]", "messages.2.content.0.tool_result.content.1.pdf.source.base64.data: The PDF specified is password protected."}}},
		{"PDF with a password, after other bytes", wire.Anthropic{}, inUser("", document(pdfOf("HTTP/1.1 200\n\n", 1, false, "/Encrypt 5 0 R"))),
			[]finding{{"pdf-encrypted", "messages[0].content[0]", "messages.0.content.0.pdf.source.base64.data: The PDF specified is password protected."}}},
		{"no PDF", wire.Anthropic{}, inUser("", document("PGh0bWw+")),
			[]finding{{"pdf-unreadable", "messages[0].content[0]", "messages.0.content.0.pdf.source.base64.data: The PDF specified was not valid."}}},

		{"Converse, another type", wire.Converse{}, converse("", "jpeg", dot, 1),
			[]finding{{"image-type", "messages[0].content[0]", bedrock + "messages.0.content.0.image.source.base64: The image was specified using the image/jpeg media type, but the image appears to be a image/png image"}}},
		{"Converse, no image", wire.Converse{}, converse("", "png", "PGh0bWw+", 1), []finding{{"image-unreadable", "messages[0].content[0]", bedrock + "Could not process image"}}},
		{"Converse, 20 large images", wire.Converse{}, converse("us.anthropic.claude-sonnet-5", "png", large, 20), nil},
		{"Converse, many large images of another model", wire.Converse{}, converse("amazon.nova-pro-v1:0", "png", large, 21), nil},
		{"Converse, more than 8,000 pixels", wire.Converse{Model: "anthropic.claude-opus-5"}, converse("", "png", pngOf(8001, 1), 1),
			[]finding{{"image-pixels", "messages[0].content[0]", bedrock + "messages.0.content.0.image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000 pixels"}}},
		{"Converse, in a result", wire.Converse{}, `{"messages":[{"role":"user","content":[{"text":"q"}]},{"role":"assistant","content":[{"toolUse":{"toolUseId":"a","name":"f","input":{}}}]},` +
			`{"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[{"text":"r"},{"image":{"format":"gif","source":{"bytes":"` + dot + `"}}}]}}]}]}`,
			[]finding{{"image-type", "messages[2].content[0].toolResult.content[1]", bedrock + "messages.2.content.0.tool_result.content.1.image.source.base64: The image was specified using the image/gif media type, but the image appears to be a image/png image"}}},

		{"Chat, another type", wire.OpenAIChat{}, inUser("gpt-5", chatImage("data:image/jpeg;base64,"+dot)), nil},
		{"Chat, no image", wire.OpenAIChat{}, inUser("gpt-5", chatImage("data:image/png;base64,PGh0bWw+")),
			[]finding{{"image-unreadable", "messages[0].content[0]", "You uploaded an unsupported image. Please make sure your image is valid."}}},
		{"Chat, no image, another host", wire.OpenAIChat{Host: "h"}, inUser("x", chatImage("data:image/png;base64,PGh0bWw+")), nil},
		{"Chat, many large images", wire.OpenAIChat{}, inUser("gpt-5", many(21, chatImage("data:image/png;base64,"+large))), nil},
		{"Chat, Claude elsewhere", wire.OpenAIChat{}, inUser("anthropic/claude-opus-4.8", many(20, chatImage("https://x/y.png"))+","+chatImage("data:image/png;base64,"+large)),
			[]finding{{"image-pixels", "messages[0].content[20]", "(none is published; a host of Claude passes on the error of Anthropic)"}}},
		{"DeepSeek, 14 large images", wire.OpenAIChat{Dialect: wire.DeepSeek}, inUser("deepseek-flash", many(14, chatImage("data:image/png;base64,"+pngOf(8192, 1)))), nil},
		{"DeepSeek, 15 images, one is large", wire.OpenAIChat{Dialect: wire.DeepSeek}, inUser("deepseek-flash", many(14, chatImage("https://x/y.png"))+","+chatImage("data:image/png;base64,"+pngOf(1, 4097))),
			[]finding{{"image-pixels", "messages[0].content[14]", "(none is published; a host of Claude passes on the error of Anthropic)"}}},
		{"Responses, no image", wire.OpenAIResponses{}, response("data:image/png;base64,PGh0bWw+"),
			[]finding{{"image-unreadable", "input[0].content[0]", "The image data you provided does not represent a valid image. Please check your input and try again with one of the supported image formats: ['image/jpeg', 'image/png', 'image/gif', 'image/webp']."}}},
		{"Responses, an image of another type", wire.OpenAIResponses{}, response("data:image/webp;base64," + dot), nil},

		{"Gemini, no image", wire.Gemini{}, geminiPart(`{"inline_data":{"mime_type":"image/png","data":"PGh0bWw+"}}`), []finding{{"image-unreadable", "contents[0].parts[0]", "Provided image is not valid."}}},
		{"Gemini, another image", wire.Gemini{}, geminiPart(`{"inlineData":{"mimeType":"image/png","data":"AAAAGGZ0eXBoZWljAAAA"}},{"inlineData":{"mimeType":"image/heic","data":"AAAAGGZ0eXBoZWljAAAA"}}`), nil},
		{"Gemini, the other base64", wire.Gemini{}, geminiPart(`{"inlineData":{"mimeType":"image/jpeg","data":"_9j_4AAQ"}}`), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []finding
			for _, f := range tt.f.Check([]byte(tt.body)) {
				got = append(got, finding{f.Rule, f.Path, f.Error})
				assert.NotContains(t, f.Problem+f.Fix, "{")
			}
			assert.Equal(t, tt.want, got)
		})
	}
}

// OpenAI takes fewer characters of arguments than its models write.
func TestCheck_ArgumentsLength(t *testing.T) {
	const most = 1 << 20
	args := func(n int) string { return strings.Repeat("é", n) }
	chat := func(kind, field, text string) string {
		return `{"messages":[{"role":"user","content":"q"},{"role":"assistant","tool_calls":[{"id":"c1","type":"` + kind + `","` + kind + `":{"name":"f","` + field + `":"` + text + `"}}]},{"role":"tool","tool_call_id":"c1","content":"r"}]}`
	}
	response := func(kind, field, text string) string {
		return `{"input":[{"role":"user","content":"q"},{"type":"` + kind + `","call_id":"c1","name":"f","` + field + `":"` + text + `"},{"type":"` + kind + `_output","call_id":"c1","output":"r"}]}`
	}
	for _, tt := range []struct {
		f    wire.Format
		body func(n int) string
		path string
	}{
		{wire.OpenAIChat{}, func(n int) string { return chat("function", "arguments", args(n)) }, "messages[1].tool_calls[0].function.arguments"},
		{wire.OpenAIChat{}, func(n int) string { return chat("custom", "input", args(n)) }, "messages[1].tool_calls[0].custom.input"},
		{wire.OpenAIChat{Host: "h"}, func(n int) string { return chat("function", "arguments", args(n)) }, ""},
		{wire.OpenAIResponses{}, func(n int) string { return response("function_call", "arguments", args(n)) }, "input[1].arguments"},
		{wire.OpenAIResponses{}, func(n int) string { return response("custom_tool_call", "input", args(n)) }, "input[1].input"},
		{wire.OpenAIResponses{Plain: true}, func(n int) string { return response("function_call", "arguments", args(n)) }, ""},
	} {
		assert.Empty(t, tt.f.Check([]byte(tt.body(most))))
		got := tt.f.Check([]byte(tt.body(most + 1)))
		if tt.path == "" {
			assert.Empty(t, got)
			continue
		}
		require.Len(t, got, 1)
		assert.Equal(t, "arguments-length", got[0].Rule)
		assert.Equal(t, tt.path, got[0].Path)
		assert.Equal(t, "c1", got[0].ID)
		assert.Equal(t, "Invalid '"+tt.path+"': string too long. Expected a string with maximum length 1048576, but got a string with length 1048577 instead.", got[0].Error)
		assert.Equal(t, "the arguments have 1048577 characters, and the provider takes 1048576, though its models write more", got[0].Problem)
	}
}
