package main

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/bench/internal/plot"
)

// Each picture of the documentation is what is drawn from its results, and all are listed.
func TestPictures(t *testing.T) {
	t.Chdir("..")
	var images []string
	for _, p := range pictures {
		if p.draw == nil {
			continue
		}
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

// README.md and results.md quote what was measured.
func TestQuotes(t *testing.T) {
	t.Chdir("..")
	results, err := os.ReadFile(quoted.results())
	require.NoError(t, err)
	all, err := quoted.quotes(results)
	require.NoError(t, err)
	for _, q := range all {
		page, err := os.ReadFile(q.Page)
		require.NoError(t, err)
		assert.Equal(t, []string{q.Text}, q.At.FindAllString(string(page), -1), "%s: run go run ./pictures readme", q.Page)
	}
}

// Each table of results.md is on a page, with the same figures.
func TestResults_AreQuoted(t *testing.T) {
	results, err := os.ReadFile("../results.md")
	require.NoError(t, err)
	var pages []byte
	for _, page := range []string{"../../README.md", "../../docs/counting.md"} {
		data, err := os.ReadFile(page)
		require.NoError(t, err)
		pages = append(pages, data...)
	}
	tables := regexp.MustCompile(`(?m)(?:^\|.*\n)+`).FindAll(results, -1)
	require.Len(t, tables, 3)
	for _, table := range tables {
		assert.Contains(t, string(pages), string(table))
	}
}

// checkImage checks that an SVG is small, well-formed, opaque, made for light and dark, has
// whole numbers as coordinates, and has texts that can be read on a phone.
func checkImage(t *testing.T, image []byte) {
	t.Helper()
	assert.Less(t, len(image), 16<<10)
	assert.Contains(t, string(image), "prefers-color-scheme:dark")
	assert.Regexp(t, `<rect class="bg" width="\d+" height="\d+"/>`, string(image))
	checkTexts(t, image)
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

// checkTexts checks that no text of an SVG is smaller than 9 pixels where the picture is 360
// wide, that all are inside, and that none covers another. The widths are those of wide fonts.
func checkTexts(t *testing.T, image []byte) {
	t.Helper()
	var svg struct {
		ViewBox string `xml:"viewBox,attr"`
		Size    int    `xml:"font-size,attr"`
		Texts   []struct {
			X      int    `xml:"x,attr"`
			Y      int    `xml:"y,attr"`
			Size   int    `xml:"font-size,attr"`
			Weight int    `xml:"font-weight,attr"`
			Anchor string `xml:"text-anchor,attr"`
			Said   string `xml:",chardata"`
		} `xml:"text"`
	}
	require.NoError(t, xml.Unmarshal(image, &svg))
	var all plot.Box
	_, err := fmt.Sscanf(svg.ViewBox, "%d %d %d %d", &all.Left, &all.Top, &all.Right, &all.Bottom)
	require.NoError(t, err)
	require.NotEmpty(t, svg.Texts)
	var boxes []plot.Box
	for _, text := range svg.Texts {
		size := cmp.Or(text.Size, svg.Size)
		assert.GreaterOrEqual(t, size*360/all.Right, 9, "%q is too small", text.Said)
		per := 54 // hundredths of the size, for a character
		if text.Weight > 0 {
			per = 60
		}
		wide := utf8.RuneCountInString(text.Said) * size * per / 100
		left := text.X
		switch plot.Anchor(text.Anchor) {
		case plot.Middle:
			left -= wide / 2
		case plot.End:
			left -= wide
		}
		box := plot.Box{Left: left, Top: text.Y - size*3/4, Right: left + wide, Bottom: text.Y}
		assert.True(t, box.Inside(all, 0), "%q is not inside", text.Said)
		for i, o := range boxes {
			assert.False(t, box.Covers(o), "%q covers %q", text.Said, svg.Texts[i].Said)
		}
		boxes = append(boxes, box)
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
