package bedrock

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/bench/glue"
	"github.com/seed-c1b73e60/convo/clients/convobedrock"
	"github.com/seed-c1b73e60/convo/wire"
)

// withClient is an agent with convo and its client for the SDK.
type withClient struct {
	client  *bedrockruntime.Client
	history *convo.History
}

func newWithClient(client *bedrockruntime.Client) (*withClient, error) {
	h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: glue.Window, Reserve: glue.Reserve}})
	if err == nil {
		err = h.SetSystem(convo.System(glue.System))
	}
	return &withClient{client, h}, err
}

func (a *withClient) Ask(ctx context.Context, question string, show func(string)) error {
	if _, err := a.history.Append(convo.User(question)); err != nil {
		return err
	}
	send := convobedrock.Send(a.client, &bedrockruntime.ConverseStreamInput{ModelId: aws.String(model)}, func(d wire.Delta) { show(d.Text) })
	_, err := a.history.Run(ctx, send, convo.RunOptions{Tools: glue.Handlers()})
	return err
}
