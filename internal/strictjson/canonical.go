package strictjson

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/text"
)

// Canonical returns one text for all texts of a JSON value, and another text as it is.
func Canonical(s string) string {
	if s == "{}" {
		return s
	}
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	var v any
	fault := d.Decode(&v)
	_, end := d.Token()
	data, err := json.Marshal(v)
	if fault != nil || end != io.EOF || err != nil {
		return text.Valid(s)
	}
	return string(data)
}
