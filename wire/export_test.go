package wire

import "encoding/json"

// MergeStreamed returns the value that pieces make.
func MergeStreamed(pieces ...string) string {
	var v streamedValue
	for _, p := range pieces {
		v.add(json.RawMessage(p), 0)
	}
	return string(v.appendTo(nil))
}
