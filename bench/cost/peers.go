package cost

import (
	"strconv"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/bench/internal/harness"
	"github.com/seed-c1b73e60/convo/bench/peer"
)

// peers returns the policies of other Go libraries that support the
// conversations.
func peers(cs []*Conversation, fleet *harness.Fleet) []Policy {
	tools := false
	for _, c := range cs {
		for _, m := range c.Messages {
			tools = tools || m.Role == convo.RoleTool
		}
	}
	var all []Policy
	for _, p := range fleet.Peers {
		for _, k := range p.Costs {
			if tools && k.NoTools {
				continue
			}
			all = append(all, kept(k.Name, func(job peer.Job) ([]peer.Request, error) { return p.Keep(true, k.Name, job) }))
		}
	}
	return all
}

// kept is a policy that runs another library's own code. The library gets the
// whole conversation at the start, and its requests are then billed one by one. Its
// requests for summaries do not use the cache and are billed separately.
func kept(name string, do func(peer.Job) ([]peer.Request, error)) Policy {
	return Policy{Name: name, Kind: Real, Start: func(c *Conversation, s Setup, m *Meter) (Run, error) {
		job := peer.Job{
			Limit:    s.Limit(),
			Measure:  peer.MeasureBytes,
			Summary:  summaryText(summaryTokens, convo.Heuristic{}.CountTokens),
			Messages: make([]peer.Message, len(c.Messages)),
		}
		for i, msg := range c.Messages {
			job.Messages[i] = messageOf(i, msg)
			if msg.Role == convo.RoleAssistant {
				job.Asks = append(job.Asks, i)
			}
		}
		requests, err := do(job)
		return &keptRun{c: c, m: m, requests: requests}, err
	}}
}

type keptRun struct {
	c        *Conversation
	m        *Meter
	requests []peer.Request
}

func (r *keptRun) Append(convo.Message) error { return nil }
func (r *keptRun) Sent(convo.Usage) error     { return nil }
func (r *keptRun) Close() error               { return nil }

func (r *keptRun) Request() ([]Item, error) {
	now := r.requests[0]
	r.requests = r.requests[1:]
	for _, a := range now.Apart {
		r.m.Apart(a.Input, a.Output)
	}
	view := make([]Item, len(now.View))
	for i, m := range now.View {
		view[i] = r.c.item(ofPeer(m))
	}
	return view, nil
}

// messageOf converts a message for a peer. A tool message must hold a single
// result.
func messageOf(n int, m convo.Message) peer.Message {
	out := peer.Message{N: n, Role: string(m.Role), Text: m.Text()}
	for _, c := range m.ToolCalls() {
		out.Calls = append(out.Calls, peer.Call{ID: c.ID, Name: c.Name, Args: c.Arguments})
	}
	for _, r := range m.ToolResults() {
		out.Answers, out.Tool, out.Text = r.CallID, r.Name, r.Text()
	}
	return out
}

// ofPeer converts a message of a peer. It is the inverse of messageOf.
func ofPeer(p peer.Message) convo.Message {
	var m convo.Message
	switch p.Role {
	case "tool":
		m = convo.Result(convo.ToolCall{ID: p.Answers, Name: p.Tool}, p.Text)
	case "assistant":
		var calls []convo.ToolCall
		for _, c := range p.Calls {
			calls = append(calls, convo.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Args})
		}
		m = convo.Assistant(p.Text, calls...)
	case "system":
		m = convo.System(p.Text)
	default:
		m = convo.User(p.Text)
	}
	if p.N != peer.Made {
		m.Meta = strconv.Itoa(p.N)
	}
	return m
}
