package cost

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// A writer generates text and sizes. The same seed gives the same ones.
type writer struct {
	*rand.Rand
	text string
}

var words = strings.Fields(`the of and to in is that for it as was with be by on not he this are or his from at which
but have an they you were their one all we can has there been if more when will would who so no out up into than them
only time some could these two may then do first any my now such like our over man me even most made after also did
many before must through back years where much your way well down should because each just those people mister how
too little state good very make world still own see men work long get here between both life being under never day
same another know while last might us great old year off come since against go came right used take three open file
line error value return test result request function change index table number call user data list name type path`)

func newWriter(seed uint64) *writer {
	w := &writer{Rand: rand.New(rand.NewPCG(seed, 1))}
	var b strings.Builder
	for b.Len() < 1<<18 {
		b.WriteString(words[w.IntN(len(words))])
		b.WriteByte(" \n. "[min(w.IntN(40), 3)])
	}
	w.text = b.String()
	return w
}

// tokens returns text of about n tokens.
func (w *writer) tokens(n int) string {
	n = min(4*n, len(w.text)/2)
	at := w.IntN(len(w.text) - n)
	return w.text[at : at+n]
}

// between returns text of least to most tokens.
func (w *writer) between(least, most int) string { return w.tokens(least + w.IntN(most-least+1)) }

// result returns the text of a tool result. Its length has a log-normal
// distribution with the given median, so that a few results are very long.
func (w *writer) result(median, most int) string {
	return w.tokens(max(5, min(most, int(float64(median)*math.Exp(1.2*w.NormFloat64())))))
}

func (w *writer) round(n int, think string, median, most int) []convo.Message {
	names := []string{"bash", "read_file", "edit_file", "search"}
	call := convo.ToolCall{
		ID:        fmt.Sprintf("call_%d", n),
		Name:      names[w.IntN(len(names))],
		Arguments: fmt.Sprintf(`{"input":%q}`, w.between(10, 90)),
	}
	return []convo.Message{convo.Assistant(think, call), convo.Result(call, w.result(median, most))}
}

// AgentRun generates one long turn: a system prompt, a task, and steps of about
// 1,800 tokens, each of which is a short text with a call, and its result.
func AgentRun(seed uint64, steps int) []convo.Message {
	w := newWriter(seed)
	msgs := []convo.Message{convo.System(w.tokens(2500)), convo.User(w.between(300, 1500))}
	for n := range steps {
		msgs = append(msgs, w.round(n, w.between(30, 150), 900, 10_000)...)
	}
	return append(msgs, convo.Assistant(w.between(100, 400)))
}

// React generates turns with a few tool calls and an answer each.
func React(seed uint64, turns int) []convo.Message {
	w := newWriter(seed)
	msgs := []convo.Message{convo.System(w.tokens(1500))}
	n := 0
	for range turns {
		msgs = append(msgs, convo.User(w.between(10, 120)))
		for range 1 + w.IntN(7) {
			msgs = append(msgs, w.round(n, w.between(0, 60), 250, 4000)...)
			n++
		}
		msgs = append(msgs, convo.Assistant(w.between(50, 300)))
	}
	return msgs
}

// Chat generates turns without tools.
func Chat(seed uint64, turns int) []convo.Message {
	w := newWriter(seed)
	msgs := []convo.Message{convo.System(w.tokens(400))}
	for range turns {
		msgs = append(msgs, convo.User(w.between(20, 180)), convo.Assistant(w.between(20, 180)))
	}
	return msgs
}
