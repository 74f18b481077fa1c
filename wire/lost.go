package wire

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/seed-c1b73e60/convo"
)

// An Omission is something in a snapshot that a request leaves out or changes. What is
// one of
//
//	reasoning
//	id, signature or encrypted form of reasoning
//	text of reasoning
//	block
//	signature of a block
//	citation of a text
//	cache mark
//	name of a document
//	media
//	type of media
//	result without a call
//	second result of a call
//	part that has no place here
//	id of a call
//	name of a tool
//	tool of another provider
//	container
//	reference to a tool
//
// Media and blocks are lost if a short text replaces them. The type of media is lost if they
// are sent as plain text. The id of the item after reasoning, which OpenAIResponses keeps as a
// signature, does not count by itself. The id of a call is lost if the call is sent with
// another id, because the provider would refuse the first or an earlier call has it. An ID
// that convo made does not count. A cache mark is lost if the format has none, if its message
// has no place for it, or if it is dropped by the rules of CacheMark. A reference to a tool is
// lost if the request does not have the tool: a text names it instead. The container of an
// answer is lost where the parameters name another, which is in Sent. A mark that moves or
// gets another lifetime is not lost. The citations of a text are one part, and count as a
// block if none of them is sent.
//
// Content that has another form in the request is not lost: arguments that are not an
// object, an error that is stated in the text of a result, texts that are joined. Text of
// only white space does not count, and invalid UTF-8 is sent as U+FFFD.
type Omission struct {
	Entry  convo.ID // the entry; 0: an ephemeral message, or a tool
	Part   int      // index of the part in the message of the entry, or of the tool
	Inside int      // index of the part in the parts of that result; -1: the part itself
	What   string   // what is lost
	Sent   string   // the name or id that is sent instead, if any
}

// String returns where it is, what is lost, and what is sent instead.
func (o Omission) String() string {
	if o.What == lostTool {
		return fmt.Sprintf("tool %d: %s", o.Part, o.What)
	}
	s := "an ephemeral message"
	if o.Entry != 0 {
		s = fmt.Sprintf("entry %d", o.Entry)
	}
	s += fmt.Sprintf(", part %d", o.Part)
	if o.Inside >= 0 {
		s += fmt.Sprintf(", part %d of the result", o.Inside)
	}
	s += fmt.Sprintf(": %.64s", o.What)
	if o.Sent != "" {
		s += ", sent as " + quote(o.Sent)
	}
	return s
}

const (
	lostReasoning = "reasoning"
	lostProof     = "id, signature or encrypted form of reasoning"
	lostThought   = "text of reasoning"
	lostBlock     = "block"
	lostSignature = "signature of a block"
	lostSource    = "citation of a text"
	lostCacheMark = "cache mark"
	lostDocument  = "name of a document"
	lostMedia     = "media"
	lostType      = "type of media"
	lostResult    = "result without a call"
	lostSecond    = "second result of a call"
	lostPart      = "part that has no place here"
	lostCallID    = "id of a call"
	lostName      = "name of a tool"
	lostTool      = "tool of another provider"
	lostContainer = "container"
	lostReference = "reference to a tool"
)

// A place is the position of a part in the messages of a snapshot. The part is negative
// if the encoder made it; such a part is not recorded as lost.
type place struct {
	message int32 // number of the message, as they are read
	part    int32 // index in the message of the entry, without the tag of its author
}

// nowhere is the place of a part that the encoder made.
var nowhere = place{part: -1}

// whole is the index in a result for a part that is not in a result.
const whole = -1

// losses collects what a request leaves out. Like a tally, it can go back to an earlier
// state.
type losses struct {
	s     *convo.Snapshot // being encoded
	list  []loss          // in any order
	extra []int32         // messages that are not entries, ascending
}

type loss struct {
	at place
	Omission
}

// tell records a loss of the part at a place, or, if inside is not whole, of the part
// with that index in the result there.
func (l *losses) tell(at place, inside int, what, sent string) {
	if at.part < 0 {
		return
	}
	o := Omission{Part: int(at.part), Inside: inside, What: what, Sent: sent}
	before, isExtra := slices.BinarySearch(l.extra, at.message)
	if !isExtra {
		e, _ := l.s.At(int(at.message) - before)
		o.Entry = e.ID
	}
	l.list = append(l.list, loss{at, o})
}

// reasoning records what is lost of r if only sent is sent.
func (l *losses) reasoning(at place, r, sent convo.Reasoning) {
	if isBlank(r.Text) {
		r.Text, sent.Text = "", ""
	}
	switch {
	case sent == r:
	case sent == convo.Reasoning{}:
		l.tell(at, whole, lostReasoning, "")
	default:
		if sent.Text != r.Text {
			l.tell(at, whole, lostThought, "")
		}
		sent.Text = r.Text
		if sent != r {
			l.tell(at, whole, lostProof, "")
		}
	}
}

// citations returns the citations in a list that are sent with a text, or nil, and whether
// none is left out. It records what is lost of the part at a place.
func (l *losses) citations(at place, list json.RawMessage, text string) (sent json.RawMessage, all bool) {
	sent, all = sentCitations(list, text)
	if sent == nil {
		l.tell(at, whole, lostBlock, "")
	} else if !all {
		l.tell(at, whole, lostSource, "")
	}
	return sent, all
}

// back removes all but the first n losses, and the messages from a number on.
func (l *losses) back(n int, message int32) {
	clear(l.list[n:])
	l.list = l.list[:n]
	i, _ := slices.BinarySearch(l.extra, message)
	l.extra = l.extra[:i]
}

// sorted returns the losses in the order of the messages and parts, each once for a part.
// If all of some reasoning is lost, other losses of it are left out.
func (l *losses) sorted() []Omission {
	if len(l.list) == 0 {
		return nil
	}
	list := slices.Clone(l.list)
	slices.SortStableFunc(list, func(a, b loss) int {
		return cmp.Or(cmp.Compare(a.at.message, b.at.message), cmp.Compare(a.Part, b.Part), cmp.Compare(a.Inside, b.Inside), cmp.Compare(rank(a), rank(b)))
	})
	out := make([]Omission, 0, len(list))
	for i, l := range list {
		if i > 0 && list[i-1].at == l.at && list[i-1].Inside == l.Inside {
			if last := out[len(out)-1].What; last == l.What || last == lostReasoning && rank(l) > 0 {
				continue
			}
		}
		out = append(out, l.Omission)
	}
	return out
}

// rank orders the losses of one part.
func rank(l loss) int {
	switch l.What {
	case lostReasoning:
		return 0
	case lostThought:
		return 1
	case lostProof:
		return 2
	}
	return 0
}
