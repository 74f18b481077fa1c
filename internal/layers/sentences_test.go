package layers_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// mostWords is how many words a sentence of a comment may have.
const mostWords = 35

// Sentences in comments are short enough to be read once. The bounds are what there is now: lower
// them when sentences get shorter.
func TestSentences(t *testing.T) {
	for _, tt := range []struct {
		folder string
		most   int
	}{{"", 0}, {"wire", 0}} {
		faults := loadPackage(t, tt.folder).longSentences()
		if !assert.LessOrEqual(t, len(faults), tt.most, "package in folder %q", tt.folder) {
			t.Log(strings.Join(faults, "\n"))
		}
	}
}

// longSentences returns the sentences of comments with more than mostWords words.
func (l *loaded) longSentences() (faults []string) {
	for _, file := range l.ast {
		for _, comment := range file.Comments {
			for _, s := range sentencesOf(comment.Text()) {
				if n := len(strings.Fields(s)); n > mostWords {
					faults = append(faults, fmt.Sprintf("%s: %d words: %s", l.fset.Position(comment.Pos()), n, s))
				}
			}
		}
	}
	return faults
}

var (
	newItem     = regexp.MustCompile(`\n+ *(?:\n|[-*] |[0-9]+\. |#+ )`)
	sentenceEnd = regexp.MustCompile(`[.!?]["')]?(?:\s|$)`)
)

// sentencesOf returns the sentences of a comment, without code and tables.
func sentencesOf(text string) (sentences []string) {
	var lines []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "    ") && !strings.HasPrefix(strings.TrimSpace(line), "-") {
			line = "\n"
		}
		lines = append(lines, line)
	}
	for _, paragraph := range newItem.Split(strings.Join(lines, ""), -1) {
		sentences = append(sentences, sentenceEnd.Split(paragraph, -1)...)
	}
	return sentences
}

func TestSentences_AreFound(t *testing.T) {
	long := strings.Repeat("word ", mostWords+1)
	checkSources(t, map[string]string{}, "a.go", []checkedSource{
		{"short", "// It is. So is this: a word.\nvar x int", ""},
		{"long", "// " + long + ".\nvar x int", "36 words"},
		{"over two lines", "// " + long[:50] + "\n// " + long[50:] + ".\nvar x int", "36 words"},
		{"two", "// " + long[:50] + ". " + long[50:] + ".\nvar x int", ""},
		{"a list", "// Some:\n//   - " + long[:100] + "\n//   - " + long[100:] + "\nvar x int", ""},
		{"code", "// So:\n//\n//\t" + long + "\nvar x int", ""},
		{"in a function", "func f() {\n\t_ = 0 // " + long + "\n}", "36 words"},
	}, (*loaded).longSentences)
}
