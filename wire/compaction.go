package wire

import (
	"context"
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

// NativeSummarizer returns a summarizer for [convo.NativeSummary] that asks the provider of
// a format to compact a conversation. The format must be the one of the other requests,
// with its model. post adds the model and the other parameters to a request, sends it with
// Request.Headers, and returns the body of the answer:
//
//	post := func(ctx context.Context, r wire.Request) ([]byte, error) {
//		body, err := r.With(map[string]any{"model": model, "max_tokens": 8000})
//		...
//	}
//
// The path is that of other requests for Anthropic, and /responses/compact for OpenAI.
// max_tokens bounds the summary and the reasoning before it.
func NativeSummarizer(format Compacter, post func(context.Context, Request) ([]byte, error)) convo.Summarizer {
	return convo.SummarizerFunc(func(ctx context.Context, req convo.SummaryRequest) (convo.Summary, error) {
		switch {
		case format == nil:
			return convo.Summary{}, &convo.ValueError{Name: "the format given to NativeSummarizer", Want: "a format whose provider compacts, such as Anthropic"}
		case post == nil:
			return convo.Summary{}, &convo.ValueError{Name: "post given to NativeSummarizer", Want: "a function that sends a request"}
		case req.Sent == nil:
			return convo.Summary{}, &convo.ValueError{Name: "SummaryRequest.Sent", Want: "the snapshot to compact; use the summarizer with convo.NativeSummary"}
		}
		r, err := format.Encode(req.Sent)
		if err == nil {
			r, err = format.CompactRequest(r, req.Instruction)
		}
		if err != nil {
			return convo.Summary{}, err
		}
		data, err := post(ctx, r)
		if err != nil {
			return convo.Summary{}, err
		}
		return format.DecodeCompaction(data)
	})
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
