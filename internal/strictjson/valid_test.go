package strictjson_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

var documents = []string{
	"", " ", "null", "nul", "nulll", "true", "tru", "false", "falsy", " true ", "true false",
	"0", "-0", "01", "-", "1.", "1.5", ".5", "1e", "1e5", "1E+5", "1e-", "-1.25e-10", "+1", "1,", "0x1", "1 2",
	`""`, `"a"`, `"a`, `"`, `"\n"`, `"\x"`, `"\`, `"\\"`, `"\\\"`, `"\u00e9"`, `"\u00e"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ude00x"`, `"\ud83d\u0041"`,
	"\"\n\"", "\"\x00\"", "\"\x1f\"", "\"\x7f\"", "\"\xff\"", "\"é\xc3\"", "\"0123456\\\"89\xe2\x82\"",
	`"a long text without any escape, of more than one word of eight bytes"`, `"a long text with a quote \" and a tab \t behind it, and a line\nmore"`,
	"{}", "[]", "{", "}", "[", "]", "[}", "{]", "[[]]", "[[]", "[]]", "[,]", "[1,]", "[,1]", "[1 2]", "[1,2]", " [ 1 , 2 ] ",
	`{"a":1}`, `{"a"}`, `{"a":}`, `{a:1}`, `{"a":1,}`, `{,"a":1}`, `{"a":1 "b":2}`, `{"a":1,"b":2}`, `{ "a" : [ { } , [ ] , null ] }`, `{"a":1,"a":2}`, `{1:2}`, `{"a":1}}`, `{"a":[}]`,
	"\ufeff{}", "// x\n1", "\f1", "\v1",
	strings.Repeat("[", 10000) + strings.Repeat("]", 10000), strings.Repeat("[", 10001) + strings.Repeat("]", 10001),
	strings.Repeat(`{"a":`, 9999) + "[]" + strings.Repeat("}", 9999), strings.Repeat("[", 100),
}

func TestValid(t *testing.T) {
	for _, d := range documents {
		assert.Equal(t, json.Valid([]byte(d)), strictjson.Valid([]byte(d)), "%.60q", d)
	}
}

func TestIsObject(t *testing.T) {
	for _, d := range documents {
		var m map[string]any
		want := json.Unmarshal([]byte(d), &m) == nil && m != nil
		assert.Equal(t, want, strictjson.IsObject(d), "%.60q", d)
	}
	assert.True(t, strictjson.IsObject(" \t\r\n{\"a\":\"é\"} "))
	assert.False(t, strictjson.IsObject("{\"a\":\"\xff\"}"), "no UTF-8")
	assert.False(t, strictjson.IsObject("{\"\xff\":1}"), "no UTF-8")
}

func TestUnquote(t *testing.T) {
	for _, d := range documents {
		checkUnquote(t, []byte(d))
	}
}

// checkUnquote compares Unquote with encoding/json.
func checkUnquote(t *testing.T, data []byte) {
	got, ok := strictjson.Unquote(data)
	isString := len(data) > 0 && data[0] == '"' && data[len(data)-1] == '"' && json.Valid(data)
	if !assert.Equal(t, isString, ok, "%q", data) || !ok {
		return
	}
	var want string
	assert.NoError(t, json.Unmarshal(data, &want), "%q", data)
	assert.Equal(t, want, got, "%q", data)
}

func FuzzValid(f *testing.F) {
	for _, d := range documents {
		if len(d) < 1000 {
			f.Add([]byte(d))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		assert.Equal(t, json.Valid(data), strictjson.Valid(data), "%q", data)
		checkUnquote(t, data)
		checkPassString(t, data)
	})
}

// checkPassString compares PassString with SkipString at each string of a document, and
// checks that it ends after a quote if the document is not JSON.
func checkPassString(t *testing.T, data []byte) {
	valid := json.Valid(data)
	for i := 0; i < len(data); i++ {
		end := strictjson.PassString(data, i)
		if data[i] != '"' {
			assert.Equal(t, -1, end, "%q at %d", data, i)
			continue
		}
		if end != -1 {
			assert.True(t, end > i+1 && end <= len(data) && data[end-1] == '"', "%q at %d: %d", data, i, end)
		}
		if valid {
			assert.Equal(t, strictjson.SkipString(data, i), end, "%q at %d", data, i)
			i = end - 1
		}
	}
	assert.Equal(t, -1, strictjson.PassString(data, len(data)))
}

func TestPassString(t *testing.T) {
	for _, d := range documents {
		checkPassString(t, []byte(d))
	}
	letters := []string{"a", `\\`, `\"`, `\n`, `\u0022`, `\u005c`, "é", " ", "0123456789abcdef"}
	r := rand.New(rand.NewPCG(1, 9))
	for range 20_000 {
		var b strings.Builder
		b.WriteString(`["x",{`)
		for i := range r.IntN(4) {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteByte('"')
			for range r.IntN(12) {
				b.WriteString(letters[r.IntN(len(letters))])
			}
			b.WriteString(`":"`)
			for range r.IntN(12) {
				b.WriteString(letters[r.IntN(len(letters))])
			}
			b.WriteByte('"')
		}
		b.WriteString("}]")
		if !assert.True(t, json.Valid([]byte(b.String()))) {
			return
		}
		checkPassString(t, []byte(b.String()))
	}
}
