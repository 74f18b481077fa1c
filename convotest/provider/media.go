package provider

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	_ "image/gif" // the formats that DecodeConfig reads
	_ "image/jpeg"
	_ "image/png"
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxArguments is how many characters OpenAI takes of the arguments of a call. Its models
// may write more.
const maxArguments = 1 << 20

func runes(text string) int { return utf8.RuneCountInString(text) }

// fromBase64 decodes base64 as JSON of protocol buffers does: in either alphabet, padded or
// not.
func fromBase64(text string) ([]byte, error) {
	text = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
	return base64.RawStdEncoding.DecodeString(text)
}

// A picture is what the data of an image says about it.
type picture struct {
	mime string // empty: it is no image that a provider can read
	side int    // the longer side in pixels; 0: not known
}

// look looks at an image in base64.
func look(data string) picture {
	b, err := fromBase64(data)
	if err != nil {
		return picture{}
	}
	if len(b) >= 12 && string(b[:4]) == "RIFF" && string(b[8:12]) == "WEBP" { // its pixels are not checked
		return picture{mime: "image/webp"}
	}
	c, format, err := image.DecodeConfig(bytes.NewReader(b))
	if err != nil || c.Width < 1 || c.Height < 1 {
		return picture{}
	}
	return picture{mime: "image/" + format, side: max(c.Width, c.Height)}
}

// encryptedPDF finds the entry of a PDF that says that it is encrypted.
var encryptedPDF = regexp.MustCompile(`/Encrypt\s*(<<|\d+\s+\d+\s+R)`)

// A claudeMedia checks the images and PDFs of a request to Claude, one by one.
type claudeMedia struct {
	images, documents int
	first             string   // the first fault
	read              []place  // images that can be read
	paths             []string // of the images that are too large
}

// A place is an image in a request.
type place struct {
	path string // as in the details of the error
	name string // as in its message
	side int
}

func (m *claudeMedia) add(format string, args ...any) {
	if m.first == "" {
		m.first = fmt.Sprintf(format, args...)
	}
}

// image checks an image whose data is in base64.
func (m *claudeMedia) image(p place, stated, data string, most int) {
	if n := len(data); n > most {
		m.add("%s.source.base64: image exceeds %d MB maximum: %d bytes > %d bytes", p.name, most>>20, n, most)
	}
	switch is := look(data); is.mime {
	case "":
		m.add("Could not process image")
	case stated:
		p.side = is.side
		m.read = append(m.read, p)
	default:
		m.add("%s.source.base64: The image was specified using the %s media type, but the image appears to be a %s image", p.name, stated, is.mime)
	}
}

// pdf checks a PDF whose data is in base64.
func (m *claudeMedia) pdf(name, data string) {
	b, err := fromBase64(data)
	switch {
	case err != nil || !bytes.Contains(b[:min(len(b), 1024)], []byte("%PDF-")):
		m.add("%s.source.base64.data: The PDF specified was not valid.", name)
	case encryptedPDF.Match(b):
		m.add("%s.source.base64.data: The PDF specified is password protected.", name)
	}
}

// end checks what only all images together show. It returns the most pixels that the images
// at m.paths may have on a side.
func (m *claudeMedia) end(model claude) (side int) {
	count := 600
	if !model.since(4, 6) {
		count = 100
	}
	if m.images+m.documents > count {
		m.add("too many images and documents: %d + %d > %d", m.images, m.documents, count)
	}
	side, request := 8000, ""
	if m.images > 20 {
		side, request = 2000, " for many-image requests"
	}
	if m.first != "" {
		return side
	}
	for _, p := range m.read {
		if p.side > side {
			m.add("%s.source.base64.data: At least one of the image dimensions exceed max allowed size%s: %d pixels", p.name, request, side)
			m.paths = append(m.paths, p.path)
		}
	}
	return side
}

// media checks the images and PDFs.
func (k *anthropicCheck) media() {
	var m claudeMedia
	var blocks func(path, name string, list []any)
	blocks = func(path, name string, content []any) {
		for i, b := range content {
			b, path, name := obj(b), fmt.Sprintf("%s.%d", path, i), fmt.Sprintf("%s.%d", name, i)
			source := obj(b["source"])
			data, kind := str(source["data"]), str(source["type"])
			switch b["type"] {
			case "tool_result":
				blocks(path+".content", name+".tool_result.content", list(b["content"]))
			case "image":
				if m.images++; kind == "base64" {
					m.image(place{path: path, name: name + ".image"}, str(source["media_type"]), data, 10<<20)
				}
			case "document":
				if kind != "text" && kind != "content" {
					m.documents++
				}
				if kind == "base64" && source["media_type"] == "application/pdf" {
					m.pdf(name+".pdf", data)
				}
			}
		}
	}
	for _, t := range k.turns {
		for _, b := range t.blocks {
			i := strings.LastIndexByte(b.path, '.')
			before, nth := b.path[:i], 0
			_, _ = fmt.Sscan(b.path[i+1:], &nth)
			content := make([]any, nth+1)
			content[nth] = b.object
			blocks(before, before, content)
		}
	}
	side := m.end(k.model)
	if m.first == "" {
		return
	}
	k.add("%s", m.first)
	if len(m.paths) > 0 {
		k.code, k.details = "image_dimensions_too_large", object{"max_side_length_pixels": side, "paths": m.paths}
	}
}

// media checks the images of a request to Claude in Converse.
func (k *converseCheck) media(model string, messages []any) {
	var m claudeMedia
	var blocks func(name string, list []any)
	blocks = func(name string, content []any) {
		for i, b := range content {
			name := fmt.Sprintf("%s.%d", name, i)
			if result := obj(obj(b)["toolResult"]); result != nil {
				blocks(name+".tool_result.content", list(result["content"]))
			}
			if in := obj(obj(b)["image"]); in != nil {
				m.images++
				if data := str(obj(in["source"])["bytes"]); data != "" {
					m.image(place{name: name + ".image"}, "image/"+str(in["format"]), data, 5<<20)
				}
			}
		}
	}
	for i, message := range messages {
		blocks(fmt.Sprintf("messages.%d.content", i), list(obj(message)["content"]))
	}
	if m.end(claudeOf(model)); m.first != "" {
		k.add("The model returned the following errors: %s", m.first)
	}
}

// image checks an image in a data URL, and refuses it with the given error.
func (k *openAICheck) image(url, code, param, text string) {
	if head, data, ok := strings.Cut(url, ";base64,"); ok && strings.HasPrefix(head, "data:image/") && look(data).mime == "" {
		k.add(code, param, "%s", text)
	}
}
