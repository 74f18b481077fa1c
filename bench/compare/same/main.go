// Command same prints a fingerprint of the requests of conversations, one in a line: all that a
// History sends in it, in every format of package wire, with its figures. Two commits that print
// the same lines send the same requests. See ci/same.sh.
//
//	same [-random 10000] [FOLDER...]
//
// Each FOLDER has conversations, one in a line, as OpenAI chat messages. The random ones use
// every method that changes a view, and stores, decisions and answers of providers.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash"
	"hash/fnv"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/wire"
)

func main() {
	random := flag.Int("random", 10_000, "random conversations")
	flag.Parse()
	var jobs []func() string
	for _, folder := range flag.Args() {
		names, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
		if err != nil || len(names) == 0 {
			log.Fatalf("no conversations in %s (%v)", folder, err)
		}
		for _, name := range names {
			lines, err := readLines(name)
			if err != nil {
				log.Fatal(err)
			}
			for i, msgs := range lines {
				jobs = append(jobs, func() string { return fmt.Sprintf("%s %d %s", filepath.Base(name), i, replay(msgs)) })
			}
		}
	}
	for seed := range *random {
		jobs = append(jobs, func() string { return fmt.Sprintf("random %d %s", seed, randomTalk(uint64(seed))) })
	}
	out := make([]string, len(jobs))
	var wg sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, job := range jobs {
		slots <- struct{}{}
		wg.Go(func() {
			out[i] = job()
			<-slots
		})
	}
	wg.Wait()
	w := bufio.NewWriter(os.Stdout)
	for _, line := range out {
		fmt.Fprintln(w, line)
	}
	if err := w.Flush(); err != nil {
		log.Fatal(err)
	}
}

type chatMessage struct {
	Role       string `json:"role"`
	Content    string `json:"content"`
	ToolCallID string `json:"tool_call_id"`
	Name       string `json:"name"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

func readLines(name string) (all [][]convo.Message, err error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(data) {
		var talk struct{ Messages []chatMessage }
		if err := json.Unmarshal(line, &talk); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		var msgs []convo.Message
		for _, c := range talk.Messages {
			msgs = append(msgs, c.message())
		}
		all = append(all, msgs)
	}
	return all, nil
}

func (c chatMessage) message() convo.Message {
	switch c.Role {
	case "system":
		return convo.System(c.Content)
	case "user":
		return convo.User(c.Content)
	case "tool":
		return convo.Result(convo.ToolCall{ID: c.ToolCallID, Name: c.Name}, c.Content)
	}
	var calls []convo.ToolCall
	for _, t := range c.ToolCalls {
		calls = append(calls, convo.ToolCall{ID: t.ID, Name: t.Function.Name, Arguments: t.Function.Arguments})
	}
	return convo.Assistant(c.Content, calls...)
}

// formats are the formats that requests are written in.
var formats = []wire.Format{wire.Anthropic{}, wire.OpenAIChat{}, wire.OpenAIResponses{}, wire.Gemini{}, wire.Converse{}}

// A sum is the fingerprint of what was sent so far.
type sum struct{ hash.Hash64 }

// view adds the next request, in the formats from one on.
func (s sum) view(h *convo.History, all ...wire.Format) {
	at := h.Snapshot()
	for _, f := range all {
		r, err := f.Encode(at)
		fmt.Fprintf(s, "%s|%v|", f, err != nil)
		if err == nil {
			body, err := json.Marshal(r)
			fmt.Fprintf(s, "%v|", err)
			s.Write(body)
		}
	}
	st := h.Status()
	fmt.Fprintf(s, "%v|%v|%v|%v", h.Tokens(), st.Entries, st.Turns, st.Decisions)
}

// options are those of a conversation with that window.
func options(window int) *convo.Options {
	n := 0
	return &convo.Options{
		Limits: convo.Limits{Window: window},
		Roles:  convo.Relaxed(),
		TagKey: "key",
		Time: func(convo.Message) time.Time {
			n++
			return time.Unix(1_700_000_000+int64(n), 0)
		},
	}
}

// replay appends a recorded conversation message by message, prepares a request before each
// answer, and writes it in every format.
func replay(msgs []convo.Message) string {
	s := sum{fnv.New64a()}
	whole, err := convo.New(&convo.Options{Roles: convo.Relaxed(), TagKey: "key"})
	if err != nil {
		return err.Error()
	}
	whole.Append(msgs...)
	h, err := convo.New(options(max(whole.Tokens().Tokens/3, 600)))
	if err != nil {
		return err.Error()
	}
	for i, m := range msgs {
		if m.Role == convo.RoleAssistant {
			_, r, err := h.Prepare(context.Background())
			fmt.Fprintf(s, "%v|%v|%v|", r.Outcome, r.TokensAfter, err != nil)
			s.view(h, formats[i%len(formats)])
		}
		_, err := h.Append(m)
		fmt.Fprint(s, err != nil)
	}
	s.view(h, formats...)
	return fmt.Sprintf("%016x", s.Sum64())
}

// A talk is a random conversation.
type talk struct {
	sum
	*rand.Rand
	h       *convo.History
	opts    *convo.Options
	store   convo.Store
	open    []convo.ToolCall
	reports []convo.Report
	kept    []*convo.Snapshot
	calls   int
}

var words = strings.Fields("the build of module alpha failed at line 42 because config.yaml names /srv/data/cache.db twice use --retry 3 and never delete invoice INV-2291 before Monday 14:30 please check 北京 酒店 über naïve café")

func (t *talk) text(most int) string {
	var b strings.Builder
	for range t.IntN(most) + 1 {
		b.WriteString(words[t.IntN(len(words))])
		b.WriteByte(" \n"[t.IntN(20)/19])
	}
	return b.String()
}

// randomTalk makes a conversation of random operations, and writes its requests.
func randomTalk(seed uint64) (line string) {
	defer func() {
		if p := recover(); p != nil {
			line = fmt.Sprintf("panic: %v", p)
		}
	}()
	t := &talk{sum: sum{fnv.New64a()}, Rand: rand.New(rand.NewPCG(seed, 51)), store: &convotest.MemStore{}}
	t.opts = t.options()
	h, err := convo.Open(context.Background(), t.store, "talk", t.opts)
	if err != nil {
		return err.Error()
	}
	t.h = h
	for range t.IntN(70) + 10 {
		t.step()
		t.view(t.h, formats[t.IntN(len(formats))])
	}
	t.view(t.h, formats...)
	return fmt.Sprintf("%016x", t.Sum64())
}

func (t *talk) options() *convo.Options {
	o := options(t.IntN(6) * 500)
	model := convo.SummarizerFunc(func(_ context.Context, req convo.SummaryRequest) (convo.Summary, error) {
		t.Write([]byte(req.Prompt))
		if t.IntN(6) == 0 {
			return convo.Summary{}, errors.New("down")
		}
		return convo.Summary{Text: "Summary: " + t.text(20)}, nil
	})
	switch t.IntN(7) {
	case 0:
		o.Strategy = convo.Truncate{}
	case 1:
		o.Strategy = convo.SlidingWindow{KeepTurns: 2}
	case 2:
		o.Strategy = convo.Summarize{With: model}
	case 3:
		o.Strategy = convo.Chain(convo.ClearToolResults{}, convo.ClearThinking{}, convo.Summarize{With: model}, convo.Truncate{})
	case 4:
		o.Strategy = convo.Chain(convo.ClearMedia{}, convo.Summarize{With: convo.Extract{}})
	}
	if t.IntN(3) == 0 {
		o.Roles = convo.RolePolicy{}
	}
	o.MaxResult = t.IntN(3) * 64
	o.PinFirstUser = t.IntN(3) == 0
	o.AsSent = t.IntN(2) == 0
	n := 0
	o.Key = func(convo.Message) string {
		n++
		return fmt.Sprintf("row%d", n)
	}
	if t.IntN(3) == 0 {
		n := 0
		o.Spill = func(_ context.Context, r convo.ToolResult) (string, error) {
			n++
			if n%5 == 0 {
				return "", errors.New("full")
			}
			return fmt.Sprintf("file%d", n), nil
		}
	}
	return o
}

// answer returns an answer, perhaps with calls.
func (t *talk) answer() convo.Message {
	var calls []convo.ToolCall
	for range max(t.IntN(5)-2, 0) {
		t.calls++
		calls = append(calls, convo.ToolCall{ID: fmt.Sprintf("call_%d", t.calls%40), Name: "read", Arguments: fmt.Sprintf(`{"path":%q}`, words[t.IntN(len(words))])})
	}
	m := convo.Assistant(t.text(30), calls...)
	if t.IntN(3) == 0 {
		r := convo.Reasoning{Text: t.text(12)}
		if t.IntN(2) == 0 {
			r.Signature = fmt.Sprintf("sig%d", t.IntN(1000))
		}
		m.Parts = append([]convo.Part{r}, m.Parts...)
	}
	return m
}

func (t *talk) results() (msgs []convo.Message) {
	at := t.h.Snapshot()
	for _, c := range at.OpenCalls() {
		text := t.text(60)
		if t.IntN(10) == 0 {
			text = strings.Repeat(text, 8)
		}
		msgs = append(msgs, convo.Result(c, text))
	}
	return msgs
}

func (t *talk) user() convo.Message {
	m := convo.User(t.text(25))
	if t.IntN(8) == 0 {
		m.Parts = append(m.Parts, convo.Media{MIME: "image/png", URL: "https://example.com/a.png"})
	}
	if t.IntN(8) == 0 {
		m.Author = "ann"
	}
	return m
}

// note adds whether an operation has failed.
func (t *talk) note(what string, err error) { fmt.Fprintf(t, "%s %v|", what, err != nil) }

func (t *talk) report(r convo.Report, err error) {
	t.note(fmt.Sprint(r.Outcome, r.Reason, r.TokensBefore, r.TokensAfter, r.Dropped, r.Summarised, r.Fits), err)
	if err == nil && r.Outcome == convo.OutcomeApplied {
		t.reports = append(t.reports, r)
	}
}

func (t *talk) id() convo.ID {
	at := t.h.Snapshot()
	if at.Len() == 0 {
		return convo.ID(t.IntN(3))
	}
	e, _ := at.At(t.IntN(at.Len()))
	return e.ID
}

func (t *talk) step() {
	ctx, h := context.Background(), t.h
	switch n := t.IntN(40); n {
	case 0:
		t.note("system", h.SetSystem(convo.System(t.text(10))))
	case 1:
		t.note("tools", h.SetTools(convo.Tool{Name: "read", Description: t.text(5)}))
	case 2:
		t.note("ephemeral", h.SetEphemeral(convo.User(t.text(8))))
	case 3:
		t.note("pin", h.Pin(t.id()))
	case 4:
		t.note("unpin", h.Unpin(t.id()))
	case 5:
		if t.IntN(3) == 0 {
			t.note("rewind", h.RewindTo(t.id()))
		} else {
			t.note("before", h.RewindBefore(t.id()))
		}
	case 6:
		t.kept = append(t.kept, h.Snapshot())
	case 7:
		if k := len(t.kept); k > 0 {
			t.note("rollback", h.Rollback(t.kept[t.IntN(k)]))
		}
	case 8:
		if k := len(t.reports); k > 0 {
			t.note("undo", h.Undo(t.reports[k-1]))
		}
	case 9:
		t.report(h.Compact(ctx, ""))
	case 10:
		at := h.Snapshot()
		n, err := h.SplicePrefix(at, t.IntN(at.Len()+1), "Earlier: "+t.text(10))
		t.note(fmt.Sprint("splice", n), err)
	case 11:
		t.note("model", h.SetModel(words[t.IntN(3)], convo.Limits{}))
	case 12:
		t.note("limits", h.SetLimits(convo.Limits{Window: 500 + t.IntN(3000)}))
	case 13:
		at := h.Snapshot()
		t.note("usage", h.RecordUsage(at, convo.Usage{Input: at.Tokens() * (5 + t.IntN(10)) / 10}))
	case 14:
		t.note("queue", h.Queue(t.user()))
	case 15:
		t.note("save", h.Save(ctx))
	case 16:
		t.reopen(ctx)
	case 17:
		t.resume()
	case 18:
		_, err := h.AnswerOpenCalls("stopped")
		t.note("stopped", err)
	case 19:
		res, r, err := h.MakeRoom(ctx, t.IntN(300))
		t.report(r, err)
		if res != nil && t.IntN(2) == 0 {
			res.Release()
		}
	case 20:
		at := h.Snapshot()
		retry, r, err := h.Recover(ctx, at, errors.New("prompt is too long: 1200 tokens > 1000 maximum"))
		t.report(r, err)
		fmt.Fprint(t, retry)
	case 21:
		rows := []convo.Message{t.user(), convo.Assistant(t.text(10))}
		_, err := h.ReplaceRows(t.id(), rows...)
		t.note("replace", err)
	case 22:
		_, err := h.AppendRows(t.user(), t.user())
		t.note("rows", err)
	case 23:
		t.apply()
	case 24, 25, 26, 27:
		calls := 0
		reply, err := h.Do(ctx, func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
			calls++
			if calls == 1 && t.IntN(8) == 0 {
				return convo.Reply{}, errors.New("prompt is too long: 1200 tokens > 1000 maximum")
			}
			return convo.Reply{Messages: []convo.Message{t.answer()}, Usage: convo.Usage{Input: s.Tokens() + t.IntN(50)}}, nil
		})
		t.note(fmt.Sprint("do", calls, len(reply.Reports)), err)
	case 28, 29:
		at, r, err := h.Prepare(ctx)
		t.report(r, err)
		if err == nil {
			_, err = h.AppendReply(at, convo.Reply{Messages: []convo.Message{t.answer()}})
			t.note("reply", err)
		}
	default:
		var err error
		switch msgs := t.results(); {
		case len(msgs) > 0:
			_, err = h.Append(msgs...)
		case t.IntN(2) == 0:
			_, err = h.Append(t.user())
		default:
			_, err = h.Append(t.user(), t.answer())
		}
		t.note("append", err)
	}
}

// apply clears or rewrites an entry by hand.
func (t *talk) apply() {
	id := t.id()
	e := convo.Edit{Clear: []convo.Clear{{ID: id}}}
	if t.IntN(2) == 0 {
		e = convo.Edit{Rewrite: []convo.Rewrite{{ID: id, Parts: []convo.Part{convo.Text(t.text(5))}}}}
	}
	t.report(t.h.Apply(t.h.Snapshot(), e))
}

// reopen goes on with what was saved.
func (t *talk) reopen(ctx context.Context) {
	h, err := convo.Open(ctx, t.store, "talk", t.opts)
	if t.note("open", err); err == nil {
		t.h.Close()
		t.h, t.reports, t.kept = h, nil, nil
	}
}

// resume goes on with the decisions and the rows.
func (t *talk) resume() {
	data, err := t.h.Decisions()
	if t.note("decisions", err); err != nil {
		return
	}
	d, err := convo.ReadDecisions(data)
	if err != nil {
		t.note("read", err)
		return
	}
	at := t.h.Snapshot()
	h, err := convo.Resume(d, func(yield func(convo.Message, error) bool) {
		for _, e := range at.All() {
			if !yield(e.Message, nil) {
				return
			}
		}
	}, t.opts)
	t.note("resume", err)
	if err == nil {
		t.view(h, formats[t.IntN(len(formats))])
	}
}
