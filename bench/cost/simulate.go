package cost

import (
	"fmt"

	"github.com/seed-c1b73e60/convo"
)

// A Setup is what a replay goes by beside the conversation.
type Setup struct {
	Window  int // of the model
	Reserve int // for the answer
	Cache   Cache
	Clock   Clock
}

// Limit is what a request may weigh.
func (s Setup) Limit() int { return s.Window - s.Reserve }

// A Kind tells what stands behind a row of a table.
type Kind string

const (
	Real     Kind = "real"     // the library's own code runs
	Modelled Kind = "modelled" // a few lines that do what is described
)

// A Policy decides what each request holds.
type Policy struct {
	Name  string
	Kind  Kind
	Cuts  bool // it only drops the oldest or clears results: the optimum is a bound for it
	Free  bool // it knows no limit
	Start func(c *Conversation, s Setup, m *Meter) (Run, error)
}

// A Run is a policy at work on one conversation.
type Run interface {
	// Append adds the next message.
	Append(m convo.Message) error
	// Request returns what is sent now.
	Request() ([]Item, error)
	// Sent tells what the provider reported for it.
	Sent(u convo.Usage) error
	Close() error
}

// Replay sends a conversation: one request before each assistant message.
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

// ReplayAll sends several conversations and adds up.
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
