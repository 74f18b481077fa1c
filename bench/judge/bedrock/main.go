// Command bedrock has the client of aws-sdk-go-v2 judge the requests of package wire.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/document"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"

	"github.com/seed-c1b73e60/convo/bench/judge"
	"github.com/seed-c1b73e60/convo/wire"
)

func main() { judge.Main(converse) }

var converse = &judge.Judge{
	Name: "bedrockruntime, Converse",
	Sees: []string{"role", "field", "shape", "block"},
	Formats: map[string]wire.Format{
		"converse":       wire.Converse{},
		"converse cache": wire.Converse{Model: "m", Cache: true, SystemSummary: true},
		"converse hour":  wire.Converse{Cache: true, CacheTools: true, CacheLifetime: time.Hour},
		"converse alone": wire.Converse{ResultsAlone: true},
	},
	Read: func(body []byte) []judge.Objection {
		in := bedrockruntime.ConverseInput{ModelId: aws.String("m")}
		for _, m := range judge.List(body, "messages") {
			message, err := readMessage(m)
			if err != nil {
				return []judge.Objection{{Path: "messages[]", Why: "the SDK cannot read it"}}
			}
			in.Messages = append(in.Messages, message)
		}
		if err := readRest(body, &in); err != nil {
			return []judge.Objection{{Why: err.Error()}}
		}
		again, err := write(&in)
		if err != nil {
			return []judge.Objection{{Why: indices.ReplaceAllString(err.Error(), "[]")}}
		}
		return append(judge.Same(body, again, false), judge.Strict(in)...)
	},
}

var indices = regexp.MustCompile(`\[\d+\]`)

// A wireTap is an HTTP client that answers each request with the same answer.
type wireTap struct{ answer, request []byte }

func (t *wireTap) Do(r *http.Request) (*http.Response, error) {
	var err error
	if r.Body != nil {
		t.request, err = io.ReadAll(r.Body)
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(t.answer)), Request: r,
	}, err
}

func (t *wireTap) call(in *bedrockruntime.ConverseInput) (*bedrockruntime.ConverseOutput, error) {
	client := bedrockruntime.New(bedrockruntime.Options{
		Region: "eu-west-1", HTTPClient: t, RetryMaxAttempts: 1, Credentials: aws.AnonymousCredentials{},
		AuthSchemePreference: []string{"noAuth"},
	})
	return client.Converse(context.Background(), in)
}

// readMessage has the SDK read a message in the only place where it reads any: in an
// answer.
func readMessage(m []byte) (types.Message, error) {
	t := &wireTap{answer: slices.Concat([]byte(`{"stopReason":"end_turn","output":{"message":`), m, []byte("}}"))}
	out, err := t.call(&bedrockruntime.ConverseInput{ModelId: aws.String("m"),
		Messages: []types.Message{{Role: types.ConversationRoleUser, Content: []types.ContentBlock{&types.ContentBlockMemberText{Value: "x"}}}}})
	if err != nil {
		return types.Message{}, err
	}
	message, ok := out.Output.(*types.ConverseOutputMemberMessage)
	if !ok {
		return types.Message{}, errors.New("no message")
	}
	return message.Value, nil
}

// readRest reads the system text and the tools, which the SDK cannot read.
func readRest(body []byte, in *bedrockruntime.ConverseInput) error {
	var rest struct {
		System []struct {
			Text         *string
			CachePoint   *types.CachePointBlock
			GuardContent *struct {
				Text *types.GuardrailConverseTextBlock
			}
		}
		Messages   json.RawMessage
		ToolConfig *struct {
			Tools []struct {
				CachePoint *types.CachePointBlock
				ToolSpec   *struct {
					Name, Description *string
					InputSchema       struct{ JSON any }
					Strict            *bool
				}
			}
		}
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&rest); err != nil {
		return errors.New("system or toolConfig has another shape")
	}
	for _, b := range rest.System {
		switch {
		case b.Text != nil:
			in.System = append(in.System, &types.SystemContentBlockMemberText{Value: *b.Text})
		case b.CachePoint != nil:
			in.System = append(in.System, &types.SystemContentBlockMemberCachePoint{Value: *b.CachePoint})
		case b.GuardContent != nil && b.GuardContent.Text != nil:
			in.System = append(in.System, &types.SystemContentBlockMemberGuardContent{Value: &types.GuardrailConverseContentBlockMemberText{Value: *b.GuardContent.Text}})
		default:
			in.System = append(in.System, nil) // the SDK refuses it
		}
	}
	if rest.ToolConfig == nil {
		return nil
	}
	in.ToolConfig = &types.ToolConfiguration{Tools: []types.Tool{}}
	for _, t := range rest.ToolConfig.Tools {
		if t.ToolSpec == nil {
			if t.CachePoint == nil {
				return errors.New("neither a tool nor a cache point")
			}
			in.ToolConfig.Tools = append(in.ToolConfig.Tools, &types.ToolMemberCachePoint{Value: *t.CachePoint})
			continue
		}
		in.ToolConfig.Tools = append(in.ToolConfig.Tools, &types.ToolMemberToolSpec{Value: types.ToolSpecification{
			Name: t.ToolSpec.Name, Description: t.ToolSpec.Description, Strict: t.ToolSpec.Strict,
			InputSchema: &types.ToolInputSchemaMemberJson{Value: document.NewLazyDocument(t.ToolSpec.InputSchema.JSON)}}})
	}
	return nil
}

// write returns the body that the SDK sends, after it has validated it.
func write(in *bedrockruntime.ConverseInput) ([]byte, error) {
	t := &wireTap{answer: []byte("{}")}
	_, err := t.call(in)
	return t.request, err
}
