package wire

import (
	"slices"
	"strconv"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/models"
)

// sizeLimits are the most that a provider takes in one request. 0 means that no limit is
// known.
type sizeLimits struct {
	request int // bytes
	kind    string
	count   int // of that kind
	bytes   int // of the data of one
	total   int // of the data of all
}

// claudeSizes returns the limits of Anthropic's API. Models with a window of 200,000
// tokens take 100 images, all others 600. The data of an image is counted in base64.
func claudeSizes(model string) sizeLimits {
	l := sizeLimits{request: 32 << 20, kind: "images", count: 600, bytes: 5 << 20}
	if _, major, minor := models.Claude(model); major > 0 && (major < 4 || major == 4 && minor < 6) {
		l.count = 100
	}
	return l
}

// openAISizes are the limits of OpenAI's APIs. The data of an image is counted without
// base64. Other hosts of these formats have other limits.
var openAISizes = sizeLimits{kind: "images", count: 500, total: 50 << 20}

// converseSizes are the limits of Bedrock. Those of images depend on the model.
var converseSizes = sizeLimits{kind: "documents", count: 5}

// A medium is an image or a document in a request.
type medium struct {
	path string
	data int // bytes of its data in base64; 0: it has an address
}

// sizes checks the size of a request, whose media of the kind of l are given.
func (c *checker) sizes(request []byte, media []medium, l sizeLimits) {
	add := func(name, path string, n, most int) {
		c.add(name, path, "", "count", strconv.Itoa(n), "most", strconv.Itoa(most), "kind", l.kind)
	}
	if l.request > 0 && len(request) > l.request {
		add("request-bytes", "", len(request), l.request)
	}
	if l.count > 0 && len(media) > l.count {
		add("media-count", media[l.count].path, len(media), l.count)
	}
	total := 0
	for _, m := range media {
		if total += m.data * 3 / 4; l.bytes > 0 && m.data > l.bytes {
			add("media-bytes", m.path, m.data, l.bytes)
		}
	}
	if l.total > 0 && total > l.total {
		add("media-total", media[len(media)-1].path, total, l.total)
	}
}

// mediaIn returns the media in a decoded value, in their order. look returns the length of
// the data of an object that is one.
func mediaIn(path string, v any, look func(m map[string]any) (data int, ok bool)) (all []medium) {
	switch v := v.(type) {
	case map[string]any:
		if data, ok := look(v); ok {
			return []medium{{path, data}}
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

func anthropicImage(m map[string]any) (data int, ok bool) {
	source, _ := m["source"].(map[string]any)
	return len(str(source["data"])), str(m["type"]) == "image" && source != nil
}

func converseDocument(m map[string]any) (data int, ok bool) {
	document, _ := m["document"].(map[string]any)
	return 0, document["source"] != nil
}

// openAIImage is for Chat Completions and Responses.
func openAIImage(m map[string]any) (data int, ok bool) {
	kind := str(m["type"])
	if kind != "image_url" && kind != "input_image" {
		return 0, false
	}
	url := str(m["image_url"])
	if in, isObject := m["image_url"].(map[string]any); isObject {
		url = str(in["url"])
	}
	if _, after, isData := strings.Cut(url, ";base64,"); isData {
		data = len(after)
	}
	return data, true
}
