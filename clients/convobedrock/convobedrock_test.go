package convobedrock_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/document"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients/clienttest"
	"github.com/seed-c1b73e60/convo/clients/convobedrock"
	"github.com/seed-c1b73e60/convo/convotest/provider"
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

var outputConfig = &types.OutputConfig{TextFormat: &types.OutputFormat{Type: types.OutputFormatTypeJsonSchema, Structure: &types.OutputFormatStructureMemberJsonSchema{Value: types.JsonSchemaDefinition{Schema: aws.String("{}")}}}}

func Test(t *testing.T) {
	clienttest.Run(t, clienttest.Client{
		Signs: true, Row: "Converse", Small: "anthropic.claude-haiku-5-5-v1:0", CacheTTL: 5 * time.Minute,
		New: func(url string, show func(wire.Delta), own string) clienttest.Sender {
			params := *params
			if own != "" {
				params.ToolConfig = &types.ToolConfiguration{Tools: []types.Tool{&types.ToolMemberToolSpec{Value: types.ToolSpecification{
					Name: &own, Description: aws.String("of the parameters"), InputSchema: &types.ToolInputSchemaMemberJson{Value: document.NewLazyDocument(map[string]any{"type": "object"})},
				}}}}
			}
			return &convobedrock.Sender{Client: newClient(url), Params: &params, Show: show}
		},
		Marked: func(url string, lifetimes []time.Duration) clienttest.Sender {
			params, tools := *params, []types.Tool{}
			for i, d := range lifetimes {
				mark := types.CachePointBlock{Type: types.CachePointTypeDefault}
				if d == time.Hour {
					mark.Ttl = types.CacheTTLOneHour
				}
				tools = append(tools, &types.ToolMemberToolSpec{Value: types.ToolSpecification{
					Name: aws.String(fmt.Sprint("tool", i)), InputSchema: &types.ToolInputSchemaMemberJson{Value: document.NewLazyDocument(map[string]any{"type": "object"})},
				}}, &types.ToolMemberCachePoint{Value: mark})
			}
			if len(tools) > 0 {
				params.ToolConfig = &types.ToolConfiguration{Tools: tools}
			}
			return &convobedrock.Sender{Client: newClient(url), Params: &params}
		},
		Strict: func(url string, schema bool) clienttest.Sender {
			params := *params
			params.InferenceConfig = &types.InferenceConfiguration{MaxTokens: aws.Int32(1024), StopSequences: []string{clienttest.StopSequence}}
			if schema {
				params.OutputConfig = outputConfig
			}
			return &convobedrock.Sender{Client: newClient(url), Params: &params}
		},
		Retrying: func(url string) clienttest.Sender {
			return &convobedrock.Sender{Client: newClient(url), Params: params, Options: []func(*bedrockruntime.Options){func(o *bedrockruntime.Options) {
				o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts, o.MaxBackoff = 2, time.Millisecond })
			}}}
		},
	})
}

// Tools of a model that Converse passes on are tools of the parameters, and their cache marks
// are counted.
func TestModelTools(t *testing.T) {
	var tools []any
	for i := range 3 {
		tools = append(tools, map[string]any{"type": "bash_20250124", "name": fmt.Sprint("own", i), "cache_control": map[string]any{"type": "ephemeral"}})
	}
	own := *params
	own.ToolConfig = &types.ToolConfiguration{}
	own.AdditionalModelRequestFields = document.NewLazyDocument(nil)
	_ = clienttest.Do(t, convobedrock.Send(newClient(clienttest.Record(t).URL), &own, nil), convo.User("no panic"))
	own = *params
	own.AdditionalModelRequestFields = document.NewLazyDocument(map[string]any{"tools": tools})
	p := provider.New(provider.Options{Answer: func(provider.Request) provider.Answer {
		return provider.Answer{Blocks: []provider.Block{provider.Call{Name: "own1", Arguments: "{}"}}}
	}})
	server := httptest.NewServer(p)
	defer server.Close()
	h, err := convo.New(nil)
	if err == nil {
		_, err = h.Append(convo.System("guide"), convo.User("q"), convo.Assistant("a"), convo.User("q"))
	}
	if err != nil {
		t.Fatal(err)
	}
	reply, err := h.Run(t.Context(), convobedrock.Send(newClient(server.URL), &own, nil), convo.RunOptions{})
	if err != nil || len(reply.OpenCalls()) != 1 {
		t.Errorf("%v, %v, want the call of the tool left open", reply, err)
	}
	if n := strings.Count(string(p.Requests()[0].Body), "cachePoint"); n != 1 {
		t.Errorf("%d cache points besides three marks, want 1", n)
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
