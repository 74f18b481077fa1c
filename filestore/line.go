package filestore

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// A file has one line for each record, as described in docs/format.md:
//
//	CRC SEQ KIND BACK JSON\n
//
// CRC is the CRC-32C, in 8 hex digits, of the text between the space after it
// and the newline. KIND is F for a full record and P, a patch, for any other. BACK
// is the distance in bytes from the start of this line back to the start of the
// preceding F line; if it is 0 or leads out of the file, there is none. A log can
// therefore be read from its newest full record on without reading older lines, and
// lines can be copied unchanged to the start of another file.
const (
	sumSize    = 8          // length of the CRC
	maxHeader  = 64         // more than the length of any header
	maxDetails = 32<<10 - 1 // length of the JSON after the data
	maxData    = 256 << 20  // length of a record's data; see convo.Record.Check
	maxLine    = maxHeader + maxData/3*4 + 64 + maxDetails

	// fileFormat is the newest Record.Format that is stored in lines of this form.
	fileFormat = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A logLine is a record and its position in a file.
type logLine struct {
	convo.Record
	at   int64  // offset of its first byte
	back int64  // BACK
	text []byte // with the newline; valid until the next line is read
}

// newLine returns the line of a record.
func newLine(r *convo.Record, back int64) []byte {
	b := make([]byte, sumSize, maxHeader+len(r.Data)/3*4+len(r.Key)+1024)
	b = appendHeader(b, r, back)
	b = append(b, `{"format":`...)
	b = strconv.AppendInt(b, int64(r.Format), 10)
	b = append(b, `,"data":`...)
	if isOneLine(r.Data) {
		b = append(b, r.Data...)
	} else {
		b = append(b, '"')
		b = base64.StdEncoding.AppendEncode(b, r.Data)
		b = append(b, '"')
	}
	b = appendDetails(b, r)
	putSum(b)
	return append(b, '\n')
}

// isOneLine reports whether data is written into a line unchanged.
func isOneLine(data []byte) bool {
	return len(data) > 0 && data[0] == '{' && bytes.IndexByte(data, '\n') < 0 && bytes.IndexByte(data, 0) < 0
}

// putSum writes the CRC of a line in front of it.
func putSum(b []byte) {
	copy(b, fmt.Sprintf("%08x", crc32.Checksum(b[sumSize+1:], castagnoli)))
}

// appendHeader appends what is between the CRC and the JSON.
func appendHeader(b []byte, r *convo.Record, back int64) []byte {
	b = append(b, ' ')
	b = strconv.AppendUint(b, r.Seq, 10)
	if r.Full {
		b = append(b, " F "...)
	} else {
		b = append(b, " P "...)
	}
	b = strconv.AppendInt(b, back, 10)
	return append(b, ' ')
}

// appendDetails appends the fields after the data.
func appendDetails(b []byte, r *convo.Record) []byte {
	b = appendText(b, "key", r.Key)
	b = strconv.AppendInt(strictjson.Key(b, "upto"), int64(r.Upto), 10)
	b = strconv.AppendInt(strictjson.Key(b, "entries"), int64(r.Entries), 10)
	b = strconv.AppendInt(strictjson.Key(b, "tokens"), int64(r.Tokens), 10)
	b = appendText(b, "title", r.Title)
	b = r.Created.UTC().AppendFormat(append(strictjson.Key(b, "created"), '"'), time.RFC3339Nano)
	b = r.Updated.UTC().AppendFormat(append(b, `","updated":"`...), time.RFC3339Nano)
	b = strictjson.AppendString(append(b, `","prev":`...), r.Prev)
	b = strictjson.AppendString(strictjson.Key(b, "id"), r.ID)
	return append(b, '}')
}

// appendText appends a field with any text as its value. If the value is not UTF-8,
// it is written in base64, and the name gets the suffix 64.
func appendText(b []byte, name, value string) []byte {
	b = append(append(b, `,"`...), name...)
	if utf8.ValidString(value) {
		return strictjson.AppendString(append(b, `":`...), value)
	}
	return strictjson.AppendString(append(b, `64":`...), base64.StdEncoding.EncodeToString([]byte(value)))
}

// parseLine reads a line, with or without its newline. The Data of the record shares
// memory with the line, unless it was in base64. parseLine accepts only lines as newLine
// writes them; the error for a line that a later release may have written is ErrVersion.
func parseLine(text []byte) (logLine, error) {
	l := logLine{text: text}
	text = bytes.TrimSuffix(text, []byte("\n"))
	if len(text) <= sumSize || text[sumSize] != ' ' {
		return l, errors.New("this is no line of a log")
	}
	var sum uint32
	for _, c := range text[:sumSize] {
		digit := strings.IndexByte("0123456789abcdef", c)
		if digit < 0 {
			return l, errors.New("this is no line of a log")
		}
		sum = sum<<4 | uint32(digit)
	}
	if crc32.Checksum(text[sumSize+1:], castagnoli) != sum {
		return l, errors.New("the checksum is wrong")
	}
	rest, err := l.parseHeader(text)
	if err != nil {
		return l, err
	}
	if err := l.parseJSON(rest); err != nil {
		if l.Format > fileFormat {
			return l, fmt.Errorf("%w: the record has format %d", convo.ErrVersion, l.Format)
		}
		return l, err
	}
	return l, l.Check()
}

// parseHeader reads the text before the JSON, and returns the JSON. text may end
// anywhere after the header.
func (l *logLine) parseHeader(text []byte) ([]byte, error) {
	rest, ok := text[:min(len(text), maxHeader)], true
	var fields [4][]byte // CRC, SEQ, KIND, BACK
	for i := range fields {
		if fields[i], rest, ok = bytes.Cut(rest, []byte(" ")); !ok {
			return nil, errors.New("the line has no header")
		}
	}
	if kind := string(fields[2]); kind != "F" && kind != "P" {
		return nil, fmt.Errorf("%w: the record is of kind %q", convo.ErrVersion, kind)
	}
	l.Full = fields[2][0] == 'F'
	l.Seq, _ = strconv.ParseUint(string(fields[1]), 10, 64)
	l.back, _ = strconv.ParseInt(string(fields[3]), 10, 64)
	var room [maxHeader]byte
	header := appendHeader(room[:0], &l.Record, l.back)
	if l.back < 0 || len(text) < sumSize || !bytes.HasPrefix(text[sumSize:], header) {
		return nil, errors.New("the header of the line is not as it is written")
	}
	return text[sumSize+len(header):], nil
}

// parseJSON reads the JSON of a line. It sets Format first, so that Format is set
// even if parsing fails later.
func (l *logLine) parseJSON(text []byte) error {
	bad := errors.New("the line is not as it is written")
	rest, ok := bytes.CutPrefix(text, []byte(`{"format":`))
	if !ok {
		return bad
	}
	number, rest, ok := bytes.Cut(rest, []byte(","))
	format, err := strconv.Atoi(string(number))
	if !ok || err != nil || strconv.Itoa(format) != string(number) {
		return bad
	}
	l.Format = format
	if rest, ok = bytes.CutPrefix(rest, []byte(`"data":`)); !ok {
		return bad
	}
	// The data may contain text that looks like the fields after it. In those fields
	// a quote inside a text follows a backslash, so the last match is their start.
	end := max(0, len(rest)-maxDetails)
	place := bytes.LastIndex(rest[end:], []byte(`,"key`))
	if place < 0 {
		return bad
	}
	data, details := rest[:end+place], rest[end+place:]
	l.readDetails(details)
	var room [1024]byte
	if !bytes.Equal(appendDetails(room[:0], &l.Record), details) {
		return bad
	}
	if isOneLine(data) {
		l.Data = data
		return nil
	}
	if len(data) < 2 || data[0] != '"' || data[len(data)-1] != '"' {
		return bad
	}
	l.Data, err = base64.StdEncoding.Strict().AppendDecode(nil, data[1:len(data)-1])
	if err != nil {
		return bad
	}
	return nil
}

// readDetails reads the output of appendDetails. Its result for other input is
// unspecified: the caller compares the input with the output of appendDetails.
func (l *logLine) readDetails(details []byte) {
	var room [1024]byte
	r := strictjson.NewReader(append(append(room[:0], '{'), details[1:]...))
	decoded := func() string {
		text, _ := base64.StdEncoding.DecodeString(r.Text())
		return string(text)
	}
	for key := range r.Object {
		switch string(key) {
		case "key":
			l.Key = r.Text()
		case "key64":
			l.Key = decoded()
		case "upto":
			l.Upto = convo.ID(r.Int64())
		case "entries":
			l.Entries = r.Int()
		case "tokens":
			l.Tokens = r.Int()
		case "title":
			l.Title = r.Text()
		case "title64":
			l.Title = decoded()
		case "created":
			l.Created = r.Time()
		case "updated":
			l.Updated = r.Time()
		case "prev":
			l.Prev = r.Text()
		case "id":
			l.ID = r.Text()
		default:
			return
		}
	}
}
