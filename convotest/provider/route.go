package provider

import (
	"net/url"
	"strings"
)

// route finds the format of a request by its address.
func (c *call) route(u *url.URL) {
	switch path := u.Path; {
	case strings.HasSuffix(path, "/messages"):
		c.req.Format, c.f = FormatAnthropic, anthropic{}
	case strings.HasSuffix(path, "/chat/completions"):
		c.req.Format, c.f = FormatOpenAIChat, chat{}
	case strings.HasSuffix(path, "/responses/compact"):
		c.req.Format, c.f = FormatOpenAIResponses, responsesCompact{}
	case strings.HasSuffix(path, "/responses"):
		c.req.Format, c.f = FormatOpenAIResponses, responses{}
	default:
		if m := geminiPath.FindStringSubmatch(path); m != nil {
			c.req.Format, c.req.Model, c.req.Stream = FormatGemini, m[1], m[2] == "streamGenerateContent"
			c.f = gemini{sse: u.Query().Get("alt") == "sse"}
		}
		if m := conversePath.FindStringSubmatch(path); m != nil {
			c.req.Format, c.req.Model, c.req.Stream = FormatConverse, m[1], m[2] == "converse-stream"
			c.f = converse{}
		}
	}
}
