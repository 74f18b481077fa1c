package provider_test

import (
	"bufio"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/convotest/provider"
)

// recordings is the directory of recorded requests. They are owned by others and are not
// part of the repository; without them the test is skipped.
const recordings = "../../../shared/data/recorded"

// signature finds what a provider has signed, which no other can read.
var signature = regexp.MustCompile(`("encrypted_content"|"thoughtSignature"|"thought_signature"): ?"[^"]*"`)

// cutBlob finds the data of media, which was cut when it was recorded.
var cutBlob = regexp.MustCompile(`[A-Za-z0-9+/_-]+\.\.\.\[blob cut\]`)

// uncut returns data of the kind that a cut blob begins with.
func uncut(blob string) string {
	switch {
	case strings.HasPrefix(blob, "iVBOR"):
		return pngOf(1, 1)
	case strings.HasPrefix(blob, "/9j/"), strings.HasPrefix(blob, "_9j_"):
		return jpegOf(1, 1)
	case strings.HasPrefix(blob, "JVBER"):
		return pdfOf("")
	}
	return "AAAA"
}

// What a provider has accepted is accepted, with signatures of this one.
func TestRecorded(t *testing.T) {
	own := provider.New(provider.Options{})
	own.Script(provider.Answer{Blocks: []provider.Block{provider.Thinking("h")}})
	_, answer := post(t, own, "/v1/responses", `{"model":"m","input":"q","include":["reasoning.encrypted_content"]}`)
	mine := signature.FindString(answer)
	require.NotEmpty(t, mine)
	_, mine, _ = strings.Cut(mine, ":")
	for _, name := range []string{"anthropic", "openai_chat", "openai_responses", "gemini"} {
		t.Run(name, func(t *testing.T) {
			file, err := os.Open(filepath.Join(recordings, name+".jsonl"))
			if err != nil {
				t.Skipf("no recorded requests, which are not part of the repository: %v", err)
			}
			defer file.Close()
			lines := bufio.NewScanner(file)
			lines.Buffer(nil, 64<<20)
			accepted := 0
			for lines.Scan() {
				var r struct {
					ID, URL string
					Status  int
					Request json.RawMessage
				}
				require.NoError(t, json.Unmarshal(lines.Bytes(), &r))
				address, err := url.Parse(r.URL)
				require.NoError(t, err)
				if r.Status != 200 || strings.Contains(string(r.Request), `"previous_response_id"`) || strings.HasSuffix(address.Path, "/compact") {
					continue // this provider keeps no answers and compacts nothing
				}
				s := provider.New(provider.Options{})
				body := cutBlob.ReplaceAllStringFunc(string(r.Request), uncut)
				post(t, s, address.Path, signature.ReplaceAllString(body, "$1:"+mine))
				for _, refused := range s.Refused() {
					t.Errorf("%s: %s", r.ID, refused.Error)
				}
				accepted++
			}
			require.NoError(t, lines.Err())
			assert.Greater(t, accepted, 20)
		})
	}
}
