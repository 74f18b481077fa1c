package mirror

import (
	"cmp"
	"reflect"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// Kept is for Encode: it returns, for each part of now, the index in was of the part that
// it is, or -1 for a changed part. was are the parts that Decode made of a value, and
// now are those of the entry; results may have another order. So a codec whose parts are those
// of convo, one for one, keeps the framework's own where it can. Of a result, the content is
// compared; what Append fills in is not.
func Kept(was, now []convo.Part) []int {
	kept := make([]int, len(now))
	isTaken := make([]bool, len(was))
	next := 0 // other parts keep their order
	for i, p := range now {
		kept[i] = -1
		from := next
		if _, ok := p.(convo.ToolResult); ok {
			from = 0
		}
		for at := from; at < len(was); at++ {
			if !isTaken[at] && samePart(was[at], p) {
				kept[i], isTaken[at], next = at, true, max(next, at+1)
				break
			}
		}
	}
	return kept
}

// Changed is for Encode: it returns the index in was of the part that now[i] was made of, if
// Kept has -1 for it and it is a result: that for the same call, or the one in the same place.
// Without one, it is -1.
func Changed(was, now []convo.Part, i int) int {
	r, isResult := now[i].(convo.ToolResult)
	if !isResult {
		return -1
	}
	for at, p := range was {
		if old, ok := p.(convo.ToolResult); ok && old.CallID == r.CallID {
			return at
		}
	}
	if i < len(was) {
		if old, ok := was[i].(convo.ToolResult); ok && old.CallID == "" {
			return i
		}
	}
	return -1
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
