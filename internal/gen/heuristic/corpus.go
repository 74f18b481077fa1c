package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// A document is one piece of text. The file that it comes from decides whether
// it is held out, so no file is both fitted to and held out.
type document struct {
	class, text string
	held        bool
	key         uint64
}

// Limits, in bytes unless stated otherwise.
const (
	maxFit   = 3 << 20   // of a class, to fit to
	maxHeld  = 512 << 10 // of a class, held out
	maxPiece = 32 << 10  // of a document
	minPiece = 200       // of a document
	heldOf   = 5         // one file in heldOf is held out
)

// collect reads every source below dir and adds the synthetic text. The order of
// the documents depends only on the names and contents of the files.
func collect(dir string) ([]document, error) {
	var all []document
	for _, s := range allSources(dir) {
		docs, err := read(dir, s)
		if err != nil {
			return nil, err
		}
		all = append(all, docs...)
	}
	all = append(all, synthetic()...)
	return limit(all), nil
}

func allSources(dir string) []source {
	all := slices.Clone(code)
	for _, l := range prose {
		for code := range strings.FieldsSeq(l.codes) {
			for _, p := range places {
				path := strings.ReplaceAll(strings.ReplaceAll(p.dir, "*", code), "+", strings.ToLower(code))
				if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(path))); err == nil {
					all = append(all, source{l.class, path, p.exts, p.form})
				}
			}
			more, _ := filepath.Glob(filepath.Join(dir, "mediawiki/usr/share/mediawiki/extensions-core/*/i18n", code+".json"))
			for _, path := range more {
				rel, _ := filepath.Rel(dir, path)
				all = append(all, source{l.class, filepath.ToSlash(rel), "json", messages})
			}
		}
	}
	return all
}

func read(dir string, s source) ([]document, error) {
	root := filepath.Join(dir, filepath.FromSlash(s.dir))
	var docs []document
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			fmt.Fprintf(os.Stderr, "directory %s of class %s does not exist\n", s.dir, s.class)
			return nil
		case err != nil:
			return err
		case !d.Type().IsRegular() || !named(d.Name(), s.exts):
			return nil
		}
		info, err := d.Info()
		if err != nil || info.Size() > 8<<20 {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text := clean(raw, s.form)
		if text == "" {
			return nil
		}
		rel, _ := filepath.Rel(dir, path)
		docs = append(docs, pieces(s.class, filepath.ToSlash(rel), text)...)
		return nil
	})
	return docs, err
}

func named(name, exts string) bool {
	if exts == "" {
		return filepath.Ext(name) == ""
	}
	for e := range strings.FieldsSeq(exts) {
		if name == e || strings.HasSuffix(name, "."+e) {
			return true
		}
	}
	return false
}

// pieces cuts a text into documents, at the ends of lines where possible.
func pieces(class, name, text string) []document {
	sum := sha256.Sum256([]byte(class + "\x00" + name))
	held := binary.LittleEndian.Uint64(sum[:])%heldOf == 0
	var docs []document
	for n := uint64(0); len(text) > 0; n++ {
		end := len(text)
		if end > maxPiece {
			end = maxPiece
			if nl := strings.LastIndexByte(text[:end], '\n'); nl > maxPiece/2 {
				end = nl + 1
			}
			for end < len(text) && !utf8.RuneStart(text[end]) {
				end++
			}
		}
		key := sha256.Sum256(binary.LittleEndian.AppendUint64(sum[:], n))
		if end >= minPiece {
			docs = append(docs, document{class, text[:end], held, binary.LittleEndian.Uint64(key[:])})
		}
		text = text[end:]
	}
	return docs
}

// limit sorts the documents by class and key, removes duplicates, and keeps as
// much of each class as maxFit and maxHeld allow. A class may come from so few
// files that almost nothing, or more than half, would be held out. Then limit
// decides for each document by its own key whether to hold it out.
func limit(docs []document) []document {
	slices.SortFunc(docs, func(a, b document) int {
		return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.key, b.key), cmp.Compare(a.text, b.text))
	})
	seen := map[[32]byte]bool{}
	var kept []document
	for len(docs) > 0 {
		n := 1
		for n < len(docs) && docs[n].class == docs[0].class {
			n++
		}
		var total, held, left [2]int
		left = [2]int{maxFit, maxHeld}
		for _, d := range docs[:n] {
			total[0] += len(d.text)
			if d.held {
				held[0] += len(d.text)
			}
		}
		deal := held[0]*20 < total[0] || held[0]*2 > total[0]
		for _, d := range docs[:n] {
			if deal {
				d.held = d.key%heldOf == 0
			}
			half := 0
			if d.held {
				half = 1
			}
			sum := sha256.Sum256([]byte(d.text))
			if seen[sum] || len(d.text) > left[half] {
				continue
			}
			seen[sum] = true
			left[half] -= len(d.text)
			kept = append(kept, d)
		}
		docs = docs[n:]
	}
	return kept
}
