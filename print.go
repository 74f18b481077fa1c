package convo

import (
	"fmt"
	"log/slog"
	"strings"
)

// What prints here is short: the beginning of a text, the size of the rest.
// slog shows sizes alone.

// printed is how much of a text is shown.
const printed = 64

func abbreviate(s string) string {
	if len(s) <= printed {
		return s
	}
	return fmt.Sprintf("%s… (%d bytes)", s[:runeStart(s, printed)], len(s))
}

// String shows the role, the author and the beginning of each part.
func (m Message) String() string {
	var b strings.Builder
	b.WriteString(abbreviate(string(m.Role)))
	if m.Author != "" {
		fmt.Fprintf(&b, " %q", abbreviate(m.Author))
	}
	b.WriteString(":")
	for _, p := range m.Parts {
		b.WriteByte(' ')
		b.WriteString(partString(p))
	}
	return b.String()
}

// GoString is String: a message is too long to print whole.
func (m Message) GoString() string { return m.String() }

// LogValue shows role, author and sizes, and nothing of the content.
func (m Message) LogValue() slog.Value {
	sizes := make([]string, len(m.Parts))
	for i, p := range m.Parts {
		sizes[i] = partSize(p)
	}
	return slog.GroupValue(slog.String("role", abbreviate(string(m.Role))), slog.String("author", abbreviate(m.Author)),
		slog.String("parts", strings.Join(sizes, ", ")))
}

// String shows the ID and the message in short.
func (e Entry) String() string { return fmt.Sprintf("%d %v", e.ID, e.Message) }

// GoString is String.
func (e Entry) GoString() string { return e.String() }

// LogValue shows the ID and what the message's LogValue shows.
func (e Entry) LogValue() slog.Value {
	return slog.GroupValue(slog.Int64("id", int64(e.ID)), slog.Any("message", e.Message))
}

func (r Reasoning) String() string {
	return fmt.Sprintf("reasoning(%s)", abbreviate(r.Text))
}

func (c ToolCall) String() string {
	return fmt.Sprintf("call %s(%s)", abbreviate(c.Name), abbreviate(c.Arguments))
}

func (r ToolResult) String() string {
	kind := "result"
	if r.IsError {
		kind = "error"
	}
	var parts []string
	for _, p := range r.Parts {
		if _, nested := p.(ToolResult); !nested {
			parts = append(parts, partString(p))
		}
	}
	return fmt.Sprintf("%s of %s(%s)", kind, abbreviate(r.Name), strings.Join(parts, " "))
}

func (m Media) String() string {
	if m.Data == "" {
		return fmt.Sprintf("media(%s %s)", abbreviate(m.MIME), abbreviate(m.URL))
	}
	return fmt.Sprintf("media(%s, %d bytes)", abbreviate(m.MIME), len(m.Data)/4*3)
}

func (o Opaque) String() string {
	return fmt.Sprintf("opaque(%s, %d bytes)", abbreviate(o.Format), len(o.JSON))
}

// GoString and LogValue keep the content of a part out of dumps and logs.

func (r Reasoning) GoString() string  { return r.String() }
func (c ToolCall) GoString() string   { return c.String() }
func (r ToolResult) GoString() string { return r.String() }
func (m Media) GoString() string      { return m.String() }
func (o Opaque) GoString() string     { return o.String() }

func (r Reasoning) LogValue() slog.Value  { return slog.StringValue(partSize(r)) }
func (c ToolCall) LogValue() slog.Value   { return slog.StringValue(partSize(c)) }
func (r ToolResult) LogValue() slog.Value { return slog.StringValue(partSize(r)) }
func (m Media) LogValue() slog.Value      { return slog.StringValue(partSize(m)) }
func (o Opaque) LogValue() slog.Value     { return slog.StringValue(partSize(o)) }

func partString(p Part) string {
	switch p := p.(type) {
	case Text:
		return abbreviate(string(p))
	case Reasoning, ToolCall, ToolResult, Media, Opaque:
		return p.(fmt.Stringer).String()
	}
	return fmt.Sprintf("%T", p) // none that a History would take
}

// partSize names a part by its kind and size.
func partSize(p Part) string {
	switch p := p.(type) {
	case Text:
		return fmt.Sprintf("text %d", len(p))
	case Reasoning:
		return fmt.Sprintf("reasoning %d", len(p.Text)+len(p.Signature)+len(p.Encrypted))
	case ToolCall:
		return fmt.Sprintf("call %s %d", abbreviate(p.Name), len(p.Arguments))
	case ToolResult:
		return fmt.Sprintf("result of %s %d", abbreviate(p.Name), textSize(p.Parts))
	case Media:
		return fmt.Sprintf("%s %d", abbreviate(p.MIME), len(p.Data)/4*3)
	case Opaque:
		return fmt.Sprintf("opaque %d", len(p.JSON))
	}
	return fmt.Sprintf("%T", p)
}
