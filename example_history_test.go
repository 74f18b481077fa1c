package convo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// newTrip is a conversation of three turns.
func newTrip(opts *convo.Options) *convo.History {
	h, err := convo.New(opts)
	if err != nil {
		panic(err)
	}
	call := convo.ToolCall{ID: "c1", Name: "search", Arguments: `{"to":"Rome"}`}
	_, err = h.Append(
		convo.System("You are a travel agent."),
		convo.User("Flights to Rome?"),
		convo.Assistant("", call),
		convo.Result(call, strings.Repeat("09:10 ", 100)),
		convo.Assistant("Many."),
		convo.User("In the morning?"),
		convo.Assistant("At 09:10."),
		convo.User("Book it."),
	)
	if err != nil {
		panic(err)
	}
	return h
}

// A snapshot never changes.
func ExampleHistory_Snapshot() {
	h := newTrip(nil)
	s := h.Snapshot()
	h.Append(convo.Assistant("Done."))
	fmt.Println(s.Len(), h.Len())
	for x := range s.Exchanges() {
		if len(x.IDs()) > 1 || x.Floor {
			fmt.Println(x.IDs(), "floor:", x.Floor)
		}
	}
	// Output:
	// 8 9
	// [1] floor: true
	// [3 4] floor: false
	// [8] floor: true
}

// Pinning any entry of an exchange pins the whole exchange.
func ExampleHistory_Pin() {
	h := newTrip(nil)
	fmt.Println(h.Pin(4), h.Pinned())
	fmt.Println(h.Pin(99))
	dropped, _ := h.SplicePrefix(h.Snapshot(), 7, "")
	fmt.Println(dropped, h.Pinned())
	// Output:
	// <nil> [3 4]
	// convo: entry 99 is not in the view
	// 4 [3 4]
}

// An edit that breaks a rule is refused as a whole. One that breaks none is
// applied even if messages were appended since.
func ExampleHistory_Apply() {
	h := newTrip(nil)
	at := h.Snapshot()
	_, err := h.Apply(at, convo.Edit{Drop: []convo.ID{3}})
	fmt.Println(err)

	h.Append(convo.Assistant("Done."))
	report, err := h.Apply(at, convo.Edit{
		Clear: []convo.Clear{{ID: 4}},
		Drop:  []convo.ID{2},
	})
	fmt.Println(report.Outcome, report.Dropped, report.Cleared, err)
	e, _ := h.Snapshot().Find(4)
	fmt.Println(e.Message.Text())
	// Output:
	// convo: edit: drops part of an exchange (entry 3)
	// applied [2] [4] <nil>
	// [result of search cleared: 600 bytes]
}

// With returns the view that an edit would leave.
func ExampleSnapshot_With() {
	s := newTrip(nil).Snapshot()
	next, err := s.With(convo.Edit{Drop: []convo.ID{2, 3, 4, 5}, Summary: &convo.Summary{Text: "There are flights."}})
	fmt.Println(s.Len(), next.Len(), err)
	sum, _ := next.Summary()
	fmt.Println(sum.Text, sum.Covers)
	// Output:
	// 8 4 <nil>
	// There are flights. [{2 5}]
}

// A summary that took long to write replaces the entries that it was made of.
// What was appended or pinned meanwhile stays.
func ExampleHistory_SplicePrefix() {
	h := newTrip(nil)
	at := h.Snapshot()
	h.Append(convo.Assistant("Done."))
	h.Pin(2)
	dropped, err := h.SplicePrefix(at, 7, "Flights to Rome were looked up.")
	fmt.Println(dropped, err)
	for _, m := range h.Snapshot().Messages()[2:] {
		fmt.Println(m)
	}
	// Output:
	// 5 <nil>
	// user: Flights to Rome?
	// user: Book it.
	// assistant: Done.
}

// A rollback takes back what was appended since the snapshot. Calls that were
// open then are open again.
func ExampleHistory_Rollback() {
	h := newTrip(nil)
	call := convo.ToolCall{ID: "c2", Name: "book", Arguments: `{}`}
	h.Append(convo.Assistant("", call))
	at := h.Snapshot()
	h.Append(convo.Result(call, "booked"), convo.Assistant("Done."))
	err := h.Rollback(at)
	fmt.Println(err, h.Len(), h.Status().OpenCalls)
	// Output:
	// <nil> 9 1
}

// After a request that failed, Rewind takes the user message back.
func ExampleHistory_Rewind() {
	h := newTrip(nil)
	taken, err := h.Rewind(1)
	fmt.Println(taken, err, h.Len())
	// Output:
	// 1 <nil> 7
}

// AnswerOpenCalls answers the calls of a tool round that was given up.
func ExampleHistory_AnswerOpenCalls() {
	h := newTrip(nil)
	h.Append(convo.Assistant("", convo.ToolCall{ID: "c2", Name: "book"}, convo.ToolCall{ID: "c3", Name: "mail"}))
	answered, err := h.AnswerOpenCalls("timed out")
	fmt.Println(answered, err)
	_, err = h.Append(convo.Assistant("That did not work."))
	fmt.Println(err)
	// Output:
	// 2 <nil>
	// <nil>
}

// SetSystem replaces all system messages, at any time.
func ExampleHistory_SetSystem() {
	h := newTrip(nil)
	err := h.SetSystem(convo.System("You are a pirate."), convo.System("Today is Monday."))
	first, _ := h.Snapshot().At(0)
	fmt.Println(err, first.ID, h.Status().System)
	// Output:
	// <nil> 9 2
}

// A note is a system message further on. The policy must allow it.
func ExampleRolePolicy_notes() {
	roles := convo.Strict()
	roles.SystemAfter = []convo.Role{convo.RoleUser, convo.RoleAssistant, convo.RoleTool}
	h := newTrip(&convo.Options{Roles: roles})
	_, err := h.Append(convo.System("The user has gone offline."), convo.Assistant("Booked."))
	fmt.Println(err)
	h.SetSystem(convo.System("You are a pirate.")) // leaves notes alone
	for _, m := range h.Snapshot().Messages()[7:] {
		fmt.Println(m)
	}
	// Output:
	// <nil>
	// user: Book it.
	// system: The user has gone offline.
	// assistant: Booked.
}

// An agent names what it needs of a History in an interface of its own, so that its
// tests can do without one. A History fits without an adapter.
func Example_ownInterface() {
	type conversation interface {
		Append(msgs ...convo.Message) (convo.ID, error)
		Do(ctx context.Context, send func(context.Context, *convo.Snapshot) (convo.Reply, error)) (convo.Reply, error)
	}
	ask := func(c conversation, question string) string { // the agent
		c.Append(convo.User(question))
		reply, err := c.Do(context.Background(), callModel)
		if err != nil {
			return "Sorry: " + err.Error()
		}
		return reply.Text()
	}
	h, _ := convo.New(nil)
	fmt.Println(ask(h, "Flights to Rome?"))
	fmt.Println(ask(offline{}, "Flights to Rome?")) // in a test
	// Output:
	// At 09:10.
	// Sorry: no network
}

// offline is a conversation whose requests fail.
type offline struct{}

func (offline) Append(...convo.Message) (convo.ID, error) { return 1, nil }

func (offline) Do(context.Context, func(context.Context, *convo.Snapshot) (convo.Reply, error)) (convo.Reply, error) {
	return convo.Reply{}, errors.New("no network")
}

// callModel stands for a call of a model.
func callModel(context.Context, *convo.Snapshot) (convo.Reply, error) {
	return convo.Reply{Messages: []convo.Message{convo.Assistant("At 09:10.")}}, nil
}

// Ephemeral messages stand before the newest turn, and are never saved.
func ExampleHistory_SetEphemeral() {
	h := newTrip(nil)
	h.SetEphemeral(convo.User("The time is 08:30."))
	msgs := h.Snapshot().Messages()
	fmt.Println(msgs[len(msgs)-2])
	fmt.Println(msgs[len(msgs)-1])
	fmt.Println(h.Len())
	// Output:
	// user: The time is 08:30.
	// user: Book it.
	// 8
}

// A Snapshot can be written to JSON and read again. Restore also makes forks.
func ExampleRestore() {
	h := newTrip(nil)
	h.Pin(2)
	data, _ := json.Marshal(h.Snapshot())

	var s convo.Snapshot
	err := json.Unmarshal(data, &s)
	again, err2 := convo.Restore(&s, nil)
	fmt.Println(err, err2, again.Len(), again.Pinned())

	fork, _ := convo.Restore(h.Snapshot(), nil)
	fork.Append(convo.Assistant("In the fork."))
	fmt.Println(fork.Len(), h.Len())
	// Output:
	// <nil> <nil> 8 [2]
	// 9 8
}

// Restore says what is wrong with a conversation that comes from elsewhere, or
// repairs it.
func ExampleNewSnapshot() {
	imported := convo.NewSnapshot([]convo.Message{
		convo.User("Find it."),
		convo.Assistant("", convo.ToolCall{ID: "c1", Name: "find"}),
		convo.User("Still there?"),
	})
	_, err := convo.Restore(imported, nil)
	fmt.Println(err)
	fmt.Println(errors.Is(err, convo.ErrOpenCalls))

	h, err := convo.Restore(imported, &convo.Options{Repair: func(f convo.Fault) {
		fmt.Println(f.ID, f.NewID, f.Mended)
	}})
	fmt.Println(h.Len(), err)
	// Output:
	// convo: snapshot entry 2 (ID 3): a call has no result yet (id "c1", tool "find"); Options.Repair makes Restore repair it
	// true
	// 0 4 answered with an error result
	// 3 5 new ID
	// 4 <nil>
}

// Messages can be pinned as they are appended: the task, and those that begin
// with a mark.
func ExampleOptions_pin() {
	h, _ := convo.New(&convo.Options{
		PinFirstUser: true,
		Pin:          func(m convo.Message) bool { return strings.HasPrefix(m.Text(), "Remember:") },
	})
	h.Append(convo.User("Plan a trip."), convo.Assistant("Where to?"), convo.User("Remember: no flights."), convo.Assistant("Sure."))
	fmt.Println(h.Pinned())
	// Output:
	// [1 3]
}

// OnCompaction is given the report of every edit, also of those made by hand.
func ExampleOptions_onCompaction() {
	h := newTrip(&convo.Options{OnCompaction: func(r convo.Report) {
		fmt.Println(r.Outcome, r.Summarised, r.MessagesBefore, "to", r.MessagesAfter)
	}})
	h.SplicePrefix(h.Snapshot(), 5, "Flights were looked up.")
	// Output:
	// applied [2 3 4 5] 8 to 5
}

// Calls that were open when a conversation was saved may stay open, be
// answered, or be taken back with their turn.
func ExampleOnLoad() {
	h := newTrip(nil)
	h.Append(convo.Assistant("", convo.ToolCall{ID: "c2", Name: "book"}))
	for _, way := range []convo.OnLoad{convo.OnLoadKeep, convo.OnLoadClose, convo.OnLoadDrop} {
		again, err := convo.Restore(h.Snapshot(), &convo.Options{OnLoad: way})
		fmt.Println(way, again.Len(), again.Status().OpenCalls, err)
	}
	// Output:
	// keep 9 1 <nil>
	// close 10 0 <nil>
	// drop 7 0 <nil>
}

// A report hands over what left, and Undo puts it back, with what was appended
// since behind it.
func ExampleHistory_Undo() {
	h, _ := convo.New(nil)
	h.Append(convo.User("Window seats only."), convo.Assistant("Noted."), convo.User("Flights to Rome?"))
	report, _ := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{1, 2}, Summary: &convo.Summary{Text: "The user likes windows."}})
	for _, e := range report.Originals() {
		fmt.Println("left:", e)
	}
	h.Append(convo.Assistant("Two."))

	fmt.Println(h.Undo(report))
	for _, e := range h.Snapshot().All() {
		fmt.Println(e)
	}
	// Output:
	// left: 1 user: Window seats only.
	// left: 2 assistant: Noted.
	// <nil>
	// 1 user: Window seats only.
	// 2 assistant: Noted.
	// 3 user: Flights to Rome?
	// 4 assistant: Two.
}

// An image that was looked at long ago still weighs. Here all but the newest message
// lose theirs, in one edit, so that the prompt cache suffers once.
func ExampleRewrite() {
	h, _ := convo.New(nil)
	for _, day := range []string{"Monday", "Tuesday", "Wednesday"} {
		h.Append(convo.User("This is "+day+".", convo.NewMedia("image/png", []byte("..."))), convo.Assistant("It rains."))
	}
	h.Append(convo.User("Which day was the driest?", convo.NewMedia("image/png", []byte("..."))))

	snap := h.Snapshot()
	isMedia := func(p convo.Part) bool { _, ok := p.(convo.Media); return ok }
	var edit convo.Edit
	for i, e := range snap.All() {
		if i < snap.Len()-1 && slices.ContainsFunc(e.Message.Parts, isMedia) {
			parts := append(slices.DeleteFunc(e.Message.Parts, isMedia), convo.Text("[an image was here]"))
			edit.Rewrite = append(edit.Rewrite, convo.Rewrite{ID: e.ID, Parts: parts})
		}
	}
	report, err := h.Apply(snap, edit)
	fmt.Println(report.Rewritten, err)
	for _, e := range h.Snapshot().All() {
		fmt.Println(e)
	}
	// Output:
	// [1 3 5] <nil>
	// 1 user: This is Monday. [an image was here]
	// 2 assistant: It rains.
	// 3 user: This is Tuesday. [an image was here]
	// 4 assistant: It rains.
	// 5 user: This is Wednesday. [an image was here]
	// 6 assistant: It rains.
	// 7 user: Which day was the driest? media(image/png, 3 bytes)
}

// A secret that must go leaves nothing behind: neither the report nor Undo has it.
func ExampleRewrite_forget() {
	h, _ := convo.New(nil)
	id, _ := h.Append(convo.User("Log in with hunter2, please."))

	report, err := h.Apply(h.Snapshot(), convo.Edit{Rewrite: []convo.Rewrite{
		{ID: id, Parts: []convo.Part{convo.Text("Log in with [redacted], please.")}, Forget: true},
	}})
	fmt.Println(report.Originals(), err)
	fmt.Println(h.Undo(report))
	fmt.Println(h.Snapshot().Messages())
	// Output:
	// [1 user: Log in with [redacted], please.] <nil>
	// <nil>
	// [user: Log in with [redacted], please.]
}
