package bpe

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// BenchmarkLoad measures what the first use of an encoding costs.
func BenchmarkLoad(b *testing.B) {
	for _, enc := range []struct {
		name string
		load func() *Encoding
	}{
		{"cl100k", func() *Encoding { return newEncoding(cl100kData, false) }},
		{"o200k", func() *Encoding { return newEncoding(o200kData, true) }},
	} {
		b.Run(enc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				enc.load()
			}
		})
	}
}

// texts returns 8 kB of text of each kind, made of words in random order.
func texts() map[string]string {
	rng := rand.New(rand.NewPCG(9, 10))
	from := func(words, between string) string {
		list := strings.Fields(words)
		var b strings.Builder
		for b.Len() < 8<<10 {
			b.WriteString(list[rng.IntN(len(list))])
			b.WriteString(between)
		}
		return b.String()
	}
	random := make([]byte, 6<<10)
	for i := range random {
		random[i] = byte(rng.Uint32())
	}
	return map[string]string{
		"prose": from("the a of and travel agent seats window flight from Rome to Naples is was not, there could be "+
			"another departure, arrival. Unfortunately the reservation department wouldn't acknowledge cancellations; "+
			"however, interesting alternatives remain available between morning and afternoon", " "),
		"code": from("func (s *server) if err != nil { return fmt.Errorf(\"open: %w\", err) } } for _, entry := range entries { "+
			"s.handleRequest(ctx, entry.Key) i++ x := make([]byte, 0, 64) // readHeader HTTPServer maxTokenCount", "\n\t"),
		"json": from(`{"id":17, "name":"get_weather", "created_at":"2025-03-14T09:26:53Z", "items":[], "total":1024.5, "ok":true, "cursor":"c8f1a2", "url":"https://example.com/v1/items?page=3"}`, " "),
		"cjk":  from("我们 今天 去 那不勒斯 的 航班 已经 取消 了 请 选择 其他 时间 ， 。 窗口 座位 天気 は とても よい です 東京 から 京都 まで 新幹線 で 行きます", ""),
		"russian": from("мы сегодня летим в Неаполь рейс отменён пожалуйста выберите другое время место у окна "+
			"путешествие необходимость рассмотрения предложений", " "),
		"base64": base64.StdEncoding.EncodeToString(random),
	}
}

func BenchmarkCount(b *testing.B) {
	all := texts()
	for name, e := range encodings() {
		for _, kind := range []string{"prose", "code", "json", "cjk", "russian", "base64"} {
			b.Run(fmt.Sprintf("encoding=%s/text=%s", name, kind), func(b *testing.B) {
				text := all[kind]
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					e.Count(text)
				}
			})
		}
		b.Run(fmt.Sprintf("encoding=%s/text=short", name), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				e.Count("Hello world")
			}
		})
	}
}

// The time per byte should not grow with the length of the text.
func BenchmarkCountHostile(b *testing.B) {
	rng := rand.New(rand.NewPCG(11, 12))
	letters, han := make([]byte, 1<<20), make([]rune, 1<<20/3)
	for i := range letters {
		letters[i] = 'a' + byte(rng.IntN(26))
	}
	for i := range han {
		han[i] = 0x4e00 + rng.Int32N(0x5200)
	}
	for _, run := range []struct{ name, text string }{
		{"letter", strings.Repeat("a", 1<<20)},
		{"spaces", strings.Repeat(" ", 1<<20)},
		{"newlines", strings.Repeat("\n", 1<<20)},
		{"letters", string(letters)},
		{"han", string(han)},
		{"invalid", strings.Repeat("\xff", 1<<20)},
	} {
		for _, size := range []int{100_000, 1_000_000} {
			b.Run(fmt.Sprintf("text=%s/bytes=%d", run.name, size), func(b *testing.B) {
				text := run.text[:size]
				b.SetBytes(int64(size))
				for b.Loop() {
					O200k().Count(text)
				}
			})
		}
	}
}
