package mirror_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/mirror"
)

func TestKept(t *testing.T) {
	image, call := convo.Media{MIME: "image/png", Data: "AQID"}, convo.ToolCall{ID: "c", Name: "f"}
	minted := call
	minted.ID, minted.Minted = "x", true
	result := func(id, text string) convo.Part {
		return convo.ToolResult{CallID: id, Parts: []convo.Part{convo.Text(text)}}
	}
	two := func(text string) convo.Part {
		return convo.ToolResult{CallID: "1", Parts: []convo.Part{convo.Text("a"), convo.Text(text)}}
	}
	parts := func(p ...convo.Part) []convo.Part { return p }
	for _, c := range []struct {
		was, now []convo.Part
		want     []int
	}{
		{nil, nil, []int{}},
		{parts(convo.Text("a"), image), parts(convo.Text("a"), image), []int{0, 1}},
		{parts(convo.Text("a"), image, image), parts(convo.Text("a"), convo.Text("[image]"), image), []int{0, -1, 1}},
		{parts(convo.Reasoning{Text: "r"}, convo.Text("a"), call), parts(convo.Text("a"), call), []int{1, 2}},
		{parts(convo.ToolCall{Name: "f"}), parts(minted), []int{0}},
		{parts(call), parts(convo.ToolCall{ID: "d", Name: "f"}), []int{-1}},
		{parts(result("", "a"), result("2", "b")), parts(result("1", "a"), result("2", "cleared")), []int{0, -1}},
		{parts(result("1", "a")), parts(result("2", "a")), []int{-1}},
		{parts(two("b")), parts(two("c")), []int{-1}},
		{parts(convo.Text("a"), convo.Text("b")), parts(convo.Text("b"), convo.Text("a")), []int{1, -1}},
		{parts(convo.Text("a\xff"), result("1", "b\xff")), parts(convo.Text("a\uFFFD"), result("1", "b\uFFFD")), []int{0, 1}},
	} {
		assert.Equal(t, c.want, mirror.Kept(c.was, c.now), "%v, %v", c.was, c.now)
	}
}

// Whatever a framework says of a file, Append takes it.
func TestFile(t *testing.T) {
	for _, c := range []struct {
		mime, data, url string
		want            convo.Part
	}{
		{"image/png", "AQID", "", convo.Media{MIME: "image/png", Data: "AQID"}},
		{"", "AQID", "", convo.Media{MIME: "application/octet-stream", Data: "AQID"}},
		{"", "", "https://example.com/a", convo.Media{URL: "https://example.com/a"}},
		{"image/png", "", "", convo.Opaque{Format: "file", JSON: "{}"}},
		{"", "", "", convo.Opaque{Format: "file", JSON: "{}"}},
	} {
		part := mirror.File(c.mime, c.data, c.url)
		assert.Equal(t, c.want, part)
		h := newHistory(t, nil)
		_, err := h.Append(convo.User("", part))
		assert.NoError(t, err, "%+v", c)
	}
}
