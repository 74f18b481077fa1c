// Package imagesize finds the type, the width and the height of an image in base64. It
// decodes only the few bytes that state them, so that the cost does not depend on the
// size of the image. It allocates nothing and needs no image decoder.
package imagesize

import (
	"encoding/base64"
	"encoding/binary"
)

// Of returns the width and height that a PNG, JPEG, GIF, WebP or BMP image states
// in its header. data is the image in standard base64. For other formats, and for
// headers that are cut off or state no size, ok is false. If ok is true, width
// and height are positive and fit in 31 bits. Of does not check that the image
// data has that size.
func Of(data string) (width, height int, ok bool) {
	var head [32]byte
	b := head[:Read(data, 0, head[:])]
	var w, h int64
	switch Type(data) {
	case "image/png":
		w, h = png(b)
	case "image/jpeg":
		w, h = jpeg(data)
	case "image/gif":
		w, h = gif(b)
	case "image/webp":
		w, h = webp(b)
	case "image/bmp":
		w, h = bmp(b)
	}
	if w <= 0 || h <= 0 || w > 1<<31-1 || h > 1<<31-1 {
		return 0, 0, false
	}
	return int(w), int(h), true
}

// Type returns the MIME type of an image, by its first bytes: image/png, image/jpeg,
// image/gif, image/webp, image/bmp, or image/heif for any image in a container of that
// kind. For other data it returns "".
func Type(data string) string {
	var head [12]byte
	b := head[:Read(data, 0, head[:])]
	switch {
	case hasPrefix(b, "\x89PNG\r\n\x1a\n"):
		return "image/png"
	case hasPrefix(b, "\xff\xd8\xff"):
		return "image/jpeg"
	case hasPrefix(b, "GIF87a"), hasPrefix(b, "GIF89a"):
		return "image/gif"
	case hasPrefix(b, "RIFF") && len(b) >= 12 && string(b[8:12]) == "WEBP":
		return "image/webp"
	case hasPrefix(b, "BM"):
		return "image/bmp"
	case len(b) >= 12 && string(b[4:8]) == "ftyp":
		return "image/heif"
	}
	return ""
}

func hasPrefix(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && string(b[:len(prefix)]) == prefix
}

func png(b []byte) (w, h int64) {
	if len(b) < 24 || string(b[12:16]) != "IHDR" {
		return 0, 0
	}
	return int64(binary.BigEndian.Uint32(b[16:])), int64(binary.BigEndian.Uint32(b[20:]))
}

// maxSegments is how many segments of a JPEG are searched for the frame header.
// A segment holds at most 64 kB, so large colour profiles and other metadata
// take several.
const maxSegments = 1024

// jpeg finds the frame header, going from segment to segment.
func jpeg(data string) (w, h int64) {
	at := 2
	for range maxSegments {
		var head [9]byte // FF, marker, length of 2, precision, height of 2, width of 2
		b := head[:Read(data, at, head[:])]
		if len(b) < 4 || b[0] != 0xFF {
			return 0, 0
		}
		switch marker := b[1]; {
		case marker == 0xFF: // a fill byte
			at++
			continue
		case marker == 0x01 || marker >= 0xD0 && marker <= 0xD7: // markers without a length
			at += 2
			continue
		case marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC:
			if len(b) < 9 {
				return 0, 0
			}
			return int64(binary.BigEndian.Uint16(b[7:])), int64(binary.BigEndian.Uint16(b[5:]))
		case marker == 0xD8 || marker == 0xD9 || marker == 0xDA || marker == 0: // the image data begins without a frame header
			return 0, 0
		}
		n := int(binary.BigEndian.Uint16(b[2:]))
		if n < 2 {
			return 0, 0
		}
		at += 2 + n
	}
	return 0, 0
}

func gif(b []byte) (w, h int64) {
	if len(b) < 10 {
		return 0, 0
	}
	return int64(binary.LittleEndian.Uint16(b[6:])), int64(binary.LittleEndian.Uint16(b[8:]))
}

func webp(b []byte) (w, h int64) {
	if len(b) < 30 {
		return 0, 0
	}
	switch string(b[12:16]) {
	case "VP8 ":
		if string(b[23:26]) != "\x9d\x01\x2a" {
			return 0, 0
		}
		return int64(binary.LittleEndian.Uint16(b[26:]) & 0x3FFF), int64(binary.LittleEndian.Uint16(b[28:]) & 0x3FFF)
	case "VP8L":
		if b[20] != 0x2F {
			return 0, 0
		}
		bits := binary.LittleEndian.Uint32(b[21:])
		return int64(bits&0x3FFF) + 1, int64(bits>>14&0x3FFF) + 1
	case "VP8X":
		return uint24(b[24:]) + 1, uint24(b[27:]) + 1
	}
	return 0, 0
}

func uint24(b []byte) int64 { return int64(b[0]) | int64(b[1])<<8 | int64(b[2])<<16 }

func bmp(b []byte) (w, h int64) {
	if len(b) < 26 {
		return 0, 0
	}
	switch n := binary.LittleEndian.Uint32(b[14:]); {
	case n == 12:
		return int64(binary.LittleEndian.Uint16(b[18:])), int64(binary.LittleEndian.Uint16(b[20:]))
	case n >= 40 && n <= 256:
		w = int64(int32(binary.LittleEndian.Uint32(b[18:])))
		h = int64(int32(binary.LittleEndian.Uint32(b[22:])))
		return w, max(h, -h) // negative for rows from top to bottom
	}
	return 0, 0
}

// Read decodes standard base64 into p, beginning at offset in the decoded data.
// It returns the number of bytes decoded, which is less than len(p) at the end of
// the data or where the text is not base64.
func Read(data string, offset int, p []byte) int {
	const quads = 16
	var src [4 * quads]byte
	var dst [3 * quads]byte
	if offset < 0 || offset/3 >= (len(data)+3)/4 {
		return 0
	}
	from, skip, n := offset/3*4, offset%3, 0
	for n < len(p) && from < len(data) {
		in := copy(src[:], data[from:])
		got, err := base64.StdEncoding.Decode(dst[:], src[:in])
		if got <= skip {
			return n
		}
		n += copy(p[n:], dst[skip:got])
		if err != nil || got < len(dst) {
			return n
		}
		skip = 0
		from += in
	}
	return n
}

// Len returns the number of bytes that the base64 text encodes.
func Len(data string) int {
	n := len(data) / 4 * 3
	for i := len(data) - 1; i >= 0 && i >= len(data)-2 && data[i] == '='; i-- {
		n--
	}
	return max(n, 0)
}
