package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/seed-c1b73e60/convo/convotest/provider"
)

const mark = "This was the file number "

// contents returns about 6 kB that end with the number of the file.
func contents(n int) string {
	words := strings.Fields("server client request answer window token message file folder build test error value field list " +
		"returns takes reads writes checks keeps drops sends waits fails the a each every no one for with without before after")
	r := rand.New(rand.NewPCG(1, uint64(n)))
	var b strings.Builder
	for i := 1; b.Len() < 5_900; i++ {
		fmt.Fprintf(&b, "%d.%d", n, i)
		for range 8 {
			b.WriteString(" " + words[r.IntN(len(words))])
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%s%d.\n", mark, n)
	return b.String()
}

// newest returns the number of the file that a request has read last, or 0.
func newest(body []byte) (n int) {
	if at := bytes.LastIndex(body, []byte(mark)); at >= 0 {
		_, _ = fmt.Sscanf(string(body[at+len(mark):]), "%d", &n)
	}
	return n
}

// hasTool reports whether a request offers the tool of the program: others are for titles and the like.
func (p program) hasTool(body []byte) bool {
	var all struct{ Tools json.RawMessage }
	return json.Unmarshal(body, &all) == nil && bytes.Contains(all.Tools, fmt.Appendf(nil, "%q", p.tool))
}

// model returns a model that reads files, one after the other until a number, and ends if it is to
// read one for the fourth time.
func (p program) model(until *atomic.Int64) func(provider.Request) provider.Answer {
	var mu sync.Mutex
	asked := map[int]int{}
	return func(r provider.Request) provider.Answer {
		mu.Lock()
		defer mu.Unlock()
		next := newest(r.Body) + 1
		switch {
		case p.side != "" && !p.hasTool(r.Body):
			return provider.Answer{Blocks: []provider.Block{provider.Text(p.side)}}
		case !p.hasTool(r.Body) || next > int(until.Load()) || asked[next] > 2:
			return provider.Answer{Blocks: []provider.Block{provider.Text("They are lists of words.")}}
		}
		asked[next]++
		blocks := []provider.Block{provider.Thinking(fmt.Sprintf("I have read %d files.", next-1))}
		if p.format != provider.FormatGemini {
			// Gemini CLI asks a model about its last 20 messages alone. It leaves out a call
			// at their beginning only if there is no text beside it.
			blocks = append(blocks, provider.Text(fmt.Sprintf("File %d is next.", next)))
		}
		return provider.Answer{Blocks: append(blocks, provider.Call{Name: p.tool, Arguments: fmt.Sprintf(p.arguments, fileName(next))})}
	}
}

// reading returns the parts of a request in the order in which the model reads them.
func reading(body []byte) []byte {
	var all map[string]json.RawMessage
	if json.Unmarshal(body, &all) != nil {
		return nil
	}
	var b []byte
	for _, name := range []string{"tools", "system", "instructions", "systemInstruction", "messages", "input", "contents"} {
		b = append(b, bytes.TrimSuffix(all[name], []byte("]"))...)
	}
	return b
}

// A tally is what was sent to the provider.
type tally struct {
	requests, refused, steps int
	compactions              int // how often a request was smaller than the one before it
	hasRule                  bool
	changed                  int // bodies that the program has not sent as they are
	same, before             int // bytes with which a request begins like the one before it, and of that one
	refusal                  string
}

// count looks at the requests of a program: those that it sent, and those that arrived.
func (p program) count(sent [][]byte, arrived, refused []provider.Request) (t tally) {
	own := map[string]int{}
	for _, body := range sent {
		own[string(body)]++
	}
	t.requests, t.refused = len(arrived), len(refused)
	var last []byte
	for _, r := range arrived {
		if own[string(r.Body)]--; own[string(r.Body)] < 0 {
			t.changed++
		}
		if !p.hasTool(r.Body) {
			continue
		}
		if r.Error != "" {
			t.refusal = r.Error
			continue
		}
		t.steps = max(t.steps, newest(r.Body))
		t.hasRule = bytes.Contains(r.Body, []byte(rule))
		now := reading(r.Body)
		if len(now) < len(last) {
			t.compactions++
		} else {
			t.same += common(last, now)
			t.before += len(last)
		}
		last = now
	}
	return t
}

// common returns how many bytes a and b begin with in common.
func common(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
