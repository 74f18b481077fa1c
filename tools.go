package convo

import (
	"fmt"
	"slices"

	"github.com/seed-c1b73e60/convo/internal/text"
)

// mostTools is how many tools a History takes. No provider takes as many.
const mostTools = 10_000

// maxToolsKey is the length of the longest key.
const maxToolsKey = 256

// SetTools sets the tools that the model may call; without tools it removes them. They
// are then part of the view: they are counted, saved and in each [Snapshot], and the
// formats of package wire write them into the request. Limits.Tools is for what the
// request carries besides. Rollback and Undo leave them.
//
// Tools precede all messages. When they change, a provider's cache misses the whole
// request, and no signed reasoning is bound any more (see [Snapshot.Bound]). SetTools
// changes nothing if the tools equal the present ones, so it may be called before each
// request.
//
// SetTools returns a [*ValueError] for more than 10,000 tools, a tool that has neither a
// name nor an Opaque, and an Opaque that Append would refuse. What a provider accepts is
// checked when the request is written.
func (h *History) SetTools(tools ...Tool) error {
	if len(tools) > mostTools {
		return &ValueError{Name: "tools", Value: fmt.Sprintf("%s tools", grouped(len(tools))), Want: "at most 10,000"}
	}
	own := make([]Tool, len(tools))
	for i, t := range tools {
		t.Name, t.Description, t.Schema = text.Valid(t.Name), text.Valid(t.Description), text.Valid(t.Schema)
		t.Opaque.Format, t.Opaque.JSON = text.Valid(t.Opaque.Format), text.Valid(t.Opaque.JSON)
		if err := t.check(); err != nil {
			return errorf("tools[%d]: %w", i, err)
		}
		own[i] = t
	}
	return h.setTools(own, "")
}

// check returns an error if t can be no tool.
func (t *Tool) check() error {
	if t.Opaque == (Opaque{}) {
		if t.Name == "" {
			return &ValueError{Name: "Tool.Name", Value: "", Want: "a name, or an Opaque for a tool of the provider's"}
		}
		return nil
	}
	if _, reason := t.Opaque.check(false); reason != "" {
		return &ValueError{Name: "Tool.Opaque", Value: abbreviate(t.Opaque.JSON), Want: "a format and valid JSON; this is an " + reason}
	}
	return nil
}

// SetToolsKey is for a program that gives its tools to the SDK of a provider and not to
// SetTools. The key identifies them, such as by a hash of their definitions, so that
// signed reasoning is not sent after other tools than it was made with (see
// [Snapshot.Bound]). It replaces what SetTools or SetToolsKey has set; an empty key
// removes it. A key longer than 256 bytes is a [*ValueError].
func (h *History) SetToolsKey(key string) error {
	if len(key) > maxToolsKey {
		return &ValueError{Name: "key", Value: fmt.Sprintf("%s bytes long", grouped(len(key))), Want: "at most 256 bytes, such as a hash"}
	}
	return h.setTools(nil, text.Valid(key))
}

func (h *History) setTools(tools []Tool, key string) error {
	if h.ident == nil {
		return ErrClosed
	}
	next, err := h.newToolset(tools, key)
	if err != nil {
		return err
	}
	return h.ifOpen(func() error {
		if !h.tools.sameAs(next) {
			h.view.setTools(next)
		}
		return nil
	})
}

// setTools replaces the tools, which may be nil.
func (v *view) setTools(t *toolset) {
	v.newVersion()
	v.tools = t
	v.sumMeasured(true)
	v.seenAgain()
}

// Tools returns the tools given to [History.SetTools], in their order.
func (s *Snapshot) Tools() []Tool {
	if s.tools == nil {
		return nil
	}
	return slices.Clone(s.tools.tools)
}
