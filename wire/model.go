package wire

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// A model has many names: the name in a request, the longer name in the answer, and the
// names of the clouds that offer it. Reasoning is sent back to the model that wrote it,
// under any of its names.

// sameModel reports whether two names mean the same model. They do if they are equal, or
// become equal without the vendor or region at the front and the date or revision at the
// end. A name that ends in -latest changes its meaning over time, and equals only itself.
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
	vendors = sync.OnceValue(func() *regexp.Regexp { // "us.anthropic." and the next letter
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

// takesNotes reports whether a model is known to take messages with the role system among
// the others in the Messages API.
func takesNotes(model string) bool {
	family, major, minor := claudeVersion(model)
	switch {
	case major == 0:
		return false
	case family == "fable" || family == "mythos" || major > 5:
		return true
	case family == "opus":
		return major == 5 || major == 4 && minor >= 8
	case family == "sonnet":
		return major == 5
	}
	return major == 5 && minor >= 5
}

// claudeVersion returns the family and the version in the name of a Claude model, such as
// opus, 5 and 5, or zeros if it has none. Where the version comes first, as in
// claude-3-5-sonnet, family is empty.
func claudeVersion(model string) (family string, major, minor int) {
	model = model[:min(len(model), 200)] // longer than any real name
	_, rest, ok := strings.Cut(strings.ReplaceAll(strings.ToLower(model), ".", "-"), "claude-")
	if !ok {
		return "", 0, 0
	}
	number := func() (n int) {
		digits, after, _ := strings.Cut(rest, "-")
		digits, _, _ = strings.Cut(digits, "@") // a date may follow
		if n, err := strconv.Atoi(digits); err == nil && len(digits) < 4 {
			rest = after
			return n
		}
		return 0
	}
	if major = number(); major == 0 {
		family, rest, _ = strings.Cut(rest, "-")
		major = number()
	}
	if major > 0 {
		minor = number()
	}
	return family, major, minor
}
