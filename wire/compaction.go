package wire

import (
	"maps"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// A Compacter is a [Format] whose provider compacts a conversation on request. Anthropic
// and OpenAIResponses are Compacters.
type Compacter interface {
	Format

	// CompactRequest returns the request that asks the provider to compact a request of
	// Encode. The instruction says how to write the summary, where the provider takes one;
	// if it is empty, the provider has its own. The error is a *convo.ValueError.
	CompactRequest(r Request, instruction string) (Request, error)

	// DecodeCompaction reads the answer. The summary has Native, the usage of the call, and
	// as its Text what can be read in the items: nothing if they are encrypted. The error
	// is a *DecodeError, also if the answer holds no compaction, or more than one.
	DecodeCompaction(data []byte) (convo.Summary, error)
}

// compactionOf returns a summary with native items.
func (d *decoder) compactionOf(text string, items ...string) convo.Summary {
	by := d.origin()
	return convo.Summary{
		Text: text, Usage: d.out.Usage, Model: by.Model,
		Native: convo.Native{Format: by.Format, Model: by.Model, Items: items},
	}
}

// withHeader returns headers with a further value in one of them.
func withHeader(headers map[string]string, name, value string) map[string]string {
	headers = maps.Clone(headers)
	if headers == nil {
		headers = map[string]string{}
	}
	for v := range strings.SplitSeq(headers[name], ",") {
		if strings.TrimSpace(v) == value {
			return headers
		}
	}
	if headers[name] != "" {
		value = headers[name] + "," + value
	}
	headers[name] = value
	return headers
}
