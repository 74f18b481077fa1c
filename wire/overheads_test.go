package wire_test

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// picture returns a PNG of a width and height, with some bytes after its
// header.
func picture(w, h uint32, bytes int) convo.Media {
	b := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
	b = binary.BigEndian.AppendUint32(b, w)
	b = binary.BigEndian.AppendUint32(b, h)
	return convo.NewMedia("image/png", append(b, make([]byte, bytes)...))
}

// The examples in the documentation of the providers.
func TestOverheads_MatchTheDocumentedImages(t *testing.T) {
	for _, tt := range []struct {
		model  string
		w, h   uint32
		tokens int
	}{
		// OpenAI, Images and vision.
		{"gpt-4o", 1024, 1024, 765},
		{"gpt-4o", 2048, 4096, 1105},
		{"gpt-4.1-mini", 1024, 1024, 1659},        // 1,024 patches at 1.62
		{"gpt-4.1-mini", 1800, 2400, 2353},        // 1,452 patches
		{"o4-mini", 1800, 2400, 2498},             // 1,452 patches at 1.72
		{"gpt-5-mini-2025-08-07", 64, 64, 5},      // 4 patches at 1.2
		{"gpt-5.6-sol", 4000, 2500, 11850},        // 125 x 79 patches, below the limit
		{"openai/gpt-5.6-terra", 100, 100, 20},    // 16 patches
		{"gpt-5.4", 2048, 2048, 3000},             // 2,500 patches
		{"gpt-5.5", 6000, 6000, 12000},            // 10,000 patches
		{"gpt-5", 1024, 1024, 630},                // 4 tiles
		{"o1-2024-12-17", 128, 64, 225},           // 1 tile
		{"gpt-4o-mini-2024-07-18", 128, 64, 8500}, // 1 tile
		{"computer-use-preview", 512, 512, 194},
		// Anthropic, Vision.
		{"claude-haiku-4-5", 200, 200, 64},
		{"claude-opus-4-8", 200, 200, 64},
		{"claude-haiku-4-5", 1000, 1000, 1296},
		{"claude-opus-4-8", 1000, 1000, 1296},
		{"claude-sonnet-4-20250514", 1092, 1092, 1521},
		{"claude-opus-4-6", 1920, 1080, 1560},
		{"claude-opus-4-7", 1920, 1080, 2691},
		{"claude-3-5-sonnet-20241022", 2000, 1500, 1564},
		{"claude-sonnet-5", 2000, 1500, 3888},
		{"claude-3-haiku-20240307", 3840, 2160, 1560},
		{"claude-fable-5", 3840, 2160, 4784},
		{"claude-opus-4-1", 1075, 1520, 33 * 47}, // an A4 page, as 924 x 1307
		{"claude-opus-5", 1928, 1928, 4761},
		// Google, Image understanding and Media resolution.
		{"gemini-2.5-flash", 384, 384, 258},
		{"gemini-2.5-flash", 960, 540, 6 * 258},
		{"models/gemini-2.0-flash", 1000, 1000, 4 * 258},
		{"gemini-3-pro-preview", 960, 540, 1120},
		{"gemini-3.8-flash", 10, 10, 1120},
		// mistral-common, Images: a token for each patch and for the end of
		// each row.
		{"pixtral-12b-2409", 224, 224, 14 * 15},
		{"mistral-small-2506", 1540, 1540, 55 * 56},
		{"mistral-medium-2508", 3080, 1540, 28 * 56},
		// Qwen2-VL: a token for 28 x 28 pixels.
		{"Qwen/Qwen2.5-VL-72B-Instruct", 224, 448, 8*16 + 2},
		{"qwen3-vl-plus", 320, 640, 10*20 + 2},
		{"qwen3-vl-plus", 640, 15, 20*1 + 2},
		{"qwen3-vl-plus", 15, 640, 20*1 + 2},
		{"deepseek-v4-flash-vision-exp", 4000, 4000, 384},
	} {
		o := wire.Overheads(tt.model)
		if assert.NotNil(t, o.Media, tt.model) {
			assert.Equal(t, tt.tokens, o.Media(picture(tt.w, tt.h, 0)), "%s, %d x %d", tt.model, tt.w, tt.h)
		}
	}
}

// An image whose size is not known counts as one of 2000 x 1500 pixels.
func TestOverheads_ImageOfUnknownSize(t *testing.T) {
	for _, model := range []string{"gpt-4o", "claude-sonnet-5", "gemini-2.5-pro", "qwen3-vl-plus"} {
		media := wire.Overheads(model).Media
		assert.Equal(t, media(picture(2000, 1500, 0)), media(convo.Media{MIME: "image/png", URL: "https://x/a.png"}), model)
		assert.Equal(t, media(picture(2000, 1500, 0)), media(convo.NewMedia("image/png", []byte("x"))), model)
	}
}

func TestOverheads_RecognizeModelNames(t *testing.T) {
	weigh := func(model string) int {
		o := wire.Overheads(model)
		if o.Media == nil {
			return 0
		}
		return o.Media(picture(1600, 1200, 0))
	}
	for _, tt := range []struct{ like, model string }{
		{"claude-sonnet-4-5", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"},
		{"claude-sonnet-4-5", "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0"},
		{"claude-opus-4-8", "anthropic/claude-opus-4.8"},
		{"claude-opus-4-8", "vertex/claude-opus-4-8@20260501"},
		{"claude-opus-4-1", "claude-opus-4-1-20250805"},
		{"claude-3-haiku", "Claude-3-Haiku"},
		{"gpt-4o", "chatgpt-4o-latest"},
		{"gpt-4o-mini", "ft:gpt-4o-mini-2024-07-18:acme::abc123"},
		{"gpt-4o", "azure/my-gpt-4o"},
		{"gpt-4", "gpt-4-1106-vision-preview"},
		{"gpt-5", "gpt-5-2025-08-07"},
		{"gpt-5", "gpt-5-chat-latest"},
		{"gpt-5.2", "gpt-5.1-codex-max"},
		{"gpt-5.6", "gpt-6-luna"},
		{"gpt-5.6", "gpt-7"},
		{"gemini-2.5-pro", "publishers/google/models/gemini-2.5-pro"},
		{"gemini-3-pro", "gemini-flash-latest"},
		{"mistral-large-2512", "mistral.ministral-3-8b-instruct"},
		{"pixtral-large", "mistralai/pixtral-large-2411"},
		{"", "my-own-model"},
		{"", "grok-4"},
		{"", "amazon.nova-pro-v1:0"},
		{"", "o17"},
		{"", strings.Repeat("-", 100_000) + "gpt-4o"},
	} {
		assert.Equal(t, weigh(tt.like), weigh(tt.model), tt.model)
	}
	// Similar names have different rules.
	assert.Len(t, map[int]bool{
		weigh("gpt-4o"): true, weigh("gpt-4o-mini"): true, weigh("gpt-4.1-mini"): true, weigh("gpt-4.1-nano"): true,
		weigh("gpt-5"): true, weigh("gpt-5.2"): true, weigh("gpt-5-nano"): true, weigh("gpt-5.4"): true, weigh("o1"): true, weigh("o4-mini"): true,
		weigh("claude-opus-4-6"): true, weigh("claude-opus-4-7"): true, weigh("gemini-2.5-pro"): true, weigh("gemini-3-pro"): true,
	}, 14)
}

func TestOverheads_UnknownModelsHaveTheDefaults(t *testing.T) {
	assert.Equal(t, convo.Overheads{}, wire.Overheads("my-own-model"))
	assert.Equal(t, convo.Overheads{}, wire.Overheads(""))
	assert.Equal(t, 4, wire.Overheads("gpt-4o").Message)
	assert.Equal(t, 5, wire.Overheads("meta-llama/Llama-3.3-70B-Instruct").Message)
	assert.Zero(t, wire.Overheads("claude-opus-5").Message)
	assert.Zero(t, wire.Overheads("claude-opus-5").Call)
}

// Media of any size and format count at least one token, and a bounded number
// for their bytes.
func TestOverheads_StayWithinBoundsForAnyMedia(t *testing.T) {
	for _, model := range []string{
		"gpt-4o", "gpt-4o-mini", "gpt-4.1-nano", "gpt-5", "gpt-5.4", "gpt-5.6", "o4-mini", "claude-haiku-4-5", "claude-opus-5",
		"gemini-2.5-pro", "gemini-3-pro", "mistral-large", "pixtral-12b", "qwen2-vl", "qwen3-vl", "llama-4", "deepseek-chat", "gemma-3", "gpt-3.5-turbo",
	} {
		media := wire.Overheads(model).Media
		last := 0
		for _, side := range []uint32{1, 2, 27, 28, 29, 31, 32, 33, 255, 384, 385, 512, 768, 1000, 1568, 2048, 3000, 6000, 65_535, 65_536, 1 << 24, math.MaxInt32} {
			square := media(picture(side, side, 0))
			for _, m := range []convo.Media{picture(side, 1, 0), picture(1, side, 0), picture(side, math.MaxInt32, 0)} {
				n := media(m)
				assert.Positive(t, n, "%s, %d", model, side)
				assert.LessOrEqual(t, n, 50_000, "%s, %d", model, side)
			}
			assert.LessOrEqual(t, square, 50_000, "%s, %d", model, side)
			assert.GreaterOrEqual(t, float64(square), 0.9*float64(last), "%s, %d", model, side)
			last = square
		}
		large := media(picture(4000, 3000, 3<<20))
		assert.Equal(t, large, media(picture(4000, 3000, 0)), "%s: not by its bytes", model)
		for _, m := range []convo.Media{
			{}, {MIME: "image/png"}, {MIME: "image/svg+xml", Data: "PHN2Zz4="}, {MIME: "image/jpeg", URL: "https://x/y.jpg"},
			picture(0, 0, 0), picture(math.MaxUint32, 5, 0), {MIME: "image/webp", Data: "!!!"}, {MIME: "application/pdf", Data: "AAAA"}, {MIME: "application/pdf", URL: "s3://b/k"},
			{MIME: "audio/mpeg", Data: "AAAA"}, {MIME: "audio/mpeg"}, {MIME: "video/mp4", URL: "gs://b/k"}, {MIME: "text/plain", Data: "AAAA"}, {MIME: "text/plain"}, {MIME: "x"},
		} {
			n := media(m)
			assert.Positive(t, n, "%s, %+v", model, m)
			assert.LessOrEqual(t, n, 50_000, "%s, %+v", model, m)
		}
		assert.Equal(t, media(convo.Media{MIME: "image/png"}), media(convo.Media{MIME: "IMAGE/PNG; a=b"}))
	}
}

func TestOverheads_AllocateNothing(t *testing.T) {
	media := wire.Overheads("claude-opus-5").Media
	image, pdf := picture(4000, 3000, 3<<20), convo.NewMedia("application/pdf", make([]byte, 1<<20))
	assert.Zero(t, testing.AllocsPerRun(20, func() { media(image) }))
	assert.Zero(t, testing.AllocsPerRun(2, func() { media(pdf) }))
}

// A History counts an image by the rule, and a field of the rules can be
// changed.
func TestOverheads_CanBeChangedForAHistory(t *testing.T) {
	weight := func(o convo.Overheads) int {
		h, err := convo.New(&convo.Options{Overheads: o})
		require.NoError(t, err)
		mustAppend(t, h, convo.User("", picture(1920, 1080, 3<<20)))
		return h.Tokens().Tokens
	}
	o := wire.Overheads("claude-opus-4-6")
	assert.Equal(t, 1560+4, weight(o))
	o.Message = 100
	assert.Equal(t, 1560+100, weight(o))
	o.Media = func(convo.Media) int { return 85 }
	assert.Equal(t, 85+100, weight(o))
}
