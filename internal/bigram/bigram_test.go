package bigram

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/internal/bpe"
	"github.com/seed-c1b73e60/convo/internal/udhr"
)

// knownOff lists the sentences with larger errors, in tokens. Pairs of bytes contain
// little information about their words.
var knownOff = map[string]float64{"Korean": 5, "Thai": 13, "accents": 7}

func TestCount_Texts(t *testing.T) {
	for _, tt := range []struct {
		name, text string
	}{
		{"letter", "a"},
		{"space", " "},
		{"greeting", "Hello, world!"},
		{"English", "The quick brown fox jumps over the lazy dog."},
		{"Go", "func (h *History) Append(msgs ...Message) (ID, error) {\n\treturn h.place(batch)\n}"},
		{"JSON", `{"city":"Berlin","temp":21.5,"ok":true,"tags":["a","b"]}`},
		{"Chinese", "今天天气很好，我们去公园散步吧。"},
		{"Japanese", "東京は日本の首都です。とても大きい都市です。"},
		{"Korean", "안녕하세요, 오늘 날씨가 정말 좋네요."},
		{"Russian", "Быстрая коричневая лиса прыгает через ленивую собаку."},
		{"Greek", "Η γρήγορη καφέ αλεπού πηδάει πάνω από το τεμπέλικο σκυλί."},
		{"Hebrew", "השועל החום המהיר קופץ מעל הכלב העצלן."},
		{"Arabic", "الثعلب البني السريع يقفز فوق الكلب الكسول."},
		{"Hindi", "तेज भूरी लोमड़ी आलसी कुत्ते के ऊपर कूदती है।"},
		{"Bengali", "দ্রুত বাদামী শিয়াল অলস কুকুরের উপর লাফ দেয়।"},
		{"Thai", "สุนัขจิ้งจอกสีน้ำตาลกระโดดข้ามสุนัขขี้เกียจ"},
		{"accents", "Le café très élégant préféré à Genève"},
		{"emoji", "😀😃😄😁"},
		{"emoji from U+1F900 on", "🤖🦄🧠🥳"},
		{"Han extension A", "㐀㐁㐂㐃㐄㐅"},
		{"CJK punctuation", "、。「」『』"},
		{"base64", "dGhlIHF1aWNrIGJyb3duIGZveCBqdW1wcyBvdmVyIHRoZSBsYXp5IGRvZw=="},
		{"UUID", "6f1ed002-ab5d-4bd8-9e1c-1b5c2a8f7a10"},
		{"hex", "0b5c2a8f7a106f1ed002ab5d4bd89e1c1b5c2a8f7a10ffe2c13377d0a4e81f0c"},
		{"numbers", "3.14159 2.71828 1.41421 1.73205 0.57721"},
		{"100 newlines", strings.Repeat("\n", 100)},
		{"100 tabs", strings.Repeat("\t", 100)},
		{"10,000 spaces", strings.Repeat(" ", 10_000)},
		{"10,000 equal signs", strings.Repeat("=", 10_000)},
		{"10,000 letters", strings.Repeat("a", 10_000)},
		{"10,000 newlines", strings.Repeat("\n", 10_000)},
		{"10,000 digits", strings.Repeat("7", 10_000)},
		{"lines under titles", strings.Repeat("Title\n"+strings.Repeat("=", 40)+"\n", 20)},
		{"indented", strings.Repeat("x\n"+strings.Repeat(" ", 24), 40)},
		{"control bytes", "a\x00b\x08c"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			exact := len(bpe.O200k().Append(nil, tt.text))
			got := Count(tt.text)
			off, known := knownOff[tt.name]
			if !known {
				off = max(4, float64(exact)*0.35)
			}
			assert.InDelta(t, exact, got, off)
		})
	}
}

// The estimate is accurate for long runs of every ASCII character.
func TestCount_LongRuns(t *testing.T) {
	for c := range byte(0x80) {
		for _, n := range []int{16, 17, 100, 1000, 5000} {
			text := "to" + strings.Repeat(string(rune(c)), n) + "be"
			exact := len(bpe.O200k().Append(nil, text))
			assert.InDelta(t, exact, Count(text), 3+0.05*float64(exact), "%d of %q", n, c)
		}
	}
}

// Estimates of repeated short patterns are off by a factor of three to five at
// most.
func TestCount_Patterns(t *testing.T) {
	for _, pattern := range []string{"ab", "=-", "a ", "- ", "01", "lol ", "\n ", "0000 ", "<br>", "──", "| ", "\\n", "foo, "} {
		text := strings.Repeat(pattern, 200)
		exact := float64(len(bpe.O200k().Append(nil, text)))
		got := float64(Count(text))
		assert.Less(t, got, 5*exact+5, "%q", pattern)
		assert.Greater(t, got, exact/3-5, "%q", pattern)
	}
}

// The estimate is accurate for the Declaration of Human Rights, which was not used
// in the fit in any language.
func TestCount_HeldOutLanguages(t *testing.T) {
	n, sum := 0, 0.0
	for language, text := range udhr.Texts() {
		exact := float64(len(bpe.O200k().Append(nil, text)))
		off := float64(Count(text))/exact - 1
		assert.InDelta(t, 0, off, 0.3, language)
		sum += math.Abs(off)
		n++
	}
	require.Equal(t, 57, n)
	assert.Less(t, sum/float64(n), 0.057)
}

// The packed table has the first entry and neither more nor fewer entries than are marked.
func Test_fill(t *testing.T) {
	marked := 0
	for i := range len(table) / 8 {
		marked += bits.OnesCount8(packed[i])
	}
	assert.Len(t, packed[len(table)/8:], marked)
	Count("a")
	assert.NotContains(t, table[:], uint8(0), "every entry is at least 1")
}

func TestCount_EmptyIsNothing(t *testing.T) {
	assert.Zero(t, Count(""))
}

func TestCount_DoesNotSaturate(t *testing.T) {
	line := "the quick brown fox jumps over the lazy dog, and so on. "
	one := Count(strings.Repeat(line, 1000))
	many := Count(strings.Repeat(line, 300_000))
	assert.InEpsilon(t, 300*one, many, 0.001)
	assert.Greater(t, many, 3_000_000)
}

func TestCount_DoesNotAllocate(t *testing.T) {
	text := strings.Repeat("Hello, Welt! 今天 ", 50) + strings.Repeat("=", 80)
	assert.Zero(t, testing.AllocsPerRun(100, func() { Count(text) }))
}

// countSlowly is Count by its definition, one run of equal bytes after another.
func countSlowly(s string) int {
	sum := uint64(0)
	for from, to := 0, 0; from < len(s); from = to {
		_, to = runAround(s, from)
		n, c := uint64(to-from), s[from]
		if per := uint64(table[pairs+int(c&0x7f)]); c < 0x80 && n >= longRun {
			sum += (n + per - 1) / per * one
			continue
		}
		if from == 0 {
			sum += one
		} else {
			sum += cost(s[from-1], c)
		}
		sum += (n - 1) * cost(c, c)
	}
	return int((sum + one/2) / one)
}

// checkCount checks what the estimate guarantees for any two texts.
func checkCount(t *testing.T, a, b string) {
	t.Helper()
	count := Count
	for _, s := range []string{a, b, a + b} {
		n := count(s)
		if n < (len(s)+255)/256 || n > len(s) {
			t.Fatalf("%d bytes count %d: %q", len(s), n, s)
		}
		if slow := countSlowly(s); n != slow {
			t.Fatalf("counts %d, not %d: %q", n, slow, s)
		}
	}
	if a == "" || b == "" || a[len(a)-1] == b[0] {
		return // the border may be inside a long run
	}
	n, m, both := count(a), count(b), count(a+b)
	if both < n+m-2 || both > n+m+1 || both < n {
		t.Fatalf("%q counts %d, %q counts %d, both %d", a, n, b, m, both)
	}
}

func TestCount_Bounds(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	var human []string
	for _, s := range udhr.Texts() {
		human = append(human, s)
	}
	text := func() string {
		var out strings.Builder
		for range r.IntN(12) {
			switch r.IntN(5) {
			case 0:
				out.WriteString(strings.Repeat(string(rune(r.IntN(0x80))), r.IntN(50)))
			case 1:
				out.WriteByte(byte(r.Uint32()))
			case 2:
				out.WriteRune(rune(r.IntN(0x20000)))
			case 3:
				in := human[r.IntN(len(human))]
				from := r.IntN(len(in) - 50)
				out.WriteString(in[from : from+r.IntN(50)])
			default:
				out.WriteString("some words ")
			}
		}
		return out.String()
	}
	for range 20_000 {
		checkCount(t, text(), text())
	}
}

// Runs are counted correctly at every position of the eight bytes that Count reads
// at once.
func TestCount_Places(t *testing.T) {
	count := Count
	for before := range 20 {
		for after := range 20 {
			for n := range 40 {
				text := strings.Repeat("xy", before)[:before] + strings.Repeat("=", n) + strings.Repeat("zv", after)[:after]
				want := count(strings.Repeat("xy", before)[:before]) + count(strings.Repeat("=", n)) + count(strings.Repeat("zv", after)[:after])
				require.InDelta(t, want, count(text), 3, text)
			}
		}
	}
}

func FuzzCount(f *testing.F) {
	for _, s := range []string{"", "a", "Hello, world!", "今天", "\xff\xfe", strings.Repeat("ab1", 40), strings.Repeat(" ", 300), "a\x00\x08", strings.Repeat("\xff", 40)} {
		f.Add(s, s)
		f.Add(s, "x"+s)
	}
	f.Fuzz(checkCount)
}

// The metric "ratio" compares the speed with a bare sum of one table entry for each
// byte. That is the simplest loop for such an estimate.
func BenchmarkCount(b *testing.B) {
	pairs := table[:]
	var sink uint64
	for _, bb := range []struct{ name, text string }{
		{"English", "The quick brown fox jumps over the lazy dog, and then it sleeps. "},
		{"Go", "func (h *History) Len() int {\n\th.mu.Lock()\n\tdefer h.mu.Unlock()\n\treturn h.state.len()\n}\n"},
		{"JSON", `{"id":1234567,"name":"Berlin","ok":true,"price":12.50},`},
		{"Chinese", "今天天气很好，我们去公园散步吧。"},
		{"base64", "dGhlIHF1aWNrIGJyb3duIGZveCBqdW1wcyBvdmVyIHRoZSBsYXp5IGRvZw"},
		{"spaces", strings.Repeat(" ", 4096)},
	} {
		text := strings.Repeat(bb.text, 4096/len(bb.text))
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				Count(text)
			}
			took := b.Elapsed()
			start := time.Now()
			for range b.N {
				sink += bareSum(pairs, text)
			}
			b.ReportMetric(float64(time.Since(start))/float64(took), "ratio")
		})
	}
	require.NotEqual(b, uint64(1), sink) // it is used
}

func bareSum(table []byte, text string) (sum uint64) {
	t := (*[1 << 16]byte)(table)
	prev := text[0]
	for i := range len(text) {
		c := text[i]
		sum += uint64(t[uint16(c)<<8|uint16(prev)])
		prev = c
	}
	return sum
}
