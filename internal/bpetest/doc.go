// Package bpetest is shared by the tests of packages bpe and tiktokengo. It has
// a slow and simple tokenizer, texts of many kinds, and a comparison of an
// encoder with an oracle on these texts.
//
// The slow tokenizer shares no code with package bpe. It reads that package's
// vocabulary files with a reader of its own, and checks the vocabulary against
// the published hash. It cuts a text by interpreting the published pattern, with
// the character classes that OpenAI's own code was found to have (testdata of
// package bpe). It merges with the plain loop of the definition.
//
// The files are read from ../bpe, so only tests in directories next to bpe can
// use this package.
package bpetest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// bpeFile returns the path of a file of package bpe.
func bpeFile(name string) string { return filepath.Join("..", "bpe", filepath.FromSlash(name)) }

// Classes returns the class that each code point has for OpenAI's tokenizer: a
// letter of testdata/classes.txt, or 0 if it has none. internal/gen/golden made
// that file.
var Classes = sync.OnceValues(func() ([]byte, error) {
	data, err := os.ReadFile(bpeFile("testdata/classes.txt"))
	if err != nil {
		return nil, err
	}
	classes := make([]byte, unicode.MaxRune+1)
	for line := range bytes.Lines(data) {
		fields := strings.Fields(string(line))
		if fields[0] == "#" {
			continue
		}
		if len(fields) != 3 {
			return nil, fmt.Errorf("classes.txt: %q is not a class, a code point and a number", line)
		}
		first, err := strconv.ParseInt(fields[1], 16, 32)
		if err != nil {
			return nil, err
		}
		n, err := strconv.Atoi(fields[2])
		if err != nil {
			return nil, err
		}
		for i := range n {
			classes[int(first)+i] = fields[0][0]
		}
	}
	return classes, nil
})
