package convobedrock_test

import (
	"cmp"
	"context"
	"errors"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients"
	"github.com/seed-c1b73e60/convo/clients/clienttest"
	"github.com/seed-c1b73e60/convo/clients/convobedrock"
	"github.com/seed-c1b73e60/convo/wire"
)

func newClient(url string) *bedrockruntime.Client {
	return bedrockruntime.New(bedrockruntime.Options{
		Region: "eu-central-1", BaseEndpoint: aws.String(url), RetryMaxAttempts: 1,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "none", SecretAccessKey: "none"}, nil
		}),
	})
}

var params = &bedrockruntime.ConverseStreamInput{ModelId: aws.String("anthropic.claude-opus-5-5-v1:0")}

func Test(t *testing.T) {
	clienttest.Run(t, clienttest.Client{
		Signs: true,
		Row:   "Converse",
		Send: func(url string, show func(wire.Delta)) convo.Send {
			return convobedrock.Send(newClient(url), params, show)
		},
		Summarizer: func(url string) convo.Summarizer {
			return (&convobedrock.Sender{Client: newClient(url), Params: params}).Summarizer("")
		},
	})
}

// What the History decides may not be among the parameters.
func TestParams(t *testing.T) {
	h, err := convo.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Append(convo.User("1")); err != nil {
		t.Fatal(err)
	}
	var wrong *clients.ParamsError
	filled := *params
	filled.System = []types.SystemContentBlock{&types.SystemContentBlockMemberText{Value: "x"}}
	_, err = h.Do(t.Context(), convobedrock.Send(newClient("http://127.0.0.1:1"), &filled, nil))
	if !errors.As(err, &wrong) || wrong.Field != "system" {
		t.Error(err)
	}
}

// With a key in the environment, the sender talks to the real service.
func TestReal(t *testing.T) {
	clienttest.Real(t, clienttest.Service{Key: "AWS_ACCESS_KEY_ID", Base: "AWS_ENDPOINT_URL_BEDROCK_RUNTIME", Send: func(model string) convo.Send {
		o := bedrockruntime.Options{
			Region: cmp.Or(os.Getenv("AWS_REGION"), "us-east-1"),
			Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{AccessKeyID: os.Getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: cmp.Or(os.Getenv("AWS_SECRET_ACCESS_KEY"), "none"), SessionToken: os.Getenv("AWS_SESSION_TOKEN")}, nil
			}),
		}
		if base := os.Getenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME"); base != "" {
			o.BaseEndpoint = aws.String(base)
		}
		return convobedrock.Send(bedrockruntime.New(o), &bedrockruntime.ConverseStreamInput{ModelId: aws.String(cmp.Or(model, "us.anthropic.claude-haiku-5-5-v1:0"))}, nil)
	}})
}
