package main

import (
	"bytes"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each picture of the documentation is what is drawn from its results, and all are listed.
func TestPictures(t *testing.T) {
	t.Chdir("..")
	var images []string
	for _, p := range pictures {
		images = append(images, p.image())
		t.Run(p.name, func(t *testing.T) {
			results, err := os.ReadFile(p.results())
			require.NoError(t, err)
			drawn, err := p.draw(results)
			require.NoError(t, err)
			kept, err := os.ReadFile(p.image())
			require.NoError(t, err)
			assert.Equal(t, string(kept), string(drawn), "run go run ./pictures %s", p.name)
			checkImage(t, drawn)
		})
	}
	all, err := filepath.Glob("../docs/img/*")
	require.NoError(t, err)
	assert.ElementsMatch(t, images, all)
}

// checkImage checks that an SVG is small, well-formed, opaque, made for light and dark, and has
// whole numbers as coordinates.
func checkImage(t *testing.T, image []byte) {
	t.Helper()
	assert.Less(t, len(image), 16<<10)
	assert.Contains(t, string(image), "prefers-color-scheme:dark")
	assert.Regexp(t, `<rect class="bg" width="\d+" height="\d+"/>`, string(image))
	fraction := regexp.MustCompile(`\d\.\d`)
	for d := xml.NewDecoder(bytes.NewReader(image)); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		if e, ok := token.(xml.StartElement); ok {
			for _, a := range e.Attr {
				switch a.Name.Local {
				case "x", "y", "cx", "cy", "r", "d", "width", "height", "viewBox":
					assert.NotRegexp(t, fraction, a.Value, "%s of %s", a.Name.Local, e.Name.Local)
				}
			}
		}
	}
}

// The results of the pictures that take a moment to measure are what is measured. The others
// take minutes, or depend on the machine.
func TestPictures_Measured(t *testing.T) {
	t.Chdir("..")
	for _, p := range pictures {
		if p.name != "compaction" && p.name != "life" {
			continue
		}
		kept, err := os.ReadFile(p.results())
		require.NoError(t, err)
		all, err := p.measure()
		require.NoError(t, err)
		data, err := format(all)
		require.NoError(t, err)
		assert.Equal(t, string(kept), string(data), "run go run ./pictures -measure %s", p.name)
	}
}

func TestRun_Unknown(t *testing.T) {
	assert.ErrorContains(t, run(false, []string{"none"}), `no picture is named "none"`)
}
