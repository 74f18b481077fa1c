package inspect_test

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// luminance returns the relative luminance of a color such as #0969da, as WCAG defines it.
func luminance(t *testing.T, color string) float64 {
	t.Helper()
	digits := strings.TrimPrefix(color, "#")
	if len(digits) == 3 {
		digits = string([]byte{digits[0], digits[0], digits[1], digits[1], digits[2], digits[2]})
	}
	rgb, err := strconv.ParseUint(digits, 16, 32)
	require.NoError(t, err, color)
	channel := func(shift int) float64 {
		c := float64(rgb>>shift&0xff) / 255
		if c <= 0.04045 {
			return c / 12.92
		}
		return math.Pow((c+0.055)/1.055, 2.4)
	}
	return 0.2126*channel(16) + 0.7152*channel(8) + 0.0722*channel(0)
}

// Text has a contrast of at least 4.5 to what it stands on, and each kind one of 3, in light
// and dark. What is free and the reserve are light on purpose: the bar has a line around it.
func TestStyle_Contrast(t *testing.T) {
	css, err := os.ReadFile("style.css")
	require.NoError(t, err)
	palettes := regexp.MustCompile(`:root\{([^}]*)\}`).FindAllStringSubmatch(string(css), -1)
	require.Len(t, palettes, 2)
	for i, palette := range palettes {
		color := map[string]float64{}
		for _, m := range regexp.MustCompile(`--([a-z]+):(#[0-9a-f]+)`).FindAllStringSubmatch(palette[1], -1) {
			color[m[1]] = luminance(t, m[2])
		}
		require.Len(t, color, 20)
		for name, c := range color {
			least := 3.0
			switch name {
			case "bg", "card", "line", "free", "reserve":
				continue
			case "fg", "faint", "link", "bad":
				least = 4.5
			}
			for _, ground := range []string{"bg", "card"} {
				a, b := max(c, color[ground]), min(c, color[ground])
				assert.GreaterOrEqual(t, (a+0.05)/(b+0.05), least, "%s on %s in palette %d", name, ground, i)
			}
		}
	}
}
