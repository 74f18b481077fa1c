package clienttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients"
	"github.com/seed-c1b73e60/convo/convotest/provider"
)

// testSummarizer compacts with the client's own summarizer. Only the model of the conversation
// has it in its cache, and gets it again with an instruction; another one gets a prompt.
func testSummarizer(t *testing.T, c Client) {
	for _, tt := range []struct {
		model string
		rides bool
	}{{"", true}, {c.Small, false}} {
		t.Run("model "+tt.model, func(t *testing.T) {
			p := provider.New(provider.Options{Answer: func(r provider.Request) provider.Answer {
				return provider.Answer{Blocks: []provider.Block{provider.Text("The user likes window seats.")}}
			}})
			url := serve(t, p)
			h := history(t, convo.Options{Limits: convo.Limits{Window: 100_000}, Strategy: convo.Summarize{With: c.New(url, nil, "").Summarizer(tt.model)}})
			for i := range 40 {
				if _, err := h.Append(convo.User(fmt.Sprint("Question ", i, strings.Repeat(" word", 50)))); err != nil {
					t.Fatal(err)
				}
				if _, err := h.Do(t.Context(), c.New(url, nil, "").Send); err != nil {
					t.Fatal(err)
				}
			}
			r, err := h.Compact(t.Context(), "")
			if err != nil || r.Outcome != convo.OutcomeApplied {
				t.Fatal(r, err)
			}
			sum, _ := h.Snapshot().Summary()
			if sum.Text != "The user likes window seats." || sum.Usage.Input == 0 || sum.Model == "" {
				t.Errorf("the summary is %+v, want the text, the usage and the model of the answer", sum)
			}
			noneRefused(t, p)
			asked := p.Requests()[40]
			if n := strings.Count(string(asked.Body), `"role":"user"`); n > 1 != tt.rides {
				t.Errorf("the request for the summary has %d messages of the user; that it holds the whole conversation should be %t: %s", n, tt.rides, excerpt(string(asked.Body)))
			}
			if tt.model != "" && asked.Model != tt.model {
				t.Errorf("the summary was asked of %q, want %q", asked.Model, tt.model)
			}
		})
	}
}

// testOwnTool has a tool among the parameters. It stands before that of the History, and stays
// where a summarizer sends the conversation again, since the cache begins with it.
func testOwnTool(t *testing.T, c Client) {
	for _, tt := range []struct {
		model   string
		handler bool // the History has a tool also
		stays   bool
	}{{"", true, true}, {"", false, true}, {c.Small, true, false}, {c.Small, false, false}} {
		t.Run(fmt.Sprintf("model %s, tool of the History %t", tt.model, tt.handler), func(t *testing.T) {
			asked := 0
			p := provider.New(provider.Options{Answer: func(r provider.Request) provider.Answer {
				if asked++; asked > 1 {
					return provider.Answer{Blocks: []provider.Block{provider.Text("The user likes window seats.")}}
				}
				return provider.Answer{Blocks: []provider.Block{provider.Call{Name: "own", Arguments: "{}"}}}
			}})
			sender := c.New(serve(t, p), nil, "own")
			h := history(t, convo.Options{Limits: convo.Limits{Window: 100_000}, Strategy: convo.Summarize{With: sender.Summarizer(tt.model)}})
			if tt.handler {
				if err := h.SetTools(readTool().Tool); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := h.Append(convo.User(strings.Repeat("A long question. ", 400))); err != nil {
				t.Fatal(err)
			}
			reply, err := h.Do(t.Context(), sender.Send)
			if err != nil || len(reply.OpenCalls()) != 1 {
				t.Fatal(reply, err)
			}
			if _, err := h.Append(convo.Result(reply.OpenCalls()[0], strings.Repeat("a result ", 400))); err != nil {
				t.Fatal(err)
			}
			for i := range 40 {
				if _, err := h.Do(t.Context(), sender.Send); err != nil {
					t.Fatal(err)
				}
				if _, err := h.Append(convo.User(fmt.Sprint("Question ", i, strings.Repeat(" word", 50)))); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := h.Do(t.Context(), sender.Send); err != nil {
				t.Fatal(err)
			}
			if r, err := h.Compact(t.Context(), ""); err != nil || r.Outcome != convo.OutcomeApplied {
				t.Fatal(r, err)
			}
			noneRefused(t, p)
			first, last := string(p.Requests()[0].Body), string(p.Requests()[len(p.Requests())-1].Body)
			const name = `"name":%q`
			own, read := strings.Index(first, fmt.Sprintf(name, "own")), strings.Index(first, fmt.Sprintf(name, "read"))
			if own < 0 || read >= 0 != tt.handler || tt.handler && own > read {
				t.Errorf("the tool of the parameters stands at %d and that of the History at %d: %s", own, read, excerpt(first))
			}
			if stays := strings.Contains(last, `"description":"of the parameters"`); stays != tt.stays {
				t.Errorf("the request for the summary has the tool of the parameters: %t, want %t: %s", stays, tt.stays, excerpt(last))
			}
		})
	}
}

// testOwnToolInRun has the model call a tool of the parameters in Run. The call stays open, as
// does that of a tool without a Run; the calls of other tools are answered.
func testOwnToolInRun(t *testing.T, c Client) {
	p := provider.New(provider.Options{})
	p.Script(provider.Answer{Blocks: []provider.Block{
		provider.Call{Name: "read", Arguments: "{}"}, provider.Call{Name: "own", Arguments: "{}"}, provider.Call{Name: "none", Arguments: "{}"},
	}})
	send := c.New(serve(t, p), nil, "own").Send
	h := history(t, convo.Options{})
	if _, err := h.Append(convo.User("Read.")); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second Run finds the call open
		reply, err := h.Run(t.Context(), send, convo.RunOptions{Tools: []convo.Handler{readTool()}})
		if err != nil {
			t.Fatal(err)
		}
		open := reply.OpenCalls()
		if len(open) != 1 || open[0].Name != "own" || len(p.Requests()) != 1 {
			t.Fatalf("after %d requests the open calls are %v, want only that of the tool in the parameters, after 1", len(p.Requests()), open)
		}
		if text := fmt.Sprint(reply.Messages); !strings.Contains(text, `there is no tool "none"`) || strings.Contains(text, `no tool "own"`) {
			t.Errorf("the results are %s", text)
		}
	}
	if _, err := h.AnswerOpenCalls("done by hand"); err != nil {
		t.Fatal(err)
	}
	if reply, err := h.Run(t.Context(), send, convo.RunOptions{Tools: []convo.Handler{readTool()}}); err != nil || reply.Text() != "ok" {
		t.Errorf("%v, %v", reply, err)
	}
	noneRefused(t, p)
}

// testSameTool has one tool both in the parameters and in the History. That is an error before
// anything is sent, also for a summary.
func testSameTool(t *testing.T, c Client) {
	p := provider.New(provider.Options{})
	url := serve(t, p)
	own := c.New(url, nil, "own")
	h := history(t, convo.Options{Limits: convo.Limits{Window: 100_000}, Strategy: convo.Summarize{With: own.Summarizer("")}})
	if err := h.SetTools(convo.Tool{Name: "own", Schema: `{"type":"object"}`}); err != nil {
		t.Fatal(err)
	}
	var wrong *clients.ParamsError
	for i := range 40 {
		if _, err := h.Append(convo.User(fmt.Sprint("Question ", i, strings.Repeat(" word", 50)))); err != nil {
			t.Fatal(err)
		}
		if reply, err := h.Do(t.Context(), own.Send); !errors.As(err, &wrong) || !strings.Contains(err.Error(), `the tool "own"`) {
			t.Fatalf("%v, %v, want a *clients.ParamsError that names the tool", reply, err)
		}
		if _, err := h.Do(t.Context(), c.New(url, nil, "").Send); err != nil {
			t.Fatal(err)
		}
	}
	r, err := h.Compact(t.Context(), "")
	if !errors.As(errors.Join(err, r.Cause), &wrong) {
		t.Errorf("%v, %v, want a *clients.ParamsError", r, err)
	}
	if n := len(p.Requests()); n != 40 {
		t.Errorf("%d requests were made, want those of the other sender, 40", n)
	}
	noneRefused(t, p)
}

// testPaused compacts after an answer that the provider paused in a call of its own tool. No
// instruction may follow such a call.
func testPaused(t *testing.T, c Client) {
	asked := 0
	p := provider.New(provider.Options{Answer: func(r provider.Request) provider.Answer {
		asked++
		if asked == 40 {
			return provider.Answer{Blocks: []provider.Block{provider.Text("I search."), provider.Served{ID: "srvtoolu_1", Name: "web_search", Input: `{"query":"q"}`}}}
		}
		if asked == 41 && r.Format == provider.FormatAnthropic {
			return provider.Answer{Blocks: []provider.Block{provider.Served{ID: "srvtoolu_1", Name: "web_search", Result: `[]`}, provider.Text("found")}}
		}
		return provider.Answer{Blocks: []provider.Block{provider.Text("The user likes window seats.")}}
	}})
	sender := c.New(serve(t, p), nil, "")
	h := history(t, convo.Options{Limits: convo.Limits{Window: 100_000}, Strategy: convo.Summarize{With: sender.Summarizer("")}})
	for i := range 40 {
		if _, err := h.Append(convo.User(fmt.Sprint("Question ", i, strings.Repeat(" word", 50)))); err != nil {
			t.Fatal(err)
		}
		reply, err := h.Do(t.Context(), sender.Send)
		if err == nil && reply.Stop == convo.StopPause {
			_, err = h.Do(t.Context(), sender.Send)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if r, err := h.Compact(t.Context(), ""); err != nil || r.Outcome != convo.OutcomeApplied {
		t.Fatal(r, err)
	}
	noneRefused(t, p)
}

// StopSequence is the stop sequence of a Strict sender.
const StopSequence = "seat 3"

// testStrict compacts with the summarizer of an agent whose parameters allow no summary, from
// a model that obeys them, and from a model that thinks first. The summary is as long as the
// prompt allows.
func testStrict(t *testing.T, c Client) {
	for _, model := range []string{"", c.Small} {
		for _, schema := range []bool{false, true} {
			for _, thinks := range []bool{false, true} {
				t.Run(fmt.Sprintf("model %s, schema %t, thinks %t", model, schema, thinks), func(t *testing.T) {
					strict(t, c, model, schema, thinks)
				})
			}
		}
	}
}

func strict(t *testing.T, c Client, model string, schema, thinks bool) {
	asked := 0
	p := provider.New(provider.Options{Answer: func(r provider.Request) provider.Answer {
		m := askedFor.FindSubmatch(r.Body)
		if m == nil {
			return provider.Answer{Blocks: []provider.Block{provider.Text("ok")}}
		}
		asked, _ = strconv.Atoi(string(m[1]))
		return obey(t, r, asked, thinks && c.Signs, thinks)
	}})
	url := serve(t, p)
	sender := c.Strict(url, schema)
	h := history(t, convo.Options{
		Limits: convo.Limits{Window: 100_000}, Strategy: convo.Summarize{With: sender.Summarizer(model)},
		Tokenizer: convo.TokenizerFunc(func(s string) int { return (len(s) + 3) / 4 }),
	})
	for i := range 20 {
		if _, err := h.Append(convo.User(fmt.Sprint("Question ", i, strings.Repeat(" word", 1000)))); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Do(t.Context(), sender.Send); err != nil {
			t.Fatal(err)
		}
	}
	r, err := h.Compact(t.Context(), "")
	if err != nil || r.Outcome != convo.OutcomeApplied {
		t.Fatal(r, err)
	}
	noneRefused(t, p)
	sum, _ := h.Snapshot().Summary()
	if n := (len(sum.Text) + 3) / 4; asked <= 1024 || n < asked-1 || n > asked {
		t.Errorf("the summary has %d tokens, want the %d of the prompt, and that these are more than 1,024", n, asked)
	}
	if n := len(p.Requests()); n != 21 {
		t.Errorf("%d requests, want 20 and one for the summary", n)
	}
	was, is := wishesOf(t, p.Requests()[0].Body), wishesOf(t, p.Requests()[20].Body)
	if was.limit != 1024 || was.form != schema || !was.stop {
		t.Errorf("a request of the agent asks for %+v", was)
	}
	rides := strings.Count(string(p.Requests()[20].Body), "Question ") > 0 && strings.Contains(string(p.Requests()[20].Body), "Summarise the conversation above")
	if want := model == "" && !schema; rides != want {
		t.Errorf("the request for the summary is the last one with an instruction: %t, want %t", rides, want)
	}
	if is.form || is.stop || is.several || is.stored && !rides {
		t.Errorf("the request for the summary asks for %+v", is)
	}
	if is.limit < 2*asked || !is.thinkingOff && is.limit < 2*asked+8_000 {
		t.Errorf("the limit of the summary is %d, want room for twice %d tokens, and for thinking: %+v", is.limit, asked, is)
	}
}

var askedFor = regexp.MustCompile(`Write at most (\d+) tokens`)

// obey returns a summary of so many tokens, within the limit, schema and stop sequences of a
// request. A model that thinks does so before, unless that is off, in 7,000 tokens of the limit.
func obey(t *testing.T, r provider.Request, tokens int, shows, thinks bool) provider.Answer {
	var b strings.Builder
	for i := 0; b.Len() < 4*tokens; i++ {
		fmt.Fprintf(&b, "- The user wants seat %d of train %d.\n", i, 7*i)
	}
	text, w, a := b.String()[:4*tokens-1]+".", wishesOf(t, r.Body), provider.Answer{}
	if w.form {
		text = `{"ok":true}`
	}
	if w.stop {
		text, _, _ = strings.Cut(text, StopSequence)
	}
	left := w.limit
	if thinks && !w.thinkingOff {
		left -= 7_000
		if shows {
			a.Blocks = append(a.Blocks, provider.Thinking("What did the user want?"))
		}
	}
	if w.limit > 0 && len(text) > 4*left {
		text = text[:max(4*left, 1)]
		a.Stop = map[string]string{
			provider.FormatAnthropic: "max_tokens", provider.FormatConverse: "max_tokens", provider.FormatGemini: "MAX_TOKENS",
			provider.FormatOpenAIChat: "length", provider.FormatOpenAIResponses: "max_output_tokens",
		}[r.Format]
	}
	a.Blocks = append(a.Blocks, provider.Text(text))
	return a
}

// wishes are what a request asks of the answer, in any format.
type wishes struct {
	limit                                    int
	form, stop, several, stored, thinkingOff bool
}

func wishesOf(t *testing.T, body []byte) (w wishes) {
	var all map[string]any
	if err := json.Unmarshal(body, &all); err != nil {
		t.Fatal(err)
	}
	at := func(path string) any {
		var v any = all
		for name := range strings.SplitSeq(path, ".") {
			fields, _ := v.(map[string]any)
			v = fields[name]
		}
		return v
	}
	for _, path := range []string{"max_tokens", "max_completion_tokens", "max_output_tokens", "generationConfig.maxOutputTokens", "inferenceConfig.maxTokens"} {
		n, _ := at(path).(float64)
		w.limit = max(w.limit, int(n))
	}
	for _, path := range []string{"response_format", "text.format", "output_config.format", "outputConfig.textFormat", "generationConfig.responseSchema", "generationConfig.responseJsonSchema"} {
		w.form = w.form || at(path) != nil
	}
	for _, path := range []string{"stop", "stop_sequences", "generationConfig.stopSequences", "inferenceConfig.stopSequences"} {
		w.stop = w.stop || at(path) != nil
	}
	w.several = at("n") != nil || at("generationConfig.candidateCount") != nil
	w.stored = at("store") == true
	for _, path := range []string{"thinking.type", "additionalModelRequestFields.thinking.type"} {
		w.thinkingOff = w.thinkingOff || at(path) == "disabled" || at(path) == "between_tools"
	}
	w.thinkingOff = w.thinkingOff || at("reasoning_effort") == "none" || at("reasoning.effort") == "none"
	return w
}
