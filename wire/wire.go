package wire

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/seed-c1b73e60/convo"
)

// A Format writes conversations as one provider wants them. All of this
// package are plain values that are safe for concurrent use; what they are set
// to says where providers differ by model.
type Format interface {
	// Encode returns the request for a snapshot. The same snapshot gives the
	// same bytes, and the snapshot stays as it is. It fails only for a snapshot
	// that is nil or shows nothing (ErrEmpty).
	Encode(s *convo.Snapshot) (Request, error)

	// Decode reads a request, a response, or one message of either. What it
	// cannot keep is named in Transcript.Lost. Malformed input is a
	// *DecodeError, and nothing of it is returned. An answer that says nothing
	// may give no message, or one that Append refuses as empty.
	Decode(data []byte) (Transcript, error)

	// Check says why the provider would refuse a request, whoever made it. Of
	// one that is fine it returns nothing.
	Check(request []byte) []Finding
}

// ErrEmpty is returned by Encode when there is nothing to send.
var ErrEmpty = errors.New("wire: nothing to send")

// A Request is the part of a provider's request that the conversation makes.
// The model, the tools and the rest are the caller's.
type Request struct {
	System   json.RawMessage // where the provider wants it apart from the messages; else nil
	Messages []json.RawMessage

	// NeedsTools says that the messages hold tool calls or results: send the
	// tools' definitions with them, some providers refuse the request otherwise.
	NeedsTools bool

	// NoThinking says that reasoning which the provider wants back is gone: turn
	// thinking off for this request.
	NoThinking bool

	names *names
}

// names are what a provider calls the fields of a request.
type names struct{ system, messages string }

// Body returns the system text and the messages as one JSON object, under the
// provider's names: what Check takes. A caller without an SDK puts System and
// Messages into a struct of its own, beside the model and the tools.
func (r Request) Body() []byte {
	n := r.names
	if n == nil {
		n = &names{"system", "messages"}
	}
	size := 32 + len(r.System)
	for _, m := range r.Messages {
		size += len(m) + 1
	}
	b := append(make([]byte, 0, size), '{')
	if len(r.System) > 0 {
		b = append(appendKey(b, n.system), r.System...)
		b = append(b, ',')
	}
	b = append(appendKey(b, n.messages), '[')
	for i, m := range r.Messages {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, m...)
	}
	return append(b, "]}"...)
}

// A Transcript is what Decode has read.
type Transcript struct {
	Messages []convo.Message // for History.Append, or NewSnapshot
	Usage    convo.Usage     // of a response; cached tokens are in Input
	Lost     []Loss
}

// A Loss is a field that a [convo.Message] has no place for.
type Loss struct {
	Path string // such as "messages[2].content[0].cache_control"
	What string // in a few words
}

func (l Loss) String() string { return l.Path + ": " + l.What }

// A Finding says why a provider would refuse a request.
type Finding struct {
	Rule  string // short and always the same, such as "unanswered-call"
	Path  string // where, such as "messages[3].tool_calls[0].id"
	ID    string // of the call or result at fault, where there is one
	Error string // what the provider says to it, as far as known
	Fix   string // what would mend it
}

func (f Finding) String() string { return fmt.Sprintf("%s at %s: %s", f.Rule, f.Path, f.Fix) }

// A DecodeError says what is wrong in the input of a Decode, and where.
type DecodeError struct {
	Path   string // in the document; empty: the whole
	Offset int64  // of the byte, for text that is not JSON; else 0
	Reason string
}

func (e *DecodeError) Error() string {
	switch {
	case e.Path != "":
		return fmt.Sprintf("wire: %s: %s", e.Path, e.Reason)
	case e.Offset > 0:
		return fmt.Sprintf("wire: at byte %d: %s", e.Offset, e.Reason)
	}
	return "wire: " + e.Reason
}
