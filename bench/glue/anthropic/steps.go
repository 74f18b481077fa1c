package anthropic

import (
	"context"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/bench/glue"
	"github.com/seed-c1b73e60/convo/wire"
)

// withSteps is an agent with the single steps that Do is made of.
type withSteps struct {
	client  anthropic.Client
	history *convo.History
}

func newWithSteps(client anthropic.Client) (*withSteps, error) {
	h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: glue.Window, Reserve: glue.Reserve}})
	if err == nil {
		_, err = h.Append(convo.System(glue.System))
	}
	return &withSteps{client, h}, err
}

func (a *withSteps) Ask(ctx context.Context, question string, show func(string)) error {
	if _, err := a.history.Append(convo.User(question)); err != nil {
		return err
	}
	for {
		snap, _, err := a.history.Prepare(ctx)
		if err != nil {
			return err
		}
		reply, err := a.send(ctx, snap, show)
		if err != nil {
			if retry, _, err := a.history.Recover(ctx, snap, err); !retry {
				return err
			}
			snap = a.history.Snapshot()
			if reply, err = a.send(ctx, snap, show); err != nil {
				return err
			}
		}
		if err := a.history.RecordUsage(snap, reply.Usage); err != nil {
			return err
		}
		if _, err := a.history.Append(reply.Messages...); err != nil {
			return err
		}
		for _, call := range reply.OpenCalls() {
			text, err := glue.Run(call.Name, call.Arguments)
			result := convo.Result(call, text)
			if err != nil {
				result = convo.ResultError(call, err)
			}
			if _, err := a.history.Append(result); err != nil {
				return err
			}
		}
		if len(reply.OpenCalls()) == 0 {
			return nil
		}
	}
}

func (a *withSteps) send(ctx context.Context, s *convo.Snapshot, show func(string)) (convo.Reply, error) {
	req, err := wire.Anthropic{Model: model}.Encode(s)
	if err != nil {
		return convo.Reply{}, err
	}
	stream := a.client.Messages.NewStreaming(ctx, anthropic.MessageNewParams{},
		option.WithRequestBody("application/json", req.Body()), option.WithJSONSet("model", model),
		option.WithJSONSet("max_tokens", maxTokens), option.WithJSONSet("tools", tools))
	defer stream.Close()
	answer := wire.Anthropic{Model: model}.Stream()
	for stream.Next() {
		deltas, err := answer.Event("", []byte(stream.Current().RawJSON()))
		if err != nil {
			return convo.Reply{}, err
		}
		for _, d := range deltas {
			show(d.Text)
		}
	}
	if err := stream.Err(); err != nil {
		return convo.Reply{}, err
	}
	in, err := answer.Transcript() // an error, if the stream broke off
	return in.Reply(), err
}
