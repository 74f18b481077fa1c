// Package session reads the conversations that other programs keep on disk.
//
// Read recognises a format by its content and yields what convo.History.Append takes with
// convo.Relaxed roles. The formats of sessions are private to their programs and change: a
// reader names the versions it was written for, counts what it does not understand, and
// goes on.
package session

import (
	"time"

	"github.com/seed-c1b73e60/convo"
)

// A Session is one conversation as another program recorded it: its live branch, oldest
// event first.
type Session struct {
	Format  string // one of Formats
	Version string // of the program or of its format, if it is recorded
	ID      string
	Title   string
	Parent  string // the session that this one is a fork or a subagent of; empty: none
	Window  int    // the context window, if it is recorded; 0 if not
	System  []convo.Message
	Tools   []convo.Tool
	Events  []Event // each call has its result right after it, except calls at the end
	Counts  Counts
}

// An Event is one step of a Session. Messages, Usage and Model go together for an answer;
// an event with a Compaction has nothing else but its time.
type Event struct {
	Time time.Time // zero if it is not recorded

	// Messages are appended together. Those of an answer are one assistant message; the
	// results of its calls follow in events of their own. An answer without content that
	// has a Usage is an assistant message without parts.
	Messages []convo.Message

	// Usage is what the provider reported for the request that Messages answer, once for
	// each request. Nil: it is not recorded.
	Usage *convo.Usage
	Model string // the model that answered, if it is recorded

	// Compaction says that the program replaced all that stood before by View.
	Compaction *Compaction
}

// A Compaction is a compaction that the other program made.
type Compaction struct {
	Trigger string // in the words of the program, such as "auto"
	Before  int    // tokens, if they are recorded
	After   int
	Summary string          // empty if it cannot be read
	View    []convo.Message // what the program sends from then on in place of all before
	Hidden  bool            // the program also sends something that cannot be read: it is encrypted or not in the file
}

// Counts are what a reader did to a file.
type Counts struct {
	Records    int // lines or objects
	Unknown    int // records of a kind that the reader does not know, or that are damaged
	Torn       int // 1 if the last line is incomplete
	Dropped    int // messages left out: written twice, empty, without a call, or not on the live branch
	Merged     int // messages joined, such as the blocks of one reply
	Answered   int // open calls that got a result which says that none was recorded
	Reordered  int // results moved to the place after their calls
	Sidechains int // messages of subagents, left out
	Usages     int // reports of usage left out: they lack the input, their figures contradict each other, or the answer is not there
}

// Doubtful reports whether more than one record in a hundred was not understood. What the
// Session holds may then lack much of what was said.
func (c Counts) Doubtful() bool { return c.Unknown > 0 && c.Unknown*100 > c.Records }

// Messages returns the messages of the events, compactions ignored: all that was said.
func (s *Session) Messages() []convo.Message {
	var msgs []convo.Message
	for _, e := range s.Events {
		msgs = append(msgs, e.Messages...)
	}
	return msgs
}

// hosts marks the messages of the user in msgs as written by the program.
func hosts(msgs []convo.Message) []convo.Message {
	for i := range msgs {
		if msgs[i].Role == convo.RoleUser {
			msgs[i].Meta = convo.HostMeta
		}
	}
	return msgs
}
