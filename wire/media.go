package wire

import (
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// isWebURL reports whether a provider can fetch a URL.
func isWebURL(url string) bool {
	scheme, _, ok := strings.Cut(url, "://")
	return ok && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

// dataURL returns the data of media as a data URL, or their URL if they have no
// data.
func dataURL(m convo.Media) string {
	if m.Data == "" {
		return m.URL
	}
	return "data:" + m.MIME + ";base64," + m.Data
}

// mediaOf returns the media at a URL, with their data if it is a data URL. The
// mime argument is used if the URL is not a data URL with a MIME type.
func mediaOf(url, mime string) convo.Media {
	rest, ok := strings.CutPrefix(url, "data:")
	if !ok {
		return convo.Media{MIME: mime, URL: url}
	}
	head, data, ok := strings.Cut(rest, ",")
	kind, isBase64 := strings.CutSuffix(head, ";base64")
	if !ok || !isBase64 || kind == "" {
		return convo.Media{MIME: mime, URL: url}
	}
	return convo.Media{MIME: kind, Data: data}
}

// extension returns a file name extension for a MIME subtype.
func extension(sub string) string {
	switch sub {
	case "plain", "":
		return "txt"
	case "markdown":
		return "md"
	}
	var b []byte
	for i := range len(sub) {
		if c := sub[i]; isNameByte(c) {
			b = append(b, c)
		}
	}
	return string(b)
}
