package provider

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
)

// A Fault is what goes wrong with an answer although nothing is wrong with the request. Its
// fields may be combined. For figures of usage that are wrong, see Answer.Usage.
type Fault struct {
	// Status is sent in place of the answer, with an error of the provider: 429 for a rate
	// that is exceeded, 503 or 529 for a provider that is overloaded, 500 for a failure;
	// any other is sent with the text of a failure. The request is none of those that
	// Refused returns. 0: the answer is sent.
	Status int

	// RetryAfter is sent in the header of that name, in whole seconds, with Status. 0: no
	// header.
	RetryAfter time.Duration

	// NewKey has the Responses API encrypt reasoning with another key from now on. What it has
	// encrypted before is refused in this request and in all later ones, as after a change of
	// the organisation; these requests are among those that Refused returns.
	NewKey bool

	// Wait is the time before the first byte. It ends early if the client goes away.
	Wait time.Duration

	// Pause is the time between two events of a stream, such as those of a slow model. It ends
	// early if the client goes away.
	Pause time.Duration

	// CutAfter ends the connection of a stream after so many events. 0: the stream is whole.
	// It needs the server of package net/http, whose connection it is.
	CutAfter int

	// Foreign is the JSON of an event that no client knows, such as {"type":"surprise"},
	// which a stream sends after its first event. Its field type, if there is one, is the
	// name of the event. Empty: none. Whole answers, and streams of Gemini that are
	// arrays, have no such event.
	Foreign string
}

// fail does what a Fault says before the answer, and reports whether there is an answer.
func (c *call) fail(r *http.Request) (answers bool) {
	f := c.fault
	if f == nil {
		return true
	}
	if f.NewKey {
		c.s.mu.Lock()
		c.s.keys++
		c.s.mu.Unlock()
		if p := c.f.check(c); p != nil {
			c.refuse(p)
			return false
		}
	}
	c.gone = r.Context().Done()
	c.sleep(f.Wait)
	if f.Status == 0 {
		return true
	}
	if f.RetryAfter > 0 {
		c.w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(f.RetryAfter.Seconds()))))
	}
	c.req.Status = f.Status
	c.s.record(c.req)
	c.send(f.Status, c.f.fault(c, outage(c.req.Format, f.Status)))
	return false
}

// sleep returns after d, or when the client goes away.
func (c *call) sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.gone:
	}
}

// outage returns the error of a provider that does not answer.
func outage(format string, status int) *problem {
	p := &problem{status: status}
	limited, overloaded := status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable || status == statusOverloaded
	switch format {
	case FormatAnthropic:
		switch {
		case limited:
			p.kind, p.text = "rate_limit_error", "This request would exceed your account's rate limit. Please try again later."
		case overloaded:
			p.kind, p.text = "overloaded_error", "Overloaded"
		default:
			p.kind, p.text = "api_error", "Internal server error"
		}
	case FormatGemini:
		switch {
		case limited:
			p.kind, p.text = "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."
		case overloaded:
			p.kind, p.text = "UNAVAILABLE", "The model is overloaded. Please try again later."
		default:
			p.kind, p.text = "INTERNAL", "An internal error has occurred. Please retry."
		}
	case FormatConverse:
		switch {
		case limited:
			p.kind, p.text = "ThrottlingException", "Too many requests, please wait before trying again."
		case overloaded:
			p.kind, p.text = "ServiceUnavailableException", "Bedrock is unable to process your request."
		default:
			p.kind, p.text = "InternalServerException", "The system encountered an unexpected error during processing. Try your request again."
		}
	default:
		switch {
		case limited:
			p.kind, p.code, p.text = "requests", "rate_limit_exceeded", "Rate limit reached for requests. Please try again later."
		case overloaded:
			p.kind, p.text = "server_error", "The server is currently overloaded with other requests. Sorry about that! You can retry your request."
		default:
			p.kind, p.text = "server_error", "The server had an error while processing your request. Sorry about that!"
		}
	}
	return p
}

// overQuota returns the error for a request of so many tokens that alone exceeds the quota.
func (c *call) overQuota(tokens int) *problem {
	quota := c.s.opts.Quota
	openAI := c.req.Format == FormatOpenAIChat || c.req.Format == FormatOpenAIResponses
	if openAI {
		for _, field := range []string{"max_tokens", "max_completion_tokens", "max_output_tokens"} {
			n, _ := c.all[field].(json.Number)
			most, _ := n.Int64()
			tokens += int(most)
		}
	}
	if tokens <= quota {
		return nil
	}
	p := outage(c.req.Format, http.StatusTooManyRequests)
	if openAI {
		p.kind = "tokens"
		p.text = fmt.Sprintf("Request too large for %s in organization org-convo on tokens per min (TPM): Limit %d, Requested %d. The input or output tokens must be reduced in order to run successfully. Visit https://platform.openai.com/account/rate-limits to learn more.", c.req.Model, quota, tokens)
	}
	return p
}

// statusOverloaded is Anthropic's status for a provider that is overloaded.
const statusOverloaded = 529

// afterEvent is called when an event of a stream was sent. write sends another.
func (c *call) afterEvent(write func(name string, data json.RawMessage)) {
	c.events++
	f := c.fault
	if f == nil {
		return
	}
	if f.CutAfter > 0 && c.events >= f.CutAfter {
		panic(http.ErrAbortHandler) // net/http ends the connection
	}
	if f.Foreign != "" && !c.foreign {
		c.foreign = true
		data := []byte(f.Foreign)
		if !json.Valid(data) {
			data = marshal(f.Foreign)
		}
		var named struct{ Type string }
		_ = json.Unmarshal(data, &named) // it may be anything
		write(named.Type, data)
		return // with its pause
	}
	c.sleep(f.Pause)
}
