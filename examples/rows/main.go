// Command rows is an agent that keeps its messages in its own table, and next to them what
// convo has decided. The table is a file of JSON lines, and stands for one in a database. It is
// kept in the folder convo-rows for temporary files, or in another one with -dir, and the next
// run goes on with it.
//
//	$ go run ./examples/rows Book a table for two.
//	user: Book a table for two.
//	assistant: call book({"guests":2})
//	tool: result of book(booked)
//	assistant: The tool says: booked
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"log"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

func main() {
	dir := flag.String("dir", filepath.Join(os.TempDir(), "convo-rows"), "the folder of the table")
	flag.Parse()
	a := &agent{dir: *dir, out: os.Stdout, send: model, tools: map[string]tool{"book": {
		run: func(string) string { return "booked" }, once: true,
	}}}
	err := a.open()
	if err == nil {
		err = a.ask(context.Background(), strings.Join(flag.Args(), " "))
	}
	if err != nil {
		log.Fatal(err)
	}
}

// A tool must not run twice for a call if once is set.
type tool struct {
	run  func(arguments string) string
	once bool
}

type agent struct {
	dir    string // of the files rows, decisions and started
	out    io.Writer
	send   convo.Send
	tools  map[string]tool
	h      *convo.History
	stored uint64 // the Status.Decisions that were stored last
}

// newKey returns the key of a new row.
func newKey(convo.Message) string { return rand.Text() }

// open continues the conversation of the table, or begins one.
func (a *agent) open() error {
	a.stored = math.MaxUint64 // none
	opts := &convo.Options{Limits: convo.Limits{Window: 2_000}, Key: newKey}
	data, err := os.ReadFile(a.path("decisions"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		a.h, err = convo.New(opts)
	case err == nil:
		var d *convo.Decisions
		if d, err = convo.ReadDecisions(data); err == nil {
			a.h, err = convo.Resume(d, a.rows(d.Needs()), opts)
		}
	}
	if err != nil {
		return err
	}
	return a.decide()
}

// ask finishes what was interrupted, and then answers the question, if there is one.
func (a *agent) ask(ctx context.Context, question string) error {
	if err := a.runCalls(); err != nil { // left by a crash, or a cut-off answer
		return err
	}
	if question != "" {
		m := convo.User(question)
		m.Key = newKey(m) // Append copies m, so that Options.Key would not set it here
		if err := a.append(m); err != nil {
			return err
		}
	}
	for a.h.Status().AwaitsAnswer {
		snap, _, err := a.h.Prepare(ctx)
		if err := a.decide(); err != nil { // Prepare may have compacted
			return err
		}
		if err != nil {
			return a.giveUp(err)
		}
		reply, err := a.send(ctx, snap)
		if err != nil {
			retry, _, err := a.h.Recover(ctx, snap, err)
			if err := a.decide(); err != nil {
				return err
			}
			if !retry {
				return a.giveUp(err)
			}
			continue
		}
		if reply, err = a.h.AppendReply(snap, reply); err != nil {
			return err
		}
		if err := a.store(reply.Messages...); err != nil { // as AppendReply returns them: with their keys
			return err
		}
		if err := a.runCalls(); err != nil {
			return err
		}
	}
	return nil
}

// append appends a message and stores its row.
func (a *agent) append(m convo.Message) error {
	if _, err := a.h.Append(m); err != nil {
		return err
	}
	return a.store(m)
}

// runCalls runs the calls that are open. After a restart these are the calls that the program
// was stopped in, and a tool may have done its work already. A tool that must not do it twice
// is therefore noted as started before it runs, and the model is told if it was stopped.
func (a *agent) runCalls() error {
	for _, call := range a.h.Snapshot().OpenCalls() {
		t, ok := a.tools[call.Name]
		started, err := os.ReadFile(a.path("started"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		var result convo.Message
		switch {
		case !ok:
			result = convo.ResultError(call, errors.New("there is no such tool"))
		case t.once && slices.Contains(strings.Fields(string(started)), call.ID):
			result = convo.ResultError(call, errors.New("the program was stopped while the tool ran; ask the user whether it has done its work"))
		default:
			if t.once {
				if err := a.add("started", []byte(call.ID)); err != nil {
					return err
				}
			}
			result = convo.Result(call, t.run(call.Arguments))
		}
		result.Key = newKey(result)
		if err := a.append(result); err != nil {
			return err
		}
	}
	return nil
}

// giveUp returns err. If not even a compaction makes the question fit, it takes the question
// back, and deletes the rows that are no longer in the conversation.
func (a *agent) giveUp(err error) error {
	if !errors.As(err, new(*convo.FloorError)) && !errors.As(err, new(*convo.LimitError)) && !errors.Is(err, convo.ErrNoGain) {
		return err
	}
	before := a.h.Snapshot()
	if e, _ := before.At(before.Len() - 1); e.Message.Role != convo.RoleUser {
		return err
	}
	_, err2 := a.h.Rewind(1)
	after := a.h.Snapshot()
	gone := make(map[string]bool)
	for _, e := range before.All() {
		if _, ok := after.Find(e.ID); !ok {
			gone[e.Message.Key] = true
		}
	}
	// In a database both are one transaction. The decisions come first, since Resume does not
	// find a row that they need if it was deleted.
	return errors.Join(err, err2, a.decide(), a.delete(gone))
}

// store adds rows to the table, and then stores what was decided.
func (a *agent) store(msgs ...convo.Message) error {
	for _, m := range msgs {
		line, err := json.Marshal(m)
		if err != nil {
			return err
		}
		if err := a.add("rows", line); err != nil {
			return err
		}
		fmt.Fprintln(a.out, m)
	}
	return a.decide()
}

// decide stores the decisions if there are new ones.
func (a *agent) decide() error {
	now := a.h.Status().Decisions
	if now == a.stored {
		return nil
	}
	data, err := a.h.Decisions()
	if err == nil {
		err = a.replace("decisions", data)
	}
	if err == nil {
		a.stored = now
	}
	return err
}

// rows yields the rows with the keys, and all rows from the one with the key from on.
func (a *agent) rows(keys []string, from string) iter.Seq2[convo.Message, error] {
	return func(yield func(convo.Message, error) bool) {
		data, err := os.ReadFile(a.path("rows"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			yield(convo.Message{}, err)
			return
		}
		begun := from == ""
		for line := range bytes.Lines(data) {
			var m convo.Message
			err := json.Unmarshal(line, &m)
			begun = begun || m.Key == from
			if (err != nil || begun || slices.Contains(keys, m.Key)) && !yield(m, err) {
				return
			}
		}
	}
}

// delete deletes the rows with these keys.
func (a *agent) delete(keys map[string]bool) error {
	var left []byte
	for m, err := range a.rows(nil, "") {
		if err != nil {
			return err
		}
		if !keys[m.Key] {
			line, err := json.Marshal(m)
			if err != nil {
				return err
			}
			left = append(append(left, line...), '\n')
		}
	}
	return a.replace("rows", left)
}

func (a *agent) path(name string) string { return filepath.Join(a.dir, name) }

// add adds a line to a file.
func (a *agent) add(name string, line []byte) error {
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(a.path(name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// replace replaces a file as a whole.
func (a *agent) replace(name string, data []byte) error {
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(a.path(name+".new"), data, 0o600); err != nil {
		return err
	}
	return os.Rename(a.path(name+".new"), a.path(name))
}

// model stands for the call of a provider. It calls the tool for each question.
func model(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
	e, _ := s.At(s.Len() - 1)
	answer := convo.Assistant("", convo.ToolCall{ID: rand.Text(), Name: "book", Arguments: `{"guests":2}`})
	for _, r := range e.Message.ToolResults() {
		answer = convo.Assistant("The tool says: " + r.Text())
	}
	return convo.Reply{Messages: []convo.Message{answer}}, nil
}
