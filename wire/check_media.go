package wire

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/imagesize"
)

// image checks an image, which is one of n in the request.
func (c *checker) image(m medium, l sizeLimits, n int) {
	block := blockOf(m.path) + ".image"
	if size := len(m.data); l.bytes > 0 && size > l.bytes {
		c.add("media-bytes", m.path, "", "block", block, "count", strconv.Itoa(size), "most", strconv.Itoa(l.bytes), "megabytes", strconv.Itoa(l.bytes>>20))
	}
	if m.data == "" {
		return
	}
	stated := strings.ReplaceAll(m.mime, "image/jpg", "image/jpeg")
	is := imagesize.Type(m.data)
	w, h, sized := imagesize.Of(m.data)
	switch {
	case l.reads == nil || m.mime != "" && !slices.Contains(l.reads, stated): // see media-type
	case !slices.Contains(l.reads, is), !sized && is != "image/jpeg" && is != "image/heif": // a JPEG may have bytes that Of does not skip
		c.add("image-unreadable", m.path, "", "block", block)
	case l.stated && is != stated:
		c.add("image-type", m.path, "", "block", block, "stated", stated, "is", is)
	}
	name, most := "image-pixels", l.Side
	if l.Few > 0 && n > l.Few {
		name, most = "image-pixels/many", l.Many
	}
	if side := max(w, h); sized && most > 0 && side > most {
		c.add(name, m.path, "", "block", block, "count", strconv.Itoa(side), "most", strconv.Itoa(most), "few", strconv.Itoa(l.Few))
	}
}

// blockOf writes the path of a block as Anthropic does, which names the result that the
// block is in: messages.5.content.0.tool_result.content.1.
func blockOf(path string) string {
	path = strings.Replace(dotted(path), ".toolResult.content.", ".content.", 1)
	first, rest, _ := strings.Cut(path, ".content.")
	if outer, inner, nested := strings.Cut(rest, ".content."); nested {
		rest = outer + ".tool_result.content." + inner
	}
	return first + ".content." + rest
}

// pdf checks a PDF.
func (c *checker) pdf(m medium) {
	block := blockOf(m.path) + ".pdf"
	switch start := pdfStart(m.data); {
	case start < 0:
		c.add("pdf-unreadable", m.path, "", "block", block)
	case isEncryptedPDF(m.data, start):
		c.add("pdf-encrypted", m.path, "", "block", block)
	}
}

// pdfStart returns where a PDF begins in data, which may have other bytes before it, or -1.
func pdfStart(data string) int {
	var head [1024]byte
	return bytes.Index(head[:imagesize.Read(data, 0, head[:])], []byte("%PDF-"))
}

// isEncryptedPDF reports whether the newest trailer of a PDF says that it is encrypted. A
// trailer is the dictionary after a table of references, or that of a stream of them, which
// is not compressed itself.
func isEncryptedPDF(data string, start int) bool {
	var buf [4 << 10]byte
	read := func(at int) []byte { return buf[:imagesize.Read(data, at, buf[:])] }

	const word, table, trailer = "startxref", "xref", "trailer"
	tail := read(max(imagesize.Len(data)-len(buf), 0))
	i := bytes.LastIndex(tail, []byte(word))
	if i < 0 {
		return false
	}
	digits := bytes.TrimLeft(tail[i+len(word):], "\r\n\t \x00\f")
	end := bytes.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' })
	at, err := strconv.Atoi(string(digits[:max(end, 0)]))
	if err != nil {
		return false
	}
	at += start
	b := bytes.TrimLeft(read(at), "\r\n\t \x00\f")
	if bytes.HasPrefix(b, []byte(table)) {
		for i = bytes.Index(b, []byte(trailer)); i < 0; i = bytes.Index(b, []byte(trailer)) { // the table is longer
			if len(b) < len(trailer) {
				return false
			}
			at += len(buf) - len(trailer)
			b = read(at)
		}
		b = read(at + i)
	}
	dictionary, _, _ := bytes.Cut(b, []byte("stream"))
	dictionary, _, _ = bytes.Cut(dictionary, []byte(word))
	const entry = "/Encrypt"
	for {
		var ok bool
		if _, dictionary, ok = bytes.Cut(dictionary, []byte(entry)); !ok {
			return false
		}
		if len(dictionary) > 0 && strings.IndexByte("\r\n\t \x00\f<", dictionary[0]) >= 0 { // and no /EncryptMetadata
			return true
		}
	}
}
