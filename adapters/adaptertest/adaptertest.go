// Package adaptertest runs the agent of a framework against package provider. The module of
// each adapter uses it.
package adaptertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/mirror"
)

// A Framework is what is tested.
type Framework[M any] struct {
	Row     string // the name of its row in the README of adapters
	API     API
	Codec   mirror.Codec[M]
	Options convo.Options // of the History, besides the limits
	Model   string        // what the program names to the History; empty: nothing

	// User returns a message of the user.
	User func(text string) M

	// Turn makes an agent with the tool Read, whose model is that of a service and whose
	// requests m makes, and lets it answer list, which ends with a question. It returns the list with
	// what the agent has added. With an error, it returns what the framework has kept of
	// the turn, or nil if that is nothing.
	Turn func(t *testing.T, s Service, m *mirror.Mirror[M], list []M) ([]M, error)

	Follows bool // the adapter follows a list that has changed
	Streams bool // Turn reads streams
	Thinks  bool // the framework keeps signed reasoning
	Serves  bool // the framework keeps the calls of a tool that the provider runs, and their results
}

// Read is what the tool "read" returns for a page.
func Read(page int) string {
	return strings.Repeat(fmt.Sprintf("Page %d says nothing. ", page), 10)
}

const (
	turns  = 100
	window = 8_000
	first  = "Where is the treasure? Read all pages."
)

// served is a call of a tool that the provider runs.
var served = provider.Served{Name: "web_search", Input: `{"query":"all pages are blank"}`, Result: `[]`}

// Run asks an agent a hundred questions. Its provider signs what it thinks, asks for two
// pages at once, runs a tool itself, and fails now and then, also within the call of that
// tool. The user types while the agent works. The framework stops and starts again every ten
// turns, with its list and what Decisions returned. Of every 30 turns, 5 ask another model. The
// provider must refuse no request, and each one must have the first question, the newest, and
// what was typed since.
func Run[M any](t *testing.T, f Framework[M]) {
	asked, failures := 0, 0
	var mirrored atomic.Pointer[mirror.Mirror[M]] // of the process that runs
	var typing atomic.Pointer[string]             // what the user is about to type; nil: nothing
	p := provider.New(provider.Options{Window: window, Answer: func(r provider.Request) provider.Answer {
		asked++
		var a provider.Answer
		if asked%20 == 19 {
			failures++
			a.Fault = &provider.Fault{Status: []int{429, 503, 500}[failures%3]}
			if f.Streams && failures%4 == 0 {
				a.Fault = &provider.Fault{CutAfter: 2}
			}
			if f.Streams && f.Serves && failures%4 == 2 { // in the call
				a.Blocks, a.Fault = []provider.Block{served}, &provider.Fault{CutAfter: 3}
				return a
			}
		}
		if f.Serves && asked%5 == 0 {
			a.Blocks = append(a.Blocks, served)
		}
		if f.Thinks {
			a.Blocks = append(a.Blocks, provider.Thinking(fmt.Sprint("thought ", asked)))
		}
		for i := range asked % 3 {
			a.Blocks = append(a.Blocks, provider.Call{Name: "read", Arguments: fmt.Sprintf(`{"page":%d}`, 10*asked+i)})
		}
		if asked%3 == 0 {
			a.Blocks = append(a.Blocks, provider.Text(fmt.Sprint("Answer ", asked)))
		}
		if text := typing.Load(); text != nil && asked%3 != 0 && asked%20 < 14 { // the turn goes on, and does not fail
			if err := mirrored.Load().Add(f.User(*text)); err != nil {
				t.Error(err)
			}
			typing.Store(nil)
		}
		return a
	}})
	server := httptest.NewServer(p)
	defer server.Close()

	compactions, restarts, again, typed := 0, 0, 0, 0
	opts := f.Options
	opts.Limits = convo.Limits{Window: window, Reserve: 800}
	opts.TagKey = "a test" // a random key would have other tokens in each run
	opts.OnCompaction = func(r convo.Report) {
		if r.Outcome == convo.OutcomeApplied {
			compactions++
		}
	}
	f.Options = opts
	_, m := f.start(t, opts.Limits)
	service := Service{server.URL + f.API.Path, "none", f.API.Model}
	var list []M
	for turn := range turns {
		question := fmt.Sprintf("Question %d.", turn)
		if turn == 0 {
			question = first
		}
		service.Model = f.API.Model
		if turn%30 >= 25 {
			service.Model = f.API.Other
		}
		if f.Model != "" {
			if err := m.History().SetModel(service.Model, convo.Limits{}); err != nil {
				t.Fatal(err)
			}
		}
		mirrored.Store(m)
		text := fmt.Sprintf("Typed in turn %d.", turn)
		if turn%4 == 1 {
			typing.Store(&text)
		}
		asking := append(list[:len(list):len(list)], f.User(question))
		before := len(p.Requests())
		for failed := 0; ; failed++ {
			answered, err := f.Turn(t, service, m, asking)
			if err == nil {
				list = answered
				break
			}
			if failed == 5 {
				t.Fatalf("turn %d failed %d times, the last time with: %v", turn, failed+1, err)
			}
			t.Logf("turn %d again: %v", turn, err)
			again++
			if answered != nil {
				asking = append(answered, f.User(question))
			} else {
				takeBack(t, m, asking)
			}
		}
		wants := []string{first, question}
		for _, r := range p.Requests()[before:] {
			for _, text := range wants {
				if !bytes.Contains(r.Body, []byte(text)) {
					t.Fatalf("turn %d: a request has lost %q, after %d compactions and %d restarts: %s", turn, text, compactions, restarts, r.Body)
				}
			}
			if turn%4 == 1 && len(wants) == 2 && bytes.Contains(r.Body, []byte(text)) {
				wants = append(wants, text)
			}
		}
		if turn%4 == 1 && typing.Swap(nil) == nil {
			typed++
			if len(wants) == 2 {
				t.Errorf("turn %d: no request has what was typed", turn)
			}
		}
		if turn%10 == 9 {
			m, list = restart(t, f, opts, m, list)
			restarts++
		}
	}
	for _, r := range p.Refused() {
		t.Errorf("refused: %s: %s", r.Error, r.Body)
	}
	calls, thoughts, searches := 0, 0, 0
	for _, r := range p.Requests() {
		calls += strings.Count(string(r.Body), " says ")
		thoughts += strings.Count(string(r.Body), "thought ")
		searches += strings.Count(string(r.Body), "all pages are blank")
	}
	if calls == 0 || compactions == 0 || failures == 0 || typed == 0 {
		t.Errorf("%d results of tools, %d compactions, %d failures of the provider, %d messages typed while it worked, want some of each", calls, compactions, failures, typed)
	}
	if (searches > 0) != f.Serves {
		t.Errorf("%d calls of the provider's tool in the requests; that the framework keeps them should be %t", searches, f.Serves)
	}
	if (thoughts > 0) != f.Thinks {
		t.Errorf("%d thoughts in the requests; that the framework keeps signed reasoning should be %t", thoughts, f.Thinks)
	}
	t.Logf("%d requests, %d compactions, %d failures of the provider, %d turns again, %d restarts", len(p.Requests()), compactions, failures, again, restarts)
	if row := fmt.Sprintf("| %s | %d | %d | %d | %d |", f.Row, len(p.Requests()), compactions, failures, restarts); !strings.Contains(page(t), row) {
		t.Errorf("the README of adapters lacks the row %s", row)
	}
}

// start returns a History for a framework, and its Mirror.
func (f Framework[M]) start(t *testing.T, limits convo.Limits) (*convo.History, *mirror.Mirror[M]) {
	f.Options.Limits = limits
	h, err := convo.New(&f.Options)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.SetModel(f.Model, convo.Limits{}); err != nil {
		t.Fatal(err)
	}
	return h, mirror.New(h, f.Codec)
}

func page(t *testing.T) string {
	data, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Untouched checks that a view gives back the values of a list, also after the list was
// synced again and after a restart, and that Same says of any two of them what Decode says. same
// reports whether two values are one.
func Untouched[M any](t *testing.T, codec mirror.Codec[M], list []M, same func(want, got M) bool) {
	t.Helper()
	h, err := convo.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	check := func(when string, m *mirror.Mirror[M]) {
		t.Helper()
		if err := m.Sync(list); err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		view, err := m.View(m.History().Snapshot())
		if err != nil || len(view) != len(list) {
			t.Fatalf("%s: a view of %d values for a list of %d: %v", when, len(view), len(list), err)
		}
		for i := range list {
			if !same(list[i], view[i]) {
				t.Errorf("%s: value %d was made anew: %+v, want %+v", when, i, view[i], list[i])
			}
		}
	}
	for i, was := range list {
		for j, now := range list {
			a, _ := codec.Decode(was)
			b, _ := codec.Decode(now)
			if isSame := reflect.DeepEqual(a, b); codec.Same != nil && codec.Same(was, now) != isSame {
				t.Errorf("Same of values %d and %d is %t", i, j, !isSame)
			}
		}
	}
	m := mirror.New(h, codec)
	check("at first", m)
	check("again", m)
	data, err := m.Decisions()
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := mirror.Resume(data, list, codec, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer again.History().Close()
	check("after a restart", again)
}

// takeBack takes back what a turn has added that failed, so that the question can be asked
// again.
func takeBack[M any](t *testing.T, m *mirror.Mirror[M], list []M) {
	if _, err := m.Follow(list); err != nil {
		t.Fatal(err)
	}
}

// restart stores what a program stores, and makes all of it again.
func restart[M any](t *testing.T, f Framework[M], opts convo.Options, m *mirror.Mirror[M], list []M) (*mirror.Mirror[M], []M) {
	rows, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	data, err := m.Decisions()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.History().Close(); err != nil {
		t.Fatal(err)
	}
	list = nil
	if err := json.Unmarshal(rows, &list); err != nil {
		t.Fatal(err)
	}
	if m, _, err = mirror.Resume(data, list, f.Codec, &opts); err != nil {
		t.Fatal(err)
	}
	return m, list
}
