// Command vocab writes the vocabularies that package bpe embeds, from the
// public rank files.
//
//	go -C internal/gen run ./vocab
//
// A rank file lists tokens as bytes, in the order in which they are merged. A
// token of more than one byte always comes from the same two earlier ones, so
// their ids say all there is to say about it. The file written holds, all
// numbers little-endian:
//
//	4 bytes    how many tokens
//	256 bytes  the byte that each of the tokens 0 to 255 is
//	bits       for each other token the ids of its two parts, each as wide as
//	           the highest id that it may have, low bits first
//	8 bytes    zero, so that a reader may load whole words
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

// vocabularies are the public rank files, with the hashes that OpenAI's
// tiktoken states for them.
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

// build returns the file for one vocabulary.
func build(ranks, sum string) ([]byte, error) {
	data, err := assets.Assets.ReadFile(ranks)
	if err != nil {
		return nil, err
	}
	if got := sha256.Sum256(data); hex.EncodeToString(got[:]) != sum {
		return nil, fmt.Errorf("sha256 is %x, want %s", got, sum)
	}
	tokens, err := parse(data)
	if err != nil {
		return nil, err
	}
	return pack(tokens)
}

// parse reads a rank file: lines of a token in base64 and its rank.
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

// pack writes tokens, whose index is their rank, as their parts.
func pack(tokens []string) ([]byte, error) {
	ranks := make(map[string]int, len(tokens))
	for id, token := range tokens {
		ranks[token] = id
	}
	if len(ranks) != len(tokens) || len(tokens) < 256 {
		return nil, fmt.Errorf("%d tokens, %d of them distinct", len(tokens), len(ranks))
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
			return nil, fmt.Errorf("token %d, %q, is never reached by merging", id, token)
		}
		width := bits.Len(uint(id - 1))
		w.write(left, width)
		w.write(right, width)
	}
	return append(append(out, w.bytes()...), make([]byte, 8)...), nil
}

// split returns the ids of the two tokens whose merge makes token: it merges
// the bytes of token as an encoder does, lowest rank first, leftmost first,
// until two are left.
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

// A bitWriter packs numbers, low bits first.
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
