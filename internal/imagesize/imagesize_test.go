package imagesize_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/internal/imagesize"
)

func encode(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

func be16(n int) []byte   { return binary.BigEndian.AppendUint16(nil, uint16(n)) }
func be32(n int64) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }
func le16(n int) []byte   { return binary.LittleEndian.AppendUint16(nil, uint16(n)) }
func le32(n int64) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(n)) }

func join(parts ...any) []byte {
	var b []byte
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			b = append(b, p...)
		case []byte:
			b = append(b, p...)
		}
	}
	return b
}

func pngHead(w, h int64) []byte {
	return join("\x89PNG\r\n\x1a\n", be32(13), "IHDR", be32(w), be32(h), "\x08\x02\x00\x00\x00")
}

// segment returns a JPEG segment with n bytes of content.
func segment(marker byte, n int) []byte {
	return join([]byte{0xFF, marker}, be16(n+2), make([]byte, n))
}

func frame(marker byte, w, h int) []byte {
	return join([]byte{0xFF, marker}, be16(17), "\x08", be16(h), be16(w), "\x03", make([]byte, 9))
}

func riff(kind string, body ...any) []byte {
	return join("RIFF", le32(100), "WEBP", kind, le32(20), join(body...), make([]byte, 12))
}

func bmpHead(size int64, fields ...any) []byte {
	return join("BM", le32(1000), le32(0), le32(54), le32(size), join(fields...), make([]byte, 20))
}

func TestOf(t *testing.T) {
	for _, tt := range []struct {
		name string
		data []byte
		w, h int
	}{
		{"png", pngHead(1024, 768), 1024, 768},
		{"png, the largest", pngHead(math.MaxInt32, 1), math.MaxInt32, 1},
		{"jpeg", join("\xff\xd8", segment(0xE0, 14), frame(0xC0, 640, 480)), 640, 480},
		{"jpeg, progressive", join("\xff\xd8", frame(0xC2, 65535, 3)), 65535, 3},
		{"jpeg, large attachments", join("\xff\xd8", segment(0xE1, 65533), segment(0xE2, 65533), segment(0xC4, 400), frame(0xC1, 3, 4)), 3, 4},
		{"jpeg, fill and restart markers", join("\xff\xd8\xff\xff\xff\xff", segment(0xFE, 1)[1:], "\xff\xd0\xff\x01", frame(0xC0, 5, 6)), 5, 6},
		{"gif 87", join("GIF87a", le16(320), le16(200), make([]byte, 3)), 320, 200},
		{"gif 89", join("GIF89a", le16(65535), le16(1)), 65535, 1},
		{"webp, lossy", riff("VP8 ", "\x00\x00\x00\x9d\x01\x2a", le16(550|0x4000), le16(368)), 550, 368},
		{"webp, lossless", riff("VP8L", "\x2f", le32(99|149<<14)), 100, 150},
		{"webp, extended", riff("VP8X", "\x00\x00\x00\x00", []byte{0xFF, 0x0F, 0}, []byte{0, 0, 1}), 4096, 65537},
		{"bmp", bmpHead(40, le32(800), le32(600)), 800, 600},
		{"bmp, from the top", bmpHead(124, le32(800), le32(-600)), 800, 600},
		{"bmp, old", bmpHead(12, le16(800), le16(600)), 800, 600},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, more := range []int{0, 1, 2, 100_000} {
				w, h, ok := imagesize.Of(encode(append(bytes.Clone(tt.data), make([]byte, more)...)))
				assert.True(t, ok)
				assert.Equal(t, [2]int{tt.w, tt.h}, [2]int{w, h})
				kind, _, _ := strings.Cut(strings.NewReplacer(" ", ",").Replace(tt.name), ",")
				assert.Equal(t, "image/"+kind, imagesize.Type(encode(tt.data)))
			}
		})
	}
}

func TestOf_hostile(t *testing.T) {
	many := []byte("\xff\xd8")
	for range 2000 {
		many = append(many, segment(0xE1, 0)...)
	}
	for _, tt := range []struct {
		name string
		data []byte
	}{
		{"empty", nil},
		{"text", []byte("hello, this is no image at all, only a text")},
		{"png without a size", pngHead(0, 10)},
		{"png, more than an image may have", pngHead(1<<31, 1<<31)},
		{"png, 32 bits", pngHead(math.MaxUint32, math.MaxUint32)},
		{"png, another chunk first", join("\x89PNG\r\n\x1a\n", be32(13), "CgBI", be32(1), be32(1))},
		{"jpeg, height to come", join("\xff\xd8", frame(0xC0, 100, 0))},
		{"jpeg, no frame", join("\xff\xd8", segment(0xE0, 14), "\xff\xda\x00\x0c", make([]byte, 40))},
		{"jpeg, segment of no length", join("\xff\xd8\xff\xe0\x00\x00", make([]byte, 40))},
		{"jpeg, segment past the end", join("\xff\xd8\xff\xe0\xff\xff\x00")},
		{"jpeg, only fill", append([]byte("\xff\xd8"), bytes.Repeat([]byte{0xFF}, 10_000)...)},
		{"jpeg, segments without end", append(many, frame(0xC0, 1, 1)...)},
		{"jpeg, a second start", join("\xff\xd8\xff\xd8", frame(0xC0, 1, 1))},
		{"gif without a size", join("GIF89a", le16(0), le16(0))},
		{"webp of another kind", riff("ABCD", make([]byte, 20))},
		{"webp, lossy without its mark", riff("VP8 ", make([]byte, 20))},
		{"webp, lossless without its mark", riff("VP8L", make([]byte, 20))},
		{"bmp, least height", bmpHead(40, le32(1), le32(math.MinInt32))},
		{"bmp, negative width", bmpHead(40, le32(-5), le32(5))},
		{"bmp, odd header", bmpHead(1<<30, le32(5), le32(5))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, h, ok := imagesize.Of(encode(tt.data))
			assert.False(t, ok)
			assert.Zero(t, w)
			assert.Zero(t, h)
		})
	}
}

func TestType(t *testing.T) {
	for data, want := range map[string]string{
		"\x00\x00\x00\x18ftypheic\x00": "image/heif", "\x00\x00\x00\x18ftypavif": "image/heif", "\x00\x00\x00\x18ftyp": "",
		"": "", "<html>": "", "\x89PNG\r\n": "", "%PDF-1.7": "", "RIFF\x00\x00\x00\x00WAVE": "", "RIFF": "",
	} {
		assert.Equal(t, want, imagesize.Type(encode([]byte(data))), "%q", data)
	}
	assert.Empty(t, imagesize.Type("!!!!"))
}

func TestOf_cutOff(t *testing.T) {
	for _, tt := range []struct {
		data []byte
		need int // bytes
	}{
		{pngHead(7, 8), 24},
		{join("\xff\xd8", segment(0xE0, 14), frame(0xC0, 7, 8)), 29},
		{join("GIF89a", le16(7), le16(8)), 10},
		{riff("VP8X", "\x00\x00\x00\x00", []byte{6, 0, 0}, []byte{7, 0, 0}), 30},
		{bmpHead(40, le32(7), le32(8)), 26},
	} {
		for n := range len(tt.data) {
			_, _, ok := imagesize.Of(encode(tt.data[:n]))
			assert.Equal(t, n >= tt.need, ok, "%q", tt.data[:n])
		}
	}
}

// Of agrees with the encoders of the standard library.
func TestOf_library(t *testing.T) {
	for _, size := range []image.Point{{1, 1}, {3, 500}, {257, 129}} {
		img := image.NewPaletted(image.Rectangle{Max: size}, color.Palette{color.Black, color.White})
		var p, j, g bytes.Buffer
		require.NoError(t, png.Encode(&p, img))
		require.NoError(t, jpeg.Encode(&j, img, nil))
		require.NoError(t, gif.Encode(&g, img, nil))
		for _, b := range []*bytes.Buffer{&p, &j, &g} {
			w, h, ok := imagesize.Of(encode(b.Bytes()))
			require.True(t, ok)
			assert.Equal(t, size, image.Pt(w, h))
		}
	}
}

func TestOf_notBase64(t *testing.T) {
	head := encode(pngHead(9, 9))
	for _, data := range []string{"", "=", "====", "\x00", "!!!!", head[:8] + "!" + head[9:], head[:20] + "====", strings.Repeat("\n", 100) + head} {
		_, _, ok := imagesize.Of(data)
		assert.False(t, ok, "%q", data)
	}
}

func TestOf_allocations(t *testing.T) {
	large := encode(append(pngHead(4000, 3000), make([]byte, 3<<20)...))
	photo := encode(join("\xff\xd8", segment(0xE1, 65533), frame(0xC0, 4000, 3000), make([]byte, 3<<20)))
	assert.Zero(t, testing.AllocsPerRun(100, func() { imagesize.Of(large); imagesize.Of(photo) }))
}

func TestRead(t *testing.T) {
	all := make([]byte, 200)
	for i := range all {
		all[i] = byte(i)
	}
	for _, length := range []int{0, 1, 2, 3, 47, 48, 49, 200} {
		data := encode(all[:length])
		assert.Equal(t, length, imagesize.Len(data))
		for _, offset := range []int{0, 1, 2, 3, 46, 47, 48, 49, 50, 95, 199, 200, 201, math.MaxInt} {
			for _, n := range []int{0, 1, 2, 30, 100, 300} {
				p := make([]byte, n)
				got := p[:imagesize.Read(data, offset, p)]
				want := all[min(offset, length):length]
				assert.Equal(t, want[:min(n, len(want))], got, "%d bytes, %d from %d", length, n, offset)
			}
		}
	}
	assert.Zero(t, imagesize.Read("AAAA", -1, make([]byte, 4)))
	assert.Zero(t, imagesize.Len("="))
}

func FuzzOf(f *testing.F) {
	f.Add(pngHead(3, 4), "AAAA")
	f.Add(join("\xff\xd8", segment(0xE0, 14), frame(0xC0, 7, 8)), "====")
	f.Add(riff("VP8X", "\x00\x00\x00\x00", []byte{6, 0, 0}, []byte{7, 0, 0}), "/9j/")
	f.Add(riff("VP8L", "\x2f", le32(99)), "\xff")
	f.Add(bmpHead(40, le32(7), le32(-8)), "")
	f.Add(join("GIF89a", le16(7), le16(8)), "R0lGODlh")
	f.Fuzz(func(t *testing.T, b []byte, text string) {
		for _, data := range []string{encode(b), text} {
			w, h, ok := imagesize.Of(data)
			if ok != (w > 0 && h > 0) || int64(w) > math.MaxInt32 || int64(h) > math.MaxInt32 {
				t.Fatalf("%d x %d, %v", w, h, ok)
			}
		}
		if c, format, err := image.DecodeConfig(bytes.NewReader(b)); err == nil && c.Width > 0 && c.Height > 0 {
			w, h, ok := imagesize.Of(encode(b))
			if format == "jpeg" && !ok { // the library skips stray bytes between segments
				return
			}
			if !ok || w != c.Width || h != c.Height {
				t.Fatalf("%s: %d x %d, %v, the library reads %d x %d", format, w, h, ok, c.Width, c.Height)
			}
		}
	})
}
