package wire_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

func pdf(b string) convo.Media { return convo.NewMedia("application/pdf", []byte(b)) }

// pdfWith returns a PDF with a number of page objects and some bytes after
// each.
func pdfWith(pages int, object string, bytes int) convo.Media {
	filler := strings.Repeat("\x8a\x00x/", bytes/4+1)[:bytes]
	return pdf("%PDF-1.4\n1 0 obj<</Type/Pages/Count 99/Kids[]>>endobj\n" + strings.Repeat(object+filler, pages) + "%%EOF")
}

func TestOverheads_CountsThePagesOfAPDF(t *testing.T) {
	for _, tt := range []struct {
		name  string
		media convo.Media
		pages int
	}{
		{"one page", pdfWith(1, "3 0 obj<</Type/Page/Parent 1 0 R>>", 0), 1},
		{"one page, spread out", pdfWith(1, "3 0 obj\n<<\n/Type \r\n /Page\n/Parent 1 0 R\n>>", 0), 1},
		{"at the end of a dictionary", pdfWith(3, "3 0 obj<</Parent 1 0 R/Type/Page>>", 0), 3},
		{"many", pdfWith(412, "3 0 obj<</Type/Page>>", 300), 412},
		{"over several reads", pdfWith(57, "3 0 obj<</Type /Page /Parent 1 0 R>>", 20_011), 57},
		{"more than a provider takes", pdfWith(1500, "3 0 obj<</Type/Page>>", 100), 1000},
		{"more than there is room for", pdfWith(2000, "/Type/Page ", 0), 345},
		{"no pages, but names that begin alike", pdf("%PDF-1.4 <</Type/Pages>> <</Type/PageLabel>> <</Type /PageMode>> /Type"), 1},
		{"hidden by compression", pdf("%PDF-1.7\n" + strings.Repeat("\x00/Type\x99/Page", 20_000)), 5},
		{"made for the web", pdf("%PDF-1.7\n5 0 obj<</Linearized 1/L 99999/H[ 1 2]/O 7/E 3/N 12/T 8>>endobj" + strings.Repeat("\x00", 9_000)), 12},
		{"made for the web, wrongly", pdf("%PDF-1.7\n5 0 obj<</Linearized 1/N 999999999/Name 3>>endobj" + strings.Repeat("\x00", 5_000)), 80},
		{"made for the web, without a number", pdf("%PDF-1.7\n5 0 obj<</Linearized 1/N/Name 3/N [4]>>endobj"), 1},
		{"nothing", pdf("%PDF-1.4"), 1},
		{"at an address", convo.Media{MIME: "application/pdf", URL: "https://example.com/a.pdf"}, 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, 3000*tt.pages, wire.Overheads("claude-opus-5").Media(tt.media))
			assert.Equal(t, 258*tt.pages, wire.Overheads("gemini-2.5-pro").Media(tt.media))
			assert.Equal(t, 560*tt.pages, wire.Overheads("gemini-3-pro").Media(tt.media))
			assert.Equal(t, 1085*tt.pages, wire.Overheads("gpt-4o").Media(tt.media))
			assert.Equal(t, 3000, wire.Overheads("qwen3-vl").Media(tt.media), "no rule")
		})
	}
}

// A page object is found even if it lies across two reads.
func TestOverheads_FindsAPageAcrossReads(t *testing.T) {
	media := wire.Overheads("gemini-2.5-pro").Media
	for before := 8100; before < 8240; before++ {
		assert.Equal(t, 2*258, media(pdf("%PDF"+strings.Repeat(".", before)+"/Type   \n /Page/x <</Type/Page>>")), before)
	}
}

// Only the beginning of a very large PDF is read; the number of pages in the
// rest is extrapolated.
func TestOverheads_ExtrapolatesALargePDF(t *testing.T) {
	m := pdfWith(400, "3 0 obj<</Type/Page>>", 50_000) // 20 MB
	assert.InDelta(t, 400*258, wire.Overheads("gemini-2.5-pro").Media(m), 2*258)
}

func wav(rate, size uint32, chunks string, bytes int) convo.Media {
	b := []byte("RIFF\x00\x00\x00\x00WAVE" + chunks + "fmt \x10\x00\x00\x00\x01\x00\x01\x00\x80\x3e\x00\x00")
	b = binary.LittleEndian.AppendUint32(b, rate)
	b = append(b, "\x02\x00\x10\x00data"...)
	b = binary.LittleEndian.AppendUint32(b, size)
	return convo.NewMedia("audio/wav", append(b, make([]byte, bytes)...))
}

func mp4Box(name, body string) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(body)+8))) + name + body
}

func mp4(boxes string) convo.Media { return convo.NewMedia("video/mp4", []byte(boxes)) }

func TestOverheads_ReadsTheLengthOfSoundAndVideo(t *testing.T) {
	v0 := mp4Box("mvhd", "\x00\x00\x00\x00aaaammmm\x00\x00\x03\xe8\x00\x01\xd4\xc0"+strings.Repeat("\x00", 80))                         // 120 s
	v1 := mp4Box("mvhd", "\x01\x00\x00\x00aaaaaaaammmmmmmm\x00\x00\x02\x58\x00\x00\x00\x00\x00\x00\x8c\xa0"+strings.Repeat("\x00", 80)) // 60 s
	mdat := mp4Box("mdat", strings.Repeat("\x00", 100_000))
	for _, tt := range []struct {
		name    string
		media   convo.Media
		seconds int
	}{
		{"wav", wav(32_000, 320_000, "", 320_000), 10},
		{"wav, a part of a second", wav(32_000, 330_000, "", 330_000), 11},
		{"wav, other chunks first", wav(32_000, 320_000, "LIST\x03\x00\x00\x00abc\x00JUNK\x00\x00\x00\x00", 320_000), 10},
		{"wav, length not known", wav(32_000, 0xFFFFFFFF, "", 320_000), 10},
		{"wav, no length", wav(32_000, 0, "", 320_000), 10},
		{"wav, no rate", wav(0, 24_000, "", 23_956), 2},
		{"wav, a rate that cannot be", wav(1, 50_000, "", 50_000), 101},
		{"wav, a chunk past the end", wav(32_000, 320_000, "LIST\xff\xff\xff\xff", 23_948), 2},
		{"other sound", convo.NewMedia("audio/mpeg", make([]byte, 120_000)), 10},
		{"sound in MP4", convo.NewMedia("audio/mp4", []byte(mp4Box("ftyp", "M4A ")+mp4Box("moov", v0)+mdat)), 120},
		{"sound, very short", convo.NewMedia("audio/ogg", make([]byte, 10)), 1},
		{"sound at an address", convo.Media{MIME: "audio/mpeg", URL: "https://example.com/a.mp3"}, 60},
		{"video", mp4(mp4Box("ftyp", "isom") + mp4Box("moov", v0) + mdat), 120},
		{"video, header at the end", mp4(mp4Box("ftyp", "isom") + mdat + mp4Box("moov", mp4Box("free", "")+v1)), 60},
		{"video, last box without a size", mp4(mdat + "\x00\x00\x00\x00moov" + v1), 60},
		{"video, long size", mp4(mp4Box("ftyp", "isom") + "\x00\x00\x00\x01mdat\x00\x00\x00\x00\x00\x00\xc3\x50" + strings.Repeat("\x00", 50_000-16) + mp4Box("moov", v1)), 60},
		{"video, size past the end", mp4("\x00\xff\xff\xffmdat" + strings.Repeat("\x00", 500_000-8)), 2},
		{"video, impossible long size", mp4("\x00\x00\x00\x01mdat\xff\xff\xff\xff\xff\xff\xff\xff" + strings.Repeat("\x00", 500_000-16)), 2},
		{"video, boxes of no size", mp4(strings.Repeat("\x00\x00\x00\x01", 125_000)), 2},
		{"video, no time scale", mp4(mp4Box("moov", mp4Box("mvhd", strings.Repeat("\x00", 100))) + mp4Box("mdat", strings.Repeat("\x00", 500_000-124))), 2},
		{"video, no movie header", mp4(mp4Box("moov", mp4Box("free", "")) + mp4Box("mdat", strings.Repeat("\x00", 500_000-24))), 2},
		{"video, no movie header in the last box", mp4(mp4Box("ftyp", "isom\x00\x00\x02\x00isom") + mp4Box("mdat", strings.Repeat("\x00", 500_000-48)) + mp4Box("moov", mp4Box("free", ""))), 2},
		{"video, one unit of time", mp4(mp4Box("moov", mp4Box("mvhd", "\x00\x00\x00\x00aaaammmm\x00\x00\x00\x01\x00\x00\x00\x01"+strings.Repeat("\x00", 80))) + mdat + mdat + mdat + mdat + mdat), 1},
		{"video at an address", convo.Media{MIME: "video/mp4", URL: "gs://bucket/a.mp4"}, 60},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sound := strings.HasPrefix(tt.media.MIME, "audio/")
			for model, rate := range map[string][2]int{"gemini-2.5-pro": {32, 290}, "gemini-3-flash": {32, 102}} {
				want := rate[1] * tt.seconds
				if sound {
					want = rate[0] * tt.seconds
				}
				assert.Equal(t, want, wire.Overheads(model).Media(tt.media), model)
			}
			if sound {
				assert.Equal(t, 10*tt.seconds, wire.Overheads("gpt-4o-audio-preview").Media(tt.media))
				assert.Equal(t, 13*tt.seconds, wire.Overheads("voxtral-small").Media(tt.media))
			}
			assert.Equal(t, 3000, wire.Overheads("claude-opus-5").Media(tt.media), "no rule")
		})
	}
}

func TestOverheads_CountsTextDocuments(t *testing.T) {
	text := strings.Repeat("The quick brown fox jumps over the lazy dog.\n", 2000)
	want := convo.Heuristic{}.CountTokens(text)
	for _, mime := range []string{"text/plain", "text/markdown; charset=utf-8", "application/json", "application/xml", "application/x-yaml"} {
		assert.InEpsilon(t, want, wire.Overheads("claude-opus-5").Media(convo.NewMedia(mime, []byte(text))), 0.01, mime)
	}
	for _, mime := range []string{"application/vnd.openxmlformats-officedocument.wordprocessingml.document", "application/zip", ""} {
		assert.Equal(t, 3000, wire.Overheads("claude-opus-5").Media(convo.NewMedia(mime, []byte(text))), mime)
	}
}

func FuzzMediaTokens(f *testing.F) {
	f.Add("application/pdf", []byte("%PDF <</Linearized 1/N 3>> <</Type/Page>>"))
	f.Add("audio/wav", []byte("RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x80\x3e\x00\x00\x00\x7d\x00\x00\x02\x00\x10\x00data\xff\xff\xff\xff"))
	f.Add("video/mp4", []byte(mp4Box("moov", mp4Box("mvhd", "\x00\x00\x00\x00aaaammmm\x00\x00\x03\xe8\x00\x01\xd4\xc0"))))
	f.Add("image/gif", []byte("GIF89a\x01\x00\x01\x00"))
	f.Add("text/plain", []byte("hello"))
	f.Fuzz(func(t *testing.T, mime string, b []byte) {
		for _, model := range []string{"gpt-4o", "gpt-5.6", "gpt-4.1-nano", "claude-opus-5", "gemini-2.5-pro", "gemini-3-pro", "pixtral", "qwen2-vl"} {
			media := wire.Overheads(model).Media
			n := media(convo.NewMedia(mime, b))
			if n <= 0 || n > 50_000+len(b)*60 {
				t.Fatalf("%s, %s: %d", model, mime, n)
			}
			if again := media(convo.NewMedia(mime, b)); again != n {
				t.Fatalf("%s, %s: %d, then %d", model, mime, n, again)
			}
			if bad := media(convo.Media{MIME: mime, Data: string(b)}); bad <= 0 {
				t.Fatalf("%s, %s: %d", model, mime, bad)
			}
		}
	})
}

// The tokens of a screenshot of 3 MB depend on its pixels and not on its bytes.
func ExampleOverheads() {
	screenshot := picture(1920, 1080, 3<<20)
	for _, model := range []string{"claude-haiku-4-5", "claude-opus-5", "gpt-4o", "gpt-5.6-sol", "gemini-2.5-pro", "gemini-3-pro"} {
		fmt.Println(model, wire.Overheads(model).Media(screenshot))
	}

	o := wire.Overheads("gpt-4o")
	o.Media = func(convo.Media) int { return 85 } // images at low detail
	h, _ := convo.New(&convo.Options{Overheads: o})
	h.Append(convo.User("", screenshot))
	fmt.Println(h.Tokens().Tokens)
	// Output:
	// claude-haiku-4-5 1560
	// claude-opus-5 2691
	// gpt-4o 1105
	// gpt-5.6-sol 2448
	// gemini-2.5-pro 1548
	// gemini-3-pro 1120
	// 89
}
