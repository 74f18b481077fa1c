package keep

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// An Agent is a simulated coding agent. It reads files of 20 to 60 kB and edits the
// file that it works on, one or more calls a step. Its user states a task and five
// rules in the first turns, and a few rules later.
type Agent struct {
	Steps  int
	Calls  int     // a step
	Users  int     // a user message before every so many steps; 0: none after the first turns
	Factor float64 // the tokens that the provider counts for each that convo counts
	Window int
	Seed   uint64
}

// Memory is the share, from 0 to 1, of what the views after compactions still held.
// Each compaction counts alike.
type Memory struct {
	Task  float64
	Rules float64 // of those stated so far
	Edits float64 // of those of the current file

	Compactions int
	Unread      int // messages that were dropped though nothing had read them
	Words       int // of these, messages of the user
	Summaries   int // that were dropped and not replaced
	Over        int // requests above the window
	Requests    int
	Input       int64   // tokens of all requests, as the provider counts them
	Units       float64 // price of the requests, in uncached input tokens
}

// An agentRun is one simulation.
type agentRun struct {
	Agent
	rng  *rand.Rand
	h    *convo.History
	text string

	task  string
	rules []string
	file  int
	edits []string // of the current file
	calls int

	sum    Memory
	last   []string // the messages of the request before
	report convo.Report
	said   map[convo.ID]bool // by the user

	talk *Talk // if not nil, the messages go there instead of to h
}

// Run runs the simulation. The options may set all but limits.
func (a Agent) Run(o convo.Options) (Memory, error) {
	r := a.start()
	o.Limits.Window = a.Window
	o.OnCompaction = func(rep convo.Report) {
		if rep.Outcome == convo.OutcomeApplied && rep.Reason != convo.ReasonAppend {
			r.report = rep
			r.measure()
		}
	}
	h, err := convo.New(&o)
	if err != nil {
		return Memory{}, err
	}
	defer h.Close()
	r.h = h
	if err := r.run(); err != nil {
		return Memory{}, fmt.Errorf("%+v: %w", a, err)
	}
	m := r.sum
	if n := float64(m.Compactions); n > 0 {
		m.Task, m.Rules, m.Edits = m.Task/n, m.Rules/n, m.Edits/n
	}
	return m, nil
}

// start returns a simulation that has not begun.
func (a Agent) start() *agentRun {
	r := &agentRun{Agent: a, rng: rand.New(rand.NewPCG(a.Seed, uint64(a.Calls))), said: map[convo.ID]bool{}}
	var b strings.Builder
	for b.Len() < 1<<17 {
		fmt.Fprintf(&b, "\t// %s: ", r.word())
		for range 12 {
			b.WriteString(plain[r.rng.IntN(len(plain))] + " ")
		}
		b.WriteByte('\n')
	}
	r.text = b.String()
	return r
}

// Talk returns the conversation of the agent. Every 25 steps its task, the rules so far and
// its edits of the current file are needed.
func (a Agent) Talk() Talk {
	r := a.start()
	r.talk = new(Talk)
	_ = r.run() // what only records does not fail
	return *r.talk
}

// need makes needles of what is needed at this step.
func (r *agentRun) need() {
	facts := append([]string{r.task}, r.rules...)
	for _, edit := range r.edits {
		facts = append(facts, fmt.Sprintf("store/file_%d.go edit %s", r.file, edit))
	}
	for _, fact := range facts {
		found := identifiers(fact)
		needle := found[len(found)-1].word
		entry := slices.IndexFunc(r.talk.Messages, func(m convo.Message) bool { return strings.Contains(said(m), needle) })
		r.talk.Needles = append(r.talk.Needles, Needle{Text: needle, Query: strings.ReplaceAll(fact, needle, ""), Entry: entry, Due: len(r.talk.Messages)})
	}
}

var plain = strings.Fields("the of and to in that it for as was with be by on not this are from at which but have an they one all we can has there been if more when will would who so out up into than them only time some could these two may then do first any now such like our over even most made after also did many before must through back where much your way well down should because each just those how too little state good very make world still own see work long get here between both under never day same another know while last might us great old year off come since against go came right used take three open file line error value return test result request function change index table number call user data list name type path")

var verbs = strings.Fields("open parse write check build fetch merge split count sort render apply load store trim scan match bind")

func (r *agentRun) word() string {
	return verbs[r.rng.IntN(len(verbs))] + strings.ToUpper(verbs[r.rng.IntN(len(verbs))][:1]) + strconv.Itoa(r.rng.IntN(50))
}

// prose returns text of about n bytes.
func (r *agentRun) prose(n int) string {
	at := r.rng.IntN(len(r.text) - n)
	return strings.ToValidUTF8(r.text[at:at+n], "")
}

func (r *agentRun) rule() string {
	rule := fmt.Sprintf("Rule %d: never touch %s, and call it %s.", len(r.rules)+1, r.word()+strconv.Itoa(r.rng.IntN(1e6)), r.word()+strconv.Itoa(r.rng.IntN(1e6)))
	r.rules = append(r.rules, rule)
	return rule
}

func (r *agentRun) run() error {
	r.task = fmt.Sprintf("Task: move the package %s%d to the new storage layer.", r.word(), r.rng.IntN(1e6))
	first := []string{r.task + " " + r.prose(400), r.rule() + " " + r.rule(), r.rule(), r.rule() + " " + r.rule()}
	if err := r.append(convo.System(r.prose(6000))); err != nil {
		return err
	}
	for _, text := range first {
		if err := r.append(convo.User(text)); err != nil {
			return err
		}
		if err := r.send(convo.Assistant("I will. " + r.prose(200))); err != nil {
			return err
		}
	}
	if err := r.append(convo.User("Good. Begin.")); err != nil {
		return err
	}
	for n := range r.Steps {
		if n > 0 && r.Users > 0 && n%r.Users == 0 {
			text := "Good, go on."
			if r.rng.IntN(max(60/r.Users, 2)) == 0 && len(r.rules) < 12 {
				text = r.rule()
			}
			if err := r.append(convo.User(text)); err != nil {
				return err
			}
		}
		if err := r.step(); err != nil {
			return fmt.Errorf("step %d: %w", n, err)
		}
		if r.talk != nil && n%25 == 24 {
			r.need()
		}
		if r.Users > 0 && (n+1)%r.Users == 0 {
			if err := r.send(convo.Assistant("Done with this part. " + r.prose(100))); err != nil {
				return err
			}
		}
	}
	return nil
}

// step makes one step: an answer with calls, and their results.
func (r *agentRun) step() error {
	if r.rng.IntN(9) == 0 {
		r.file++
		r.edits = nil
	}
	var calls []convo.ToolCall
	var results []convo.Message
	var edits []string // of this step
	for range r.Calls {
		r.calls++
		c := convo.ToolCall{ID: fmt.Sprintf("call_%d", r.calls), Name: "read_file", Arguments: fmt.Sprintf(`{"path":"store/file_%d.go"}`, r.rng.IntN(r.file+3))}
		text := ""
		if r.rng.IntN(3) == 0 {
			c.Name = "edit_file"
			edit := fmt.Sprintf("edit-%d-%d", r.calls, r.rng.IntN(1e6))
			c.Arguments = fmt.Sprintf(`{"path":"store/file_%d.go","edit":"%s","text":%q}`, r.file, edit, r.prose(100+r.rng.IntN(900)))
			text = "edited"
			edits = append(edits, edit)
		} else {
			text = r.prose(20_000 + r.rng.IntN(40_001))
		}
		calls = append(calls, c)
		results = append(results, convo.Result(c, text))
	}
	if err := r.send(convo.Assistant(r.prose(120), calls...)); err != nil {
		return err
	}
	r.edits = append(r.edits, edits...)
	return r.append(results...)
}

func (r *agentRun) append(msgs ...convo.Message) error {
	if r.talk != nil {
		r.talk.Messages = append(r.talk.Messages, msgs...)
		return nil
	}
	id, err := r.h.Append(msgs...)
	r.said[id] = msgs[0].Role == convo.RoleUser // which it appends alone
	return err
}

// send makes a request that is answered by m.
func (r *agentRun) send(m convo.Message) error {
	if r.talk != nil {
		return r.append(m)
	}
	s, _, err := r.h.Prepare(context.Background())
	if err != nil {
		return err
	}
	used := r.bill(s)
	if used > r.Window {
		r.sum.Over++
	}
	if err := r.h.RecordUsage(s, convo.Usage{Input: used, Output: 100}); err != nil {
		return err
	}
	return r.append(m)
}

// bill returns the tokens of a request, and adds its price.
func (r *agentRun) bill(s *convo.Snapshot) int {
	view := s.Messages()
	keys := make([]string, len(view))
	same, all := 0, 0
	isSame := true
	for i := range view {
		keys[i] = key(view[i])
		all += len(keys[i])
		if isSame = isSame && i < len(r.last) && keys[i] == r.last[i]; isSame {
			same += len(keys[i])
		}
	}
	r.last = keys
	used := int(float64(s.Tokens()) * r.Factor)
	read := used * same / all
	r.sum.Requests++
	r.sum.Input += int64(used)
	r.sum.Units += 0.1*float64(read) + 1.25*float64(used-read)
	return used
}

// key returns what tells a message from others: its role, its texts, its calls and its results.
func key(m convo.Message) string {
	var b strings.Builder
	b.WriteString(string(m.Role))
	if m.Role != convo.RoleTool { // its text is that of its results
		b.WriteString(m.Text())
	}
	for _, c := range m.ToolCalls() {
		b.WriteString(c.ID + c.Arguments)
	}
	for _, c := range m.ToolResults() {
		b.WriteString(c.CallID + c.Text())
	}
	return b.String()
}

// measure looks at the view after a compaction.
func (r *agentRun) measure() {
	var b strings.Builder
	for _, m := range r.h.Snapshot().Messages() {
		b.WriteString(key(m) + "\n")
	}
	view := b.String()
	has := func(all []string) float64 {
		n := 0
		for _, s := range all {
			if strings.Contains(view, s) {
				n++
			}
		}
		if len(all) == 0 {
			return 1
		}
		return float64(n) / float64(len(all))
	}
	r.sum.Compactions++
	r.sum.Unread += len(r.report.Dropped)
	for _, id := range r.report.Dropped {
		if r.said[id] {
			r.sum.Words++
		}
	}
	if r.report.SummaryDropped {
		r.sum.Summaries++
	}
	r.sum.Task += has([]string{r.task})
	r.sum.Rules += has(r.rules)
	r.sum.Edits += has(r.edits)
}
