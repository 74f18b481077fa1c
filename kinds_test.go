package convo

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/internal/fingerprint"
)

// sampleOf returns a part of a kind whose fields are all set.
func sampleOf(k *kind) Part {
	v := reflect.New(reflect.TypeOf(k.json(new(messageRoom)).take())).Elem()
	if v.Kind() == reflect.String {
		v.SetString("text")
		return v.Interface().(Part)
	}
	for i := range v.NumField() {
		fill(v.Field(i), v.Type().Field(i).Name)
	}
	return v.Interface().(Part)
}

// fill sets a field of a part.
func fill(f reflect.Value, name string) {
	switch {
	case name == "Data":
		f.SetString("AAAA")
	case name == "JSON":
		f.SetString(`{"type":"x"}`)
	case f.Kind() == reflect.String:
		f.SetString(strings.ToLower(name))
	case f.Kind() == reflect.Bool:
		f.SetBool(true)
	default:
		f.Set(reflect.ValueOf([]Part{Text("in"), Media{URL: "u"}}))
	}
}

// withOther returns p with another value of its i-th field, or of itself if it has none.
func withOther(p Part, i int) Part {
	v := reflect.New(reflect.TypeOf(p)).Elem()
	v.Set(reflect.ValueOf(p))
	f := v
	if v.Kind() == reflect.Struct {
		f = v.Field(i)
	}
	switch f.Kind() {
	case reflect.String:
		f.SetString("other")
	case reflect.Bool:
		f.SetBool(!f.Bool())
	default:
		f.Set(reflect.ValueOf([]Part{Text("out")}))
	}
	return v.Interface().(Part)
}

// Every kind has all that the root does with a part. A new one is tested by its row in kinds.
func TestKinds(t *testing.T) {
	id := newIdentity(newCounter(nil, Overheads{}), nil, "")
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			p := sampleOf(k)
			assert.Equal(t, p, known(p))
			assert.Same(t, k, p.kind())
			assert.Positive(t, p.tokens(id.counter))
			name := fmt.Sprintf("%T", p)
			assert.NotContains(t, printParts([]Part{p}, false), name)
			assert.NotContains(t, p.printSize(), name)
			var b strings.Builder
			p.render(&b)
			assert.NotEmpty(t, b.String())

			m := Message{Role: k.roles[0], Parts: []Part{p}}
			require.NoError(t, m.check(false))
			assert.Equal(t, []Part{p}, m.Parts)
			assert.False(t, m.isEmpty())
			data, err := json.Marshal(m)
			require.NoError(t, err)
			var again Message
			require.NoError(t, json.Unmarshal(data, &again))
			assert.Equal(t, m, again)

			for _, role := range []Role{RoleSystem, RoleUser, RoleAssistant, RoleTool} {
				_, reason := checkPart(p, role, false)
				assert.Equal(t, slices.Contains(k.roles, role), reason == "", role)
			}
			r := Message{Role: RoleTool, Parts: []Part{ToolResult{Name: "t", Parts: []Part{p}}}}
			assert.Equal(t, k.inResult, r.check(false) == nil)
			assert.False(t, k.inResult && known(p).body() == "" && !isA[Media](p), "what is left out of a result that is cut")
		})
	}
}

// Each field of each kind changes the fingerprints, but for those listed.
func TestKinds_Fingerprints(t *testing.T) {
	inNone := map[string][2]string{ // not in what the model sees; not in Message.Sum
		"reasoning":   {"ID Text Signature Encrypted", "ID Text Signature Encrypted"},
		"tool_call":   {"Minted", "ID Minted"},
		"tool_result": {"Cleared", "CallID Name"},
		"media":       {"", "MIME URL"},
	}
	for _, k := range kinds {
		p := sampleOf(k)
		if r, ok := p.(ToolResult); ok {
			r.Cleared = false
			p = r
		}
		names := []string{"string"}
		if typ := reflect.TypeOf(p); typ.Kind() == reflect.Struct {
			names = nil
			for field := range typ.Fields() {
				names = append(names, field.Name)
			}
		}
		was := &Message{Role: k.roles[0], Parts: []Part{p}}
		for i, name := range names {
			now := &Message{Role: k.roles[0], Parts: []Part{withOther(p, i)}}
			assert.Equal(t, slices.Contains(strings.Fields(inNone[k.name][0]), name), was.content() == now.content(), "%s.%s", k.name, name)
			assert.Equal(t, slices.Contains(strings.Fields(inNone[k.name][1]), name), was.Sum() == now.Sum(), "%s.%s in Sum", k.name, name)
		}
		assert.Equal(t, k == reasoningKind, was.content() == (&Message{Role: k.roles[0]}).content(), k.name)
		sum := (&entry{msg: *was, content: was.content()}).Sent()
		assert.NotEqual(t, (&Message{Role: k.roles[0]}).content(), sum, "what is sent of %s", k.name)
	}
}

// No text of a part may hold the key of the conversation, unless its provider wants it back
// as it was.
func TestKinds_Mask(t *testing.T) {
	const key = "@qabcdef"
	asIs := map[string]string{
		"reasoning": "ID Text Signature Encrypted", "tool_call": "ID Name Arguments Minted", "opaque": "Format JSON",
		"tool_result": "CallID Name IsError Cleared", "media": "Data",
	}
	for _, k := range kinds {
		p := sampleOf(k)
		if _, ok := p.(Text); ok {
			q := Text("a " + key).mask(key)
			require.NotNil(t, q)
			assert.NotContains(t, q, key)
			continue
		}
		for i, typ := 0, reflect.TypeOf(p); i < typ.NumField(); i++ {
			v := reflect.New(typ).Elem()
			v.Set(reflect.ValueOf(p))
			switch f := v.Field(i); f.Kind() {
			case reflect.String:
				f.SetString(key)
			case reflect.Slice:
				f.Set(reflect.ValueOf([]Part{Text(key)}))
			}
			q := v.Interface().(Part).mask(key)
			assert.Equal(t, slices.Contains(strings.Fields(asIs[k.name]), typ.Field(i).Name), q == nil, "%s.%s", k.name, typ.Field(i).Name)
		}
	}
	q := Reasoning{Text: key}.mask(key)
	require.NotNil(t, q, "reasoning without a signature")
	assert.NotContains(t, q.(Reasoning).Text, key)
}

// What is no part is nothing, wherever it stands.
func TestKinds_Foreign(t *testing.T) {
	text := Text("t")
	for name, p := range map[string]Part{"nil": nil, "pointer": &text, "embedded": struct{ Part }{text}, "nil pointer": (*Text)(nil)} {
		f := known(p)
		assert.Nil(t, f.kind(), name)
		assert.Zero(t, f.tokens(newCounter(nil, Overheads{})), name)
		assert.Equal(t, fingerprint.Sum(1), f.sum(f.rowSum(1)), name)
		_, reason := checkPart(p, RoleUser, false)
		assert.NotEmpty(t, reason, name)
		m := Message{Role: RoleUser, Parts: []Part{p}}
		_, err := m.MarshalJSON()
		assert.Error(t, err, name)
		assert.Equal(t, fmt.Sprintf("user: %T", p), fmt.Sprint(m), name)
	}
}
