package genai

import (
	"context"
	"encoding/json"

	"google.golang.org/genai"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/bench/glue"
	"github.com/seed-c1b73e60/convo/wire"
)

// withSteps is an agent with the single steps that Do is made of.
type withSteps struct {
	client  *genai.Client
	history *convo.History
}

func newWithSteps(client *genai.Client) (*withSteps, error) {
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
	req, err := wire.Gemini{Model: model}.Encode(s)
	if err != nil {
		return convo.Reply{}, err
	}
	config := &genai.GenerateContentConfig{Tools: tools, HTTPOptions: &genai.HTTPOptions{
		ExtraBody: map[string]any{"systemInstruction": req.System, "contents": req.Messages},
	}}
	answer := wire.Gemini{Model: model}.Stream()
	for chunk, err := range a.client.Models.GenerateContentStream(ctx, model, nil, config) {
		if err != nil {
			return convo.Reply{}, err
		}
		data, err := json.Marshal(chunk)
		if err != nil {
			return convo.Reply{}, err
		}
		deltas, err := answer.Event("", data)
		if err != nil {
			return convo.Reply{}, err
		}
		for _, d := range deltas {
			show(d.Text)
		}
	}
	in, err := answer.Transcript() // an error, if the stream broke off
	return in.Reply(), err
}
