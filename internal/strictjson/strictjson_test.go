package strictjson

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// quoted is AppendString, one rune after the other.
func quoted(s string) string {
	b := []byte{'"'}
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n' || r == '\r' || r == '\t':
			b = append(b, '\\', map[rune]byte{'\n': 'n', '\r': 'r', '\t': 't'}[r])
		case r < ' ':
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return string(append(b, '"'))
}

func TestAppendString_EachByte(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"\"", "\\", "\n", "\r", "\t", "\x00", "\x1f", " ", "!", "#", "[", "]", "~", "\x7f", "\x80", "\xff", "é", "日本", "\u2028", "😀", "\xe6\x97", "a", "plain text of some length"}
	for range 20_000 {
		var b strings.Builder
		for range rng.IntN(12) {
			b.WriteString(pieces[rng.IntN(len(pieces))])
		}
		s := b.String()
		got := string(AppendString([]byte("x"), s))
		require.Equal(t, "x"+quoted(s), got, "%q", s)
		assert.True(t, json.Valid([]byte(got[1:])), "%q", s)
	}
	for c := range 256 { // each byte, in each place of a word
		for place := range 9 {
			s := strings.Repeat("a", place) + string([]byte{byte(c)}) + strings.Repeat("b", 8)
			require.Equal(t, quoted(s), string(AppendString(nil, s)), "%q", s)
		}
	}
}

// Strings of any length and content are written so that encoding/json and Text read them
// back, and only characters that need it are escaped.
func TestAppendString(t *testing.T) {
	for n := range 20 {
		for at := range n + 1 {
			for _, c := range []string{"", `"`, `\`, "\n", "\r", "\t", "\x00", "\x1f", " ", "\x7f", "é", "今", "😀", "\u2028", "<&>", "\xff\xfe"} {
				s := strings.Repeat("x", at) + c + strings.Repeat("y", n-at)
				data := AppendString(nil, s)
				want := string([]rune(s))
				var got string
				require.NoError(t, json.Unmarshal(data, &got), "%q", data)
				require.Equal(t, want, got)
				r := NewReader(data)
				require.Equal(t, want, r.Text())
				r.End()
				require.NoError(t, r.Err())
			}
		}
	}
	assert.Equal(t, `"<&> 今\n\u0001\"\\/"`, string(AppendString(nil, "<&> 今\n\x01\"\\/")))
}

// plain and appendPlain find the first byte that ends them, whatever precedes and follows
// it, and plain does not report other bytes as ASCII.
func TestPlain(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	alphabet := []byte{0, 1, 0x1f, ' ', '!', '"', '#', '[', '\\', ']', 0x7f, 0x80, 0xa2, 0xdc, 0xff, 'a', 'b', 'c'}
	for range 200_000 {
		s := make([]byte, rng.IntN(24))
		for i := range s {
			s[i] = alphabet[rng.IntN(len(alphabet))]
			if rng.IntN(4) > 0 {
				s[i] = 'a'
			}
		}
		want, other := 0, false
		for want < len(s) && s[want] >= ' ' && s[want] != '"' && s[want] != '\\' {
			other = other || s[want] >= 0x80
			want++
		}
		n, ascii := plain(s)
		require.Equal(t, want, n, "%q", s)
		require.False(t, ascii && other, "%q", s)
		n, ascii = plain(string(s))
		require.Equal(t, want, n, "%q", s)
		require.False(t, ascii && other, "%q", s)
		require.Equal(t, "-"+string(s[:want]), string(appendPlain([]byte("-"), s)))
		require.Equal(t, "-"+string(s[:want]), string(appendPlain([]byte("-"), string(s))))
	}
	_, ascii := plain(strings.Repeat("only ASCII ", 3))
	assert.True(t, ascii)
}

// Members that are zero are left out, and commas stand between the others.
func TestMembers(t *testing.T) {
	dst := []byte("{")
	dst = Int(dst, "int", -7)
	dst = Int(dst, "no", 0)
	dst = AppendString(Key(dst, "text"), "a{")
	dst = Bool(dst, "no", false)
	dst = Bool(dst, "bool", true)
	dst = Time(dst, "no", time.Time{})
	dst = Time(dst, "time", time.Date(2025, 6, 1, 12, 0, 0, 5e8, time.FixedZone("", 7200)))
	assert.Equal(t, `{"int":-7,"text":"a{","bool":true,"time":"2025-06-01T10:00:00.5Z"`, string(dst))
}

// Name reads the same as Text, and needs no memory for strings that it has read before.
func TestReader_Name(t *testing.T) {
	names := []string{"", "a", "read", "call_1", "call_2", "d\"e", "\xff", strings.Repeat("long", 17)}
	for i := range 300 {
		names = append(names, strconv.Itoa(i))
	}
	rng := rand.New(rand.NewPCG(1, 1))
	var data []byte
	var want []string
	for range 2000 {
		want = append(want, names[rng.IntN(len(names))])
		data = AppendString(append(data, ','), want[len(want)-1])
	}
	data[0] = '['
	r := NewReader(append(data, ']'))
	for i := range r.Array {
		require.Equal(t, strings.ToValidUTF8(want[i], "\uFFFD"), r.Name())
	}
	r.End()
	require.NoError(t, r.Err())

	r = NewReader([]byte(`["read","other","read"]`))
	var got []string
	for range r.Array {
		got = append(got, r.Name())
	}
	assert.Same(t, unsafe.StringData(got[0]), unsafe.StringData(got[2]))
}

// Errors state the position, what was found and what is expected.
func TestReader_Errors(t *testing.T) {
	for data, want := range map[string]string{
		``:                       "byte 0 is the end, want an object",
		`[]`:                     `byte 0 is "[", want an object`,
		`{`:                      "byte 1 is the end, want a key",
		`{"text":"a",}`:          `byte 12 is "}", want a key, in or after the field "text"`,
		`{"text" "a"}`:           `byte 8 is "\"", want a colon, in or after the field "text"`,
		`{"text":7}`:             `byte 8 is "7", want a string, in or after the field "text"`,
		`{"text":"a`:             `byte 10 is the end, want a character of a string, or a quote, in or after the field "text"`,
		"{\"text\":\"\n\"}":      `byte 9 is "\n", want a character of a string, or a quote, in or after the field "text"`,
		`{"text":"\x"}`:          `byte 10 is "x", want an escape, in or after the field "text"`,
		`{"text":"\u12"}`:        `byte 10 is "u", want four hexadecimal digits, in or after the field "text"`,
		`{"text":"a" "int":1}`:   `byte 12 is "\"", want a comma or }, in or after the field "text"`,
		`{"int":1.5}`:            `byte 7 is "1", want an integer of 64 bits, in or after the field "int"`,
		`{"int":01}`:             `byte 8 is "1", want a comma or }, in or after the field "int"`,
		`{"int":-}`:              `byte 8 is "}", want a digit, in or after the field "int"`,
		`{"float":1e400}`:        `byte 9 is "1", want a number of 64 bits, in or after the field "float"`,
		`{"bool":1}`:             `byte 8 is "1", want true or false, in or after the field "bool"`,
		`{"time":"today"}`:       `byte 8 is "\"", want a time as RFC 3339 writes it, in or after the field "time"`,
		`{"list":[1,]}`:          `byte 11 is "]", want a digit, in or after the field "list"`,
		`{"text":"a","text":""}`: `duplicate key "text"`,
		`{"Text":"a"}`:           `unknown field "Text"`,
		`{} {}`:                  "unexpected data after the JSON value",
		`nullx`:                  "unexpected data after the JSON value",
	} {
		r := NewReader([]byte(data))
		for key := range r.Object {
			switch string(key) {
			case "text":
				r.Text()
			case "int":
				r.Int64()
			case "float":
				r.Float()
			case "bool":
				r.Bool()
			case "time":
				r.Time()
			case "list":
				for range r.Array {
					r.Int()
				}
			default:
				r.Unknown(key)
			}
		}
		r.End()
		assert.EqualError(t, r.Err(), want, data)
		assert.Zero(t, r.Text())
		assert.Zero(t, r.Int())
		assert.Zero(t, r.Float())
		assert.False(t, r.Bool())
		assert.Zero(t, r.Time())
	}
}

// Skip skips exactly one value.
func TestReader_Skip(t *testing.T) {
	for _, value := range []string{`1`, `-1.5e3`, `"a,]}\"{["`, `true`, `null`, `{}`, `[]`, ` [ {"a" : [ 1 , "]" ] } , {} ] `, strings.Repeat("[", 1000) + strings.Repeat("]", 1000)} {
		r := NewReader([]byte(`[` + value + `,"next"]`))
		for i := range r.Array {
			if i == 0 {
				r.Skip()
			} else {
				assert.Equal(t, "next", r.Text(), value)
			}
		}
		r.End()
		assert.NoError(t, r.Err(), value)
	}
	for _, data := range []string{``, `{`, `[1`, `"a`, strings.Repeat("[", 100_000)} {
		r := NewReader([]byte(data))
		r.Skip()
		assert.Error(t, r.Err(), "%.20s", data)
	}
}
