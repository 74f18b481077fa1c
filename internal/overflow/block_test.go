package overflow

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRefusal_Refuses(t *testing.T) {
	cases := []struct {
		name  string
		r     Refusal
		block string
		want  bool
	}{
		{"image", Refusal{Kind: Image}, `{"type":"image"}`, true},
		{"document", Refusal{Kind: Image}, `{"type":"document"}`, false},
		{"reasoning", Refusal{Kind: Encrypted}, `{"type":"reasoning"}`, true},
		{"reference", Refusal{Kind: Reference, Name: "find"}, `{"content":[{"type":"tool_reference","tool_name":"find"}]}`, true},
		{"reference to another tool", Refusal{Kind: Reference, Name: "find"}, `{"content":[{"type":"tool_reference","tool_name":"get"}]}`, false},
		{"any container", Refusal{Kind: Container}, `{"container_id":"c1"}`, true},
		{"another container", Refusal{Kind: Container, Name: "c2"}, `{"container_id":"c1"}`, false},
		{"no container", Refusal{Kind: Container}, `{"id":"c1"}`, false},
		{"block by its ID", Refusal{Kind: Block, Name: "b1"}, `{"id":"b1"}`, true},
		{"result of a block", Refusal{Kind: Block, Name: "b1"}, `{"tool_use_id":"b1"}`, true},
		{"another block", Refusal{Kind: Block, Name: "b1"}, `{"id":"b2"}`, false},
		{"any block", Refusal{Kind: Block}, `no object`, true},
		{"seal", Refusal{Kind: Seal}, `{"type":"reasoning"}`, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { assert.Equal(t, c.want, c.r.Refuses(FieldsOf(c.block))) })
	}
}

func TestFields_IsPartner(t *testing.T) {
	call, result := FieldsOf(`{"id":"b1"}`), FieldsOf(`{"tool_use_id":"b1"}`)
	assert.True(t, call.IsPartner(result))
	assert.True(t, result.IsPartner(call))
	assert.False(t, call.IsPartner(call))
	assert.False(t, FieldsOf(`{"id":""}`).IsPartner(FieldsOf(`{"tool_use_id":""}`)))
	assert.False(t, FieldsOf("[]").IsPartner(nil))
}

func TestTexts(t *testing.T) {
	texts := TextsIn(map[string]any{"type": "kind", "url": "data:image/png;base64,AAAA", "in": []any{"", "a string of more than sixteen bytes"}})
	assert.True(t, texts.Has("AAAA"))
	assert.False(t, texts.Has(""))
	assert.False(t, texts.Has("kind"), "types say nothing")
	assert.True(t, texts.HasOf(FieldsOf(`{"a":["a string of more than sixteen bytes"]}`)))
	assert.False(t, texts.HasOf(FieldsOf(`{"a":"AAAA"}`)), "too short to tell")
}
