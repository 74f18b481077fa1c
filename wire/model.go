package wire

import (
	"regexp"
	"strings"
	"sync"
)

// A model has many names: that of a request, the longer one of the answer, and those of
// the clouds that offer it. Reasoning goes back to the model that wrote it, under
// whichever of its names.

// sameModel reports whether two names are those of one model: whether they are equal,
// or become equal without the vendor or region in front and the date or revision at the
// end. A name that ends in -latest means another model from day to day, and is equal to
// itself alone.
func sameModel(a, b string) bool {
	if a == b {
		return true
	}
	a, b = strings.ToLower(a), strings.ToLower(b)
	if strings.HasSuffix(a, "-latest") || strings.HasSuffix(b, "-latest") {
		return false
	}
	return plainModel(a) == plainModel(b)
}

var (
	vendors = sync.OnceValue(func() *regexp.Regexp { // "us.anthropic.", and what follows
		return regexp.MustCompile(`^([a-z]+(-[a-z]+)*\.){1,2}([a-z])`)
	})
	revisions = sync.OnceValue(func() *regexp.Regexp { // "-20260901", "-2026-09-01", "-v1:0", "-001"
		return regexp.MustCompile(`(-\d{8}|-\d{4}-\d{2}-\d{2}|-v\d+:\d+|-\d{3})$`)
	})
)

// plainModel returns the name of a model without its vendor, region, date and revision.
func plainModel(name string) string {
	name = name[strings.LastIndexByte(name, '/')+1:] // "models/", "vendor/", the path of an ARN
	name, _, _ = strings.Cut(name, "@")
	name = vendors().ReplaceAllString(name, "$3")
	for {
		short := revisions().ReplaceAllString(name, "")
		if short == name || short == "" {
			return name
		}
		name = short
	}
}
