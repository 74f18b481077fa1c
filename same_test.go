package convo

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Messages are the same only if all of their fields are, and those of their parts.
func TestMessage_SameAs(t *testing.T) {
	parts := []Part{
		Text("a"), Reasoning{}, ToolCall{}, Media{}, Opaque{}, ToolResult{}, ToolResult{Parts: []Part{Text("a"), Media{}, Opaque{}}},
	}
	m := Message{Parts: parts}
	assert.True(t, m.sameAs(&m))
	assert.True(t, (&Message{}).sameAs(&Message{Parts: []Part{}}), "no parts")
	different := func(v any, same func(changed any) bool) {
		for i := range reflect.TypeOf(v).NumField() {
			changed := reflect.New(reflect.TypeOf(v)).Elem()
			changed.Set(reflect.ValueOf(v))
			f := changed.Field(i)
			switch f.Kind() {
			case reflect.String:
				f.SetString("x")
			case reflect.Bool:
				f.SetBool(true)
			case reflect.Slice:
				f.Set(reflect.ValueOf([]Part{Text("x")}))
			default:
				f.Field(0).SetString("x")
			}
			assert.False(t, same(changed.Interface()), "%+v", changed)
		}
	}
	different(m, func(changed any) bool { n := changed.(Message); return m.sameAs(&n) })
	for i, p := range parts {
		if _, ok := p.(Text); ok {
			continue
		}
		different(p, func(changed any) bool {
			n := Message{Parts: append([]Part{}, parts...)}
			n.Parts[i] = changed.(Part)
			return m.sameAs(&n) || n.sameAs(&m)
		})
	}
	for _, p := range parts {
		for _, q := range parts {
			assert.Equal(t, reflect.DeepEqual(p, q), equalPart(p, q))
		}
	}
}
