package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// A checker collects findings. Rules are looked at on JSON that was read into
// maps, so that a request of any shape can be looked at.
type checker struct{ list []Finding }

func (c *checker) add(f Finding) { c.list = append(c.list, f) }

// shape reports that the JSON is not what the format is made of.
func (c *checker) shape(path, want string) {
	c.add(Finding{Rule: "shape", Path: path, Error: "Invalid type for '" + path + "'", Fix: "send " + want})
}

// body reads a request and returns the fields of it.
func (c *checker) body(data []byte) map[string]any {
	var all map[string]any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber() // no number is too large
	err := d.Decode(&all)
	if _, more := d.Token(); err == nil && more != io.EOF {
		err = errors.New("something behind the object")
	}
	if err != nil || all == nil {
		c.add(Finding{Rule: "json", Error: "We could not parse the JSON body of your request.", Fix: fmt.Sprintf("send a JSON object: %v", err)})
		return nil
	}
	return all
}

// list reads an array of objects.
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

func str(v any) string { s, _ := v.(string); return s }
