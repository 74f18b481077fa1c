package overflow

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// What is refused is what the error names, or the only part that it may be.
func TestFind(t *testing.T) {
	image := func(data string, side int) Item { return Item{Kind: Image, Texts: []string{data}, Side: side} }
	block := func(object string) Item { return Item{Kind: Block, Fields: FieldsOf(object)} }
	body := func() *Body {
		return &Body{JSON: []byte(`{"messages":[{"content":["hi"]},{"content":[{"data":"one"},{"data":"two"}]}]}`), Paths: Dotted}
	}
	for _, tt := range []struct {
		name  string
		r     Refusal
		items []Item
		want  []int
	}{
		{"at a path", Refusal{Kind: Image, Paths: []string{"messages.1.content.1"}}, []Item{image("one", 0), image("two", 9)}, []int{1}},
		{"at a path of another part", Refusal{Kind: Image, Paths: []string{"messages.1.content.1"}}, []Item{image("one", 0)}, nil},
		{"the only one", Refusal{Kind: Image}, []Item{{}, image("one", 9), {Kind: Document, Texts: []string{"x"}}}, []int{1}},
		{"one of several", Refusal{Kind: Image}, []Item{image("one", 9), image("two", 9)}, nil},
		{"the one without a size", Refusal{Kind: Image}, []Item{image("one", 9), image("two", 0), {Kind: Image, Texts: []string{"u"}, Linked: true}}, []int{1}},
		{"too large", Refusal{Kind: Image, Most: 8}, []Item{image("one", 9), image("two", 7), image("six", 10)}, []int{0, 2}},
		{"long arguments", Refusal{Kind: Arguments, Most: 3}, []Item{{Kind: Arguments, Texts: []string{"éé"}}, {Kind: Arguments, Texts: []string{"four"}}}, []int{1}},
		{"all of a container", Refusal{Kind: Container}, []Item{block(`{"container_id":"c"}`), block(`{"container_id":"c"}`)}, []int{0, 1}},
		{"of two containers", Refusal{Kind: Container}, []Item{block(`{"container_id":"c"}`), block(`{"container_id":"d"}`)}, nil},
		{"a named block", Refusal{Kind: Block, Name: "b"}, []Item{block(`{"id":"a"}`), block(`{"tool_use_id":"b"}`)}, []int{1}},
	} {
		_, found := tt.r.Find(tt.items, body())
		assert.Equal(t, tt.want, found, tt.name)
	}
	all, found := (&Refusal{Kind: Encrypted}).Find([]Item{{Kind: Seal, Texts: []string{"s"}}, {Kind: Seal, Texts: []string{"t"}}}, body())
	assert.Equal(t, []int{0, 1}, all)
	assert.Empty(t, found, "which one is not known")
}
