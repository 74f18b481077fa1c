package wire

import (
	"strconv"
	"strings"
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

// plainModel returns the name of a model without its vendor, region, date and revision.
func plainModel(name string) string {
	name = name[strings.LastIndexByte(name, '/')+1:] // "models/", "vendor/", the path of an ARN
	name, _, _ = strings.Cut(name, "@")
	name = withoutVendor(name)
	for {
		short := withoutRevision(name)
		if short == name || short == "" {
			return name
		}
		name = short
	}
}

// withoutVendor returns a name without up to two words with a dot at its beginning, such as
// "us.anthropic.". A letter must follow.
func withoutVendor(name string) string {
	for range 2 {
		word, rest, ok := strings.Cut(name, ".")
		for part := range strings.SplitSeq(word, "-") {
			ok = ok && part != "" && strings.Trim(part, lowerCase) == ""
		}
		if !ok || rest == "" || !strings.Contains(lowerCase, rest[:1]) {
			break
		}
		name = rest
	}
	return name
}

const (
	lowerCase = "abcdefghijklmnopqrstuvwxyz"
	digits    = "0123456789"
)

// withoutRevision returns a name without a date or a revision at its end. In the first three
// forms each 0 stands for a digit.
func withoutRevision(name string) string {
	for _, form := range [...]string{"-00000000", "-0000-00-00", "-000"} {
		if rest := len(name) - len(form); rest >= 0 && inZeros(name[rest:]) == form {
			return name[:rest]
		}
	}
	if rest := strings.LastIndex(name, "-v"); rest >= 0 {
		version, revision, _ := strings.Cut(name[rest+len("-v"):], ":")
		if version != "" && revision != "" && strings.Trim(version+revision, digits) == "" {
			return name[:rest]
		}
	}
	return name
}

// inZeros returns s with 0 in the place of each digit.
func inZeros(s string) string {
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return '0'
		}
		return r
	}, s)
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
