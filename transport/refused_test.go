package transport_test

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/transport"
)

// pictureOf returns an image in base64.
func pictureOf(t *testing.T, width int) string {
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, width, 1))))
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// picture appends a message with images.
func (p *program) pictures(text string, data ...string) {
	var content []any
	for _, d := range data {
		switch p.format {
		case provider.FormatAnthropic:
			content = append(content, obj{"type": "image", "source": obj{"type": "base64", "media_type": "image/png", "data": d}})
		case provider.FormatOpenAIChat:
			content = append(content, obj{"type": "image_url", "image_url": obj{"url": "data:image/png;base64," + d}})
		case provider.FormatOpenAIResponses:
			content = append(content, obj{"type": "input_image", "image_url": "data:image/png;base64," + d})
		}
	}
	kind := "text"
	if p.format == provider.FormatOpenAIResponses {
		kind = "input_text"
	}
	p.list = append(p.list, obj{"role": "user", "content": append(content, obj{"type": kind, "text": text})})
}

// An image that the provider refuses for good is left out of this and of each later request, in
// which the program still sends it.
func TestTransport_RefusedImage(t *testing.T) {
	for _, format := range formats[:3] {
		for _, stream := range []bool{false, true} {
			t.Run(format, func(t *testing.T) {
				s, url := serve(t, 100_000, 30)
				tr := small(t, transport.Options{})
				p := newProgram(t, &http.Client{Transport: tr}, url, format)
				p.model, p.stream = "claude-opus-5", stream
				good, bad := pictureOf(t, 20), base64.StdEncoding.EncodeToString([]byte("this is no image"))
				if format == provider.FormatAnthropic {
					bad = pictureOf(t, 9000) // too large for it
				}
				p.run(3, nil)
				p.pictures("what is in these?", good, bad)
				require.Equal(t, 17, p.run(17, nil))
				require.Len(t, s.Refused(), 1)
				all := s.Requests()
				last := string(all[len(all)-1].Body)
				require.NotContains(t, last, bad)
				require.Contains(t, last, good)
				require.Contains(t, last, "what is in these?")
				require.Len(t, tr.Conversations(), 1)
			})
		}
	}
}

// What the provider says is kept up to a bound.
func TestTransport_LongRefusal(t *testing.T) {
	u := &upstream{status: 400, kind: "application/json", answer: []byte(`{"error":{"message":"` + strings.Repeat("日", 100_000) + `"}}`)}
	tr := small(t, transport.Options{Base: u})
	p := newProgram(t, nil, "", provider.FormatOpenAIChat)
	u.exchange(t, tr, p.path(), p.body())
	said := tr.Conversations()[0].Last.Error
	require.NotEmpty(t, said)
	require.LessOrEqual(t, len(said), 4<<10)
	require.True(t, utf8.ValidString(said))
}
