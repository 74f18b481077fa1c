// Package talks generates conversations with tool calls, has them kept within a
// budget, and checks whether a provider would accept the requests.
package talks

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/seed-c1b73e60/convo/bench/peer"
)

// Make generates a conversation like those of agents. Each user message is
// followed by up to six tool rounds, some with parallel calls. In a quarter of
// the conversations call ids are reused, as with providers that number the calls
// of each turn. If empty is set, one result in thirteen is empty, as in recorded
// conversations.
func Make(seed uint64, empty bool) []peer.Message {
	r := rand.New(rand.NewPCG(seed, 1))
	reuses := r.IntN(4) == 0
	var list []peer.Message
	serial := 0
	for range 12 + r.IntN(20) {
		list = append(list, peer.Message{Role: "user", Text: sentence(r, 10+r.IntN(40))})
		if reuses {
			serial = 0
		}
		for range r.IntN(7) {
			ask := peer.Message{Role: "assistant"}
			if r.IntN(2) == 0 {
				ask.Text = sentence(r, 5+r.IntN(10))
			}
			for range 1 + r.IntN(8)/5*r.IntN(3) {
				serial++
				ask.Calls = append(ask.Calls, peer.Call{
					ID:   fmt.Sprint("call_", serial),
					Name: []string{"search", "read_file", "run_tests"}[r.IntN(3)],
					Args: fmt.Sprintf(`{"query":%q}`, sentence(r, 2+r.IntN(8))),
				})
			}
			list = append(list, ask)
			for _, c := range ask.Calls {
				answer := peer.Message{Role: "tool", Answers: c.ID, Tool: c.Name, Text: sentence(r, 10+r.IntN(200))}
				if r.IntN(13) == 0 && empty {
					answer.Text = ""
				}
				list = append(list, answer)
			}
		}
		list = append(list, peer.Message{Role: "assistant", Text: sentence(r, 10+r.IntN(60))})
	}
	for i := range list {
		list[i].N = i
	}
	return list
}

var words = strings.Fields("the a of to and in that is for it with as on be at by this from or an are was not which " +
	"file test error line value return result function server request response time user data list key index " +
	"open close read write check found missing new old first last next previous")

func sentence(r *rand.Rand, n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(words[r.IntN(len(words))])
	}
	return b.String()
}

// A verdict says what is wrong with a request.
type verdict struct {
	unanswered bool // a call without its result directly after it
	orphan     bool // a result without its call directly before it
	headless   bool // the first message is not the user's
	stale      bool // the newest message of the conversation is missing
}

func (v verdict) isBroken() bool { return v.unanswered || v.orphan || v.headless }

// judge checks a request. It pairs results by position: they belong to the
// assistant message that they follow.
func judge(req []peer.Message, newest peer.Message) verdict {
	v := verdict{headless: len(req) == 0 || req[0].Role != "user"}
	open := map[string]int{}
	for _, t := range req {
		if t.Role == "tool" {
			if open[t.Answers] == 0 {
				v.orphan = true
				continue
			}
			open[t.Answers]--
			continue
		}
		v.unanswered = v.unanswered || total(open) > 0
		clear(open)
		for _, c := range t.Calls {
			open[c.ID]++
		}
	}
	v.unanswered = v.unanswered || total(open) > 0
	if len(req) > 0 {
		last := req[len(req)-1]
		v.stale = last.Role != newest.Role || strings.TrimSpace(last.Text) != strings.TrimSpace(newest.Text) || last.Answers != newest.Answers
	} else {
		v.stale = true
	}
	return v
}

func total(open map[string]int) int {
	n := 0
	for _, k := range open {
		n += k
	}
	return n
}
