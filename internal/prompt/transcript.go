package prompt

import (
	"fmt"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/tags"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// A Message is a message of a transcript.
type Message struct {
	Role, Author string
	IsHosts      bool   // the application has said that no person wrote it
	Body         string // its parts, in tags that no text in them can forge
}

// render returns m with the given body, which is all or a piece of its own. continued means
// that another piece precedes this one.
func (m *Message) render(body string, continued bool) string {
	var b strings.Builder
	b.WriteString("<message role=" + tags.Quote(m.Role))
	if m.Author != "" {
		b.WriteString(" author=" + tags.Quote(m.Author))
	}
	if m.IsHosts {
		b.WriteString(` from="the program, not the user"`)
	}
	if continued {
		b.WriteString(` continued="true"`)
	}
	b.WriteString(">\n" + body)
	if body != "" && !strings.HasSuffix(body, "\n") {
		b.WriteByte('\n')
	}
	b.WriteString("</message>\n")
	return b.String()
}

// Transcript returns messages one after another.
func Transcript(list []Message) string {
	var b strings.Builder
	for i := range list {
		b.WriteString(list[i].render(list[i].Body, false))
	}
	return b.String()
}

// A Chunk is a part of a transcript: that of the messages from index From up to, but not
// including, To. Pieces of the first and of the last may be in other chunks.
type Chunk struct {
	Text     string
	From, To int
}

// Split packs messages, whose transcript has total tokens, into chunks of at most room tokens. A
// message that does not fit into the rest of a chunk continues in the next one. It returns nil
// if count says that a part of a text has more tokens than the whole.
func Split(list []Message, room, total int, count func(string) int) (chunks []Chunk) {
	var b strings.Builder
	from, left := 0, room
	next := func(i int) { // the chunk ends with the piece of the message i
		if b.Len() > 0 {
			chunks = append(chunks, Chunk{b.String(), from, i + 1})
		}
		b.Reset()
		left = room
	}
	for i := range list {
		m, body := &list[i], list[i].Body
		for part := 0; body != "" || part == 0; part++ {
			head, weight := count(m.render("", part > 0)), count(body)
			if head+weight > left && b.Len() > 0 && (head+weight <= room || left < head+room/8) {
				next(i - 1)
			}
			n := len(body)
			if head+weight > left {
				n = fitting(body, left-head, weight, count)
			}
			if b.Len() == 0 {
				from = i
			}
			piece := m.render(body[:n], part > 0)
			b.WriteString(piece)
			left -= count(piece)
			body = body[n:]
			if body != "" {
				next(i)
			}
			if len(chunks) > total/(room/2)+1 {
				return nil
			}
		}
	}
	next(len(list) - 1)
	return chunks
}

// fitting returns how many bytes at the start of a text of weight tokens fit into room: up to
// the end of a line or a word, if there is one nearby.
func fitting(body string, room, weight int, count func(string) int) int {
	n := text.Prefix(body, room, weight, count)
	if border := text.BorderBefore(body, n); border > n/2 {
		return border
	}
	return n
}

// CutMiddle removes the middle of a text that has more than the given number of tokens,
// cutting at the end of a line or a word if there is one nearby.
func CutMiddle(s string, tokens int, count func(string) int) string {
	weight := count(s)
	if weight <= tokens {
		return s
	}
	// 16 tokens leave room for the line that replaces the middle.
	for keep := text.Prefix(s, max(tokens-16, 0), weight, count); ; keep = keep * 7 / 8 {
		head, tail := text.BorderBefore(s, keep/2), text.BorderAfter(s, len(s)-keep/2)
		short := fmt.Sprintf("%s\n[%d bytes left out]\n%s", strings.TrimSuffix(s[:head], "\n"), tail-head, s[tail:])
		if keep == 0 || count(short) <= tokens {
			return short
		}
	}
}
