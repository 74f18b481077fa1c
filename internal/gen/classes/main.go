// Command classes writes the table of character classes that package bpe
// embeds. It is made from the Unicode Character Database.
//
//	go -C internal/gen run ./classes
//
// Package unicode is not used, so that counts do not change with the version of
// Go. The output is a two-stage table: first the block number for each 128 code
// points, one byte each, then the blocks, one byte for each code point.
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

// ranges holds the general categories and the white space of Unicode 16.0.0. The
// head of the file describes its format and source.
//
//go:embed unicode16.txt
var ranges []byte

// flags has the bits of each category. They are those of type class in package
// bpe.
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

// build returns the contents of the output file.
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
			return nil, fmt.Errorf("more than 256 different blocks, which one byte cannot number")
		}
		index = append(index, byte(n))
	}
	return append(index, blocks...), nil
}

// parse reads lines such as "0041..005A Lu" and returns the flags of each code
// point. "#" begins a comment.
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
			return nil, fmt.Errorf("%q is not a range of code points with a known category", line)
		}
		for r := from; r <= to; r++ {
			classes[r] |= flags[category]
		}
	}
	return classes, lines.Err()
}
