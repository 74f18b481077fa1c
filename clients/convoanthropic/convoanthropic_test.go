package convoanthropic_test

import (
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

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
		Signs: true, Row: "Anthropic",
		Send: func(url string, show func(wire.Delta)) convo.Send {
			return convoanthropic.Send(newClient(url), params, show)
		},
		Summarizer: func(url string) convo.Summarizer {
			return (&convoanthropic.Sender{Client: newClient(url), Params: params}).Summarizer("")
		},
	})
}
