package convoanthropic_test

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/param"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients/clienttest"
	"github.com/seed-c1b73e60/convo/clients/convoanthropic"
	"github.com/seed-c1b73e60/convo/wire"
)

func newClient(url string) anthropic.Client {
	return anthropic.NewClient(option.WithBaseURL(url), option.WithAPIKey("none"), option.WithMaxRetries(0))
}

var params = anthropic.MessageNewParams{Model: "claude-opus-5-5", MaxTokens: 500}

func Test(t *testing.T) {
	clienttest.Run(t, clienttest.Client{
		Signs: true, Row: "Anthropic", Small: "claude-haiku-5-5",
		New: func(url string, show func(wire.Delta), own string) clienttest.Sender {
			params := params
			if own != "" {
				params.Tools = []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{Name: own, Description: anthropic.String("of the parameters"), InputSchema: anthropic.ToolInputSchemaParam{Properties: map[string]any{}}}}}
			}
			return &convoanthropic.Sender{Client: newClient(url), Params: params, Show: show}
		},
		Marked: func(url string, lifetimes []time.Duration) clienttest.Sender {
			params := params
			for i, d := range lifetimes {
				mark := anthropic.CacheControlEphemeralParam{TTL: anthropic.CacheControlEphemeralTTLTTL5m}
				if d == time.Hour {
					mark.TTL = anthropic.CacheControlEphemeralTTLTTL1h
				}
				params.Tools = append(params.Tools, anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{Name: fmt.Sprint("tool", i), InputSchema: anthropic.ToolInputSchemaParam{Properties: map[string]any{}}, CacheControl: mark}})
			}
			return &convoanthropic.Sender{Client: newClient(url), Params: params}
		},
		Extra: func(url string, fields map[string]any, override bool) clienttest.Sender {
			params := params
			if override {
				params = param.Override[anthropic.MessageNewParams](fields)
			} else {
				params.SetExtraFields(fields)
			}
			return &convoanthropic.Sender{Client: newClient(url), Params: params}
		},
		Strict: func(url string, schema bool) clienttest.Sender {
			params := params
			params.MaxTokens, params.StopSequences = 1024, []string{clienttest.StopSequence}
			if schema {
				params.OutputConfig.Format = anthropic.JSONOutputFormatParam{Schema: map[string]any{"type": "object"}}
			}
			return &convoanthropic.Sender{Client: newClient(url), Params: params}
		},
		Retrying: func(url string) clienttest.Sender {
			return &convoanthropic.Sender{Client: newClient(url), Params: params, Options: []option.RequestOption{option.WithMaxRetries(1)}}
		},
	})
}

// With a key in the environment, the sender talks to the real service.
func TestReal(t *testing.T) {
	clienttest.Real(t, clienttest.Service{Key: "ANTHROPIC_API_KEY", Base: "ANTHROPIC_BASE_URL", Send: func(model string) convo.Send {
		return convoanthropic.Send(anthropic.NewClient(), anthropic.MessageNewParams{Model: anthropic.Model(cmp.Or(model, "claude-haiku-5-5")), MaxTokens: 1024}, nil)
	}})
}
