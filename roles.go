package convo

import "slices"

// A RolePolicy is a table of allowed neighbours: which role may follow which
// when a message is appended. The zero value is [Strict]'s table.
//
// Some rules are not its business and hold under every policy: system
// messages stand in front of all others; a tool message holds results, only
// for open calls of the newest exchange and one for each; nothing but results
// follows while a call is open. The summary and the ephemeral messages are
// nobody's neighbours.
type RolePolicy struct {
	// UserAfter and AssistantAfter list the roles after which a user and an
	// assistant message may come; RoleNone lets it come first. Nil: as in
	// Strict. Empty and not nil: after none.
	UserAfter      []Role
	AssistantAfter []Role

	// Interrupt lets a user message that begins an Append answer the calls
	// left open before it, each with an error result that reads "interrupted
	// by the user". The answers are entries of their own, in the same step,
	// with IDs right before those of the batch.
	Interrupt bool

	// KeepEmpty keeps a message without content in the History. A request
	// leaves it out.
	KeepEmpty bool
}

// Strict is the default policy: a user message follows nothing, a system
// message, an assistant message or a finished tool round; an assistant message
// follows a user message or a finished tool round; no message is empty. After
// a request that failed, [History.Rewind] takes the unanswered user message
// back.
func Strict() RolePolicy {
	return RolePolicy{
		UserAfter:      []Role{RoleNone, RoleSystem, RoleAssistant, RoleTool},
		AssistantAfter: []Role{RoleUser, RoleTool},
	}
}

// Relaxed lets user and assistant messages come in any order, answers open
// calls when the user interrupts, and keeps empty messages.
func Relaxed() RolePolicy {
	all := []Role{RoleNone, RoleSystem, RoleUser, RoleAssistant, RoleTool}
	return RolePolicy{UserAfter: all, AssistantAfter: slices.Clone(all), Interrupt: true, KeepEmpty: true}
}

func (p RolePolicy) withDefaults() RolePolicy {
	strict := Strict()
	if p.UserAfter == nil {
		p.UserAfter = strict.UserAfter
	}
	if p.AssistantAfter == nil {
		p.AssistantAfter = strict.AssistantAfter
	}
	p.UserAfter = slices.Clone(p.UserAfter)
	p.AssistantAfter = slices.Clone(p.AssistantAfter)
	return p
}

func (p RolePolicy) faults() (faults []error) {
	check := func(name string, after []Role) {
		for _, r := range after {
			if !slices.Contains([]Role{RoleNone, RoleSystem, RoleUser, RoleAssistant, RoleTool}, r) {
				faults = append(faults, &ValueError{Name: "Options.Roles." + name, Value: string(r), Want: "a known role"})
			}
		}
	}
	check("UserAfter", p.UserAfter)
	check("AssistantAfter", p.AssistantAfter)
	return faults
}

// allows reports whether a message of role next may follow one of role prev.
// Only user and assistant messages are asked about.
func (p RolePolicy) allows(prev, next Role) bool {
	if next == RoleUser {
		return slices.Contains(p.UserAfter, prev)
	}
	return slices.Contains(p.AssistantAfter, prev)
}
