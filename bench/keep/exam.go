package keep

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/recall"
)

// A Needle is a literal string in a conversation that is needed later.
type Needle struct {
	Text  string
	Query string // the words that it stood beside, which do not contain it
	Entry int    // index of the message that it stands in
	Due   int    // index of the message before which it is needed; 0: at the end
}

// A Talk is a conversation with needles.
type Talk struct {
	Messages []convo.Message
	Needles  []Needle
}

var (
	things  = strings.Fields("port timeout quota region bucket queue token schema branch cluster invoice ledger shard tenant webhook certificate container dataset endpoint feature gateway index journal kernel lease mirror namespace operator partition replica secret tunnel upload vault worker zone")
	owners  = strings.Fields("staging billing search login export payments reports mobile backup metrics archive catalog delivery fraud geocoding identity inventory licensing mailing onboarding pricing ranking refunds routing sampling scoring shipping support taxes tracking")
	reasons = strings.Fields("measured confirmed restored chosen rejected migrated deprecated doubled halved reserved")
)

// NewTalk returns a conversation of a user, an agent and its tools, of about the given
// number of bytes. A third of its facts are said by the user, a third stand in results of
// 2 to 8 kB, and a third are said by the agent. Each fact has one needle: a path, an
// identifier, an error code, an amount or an address.
func NewTalk(seed uint64, size int) Talk {
	rng := rand.New(rand.NewPCG(seed, 23))
	var t Talk
	prose := func(n int) string {
		var b strings.Builder
		for b.Len() < n {
			b.WriteString(plain[rng.IntN(len(plain))])
			b.WriteByte(" \n"[min(rng.IntN(14)/13, 1)])
		}
		return b.String()
	}
	used := map[string]bool{}
	fact := func() string {
		subject := ""
		for subject == "" || used[subject] {
			subject = fmt.Sprintf("%s %s %s", owners[rng.IntN(len(owners))], things[rng.IntN(len(things))], reasons[rng.IntN(len(reasons))])
		}
		used[subject] = true
		n := rng.IntN(1_000_000)
		needle := []string{
			fmt.Sprintf("srv/%s/conf_%d.yaml", plain[rng.IntN(len(plain))], n), fmt.Sprintf("load%sV%d", strings.ToUpper(verbs[rng.IntN(len(verbs))][:1])+"x", n),
			fmt.Sprintf("ERR-%06d", n), fmt.Sprintf("%d.%02d EUR", 1000+n, n%100), fmt.Sprintf("https://h%d.example.com/v2", n),
		}[rng.IntN(5)]
		t.Needles = append(t.Needles, Needle{Text: needle, Query: subject, Entry: len(t.Messages)})
		return fmt.Sprintf("The %s is %s.", subject, needle)
	}
	add := func(m convo.Message) { t.Messages = append(t.Messages, m) }
	add(convo.System(prose(800)))
	for n := 0; size > 0; n++ {
		before := len(t.Messages)
		text := prose(60 + rng.IntN(200))
		if rng.IntN(2) == 0 {
			text += fact()
		}
		add(convo.User(text))
		for range rng.IntN(4) {
			c := convo.ToolCall{ID: fmt.Sprintf("c%d", len(t.Messages)), Name: "read_file", Arguments: fmt.Sprintf(`{"path":"src/%s_%d.go"}`, plain[rng.IntN(len(plain))], rng.IntN(40))}
			add(convo.Assistant(prose(40), c))
			text := prose(1000 + rng.IntN(3000))
			if rng.IntN(2) == 0 {
				text += fact() + "\n"
			}
			add(convo.Result(c, text+prose(1000+rng.IntN(3000))))
		}
		text = prose(100 + rng.IntN(400))
		if rng.IntN(2) == 0 {
			text += fact()
		}
		add(convo.Assistant(text))
		for _, m := range t.Messages[before:] {
			size -= len(key(m))
		}
	}
	return t
}

// A Score says where the needles of talks are when they are needed.
type Score struct {
	Needles int
	View    int // in the view, outside the summary
	Summary int // in the summary, and not in the view
	Gone    int // in neither
	Hits    [3]int

	Tokens int64 // of the views right after compactions, as convo counts
	After  int64 // how many compactions these are
	Over   int   // requests that cannot fit, and are not sent
	Input  int64
	Units  float64
}

// found are the numbers of hits that Score.Hits are for: how many of the needles that are
// gone stand in the first one, five and ten.
var found = [3]int{1, 5, 10}

// Kept returns the share of needles in the view or the summary.
func (s Score) Kept() float64 { return share(s.View+s.Summary, s.Needles) }

// Recalled returns the share of the needles that left which the k-th of found has.
func (s Score) Recalled(k int) float64 { return share(s.Hits[k], s.Gone) }

// Retained returns the mean tokens of a view after a compaction.
func (s Score) Retained() float64 { return float64(s.Tokens) / float64(max(s.After, 1)) }

func share(n, of int) float64 {
	if of == 0 {
		return 1
	}
	return float64(n) / float64(of)
}

// Sit has a strategy go through a talk with a window, and adds to the score.
func (s *Score) Sit(t Talk, window int, strategy convo.CompactionStrategy) error {
	index := new(recall.Index)
	r := &agentRun{Agent: Agent{Window: window, Factor: 1}}
	roles := convo.Relaxed() // for real conversations
	roles.KeepEmpty = true
	h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: window}, Roles: roles, Strategy: strategy, OnCompaction: func(rep convo.Report) {
		index.Observe(rep)
		if rep.Outcome == convo.OutcomeApplied && rep.Reason != convo.ReasonAppend {
			s.Tokens += int64(rep.TokensAfter)
			s.After++
		}
	}})
	if err != nil {
		return err
	}
	defer h.Close()
	r.h = h
	due, last := map[int][]Needle{}, len(t.Messages)
	for _, n := range t.Needles {
		at := n.Due
		if at == 0 {
			at = last
		}
		due[at] = append(due[at], n)
	}
	for i, m := range t.Messages {
		if len(due[i]) > 0 {
			s.search(due[i], h.Snapshot(), index)
		}
		if m.Role == convo.RoleAssistant {
			view, _, err := h.Prepare(context.Background())
			_, isFloor := errors.AsType[*convo.FloorError](err)
			if _, isLimit := errors.AsType[*convo.LimitError](err); isFloor || isLimit {
				s.Over++
			} else if err != nil {
				return err
			} else if err := h.RecordUsage(view, convo.Usage{Input: r.bill(view), Output: 100}); err != nil {
				return err
			}
		}
		if _, err := h.Append(m); err != nil {
			return err
		}
	}
	s.Input += r.sum.Input
	s.Units += r.sum.Units
	s.search(due[last], h.Snapshot(), index)
	return nil
}

// search says of each needle where it is.
func (s *Score) search(needles []Needle, view *convo.Snapshot, index *recall.Index) {
	var b strings.Builder
	for i := range view.Len() {
		e, _ := view.At(i)
		b.WriteString(said(e.Message))
	}
	shown, summary := b.String(), ""
	if sum, ok := view.Summary(); ok {
		summary = sum.Text + "\n" + sum.Names
	}
	for _, n := range needles {
		s.Needles++
		switch {
		case strings.Contains(shown, n.Text):
			s.View++
			continue
		case strings.Contains(summary, n.Text):
			s.Summary++
			continue
		}
		s.Gone++
		hits := index.Search(n.Query, found[len(found)-1])
		for at, hit := range hits {
			if strings.Contains(said(hit.Entry.Message), n.Text) {
				for k := range found {
					if at < found[k] {
						s.Hits[k]++
					}
				}
				break
			}
		}
	}
}
