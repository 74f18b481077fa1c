package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// A checker collects the findings of one Check. The rules are applied to JSON
// decoded into maps, so that a request of any shape can be checked.
type checker struct {
	format string // selects the error texts of the findings
	list   []Finding
}

// add adds a finding; see the function finding.
func (c *checker) add(name, path, id string, details ...string) {
	c.list = append(c.list, finding(c.format, name, path, id, details...))
}

// shape adds the finding that the value at path is not what the format wants.
func (c *checker) shape(path, want string) { c.add("shape", path, "", "want", want) }

// body decodes a request. If the request is not a JSON object, body adds a
// finding and returns nil.
func (c *checker) body(data []byte) map[string]any {
	all, err := decodeObject(data)
	if err != nil {
		c.add("json", "", "", "reason", err.Error())
	}
	return all
}

// decodeObject decodes a JSON object. Numbers of any size are accepted.
func decodeObject(data []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var all map[string]any
	if kindOf(data) != '{' && strictjson.Valid(data) {
		return nil, errors.New("it is " + kindName(data))
	}
	if err := d.Decode(&all); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the object")
	}
	return all, nil
}

// objects returns the elements of an array of objects. It adds a finding for
// each element of another kind, and returns an empty object for it.
func (c *checker) objects(path string, v any) []map[string]any {
	list, ok := v.([]any)
	if !ok {
		c.shape(path, "an array")
		return nil
	}
	out := make([]map[string]any, 0, len(list))
	for i, e := range list {
		m, ok := e.(map[string]any)
		if !ok {
			c.shape(atIndex(path, i), "an object")
			m = map[string]any{}
		}
		out = append(out, m)
	}
	return out
}

// maxArguments is how many characters OpenAI takes of the arguments of a call. Its models
// may write more.
const maxArguments = 1 << 20

// arguments checks the length of the arguments of a call to OpenAI.
func (c *checker) arguments(path, id, text string) {
	if len(text) <= maxArguments {
		return
	}
	if n := utf8.RuneCountInString(text); n > maxArguments {
		c.add("arguments-length", path, id, "limit", strconv.Itoa(maxArguments), "length", strconv.Itoa(n))
	}
}

func str(v any) string { s, _ := v.(string); return s }

// A markChecker checks the cache marks of a request, in their order.
type markChecker struct {
	marks  int    // number of marks so far
	marked string // path of the last mark
	short  bool   // a mark did not have the longer lifetime
}

// look checks the mark at path, whose lifetime is ttl.
func (m *markChecker) look(k *checker, path string, ttl any) {
	m.marks, m.marked = m.marks+1, path
	switch {
	case ttl != "1h":
		m.short = true
	case m.short:
		k.add("cache-order", path, "")
	}
}

// count checks the number of marks.
func (m *markChecker) count(k *checker) {
	if m.marks > maxMarks {
		k.add("cache-count", m.marked, "", "count", strconv.Itoa(m.marks))
	}
}
