// Package udhr holds the first articles of the Universal Declaration of Human
// Rights in 57 languages. Token estimates are tested on these texts because they
// were not fitted to them. NOTICE states the source and the licence of the
// texts.
package udhr

import (
	"embed"
	"iter"
	"strings"
)

//go:embed text
var files embed.FS

// Texts yields the code of each language and its text, in the order of the codes.
// A code is that of ISO 639-3, or zh-hans or zh-hant for Chinese.
func Texts() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		entries, err := files.ReadDir("text")
		if err != nil {
			return // cannot happen: the directory is embedded
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

// Script returns the script of a language, or the group of scripts that it
// belongs to in the tables of bench/estimate.
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
