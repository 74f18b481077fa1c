package cost

import (
	"fmt"

	"github.com/seed-c1b73e60/convo"
)

// A Setup holds the settings of a replay.
type Setup struct {
	Window  int // tokens of the model's context
	Reserve int // tokens kept free for the answer
	Cache   Cache
	Clock   Clock
}

// Limit returns the most tokens that a request may have.
func (s Setup) Limit() int { return s.Window - s.Reserve }

// A Kind says which code runs for a row of a table.
type Kind string

const (
	Real     Kind = "real"     // the library's own code runs
	Modelled Kind = "modelled" // a few lines here that follow the described rule
)

// A Policy decides what each request of a conversation holds.
type Policy struct {
	Name  string
	Kind  Kind
	Cuts  bool // it only drops the oldest and clears results, so it cannot cost less than the optimum
	Free  bool // it ignores the limit
	Start func(c *Conversation, s Setup, m *Meter) (Run, error)
}

// A Run applies a policy to one conversation.
type Run interface {
	// Append adds the next message.
	Append(m convo.Message) error
	// Request returns the messages to send.
	Request() ([]Item, error)
	// Sent reports the provider's usage for the last request.
	Sent(u convo.Usage) error
	Close() error
}

// Replay replays a conversation, with one request before each assistant message.
func Replay(c *Conversation, p Policy, s Setup) (Tally, error) {
	m := &Meter{Cache: s.Cache, Limit: s.Limit()}
	run, err := p.Start(c, s, m)
	if err != nil {
		return Tally{}, fmt.Errorf("%s: %w", p.Name, err)
	}
	err = replay(c, run, s, m)
	if cerr := run.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return Tally{}, fmt.Errorf("%s: %s: %w", p.Name, c.Name, err)
	}
	return m.Tally, nil
}

func replay(c *Conversation, run Run, s Setup, m *Meter) error {
	for i, msg := range c.Messages {
		if msg.Role == convo.RoleAssistant {
			m.Wait(s.Clock.before(m.Requests))
			view, err := run.Request()
			if err != nil {
				return fmt.Errorf("request %d: %w", m.Requests+1, err)
			}
			if err := run.Sent(m.Request(view, c.plan.full[i].Tokens)); err != nil {
				return err
			}
		}
		if err := run.Append(msg); err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
	}
	return nil
}

// ReplayAll replays several conversations and adds up the results.
func ReplayAll(cs []*Conversation, p Policy, s Setup) (Tally, error) {
	var all Tally
	for _, c := range cs {
		t, err := Replay(c, p, s)
		if err != nil {
			return Tally{}, err
		}
		all = all.plus(t)
	}
	return all, nil
}
