// Command classes writes the table of character classes that package bpe
// embeds, from ranges of the Unicode Character Database.
//
//	go -C internal/gen run ./classes
//
// The table does not come from package unicode, so that counts do not change
// with the version of Go. The file written is a two-stage table: for each 128
// code points the number of their block, then the blocks, a byte a code point.
package main

import (
	"bufio"
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ranges are the general categories and the white space of Unicode 16.0.0:
// what Category_L.txt and so on would hold, see the head of the file.
//
//go:embed unicode16.txt
var ranges []byte

// flags are the bits of a category, as package bpe reads them: in \p{L}, in
// the front and in the back class of o200k's words, in \p{N}, in \s, in [\r\n].
var flags = map[string]byte{
	"Lu": letter | front,
	"Lt": letter | front,
	"Ll": letter | back,
	"Lm": letter | front | back,
	"Lo": letter | front | back,
	"M":  front | back,
	"N":  number,
	"Z":  space,
}

const (
	letter = 1 << iota
	front
	back
	number
	space
	newline
)

const blockSize = 128

func main() {
	out := flag.String("out", filepath.Join("..", "bpe", "classes.bin"), "file to write")
	flag.Parse()
	data, err := build()
	if err == nil {
		err = os.WriteFile(*out, data, 0o644)
	}
	if err != nil {
		log.Fatalf("classes: %v", err)
	}
}

// build returns the table.
func build() ([]byte, error) {
	classes, err := parse(ranges)
	if err != nil {
		return nil, err
	}
	classes['\n'] |= newline
	classes['\r'] |= newline

	var index, blocks []byte
	numbers := map[string]int{}
	for at := 0; at < len(classes); at += blockSize {
		block := classes[at : at+blockSize]
		n, known := numbers[string(block)]
		if !known {
			n = len(numbers)
			numbers[string(block)] = n
			blocks = append(blocks, block...)
		}
		if n > 0xFF {
			return nil, fmt.Errorf("more than 256 blocks")
		}
		index = append(index, byte(n))
	}
	return append(index, blocks...), nil
}

// parse reads lines such as "0041..005A Lu"; "#" begins a comment.
func parse(data []byte) ([]byte, error) {
	classes := make([]byte, utf8.MaxRune+1)
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		line, _, _ := strings.Cut(lines.Text(), "#")
		if strings.TrimSpace(line) == "" {
			continue
		}
		span, category, _ := strings.Cut(strings.TrimSpace(line), " ")
		first, last, isRange := strings.Cut(span, "..")
		if !isRange {
			last = first
		}
		from, err := strconv.ParseUint(first, 16, 32)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		to, err := strconv.ParseUint(last, 16, 32)
		if err != nil || from > to || to > utf8.MaxRune || flags[category] == 0 {
			return nil, fmt.Errorf("%q is not a range", line)
		}
		for r := from; r <= to; r++ {
			classes[r] |= flags[category]
		}
	}
	return classes, lines.Err()
}
