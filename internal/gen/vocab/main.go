// Command vocab writes the vocabularies that package bpe embeds. It makes them
// from the rank files that OpenAI published.
//
//	go -C internal/gen run ./vocab
//
// A rank file lists the bytes of all tokens in the order of their ids. A token of
// more than one byte is always merged from the same two tokens with lower ids, so
// those two ids are enough to define it. A vocabulary file holds, with all numbers
// in little-endian order:
//
//	4 bytes    the number of tokens
//	256 bytes  the byte of each of the tokens 0 to 255
//	bits       for each further token the ids of its two parts, low bits first,
//	           each with just enough bits for the highest id that is possible
//	8 bytes    zeros, so that a reader can always load whole words
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"flag"
	"fmt"
	"log"
	"math/bits"
	"os"
	"path/filepath"
	"strconv"

	"github.com/pkoukk/tiktoken-go-loader/assets"
)

// vocabularies lists the rank files, the hashes that OpenAI's tiktoken states for
// them, and the files to write.
var vocabularies = []struct{ ranks, sha256, file string }{
	{"cl100k_base.tiktoken", "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7", "cl100k.bin"},
	{"o200k_base.tiktoken", "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d", "o200k.bin"},
}

func main() {
	out := flag.String("out", filepath.Join("..", "bpe"), "directory to write to")
	flag.Parse()
	for _, v := range vocabularies {
		data, err := build(v.ranks, v.sha256)
		if err == nil {
			err = os.WriteFile(filepath.Join(*out, v.file), data, 0o644)
		}
		if err != nil {
			log.Fatalf("vocab: %s: %v", v.ranks, err)
		}
	}
}

// build returns the vocabulary file for a rank file, whose SHA-256 must be sum.
func build(ranks, sum string) ([]byte, error) {
	data, err := assets.Assets.ReadFile(ranks)
	if err != nil {
		return nil, err
	}
	if got := sha256.Sum256(data); hex.EncodeToString(got[:]) != sum {
		return nil, fmt.Errorf("sha256 of the rank file is %x, want %s", got, sum)
	}
	tokens, err := parse(data)
	if err != nil {
		return nil, err
	}
	return pack(tokens)
}

// parse reads a rank file. Each line holds a token in base64 and its rank.
func parse(data []byte) ([]string, error) {
	var tokens []string
	for line := range bytes.Lines(data) {
		encoded, rank, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		token, err := base64.StdEncoding.DecodeString(string(encoded))
		if err != nil {
			return nil, err
		}
		if n, err := strconv.Atoi(string(rank)); err != nil || n != len(tokens) {
			return nil, fmt.Errorf("rank %q, want %d", rank, len(tokens))
		}
		tokens = append(tokens, string(token))
	}
	return tokens, nil
}

// pack returns the vocabulary file for tokens, whose index is their rank.
func pack(tokens []string) ([]byte, error) {
	ranks := make(map[string]int, len(tokens))
	for id, token := range tokens {
		ranks[token] = id
	}
	if len(ranks) != len(tokens) || len(tokens) < 256 {
		return nil, fmt.Errorf("%d tokens, %d of them distinct, want 256 or more, all distinct", len(tokens), len(ranks))
	}
	out := binary.LittleEndian.AppendUint32(nil, uint32(len(tokens)))
	for id, token := range tokens[:256] {
		if len(token) != 1 {
			return nil, fmt.Errorf("token %d has %d bytes, want 1", id, len(token))
		}
		out = append(out, token[0])
	}
	var w bitWriter
	for id, token := range tokens[256:] {
		id += 256
		left, right, ok := split(token, ranks)
		if !ok {
			return nil, fmt.Errorf("token %d, %q, is never made by merging", id, token)
		}
		width := bits.Len(uint(id - 1))
		w.write(left, width)
		w.write(right, width)
	}
	return append(append(out, w.bytes()...), make([]byte, 8)...), nil
}

// split returns the ids of the two tokens that merge to token. It merges the
// bytes of token as an encoder does, the pair with the lowest rank first and the
// leftmost of equals first, until two parts are left.
func split(token string, ranks map[string]int) (left, right int, ok bool) {
	var parts []string
	for i := range len(token) {
		parts = append(parts, token[i:i+1])
	}
	limit := ranks[token]
	for len(parts) > 2 {
		best, at := limit, -1
		for i := range len(parts) - 1 {
			if rank, ok := ranks[parts[i]+parts[i+1]]; ok && rank < best {
				best, at = rank, i
			}
		}
		if at < 0 {
			return 0, 0, false
		}
		parts[at] += parts[at+1]
		parts = append(parts[:at+1], parts[at+2:]...)
	}
	left, right = ranks[parts[0]], ranks[parts[1]]
	return left, right, left < limit && right < limit
}

// A bitWriter packs numbers of any width into bytes, low bits first.
type bitWriter struct {
	out  []byte
	acc  uint64
	held int
}

func (w *bitWriter) write(n, width int) {
	w.acc |= uint64(n) << w.held
	for w.held += width; w.held >= 8; w.held -= 8 {
		w.out = append(w.out, byte(w.acc))
		w.acc >>= 8
	}
}

func (w *bitWriter) bytes() []byte {
	if w.held > 0 {
		return append(w.out, byte(w.acc))
	}
	return w.out
}
