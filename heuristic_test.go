package convo_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-c1b73e60/convo"
)

// exact are o200k counts, made with tiktoken-go.
func TestHeuristic_Scripts(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		exact      int
	}{
		{"letter", "a", 1},
		{"space", " ", 1},
		{"greeting", "Hello, world!", 4},
		{"English", "The quick brown fox jumps over the lazy dog.", 10},
		{"Go", "func (h *History) Append(msgs ...Message) (ID, error) {\n\treturn h.place(batch)\n}", 24},
		{"JSON", `{"city":"Berlin","temp":21.5,"ok":true,"tags":["a","b"]}`, 22},
		{"Chinese", "今天天气很好，我们去公园散步吧。", 12},
		{"Japanese", "東京は日本の首都です。とても大きい都市です。", 16},
		{"Korean", "안녕하세요, 오늘 날씨가 정말 좋네요.", 11},
		{"Russian", "Быстрая коричневая лиса прыгает через ленивую собаку.", 20},
		{"Greek", "Η γρήγορη καφέ αλεπού πηδάει πάνω από το τεμπέλικο σκυλί.", 26},
		{"Hebrew", "השועל החום המהיר קופץ מעל הכלב העצלן.", 17},
		{"Arabic", "الثعلب البني السريع يقفز فوق الكلب الكسول.", 16},
		{"Hindi", "तेज भूरी लोमड़ी आलसी कुत्ते के ऊपर कूदती है।", 20},
		{"Bengali", "দ্রুত বাদামী শিয়াল অলস কুকুরের উপর লাফ দেয়।", 19},
		{"Thai", "สุนัขจิ้งจอกสีน้ำตาลกระโดดข้ามสุนัขขี้เกียจ", 28},
		{"emoji", "😀😃😄😁", 6},
		{"emoji from U+1F900 on", "🤖🦄🧠🥳", 10},
		{"Han extension A", "㐀㐁㐂㐃㐄㐅", 18},
		{"CJK punctuation", "、。「」『』", 5},
		{"accents", "Le café très élégant préféré à Genève", 7},
		{"base64", "dGhlIHF1aWNrIGJyb3duIGZveCBqdW1wcyBvdmVyIHRoZSBsYXp5IGRvZw==", 40},
		{"UUID", "6f1ed002-ab5d-4bd8-9e1c-1b5c2a8f7a10", 29},
		{"numbers", "3.14159 2.71828 1.41421 1.73205 0.57721", 24},
		{"100 newlines", strings.Repeat("\n", 100), 7},
		{"100 tabs", strings.Repeat("\t", 100), 6},
		{"10,000 spaces", strings.Repeat(" ", 10_000), 79},
		{"10,000 equal signs", strings.Repeat("=", 10_000), 156},
		{"10,000 letters", strings.Repeat("a", 10_000), 1250},
		{"10,000 newlines", strings.Repeat("\n", 10_000), 625},
		{"control bytes", "a\x00b\x08c", 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := convo.Heuristic{}.CountTokens(tt.text)
			tolerance := max(4, float64(tt.exact)*0.4)
			assert.InDelta(t, tt.exact, got, tolerance)
			assert.GreaterOrEqual(t, got, 1)
		})
	}
}

func TestHeuristic_EmptyIsNothing(t *testing.T) {
	assert.Zero(t, convo.Heuristic{}.CountTokens(""))
}

func TestHeuristic_DoesNotSaturate(t *testing.T) {
	line := "the quick brown fox jumps over the lazy dog, and so on. "
	one := convo.Heuristic{}.CountTokens(strings.Repeat(line, 1000))
	many := convo.Heuristic{}.CountTokens(strings.Repeat(line, 300_000))
	assert.InEpsilon(t, 300*one, many, 0.001)
	assert.Greater(t, many, 3_000_000)
}

func TestHeuristic_DoesNotAllocate(t *testing.T) {
	text := strings.Repeat("Hello, Welt! 今天 ", 50)
	assert.Zero(t, testing.AllocsPerRun(100, func() { convo.Heuristic{}.CountTokens(text) }))
}

func FuzzHeuristic(f *testing.F) {
	for _, s := range []string{"", "a", "Hello, world!", "今天", "\xff\xfe", strings.Repeat("ab1", 40), strings.Repeat(" ", 300), "a\x00\x08"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		count := convo.Heuristic{}.CountTokens
		n, m, both := count(a), count(b), count(a+b)
		if (n >= 1) != (a != "") {
			t.Fatalf("%q counts %d", a, n)
		}
		if n > 4*len(a)+1 {
			t.Fatalf("%d bytes count %d", len(a), n)
		}
		// A border moves little: a word, a run of digits or of one byte that
		// it cut in two.
		if limit := 8 + float64(n+m)*0.5 + float64(len(a)+len(b))/8; math.Abs(float64(both-n-m)) > limit {
			t.Fatalf("%d and %d count %d together", n, m, both)
		}
	})
}

func BenchmarkHeuristic(b *testing.B) {
	for _, bb := range []struct{ name, text string }{
		{"English", "The quick brown fox jumps over the lazy dog, and then it sleeps. "},
		{"Go", "func (h *History) Len() int {\n\th.mu.Lock()\n\tdefer h.mu.Unlock()\n\treturn h.state.len()\n}\n"},
		{"JSON", `{"id":1234567,"name":"Berlin","ok":true,"price":12.50},`},
		{"Chinese", "今天天气很好，我们去公园散步吧。"},
		{"base64", "dGhlIHF1aWNrIGJyb3duIGZveCBqdW1wcyBvdmVyIHRoZSBsYXp5IGRvZw"},
	} {
		text := strings.Repeat(bb.text, 4096/len(bb.text))
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				convo.Heuristic{}.CountTokens(text)
			}
		})
	}
}
