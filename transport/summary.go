package transport

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients"
	"github.com/seed-c1b73e60/convo/wire"
)

// mostSummaries is how many summaries are written by models at the same time.
const mostSummaries = 4

// An answered is a request that was answered, without its messages: a summary is asked for in the
// same way.
type answered struct {
	r      *http.Request // without a body
	s      *convo.Snapshot
	raw    [][]byte // the messages
	system []byte
	params map[string]json.RawMessage // the other fields
	model  string
}

// keepAnswered keeps the request of x for summaries.
func (x *exchange) keepAnswered() {
	if x.t.o.SummaryModel == "" || x.s == nil {
		return
	}
	a := &answered{r: x.r.Clone(context.Background()), s: x.s, model: x.about.Model, params: make(map[string]json.RawMessage)}
	a.r.Body, a.r.GetBody, a.r.ContentLength = nil, nil, 0
	var list span
	err := fields(x.plain, func(name string, v span) {
		switch name {
		case x.api.list:
			list = v
		case x.api.system, "system_instruction":
			a.system = bytes.Clone(v.of(x.plain))
		case "stream", "stream_options":
		default:
			a.params[name] = bytes.Clone(v.of(x.plain))
		}
	})
	if err != nil {
		return
	}
	if a.raw = x.raw; a.raw == nil { // as it came
		all, err := elements(x.plain, list)
		if err != nil {
			return
		}
		for _, s := range all {
			a.raw = append(a.raw, bytes.Clone(s.of(x.plain)))
		}
	}
	x.talk.answered.Store(a)
}

// strategy returns the default strategy with summaries by a model.
func (t *Transport) strategy(k *talk) convo.CompactionStrategy {
	return convo.Chain(convo.ClearMedia{}, convo.ClearToolResults{}, convo.Summarize{With: convo.SummarizerFunc(func(ctx context.Context, r convo.SummaryRequest) (convo.Summary, error) {
		return t.summarize(ctx, k, r)
	})}, convo.Truncate{})
}

func (t *Transport) summarize(ctx context.Context, k *talk, r convo.SummaryRequest) (convo.Summary, error) {
	a := k.answered.Load()
	if a == nil {
		return convo.Summary{}, &convo.RefusedError{Reason: "no request of the conversation was answered yet, so it is not known how to ask"}
	}
	select {
	case t.summaries <- struct{}{}:
		defer func() { <-t.summaries }()
	case <-ctx.Done():
		return convo.Summary{}, ctx.Err()
	}
	if r.Sent != nil && r.Sent.Version() != a.s.Version() {
		r.Sent = nil
	}
	model := t.o.SummaryModel
	if model == "*" {
		model = a.model
	}
	return clients.Summarizer(k.api.format, model, a.model, func(ctx context.Context, req wire.Request) (convo.Reply, error) {
		if n := len(req.Messages); n > 1 { // it goes on with the request that was sent
			req.Messages, req.System = append(rawsOf(a.raw), req.Messages[n-1]), a.system
		}
		return a.ask(ctx, t.o.Base, k.api, model, req)
	}).Summarize(ctx, r)
}

// ask makes a request for a summary.
func (a *answered) ask(ctx context.Context, base http.RoundTripper, api api, model string, req wire.Request) (convo.Reply, error) {
	params := maps.Clone(a.params)
	r := a.r.Clone(ctx)
	if params["model"] != nil {
		params["model"], _ = json.Marshal(model)
	}
	r.URL = a.url(api, model)
	body, err := clients.Body(ctx, req, params)
	if err != nil {
		return convo.Reply{}, err
	}
	r.Header.Del("Accept-Encoding")
	r.Header.Del("Content-Encoding")
	r.Header.Del(idempotency)
	resp, err := base.RoundTrip(request(r, body))
	if err != nil {
		return convo.Reply{}, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	if err != nil {
		return convo.Reply{}, err
	}
	answer, err := api.format.Decode(data)
	switch {
	case err != nil:
		return convo.Reply{}, &refusal{resp.StatusCode, err}
	case resp.StatusCode != http.StatusOK:
		return convo.Reply{}, &refusal{resp.StatusCode, fmt.Errorf("the provider answered with the status %s", resp.Status)}
	}
	return answer.Reply(), nil
}

// url returns where a model answers without a stream.
func (a *answered) url(api api, model string) *url.URL {
	u := *a.r.URL
	before, rest, ok := strings.Cut(u.Path, "/models/")
	_, verb, isCall := strings.Cut(rest, ":")
	if !ok || !isCall {
		return &u
	}
	switch verb {
	case "streamGenerateContent":
		verb = "generateContent"
	case "streamRawPredict":
		verb = "rawPredict"
	}
	u.Path, u.RawPath = before+"/models/"+cmp.Or(model, a.model)+":"+verb, ""
	if query := u.Query(); query.Get("alt") == "sse" {
		query.Del("alt")
		u.RawQuery = query.Encode()
	}
	return &u
}
