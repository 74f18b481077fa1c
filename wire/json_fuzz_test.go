package wire

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// FuzzSplit compares the results of fields and read with those of encoding/json.
func FuzzSplit(f *testing.F) {
	for _, s := range []string{
		`{}`, ` { } `, `{"a":1}`, "\n{\"a\" :\t[1 , {\"b\":\"]}\"} ] , \"a\\\"\":null}\r", `{"a":{"b":[[]]},"a":2}`, `{"\u0041\n":"x"}`, "{\"\xff\":\"\xff\"}",
		`[]`, ` [ ] `, `[1,"a]",[{}],{"x":[]},true,null,-1.5e3]`, `[[[]]]`, `["\\","\\\"","\\\\"]`,
		`""`, `"a\"\\\/\b\f\n\r\t"`, `"\ud83d\ude00 \u00e9 日本"`, "\"\xff\xfe\"", "\"a\\nb\xff\"", `null`, `7`,
		`{`, `{"a"`, `{"a":`, `{"a":1,}`, `[1,]`, `["`, `"\`, `{"a":}`, "{\"\":{\":[[]]},\"a\x1f", `[}`, `{]`, `[1 2]`, `{"a" 1}`, `"a""`, "\"a\nb\"", `{"a":"b\q"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var object map[string]json.RawMessage
		err := json.Unmarshal(data, &object)
		got, failed := fields("", data)
		if err != nil || object == nil {
			require.Error(t, failed)
		} else {
			require.NoError(t, failed)
			require.Equal(t, object, got)
		}
		_, _ = fields("x", data) // for a document that was not checked to be JSON
		_, _ = strictjson.SplitArray(data)
		if !json.Valid(data) {
			return
		}
		for _, path := range []string{"", "x"} {
			var want, list []json.RawMessage
			err := json.Unmarshal(data, &want)
			failed := read(path, "an array", data, &list)
			require.Equal(t, err == nil, failed == nil)
			require.Equal(t, want, list)
		}
		var want, text string
		err = json.Unmarshal(data, &want)
		require.Equal(t, err == nil, read("x", "a string", data, &text) == nil)
		require.Equal(t, want, text)
		if kindOf(data) == '"' {
			require.Equal(t, want, stringOf(data))
		}
	})
}
