package convo

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// admit returns m as a History may keep it: a copy with valid UTF-8, an ID for
// each call, and parts that its role may hold. It says what is wrong
// otherwise. Its index is 0; the caller sets it.
//
// inline is room for the parts of a message that has just one.
func (m Message) admit(inline *[1]Part) (Message, error) {
	switch m.Role {
	case RoleSystem, RoleUser, RoleAssistant, RoleTool:
	default:
		return m, &MessageError{Role: m.Role, Part: -1, Reason: "unknown role"}
	}
	m.Author = validText(m.Author)
	m.Origin.Format = validText(m.Origin.Format)
	m.Origin.Model = validText(m.Origin.Model)
	m.Meta = validText(m.Meta)

	var own []Part
	switch len(m.Parts) {
	case 0:
	case 1:
		own = inline[:1:1]
	default:
		own = make([]Part, len(m.Parts))
	}
	for i, p := range m.Parts {
		p, reason := admitPart(p, m.Role)
		if reason != "" {
			return m, &MessageError{Role: m.Role, Part: i, Reason: reason}
		}
		own[i] = p
	}
	m.Parts = own
	if m.Role == RoleTool && len(own) == 0 {
		return m, &MessageError{Role: m.Role, Part: -1, Reason: "a tool message without a result"}
	}
	return m, checkCallIDs(own)
}

// checkCallIDs refuses two calls with one ID.
func checkCallIDs(parts []Part) error {
	if len(parts) < 2 {
		return nil
	}
	var seen map[string]bool
	for i, p := range parts {
		c, ok := p.(ToolCall)
		if !ok {
			continue
		}
		if seen == nil {
			seen = make(map[string]bool, len(parts)-i)
		}
		if seen[c.ID] {
			return &PairError{Err: ErrDuplicateCall, CallID: c.ID, Name: c.Name}
		}
		seen[c.ID] = true
	}
	return nil
}

// admitPart returns p with valid UTF-8, or why a message of role may not hold
// it.
func admitPart(p Part, role Role) (_ Part, reason string) {
	switch q := p.(type) {
	case Text:
		if role == RoleTool {
			return nil, "text in a tool message stands inside a ToolResult"
		}
		if !utf8.ValidString(string(q)) {
			return Text(validText(string(q))), ""
		}
		return p, "" // as it came: boxing it again would allocate
	case Reasoning:
		if role != RoleAssistant {
			return nil, "reasoning belongs in an assistant message"
		}
		q.ID, q.Text = validText(q.ID), validText(q.Text)
		q.Signature, q.Encrypted = validText(q.Signature), validText(q.Encrypted)
		return q, ""
	case ToolCall:
		if role != RoleAssistant {
			return nil, "a tool call belongs in an assistant message"
		}
		q.ID, q.Name, q.Arguments = validText(q.ID), validText(q.Name), validText(q.Arguments)
		if q.Name == "" {
			return nil, "a tool call without a name"
		}
		if !isArguments(q.Arguments) {
			return nil, "arguments of a tool call are not a JSON object"
		}
		if q.ID == "" {
			q.ID, q.Minted = newCallID(), true
		}
		return q, ""
	case ToolResult:
		if role != RoleTool {
			return nil, "a tool result belongs in a tool message"
		}
		return admitResult(q)
	case Media:
		if role != RoleUser && role != RoleAssistant {
			return nil, "media belongs in a user or assistant message or in a ToolResult"
		}
		return admitMedia(q)
	case Opaque:
		if role == RoleTool {
			return nil, "an opaque block in a tool message stands inside a ToolResult"
		}
		return admitOpaque(q)
	case nil:
		return nil, "nil part"
	default:
		return nil, fmt.Sprintf("part of type %T; use one of the types of this package, not a pointer", p)
	}
}

// newCallID names a call that came without an id.
func newCallID() string { return "call_" + rand.Text()[:16] }

func admitResult(r ToolResult) (_ Part, reason string) {
	r.CallID, r.Name = validText(r.CallID), validText(r.Name)
	var own []Part
	if len(r.Parts) > 0 {
		own = make([]Part, len(r.Parts))
	}
	for i, p := range r.Parts {
		switch q := p.(type) {
		case Text:
			own[i] = Text(validText(string(q)))
		case Media:
			own[i], reason = admitMedia(q)
		case Opaque:
			own[i], reason = admitOpaque(q)
		default:
			reason = fmt.Sprintf("%T inside a tool result; it may hold Text, Media and Opaque", p)
		}
		if reason != "" {
			return nil, reason
		}
	}
	r.Parts = own
	return r, ""
}

func admitMedia(m Media) (_ Part, reason string) {
	m.MIME, m.URL = validText(m.MIME), validText(m.URL)
	switch {
	case m.Data == "" && m.URL == "":
		return nil, "media with neither data nor URL"
	case m.Data != "" && m.MIME == "":
		return nil, "media with data and no MIME type"
	case !isBase64(m.Data):
		return nil, "media data is not standard base64; see NewMedia"
	}
	return m, ""
}

func admitOpaque(o Opaque) (_ Part, reason string) {
	o.Format, o.JSON = validText(o.Format), validText(o.JSON)
	switch {
	case o.Format == "":
		return nil, "an opaque block without a format"
	case !json.Valid([]byte(o.JSON)):
		return nil, "an opaque block is not JSON"
	}
	return o, ""
}

// validText returns s with each run of invalid UTF-8 replaced by U+FFFD.
func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// isArguments reports whether s is a JSON object or empty.
func isArguments(s string) bool {
	return s == "" || strings.HasPrefix(strings.TrimLeft(s, " \t\r\n"), "{") && json.Valid([]byte(s))
}

// isBase64 reports whether s is padded base64 of the standard alphabet. It
// looks at each byte once and decodes nothing.
func isBase64(s string) bool {
	if len(s)%4 != 0 {
		return false
	}
	body := strings.TrimRight(s, "=")
	if len(s)-len(body) > 2 {
		return false
	}
	for i := range len(body) {
		c := body[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '+' || c == '/') {
			return false
		}
	}
	return true
}

// minMaxResult is the least Options.MaxResult: room for the marker.
const minMaxResult = 256

// cutMarker is what stands in a result where its middle was cut out.
func cutMarker(size int, ref string) string {
	return fmt.Sprintf("\n[cut: %d bytes in all%s]\n", size, refText(ref))
}

// cutResult shortens the text of r to at most limit bytes: head, marker, tail.
// The marker counts, so that cutting again changes nothing; it is not longer
// than limit. Media stay.
func cutResult(r ToolResult, limit int, marker string) ToolResult {
	size, room := textSize(r.Parts), limit-len(marker)
	head, tail := room-room/4, size-room/4 // more of the head: it says what it is

	var parts []Part
	at, mark := 0, -1
	for _, p := range r.Parts {
		t, ok := p.(Text)
		if !ok {
			parts = append(parts, p)
			continue
		}
		from, to := at, at+len(t)
		at = to
		if to <= head {
			parts = append(parts, t)
			continue
		}
		var kept Text
		if mark < 0 { // the cut begins in this part
			kept = t[:runeStart(string(t), head-from)] + Text(marker)
		}
		if to > tail {
			rest := t[runeNext(string(t), max(tail-from, 0)):]
			if mark >= 0 && mark == len(parts)-1 && from <= tail {
				parts[mark] = parts[mark].(Text) + rest
				continue
			}
			kept += rest
		}
		if mark < 0 {
			mark = len(parts)
		}
		if kept != "" {
			parts = append(parts, kept)
		}
	}
	r.Parts = parts
	return r
}

func textSize(parts []Part) int {
	n := 0
	for _, p := range parts {
		if t, ok := p.(Text); ok {
			n += len(t)
		}
	}
	return n
}

func refText(ref string) string {
	if ref == "" {
		return ""
	}
	return ", kept at " + ref
}

// runeStart moves i back to the start of the rune it falls into.
func runeStart(s string, i int) int {
	i = min(i, len(s))
	for i > 0 && i < len(s) && !utf8.RuneStart(s[i]) {
		i--
	}
	return i
}

// runeNext moves i on to the start of a rune.
func runeNext(s string, i int) int {
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return i
}
