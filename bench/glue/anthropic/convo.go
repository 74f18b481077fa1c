package anthropic

import (
	"context"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/bench/glue"
	"github.com/seed-c1b73e60/convo/wire"
)

// withDo is an agent with convo.
type withDo struct {
	client  anthropic.Client
	history *convo.History
}

func newWithDo(client anthropic.Client) (*withDo, error) {
	h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: glue.Window, Reserve: glue.Reserve}})
	if err == nil {
		_, err = h.Append(convo.System(glue.System))
	}
	return &withDo{client, h}, err
}

func (a *withDo) Ask(ctx context.Context, question string, show func(string)) error {
	if _, err := a.history.Append(convo.User(question)); err != nil {
		return err
	}
	for {
		reply, err := a.history.Do(ctx, func(ctx context.Context, s *convo.Snapshot) (convo.Reply, error) { return a.send(ctx, s, show) })
		if err != nil {
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

func (a *withDo) send(ctx context.Context, s *convo.Snapshot, show func(string)) (convo.Reply, error) {
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
