package wire

import (
	"slices"
	"strconv"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/models"
)

// sizeLimits are the most that a provider takes in one request. 0 means that no limit is
// known. docs/formats.md has the sources.
type sizeLimits struct {
	models.Images
	request   int // bytes
	bytes     int // of the data of one image, in base64
	documents int

	reads  []string // MIME types of images that the provider reads; nil: not known
	stated bool     // an image must be of the type that is stated for it
	pdfs   bool     // PDFs must be readable without a password
}

// readImages are the types of images that all providers read but Gemini, which reads other
// ones.
var readImages = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// claudeSizes returns the limits of Anthropic's API, or of a host of it.
func claudeSizes(model string) sizeLimits {
	l := sizeLimits{Images: models.ImagesOf(model), request: 32 << 20, bytes: 10 << 20, reads: readImages, stated: true, pdfs: true}
	if l.Images == (models.Images{}) {
		l.Images = models.ImagesOf("claude")
	}
	if strings.Contains(model, "anthropic.") || strings.Contains(model, "@") { // in the clouds of Amazon and Google
		l.bytes = 5 << 20
	}
	return l
}

// openAISizes are the limits of OpenAI's APIs. Other hosts of these formats have other
// limits.
var openAISizes = sizeLimits{Images: models.Images{Count: 1500}, request: 512 << 20, reads: readImages}

// geminiSizes are the limits of the Gemini API; Vertex AI takes fewer images.
var geminiSizes = sizeLimits{Images: models.Images{Count: 3600}, request: 100 << 20, reads: append(slices.Clone(readImages), "image/bmp", "image/heif")}

// converseSizes returns the limits of Bedrock. Those of images depend on the model.
func converseSizes(model string) sizeLimits {
	l := sizeLimits{documents: 5, reads: readImages, stated: true}
	l.Images = models.ImagesOf(model)
	if l.Images != (models.Images{}) {
		l.bytes = 5 << 20
	}
	return l
}

// A medium is an image or a document in a request.
type medium struct {
	path string
	mime string // as stated; empty if it is not
	data string // in base64; empty if it has an address
	page bool   // a document
}

// sizes checks the size of a request, and the media in it.
func (c *checker) sizes(request []byte, all []medium, l sizeLimits) {
	if l.request > 0 && len(request) > l.request {
		c.add("request-bytes", "", "", "count", strconv.Itoa(len(request)), "most", strconv.Itoa(l.request))
	}
	images := slices.DeleteFunc(slices.Clone(all), func(m medium) bool { return m.page })
	documents := slices.DeleteFunc(slices.Clone(all), func(m medium) bool { return !m.page })
	if l.Count > 0 && len(all) > l.Count {
		c.add("media-count", all[l.Count].path, "", "images", strconv.Itoa(len(images)), "documents", strconv.Itoa(len(documents)), "most", strconv.Itoa(l.Count))
	}
	if l.documents > 0 && len(documents) > l.documents {
		c.add("document-count", documents[l.documents].path, "", "count", strconv.Itoa(len(documents)), "most", strconv.Itoa(l.documents))
	}
	for _, m := range images {
		c.image(m, l, len(images))
	}
	for _, m := range documents {
		if l.pdfs && m.mime == "application/pdf" && m.data != "" {
			c.pdf(m)
		}
	}
}

// mediaIn returns the media in a decoded value, in their order. look returns the medium
// that an object is.
func mediaIn(path string, v any, look func(m map[string]any) (medium, bool)) (all []medium) {
	switch v := v.(type) {
	case map[string]any:
		if m, ok := look(v); ok {
			m.path = path
			return []medium{m}
		}
		keys := make([]string, 0, len(v))
		for key := range v {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for _, key := range keys {
			all = append(all, mediaIn(at(path, key), v[key], look)...)
		}
	case []any:
		for i, x := range v {
			all = append(all, mediaIn(atIndex(path, i), x, look)...)
		}
	}
	return all
}

func anthropicMedium(m map[string]any) (medium, bool) {
	source, _ := m["source"].(map[string]any)
	kind, from := str(m["type"]), str(source["type"])
	out := medium{mime: str(source["media_type"]), page: kind == "document"}
	if from == "base64" {
		out.data = str(source["data"])
	}
	return out, source != nil && (kind == "image" || kind == "document" && from != "text" && from != "content")
}

func converseMedium(m map[string]any) (medium, bool) {
	kind, prefix := "image", "image/"
	if m["document"] != nil {
		kind, prefix = "document", "application/"
	}
	in, _ := m[kind].(map[string]any)
	source, _ := in["source"].(map[string]any)
	return medium{mime: prefix + str(in["format"]), data: str(source["bytes"]), page: kind == "document"}, in["source"] != nil
}

// openAIMedium is for Chat Completions and Responses.
func openAIMedium(m map[string]any) (medium, bool) {
	kind := str(m["type"])
	if kind != "image_url" && kind != "input_image" {
		return medium{}, false
	}
	url := str(m["image_url"])
	if in, isObject := m["image_url"].(map[string]any); isObject {
		url = str(in["url"])
	}
	in := mediaOf(url, "")
	return medium{mime: in.MIME, data: in.Data}, true
}
