package wire

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/imagesize"
)

// Assumptions about media for which the provider has no rule, or whose size
// cannot be read from their bytes.
const (
	otherTokens   = 3000 // media without a rule; the default of package convo
	imageTokens   = 1600 // an image without a rule; the default of package convo
	unknownWidth  = 2000 // pixels
	unknownHeight = 1500 // pixels
	unknownPages  = 5
	unknownTime   = 60 // seconds

	pageBytes  = 50_000  // per page of a PDF whose pages are hidden by compression
	soundBytes = 12_000  // per second, at 96 kbit/s
	videoBytes = 250_000 // per second, at 2 Mbit/s

	maxPages = 1000     // more than providers accept in one PDF
	minPage  = 64       // bytes: the least that a page can have, whatever the file states
	minTime  = 500      // bytes: the least that a second can have, whatever the file states
	maxScan  = 16 << 20 // bytes of a file that are searched for pages or counted as text
)

// media returns the tokens of an image, a sound, a video or a document. It is
// at least 1.
func (r *modelRules) media(m convo.Media) int {
	return int(min(max(r.weigh(m), 1), math.MaxInt32))
}

func (r *modelRules) weigh(m convo.Media) int64 {
	mime, _, _ := strings.Cut(m.MIME, ";")
	mime = strings.ToLower(strings.TrimSpace(mime))
	switch {
	case strings.HasPrefix(mime, "image/"):
		if r.image == nil {
			return imageTokens
		}
		if w, h, ok := imagesize.Of(m.Data); ok {
			return r.image(int64(w), int64(h))
		}
		return r.image(unknownWidth, unknownHeight)
	case mime == "application/pdf" && r.page > 0:
		return r.page * pdfPages(m.Data)
	case strings.HasPrefix(mime, "audio/") && r.sound > 0:
		return r.sound * seconds(m.Data, soundBytes)
	case strings.HasPrefix(mime, "video/") && r.video > 0:
		return r.video * seconds(m.Data, videoBytes)
	case isTextType(mime) && m.Data != "":
		return textTokens(m.Data)
	}
	return otherTokens
}

func isTextType(mime string) bool {
	if strings.HasPrefix(mime, "text/") {
		return true
	}
	for _, end := range []string{"/json", "+json", "/xml", "+xml", "yaml", "javascript"} {
		if strings.HasSuffix(mime, end) {
			return true
		}
	}
	return false
}

// textTokens counts the tokens of a text document. It decodes the document
// piece by piece, to need little memory.
func textTokens(data string) int64 {
	size := imagesize.Len(data)
	var piece [12 << 10]byte
	var n, done int64
	for done < maxScan {
		got := imagesize.Read(data, int(done), piece[:])
		if got == 0 {
			break
		}
		n += int64(convo.Heuristic{}.CountTokens(string(piece[:got])))
		done += int64(got)
	}
	return extrapolate(n, done, int64(size))
}

// extrapolate returns the count for a file of size all, given that its first
// part bytes contain n. If part is less than maxScan, it is the whole file, and
// the count is n.
func extrapolate(n, part, all int64) int64 {
	if part < maxScan || part >= all {
		return n
	}
	return int64(float64(n) * float64(all) / float64(part))
}

// pdfPages returns the number of pages of a PDF: the number that a linearized
// file states at its beginning, or the number of page objects, or, if
// compression hides both, one page for each pageBytes.
func pdfPages(data string) int64 {
	if data == "" {
		return unknownPages
	}
	const ahead = 32 // bytes enough for a "/Type /Page" that two reads share
	size := int64(imagesize.Len(data))
	var buf [8 << 10]byte
	var n, done int64
	kept := 0
	for done < maxScan {
		got := imagesize.Read(data, int(done), buf[kept:])
		b := buf[:kept+got]
		if done == 0 {
			if pages := linearizedPages(b[:min(len(b), 1024)]); pages > 0 {
				return min(pages, maxPages, size/minPage+1)
			}
		}
		end := len(b) - ahead
		if got == 0 {
			end = len(b)
		}
		for i := 0; i < end; {
			k := bytes.Index(b[i:], []byte("/Type"))
			if k < 0 || i+k >= end {
				break
			}
			i += k + len("/Type")
			if isPage(b[i:]) {
				n++
			}
		}
		if got == 0 {
			break
		}
		done += int64(got)
		kept = copy(buf[:], b[max(end, 0):])
	}
	if n == 0 {
		n = ceilDiv(size, pageBytes)
	} else {
		n = extrapolate(n, done, size)
	}
	return min(max(n, 1), maxPages, size/minPage+1)
}

// isPage reports whether b begins with the type /Page, and not /Pages.
func isPage(b []byte) bool {
	b, ok := bytes.CutPrefix(bytes.TrimLeft(b, " \t\r\n\f\x00"), []byte("/Page"))
	return ok && (len(b) == 0 || !isNameByte(b[0]))
}

// linearizedPages returns the number of pages that the first object of a
// linearized PDF states, or 0 if there is no such object.
func linearizedPages(b []byte) int64 {
	i := bytes.Index(b, []byte("/Linearized"))
	if i < 0 {
		return 0
	}
	b, _, _ = bytes.Cut(b[i:], []byte(">>"))
	for {
		_, rest, found := bytes.Cut(b, []byte("/N"))
		if !found {
			return 0
		}
		if digits := bytes.TrimLeft(rest, " \t\r\n"); len(digits) < len(rest) {
			var n int64
			for _, c := range digits[:min(len(digits), 6)] {
				if !isDigit(c) {
					break
				}
				n = 10*n + int64(c-'0')
			}
			return n
		}
		b = rest
	}
}

// seconds returns the length of a sound or a video, rounded up.
func seconds(data string, bytesPerSecond int64) int64 {
	if data == "" {
		return unknownTime
	}
	size := float64(imagesize.Len(data))
	n, ok := wavSeconds(data)
	if !ok {
		n, ok = mp4Seconds(data)
	}
	if !ok {
		n = size / float64(bytesPerSecond)
	}
	return int64(math.Ceil(max(min(n, size/minTime), 1)))
}

// maxChunks bounds how many chunks or boxes of a file are visited. Real files
// have a few dozen.
const maxChunks = 256

// wavSeconds reads the length of a WAV file.
func wavSeconds(data string) (float64, bool) {
	var b [16]byte
	if imagesize.Read(data, 0, b[:12]) < 12 || string(b[:4]) != "RIFF" || string(b[8:12]) != "WAVE" {
		return 0, false
	}
	size := int64(imagesize.Len(data))
	var rate int64
	at := int64(12)
	for range maxChunks {
		if at > size || imagesize.Read(data, int(at), b[:8]) < 8 {
			break
		}
		n := int64(binary.LittleEndian.Uint32(b[4:]))
		switch string(b[:4]) {
		case "fmt ":
			if imagesize.Read(data, int(at)+8, b[:12]) < 12 {
				return 0, false
			}
			rate = int64(binary.LittleEndian.Uint32(b[8:]))
		case "data":
			if left := size - at - 8; n == 0 || n > left { // written before the length was known
				n = left
			}
			return float64(n) / float64(rate), rate > 0
		}
		at += 8 + n + n&1
	}
	return 0, false
}

// mp4Seconds reads the length of an MP4 or QuickTime file from its movie
// header.
func mp4Seconds(data string) (float64, bool) {
	from, to, ok := box(data, 0, int64(imagesize.Len(data)), "moov")
	if !ok {
		return 0, false
	}
	if from, _, ok = box(data, from, to, "mvhd"); !ok {
		return 0, false
	}
	var b [32]byte
	n := imagesize.Read(data, int(from), b[:])
	var scale uint32
	var length uint64
	switch {
	case n >= 20 && b[0] == 0:
		scale, length = binary.BigEndian.Uint32(b[12:]), uint64(binary.BigEndian.Uint32(b[16:]))
	case n >= 32 && b[0] == 1:
		scale, length = binary.BigEndian.Uint32(b[20:]), binary.BigEndian.Uint64(b[24:])
	}
	return float64(length) / float64(scale), scale > 0 && length > 0
}

// box finds the first box with a name between the offsets from and to, and
// returns the offsets of its content.
func box(data string, from, to int64, name string) (begin, end int64, ok bool) {
	for range maxChunks {
		var b [16]byte
		n := imagesize.Read(data, int(from), b[:])
		if n < 8 {
			return 0, 0, false
		}
		size, head := int64(binary.BigEndian.Uint32(b[:])), int64(8)
		switch {
		case size == 0:
			size = to - from
		case size == 1 && n == 16:
			size, head = int64(min(binary.BigEndian.Uint64(b[8:]), 1<<60)), 16
		}
		if size < head || size > to-from {
			return 0, 0, false
		}
		if string(b[4:8]) == name {
			return from + head, from + size, true
		}
		from += size
	}
	return 0, 0, false
}
