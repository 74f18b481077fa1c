package facts

import (
	"github.com/seed-c1b73e60/convo"
)

// The policies of others, as plain rules over a list of messages. Each starts where its
// program does. Sizes that are meant for larger windows are shares of the window here.

// A list is a keeper that holds the messages that are sent.
type list struct {
	*desk
	msgs    []convo.Message // the first is the system prompt
	tokens  int
	high    int // a larger request is compacted first
	summary string
	compact func(*list)
}

func (l *list) add(m convo.Message) error {
	l.msgs = append(l.msgs, m)
	l.tokens += l.item(m).Tokens
	return nil
}

func (l *list) request() ([]convo.Message, error) {
	if l.tokens > l.high {
		l.score.Compactions++
		l.compact(l)
		l.tokens = l.sizeOf(l.msgs)
	}
	if l.tokens > l.window {
		return nil, errOver
	}
	return l.msgs, nil
}

func (l *list) sent(int) error { return nil }

func (l *list) close() error { return nil }

func (l *list) sizeOf(msgs []convo.Message) (tokens int) {
	for _, it := range l.items(msgs) {
		tokens += it.Tokens
	}
	return tokens
}

// instruction stands for the prompt at the end of a request for a summary.
var instruction = convo.User("Summarise the conversation so far. " + newWords(1).prose(400))

// summarise has the model read all messages, after which the prompt follows, so that the
// cache holds what was sent before. The oldest leave if that does not fit.
func (l *list) summarise() {
	read := l.msgs
	for l.sizeOf(read)+l.item(instruction).Tokens > l.window && len(read) > 1 {
		read = append(read[:1:1], read[2:]...)
	}
	most := max(l.window/8, 500) // twice what convo allows by default
	l.summary = l.reader.write(l.summary, shownAll(read[1:]), l.at, most, count)
	l.meter.Ride(l.items(append(read[:len(read):len(read)], instruction)), count(l.summary))
}

func listOf(d *desk, high int, compact func(*list)) (keeper, error) {
	return &list{desk: d, high: high, compact: compact}, nil
}

// claudeCode replaces all messages by a summary of them. It starts 13,000 tokens below the
// window less the 20,000 that are kept for an answer: at 83.5 % of 200,000.
func claudeCode(s skill) func(*desk) (keeper, error) {
	return func(d *desk) (keeper, error) {
		d.reader.skill = s
		return listOf(d, d.window*835/1000, func(l *list) {
			l.summarise()
			l.msgs = append(l.msgs[:1:1], convo.User("This session is continued from an earlier conversation. Its summary:\n"+l.summary))
		})
	}
}

// codex keeps the user's messages, the newest of 20,000 tokens, here at most of a sixth of the
// window, and puts a summary after them. It starts at 90 % of the window.
func codex(s skill) func(*desk) (keeper, error) {
	return func(d *desk) (keeper, error) {
		d.reader.skill = s
		var marked convo.Message // the message with the summary
		return listOf(d, d.window*90/100, func(l *list) {
			before := marked
			l.summarise()
			marked = convo.User("Another model began this task and wrote this summary:\n" + l.summary)
			left := min(20_000, l.window/6)
			from := len(l.msgs)
			var kept []convo.Message
			for left > 0 && from > 1 {
				from--
				m := l.msgs[from]
				if m.Role != convo.RoleUser || m.Text() == before.Text() {
					continue
				}
				text := firstTokens(m.Text(), left)
				left -= count(text)
				kept = append(kept, convo.User(text))
			}
			msgs := l.msgs[:1:1]
			for i := len(kept) - 1; i >= 0; i-- {
				msgs = append(msgs, kept[i])
			}
			l.msgs = append(msgs, marked)
		})
	}
}

// firstTokens returns the beginning of a text, of at most n tokens.
func firstTokens(text string, n int) string {
	runes := []rune(text)
	for count(string(runes)) > n {
		runes = runes[:len(runes)*7/8]
	}
	return string(runes)
}

// trimHalf drops the oldest messages until half of the limit is left.
func trimHalf(d *desk) (keeper, error) { return trimTo(d, d.window*7/16) }

// trimTo drops the oldest messages of a request above the limit until it has so many tokens. A
// result never comes first.
func trimTo(d *desk, low int) (keeper, error) {
	return listOf(d, d.window*7/8, func(l *list) {
		from, left := 1, l.tokens
		for from < len(l.msgs)-1 && (left > low || l.msgs[from].Role == convo.RoleTool) {
			left -= l.item(l.msgs[from]).Tokens
			from++
		}
		l.msgs = append(l.msgs[:1:1], l.msgs[from:]...)
	})
}
