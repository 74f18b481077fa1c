package mirror

import (
	"cmp"
	"reflect"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// Kept is for Encode: it returns, for each part of now, the index in was of the part that
// it is, or -1 for one that was changed. was are the parts that Decode made of a value, and
// now are those of the entry; the parts that are the same keep their order. So a codec
// whose parts are those of convo, one for one, keeps the framework's own where it can. Of a
// result, the content is compared; what Append fills in is not.
func Kept(was, now []convo.Part) []int {
	kept := make([]int, len(now))
	next := 0
	for i, p := range now {
		kept[i] = -1
		for at := next; at < len(was); at++ {
			if samePart(was[at], p) {
				kept[i], next = at, at+1
				break
			}
		}
	}
	return kept
}

func samePart(a, b convo.Part) bool {
	switch a := a.(type) {
	case convo.Text:
		b, ok := b.(convo.Text)
		return ok && sameText(string(a), string(b))
	case convo.ToolCall:
		b, ok := b.(convo.ToolCall)
		return ok && (a.ID == b.ID || b.Minted) && sameText(a.Name, b.Name) && sameText(a.Arguments, b.Arguments)
	case convo.ToolResult:
		b, ok := b.(convo.ToolResult)
		if !ok || len(a.Parts) != len(b.Parts) || a.IsError != b.IsError || a.CallID != "" && a.CallID != b.CallID {
			return false
		}
		for i := range a.Parts {
			if !samePart(a.Parts[i], b.Parts[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(a, b)
}

// sameText reports whether b is a, or what Append makes of it.
func sameText(a, b string) bool { return a == b || text.Valid(a) == b }

// File is for Decode: it returns the part for a file, by its data in base64 or by its address.
// A file without a type gets one, and one with neither data nor address, which the model cannot
// see, is [convo.Opaque]: Append would refuse them, and with them the whole list.
func File(mime, data, url string) convo.Part {
	switch {
	case data != "":
		return convo.Media{MIME: cmp.Or(mime, "application/octet-stream"), Data: data, URL: url}
	case url != "":
		return convo.Media{MIME: mime, URL: url}
	}
	return convo.Opaque{Format: "file", JSON: "{}"}
}
