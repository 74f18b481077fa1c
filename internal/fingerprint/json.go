package fingerprint

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"

	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// textLen is the length of a sum as text.
const textLen = 11

// A listValue is the value of a list of sums: a text, with textLen characters for each.
type listValue struct{ list *[]Sum }

// ListValue returns the value of a list of sums: a text.
func ListValue(list *[]Sum) strictjson.Value { return listValue{list} }

func (v listValue) IsZero() bool { return len(*v.list) == 0 }

func (v listValue) Append(dst []byte) []byte {
	dst = append(dst, '"')
	for _, sum := range *v.list {
		dst = base64.RawURLEncoding.AppendEncode(dst, binary.BigEndian.AppendUint64(nil, uint64(sum)))
	}
	return append(dst, '"')
}

func (v listValue) Read(r *strictjson.Reader) {
	text := r.Text()
	if len(text)%textLen != 0 {
		r.Fail(fmt.Errorf("%.40q holds no fingerprints of %d characters", text, textLen))
		return
	}
	for ; text != ""; text = text[textLen:] {
		b, err := base64.RawURLEncoding.DecodeString(text[:textLen])
		if err != nil || len(b) != 8 {
			r.Fail(fmt.Errorf("%q is no fingerprint", text[:textLen]))
			return
		}
		*v.list = append(*v.list, Sum(binary.BigEndian.Uint64(b)))
	}
}

// Values has the value of a list of as many sums, which is not left out.
type Values []*Sum

// IsZero returns false.
func (v Values) IsZero() bool { return false }

// Append appends the value.
func (v Values) Append(dst []byte) []byte {
	list := make([]Sum, len(v))
	for i, sum := range v {
		list[i] = *sum
	}
	return listValue{&list}.Append(dst)
}

// Read reads the value.
func (v Values) Read(r *strictjson.Reader) {
	var list []Sum
	listValue{&list}.Read(r)
	if len(list) != len(v) {
		r.Fail(fmt.Errorf("%d fingerprints of %d characters, want %d", len(list), textLen, len(v)))
		return
	}
	for i, sum := range list {
		*v[i] = sum
	}
}
