package convo

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/fingerprint"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// content returns the fingerprint of what the model sees of m. Reasoning is left out: a
// signature is not part of what later ones are made for.
func (m *Message) content() fingerprint.Sum {
	sum := fingerprint.Sum(0).String(string(m.Role))
	if m.Author != "" && m.Role != RoleTool {
		sum = sum.String(m.Author)
	}
	return contentOf(sum, m.Parts)
}

func contentOf(sum fingerprint.Sum, parts []Part) fingerprint.Sum {
	for _, p := range parts {
		sum = known(p).sum(sum)
	}
	return sum
}

// Sum returns a fingerprint of what the model reads of m, the same in every process. It
// takes role and author, texts without white space at their ends, calls with arguments as
// JSON values, results without the IDs of their calls, media by their bytes, and opaque
// blocks. Reasoning is left out, as are the key and other fields that no model
// sees. [Resume] compares rows by it.
func (m Message) Sum() uint64 {
	sum := fingerprint.Sum(0).String(string(m.Role))
	if m.Author != "" && m.Role != RoleTool {
		sum = sum.String(text.Valid(m.Author))
	}
	return uint64(sumOf(sum, m.Parts))
}

func sumOf(sum fingerprint.Sum, parts []Part) fingerprint.Sum {
	var said strings.Builder // texts that follow one another
	end := func() {
		if t := strings.TrimSpace(said.String()); t != "" {
			sum = Text(t).rowSum(sum)
		}
		said.Reset()
	}
	for _, p := range parts {
		switch p := p.(type) { // texts that follow one another count as one, whatever reasoning is between them
		case Text:
			said.WriteString(string(p))
		case Reasoning:
		default:
			end()
			sum = known(p).rowSum(sum)
		}
	}
	end()
	return sum
}

// sameJSON returns one text for all texts of a JSON value, and another text as it is.
func sameJSON(s string) string {
	if s == "{}" {
		return s
	}
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return text.Valid(s)
	}
	if _, err := d.Token(); err != io.EOF {
		return text.Valid(s)
	}
	data, err := json.Marshal(v)
	if err != nil {
		return text.Valid(s)
	}
	return string(data)
}
