package hosted

import (
	"context"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/bedrock"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/vertex"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients/clienttest"
	"github.com/seed-c1b73e60/convo/clients/convoanthropic"
)

// Clients of the SDK for Bedrock and Vertex send the bytes of the conversation as they are.
func TestHosted(t *testing.T) {
	signed := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "none", SecretAccessKey: "none"}, nil
	})
	token := &google.Credentials{TokenSource: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "none"})}
	for name, host := range map[string]option.RequestOption{
		"Bedrock": bedrock.WithConfig(aws.Config{Region: "eu-central-1", Credentials: signed}),
		"Vertex":  vertex.WithCredentials(t.Context(), "europe-west4", "p", token),
	} {
		t.Run(name, func(t *testing.T) {
			server := clienttest.Record(t)
			client := anthropic.NewClient(host, option.WithBaseURL(server.URL), option.WithMaxRetries(0))
			call := convo.ToolCall{ID: "c", Name: "n", Arguments: `{"b":1.0,"a":12345678901234567890}`}
			err := clienttest.Do(t, convoanthropic.Send(client, anthropic.MessageNewParams{Model: "claude-opus-5-5", MaxTokens: 1024}, nil),
				convo.System("<s>"), convo.User("<a> & b"), convo.Assistant("", call), convo.Result(call, "r"))
			require.Error(t, err)
			server.Check(name, []string{"<s>", "<a> & b", `"input":{"b":1.0,"a":12345678901234567890}`, `"anthropic_version"`}, []string{`"model"`})
		})
	}
}
