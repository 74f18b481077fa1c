package convo

import "slices"

// A RolePolicy decides which role may follow which when a message is appended. The zero
// RolePolicy is strict; [Relaxed] returns another. It applies to messages that are appended,
// and to lists that Restore imports. What a History has accepted stays accepted, wherever it is
// loaded.
//
// These rules hold under every policy. System messages that come before all others are system
// entries; later ones are notes, which may follow any message unless NoNotes is set. A tool
// message answers open calls of the newest exchange, and no call twice. While a call is open,
// only tool messages may follow. A user message may follow a user message, or a result, whose
// request has failed. It has if Do, Run, Steps, Prepare, Recover or AppendReply returned an
// error since, or Do an empty answer, and no Do waits for another. So it has after Open, Resume
// and Restore. A [*FloorError] or [*LimitError] is no such error: Rewind(1) takes back what is
// too long. The summary, ephemeral messages and notes do not count here: the message before
// them decides what may follow.
//
// A note is an entry like any other: it stays where it was appended, and is saved and compacted
// no earlier than a user message. It gives the model a changed rule, a new date or another
// mode, and what a provider has cached and signed stays valid. [History.SetSystem] leaves notes
// alone.
type RolePolicy struct {
	// UserAfter and AssistantAfter list the roles that a user message and an assistant message
	// may follow; RoleNone allows it as the first message. Nil means RoleNone, RoleSystem,
	// RoleAssistant and RoleTool for a user message, and RoleUser and RoleTool for an assistant
	// message. An empty list that is not nil allows none.
	UserAfter      []Role
	AssistantAfter []Role

	// Interrupt allows a user message as the first message of an Append while calls are open.
	// Append then answers each open call with an error result that reads "interrupted by the
	// user". These results are entries, with IDs just before those of the appended messages.
	Interrupt bool

	// KeepEmpty accepts messages without content. The History keeps them, but package wire
	// leaves them out of requests. Without KeepEmpty they are a [*MessageError].
	KeepEmpty bool

	// NoNotes refuses a system message after any other message, with a [*RoleError]. SetSystem
	// may still be called at any time.
	NoNotes bool
}

// Relaxed returns a policy that allows user and assistant messages in any order, lets a
// user message interrupt open calls, and keeps empty messages.
func Relaxed() RolePolicy {
	all := []Role{RoleNone, RoleSystem, RoleUser, RoleAssistant, RoleTool}
	return RolePolicy{UserAfter: all, AssistantAfter: slices.Clone(all), Interrupt: true, KeepEmpty: true}
}

func (p RolePolicy) withDefaults() RolePolicy {
	if p.UserAfter == nil {
		p.UserAfter = []Role{RoleNone, RoleSystem, RoleAssistant, RoleTool}
	}
	if p.AssistantAfter == nil {
		p.AssistantAfter = []Role{RoleUser, RoleTool}
	}
	p.UserAfter = slices.Clone(p.UserAfter)
	p.AssistantAfter = slices.Clone(p.AssistantAfter)
	return p
}

// faults returns an error for each role in p that does not exist.
func (p RolePolicy) faults() (faults []error) {
	for _, f := range []struct {
		name  string
		after []Role
	}{{"UserAfter", p.UserAfter}, {"AssistantAfter", p.AssistantAfter}} {
		for _, r := range f.after {
			known := slices.Contains([]Role{RoleNone, RoleSystem, RoleUser, RoleAssistant, RoleTool}, r)
			faults = refuse(faults, !known, "Options.Roles."+f.name, string(r), "system, user, assistant, tool or RoleNone")
		}
	}
	return faults
}

// allows reports whether a message may follow a message of role prev. Notes may follow
// any, unless NoNotes is set.
func (p RolePolicy) allows(prev, next Role) bool {
	switch next {
	case RoleUser:
		return slices.Contains(p.UserAfter, prev)
	case RoleAssistant:
		return slices.Contains(p.AssistantAfter, prev)
	case RoleSystem:
		return !p.NoNotes || prev == RoleNone || prev == RoleSystem
	}
	return true
}
