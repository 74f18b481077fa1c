package ops

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// A turn of a talk is one message in no library's form.
type turn struct {
	role    string // "user", "assistant", "tool"
	text    string
	calls   []call // of an assistant message
	answers string // the id of the call that a tool message answers
	name    string // of the tool
}

type call struct{ id, name, args string }

// talk makes a conversation as agents have them: turns of the user with up to
// six tool rounds each, some with parallel calls; in a quarter of the talks ids
// come again, as with providers that number calls by the turn. If empty is set,
// one result in thirteen is empty, as in recorded conversations.
func talk(seed uint64, empty bool) []turn {
	r := rand.New(rand.NewPCG(seed, 1))
	reuses := r.IntN(4) == 0
	var list []turn
	serial := 0
	for range 12 + r.IntN(20) {
		list = append(list, turn{role: "user", text: sentence(r, 10+r.IntN(40))})
		if reuses {
			serial = 0
		}
		for range r.IntN(7) {
			ask := turn{role: "assistant"}
			if r.IntN(2) == 0 {
				ask.text = sentence(r, 5+r.IntN(10))
			}
			for range 1 + r.IntN(8)/5*r.IntN(3) {
				serial++
				ask.calls = append(ask.calls, call{
					id:   fmt.Sprint("call_", serial),
					name: []string{"search", "read_file", "run_tests"}[r.IntN(3)],
					args: fmt.Sprintf(`{"query":%q}`, sentence(r, 2+r.IntN(8))),
				})
			}
			list = append(list, ask)
			for _, c := range ask.calls {
				answer := turn{role: "tool", answers: c.id, name: c.name, text: sentence(r, 10+r.IntN(200))}
				if r.IntN(13) == 0 && empty {
					answer.text = ""
				}
				list = append(list, answer)
			}
		}
		list = append(list, turn{role: "assistant", text: sentence(r, 10+r.IntN(60))})
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

// weigh counts a turn by len/4, as all the others are made to.
func weigh(t turn) int {
	n := lenFour(t.text) + lenFour(t.answers)
	for _, c := range t.calls {
		n += lenFour(c.id) + lenFour(c.name) + lenFour(c.args)
	}
	return n
}

// A verdict says what a provider would refuse in a request.
type verdict struct {
	unanswered bool // a call without its result directly after it
	orphan     bool // a result without its call directly before it
	headless   bool // the first message is not the user's
	stale      bool // the newest message of the conversation is not in it
}

func (v verdict) isBroken() bool { return v.unanswered || v.orphan || v.headless }

// judge looks at a request by place: results belong to the assistant message
// that they follow.
func judge(req []turn, newest turn) verdict {
	v := verdict{headless: len(req) == 0 || req[0].role != "user"}
	open := map[string]int{}
	for _, t := range req {
		if t.role == "tool" {
			if open[t.answers] == 0 {
				v.orphan = true
				continue
			}
			open[t.answers]--
			continue
		}
		v.unanswered = v.unanswered || total(open) > 0
		clear(open)
		for _, c := range t.calls {
			open[c.id]++
		}
	}
	v.unanswered = v.unanswered || total(open) > 0
	if len(req) > 0 {
		last := req[len(req)-1]
		v.stale = last.role != newest.role || strings.TrimSpace(last.text) != strings.TrimSpace(newest.text) || last.answers != newest.answers
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
