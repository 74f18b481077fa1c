package cost

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/seed-c1b73e60/convo"
)

// A Conversation is a complete conversation that can be replayed request by
// request.
type Conversation struct {
	Name     string
	Messages []convo.Message // the Meta of each is its number

	count func(convo.Message) int
	plan  *layout
}

// NewConversation makes a conversation of messages that a History accepts, so that
// replaying it never fails. Calls without a result are answered with an error, a
// system message after the beginning becomes a user message, and a message that
// the History refuses is left out.
func NewConversation(name string, msgs []convo.Message) (*Conversation, error) {
	h, err := convo.New(&convo.Options{Roles: convo.Relaxed()})
	if err != nil {
		return nil, err
	}
	defer h.Close()
	for _, m := range msgs {
		if m.Role == convo.RoleSystem && h.Len() > h.Status().System {
			m.Role = convo.RoleUser
		}
		m.Meta = ""
		if _, err := h.Append(m); err != nil {
			if _, err := h.AnswerOpenCalls("no answer"); err != nil {
				return nil, err
			}
			_, _ = h.Append(m) // leave it out if it is refused again
		}
	}
	if _, err := h.AnswerOpenCalls("no answer"); err != nil {
		return nil, err
	}
	c := &Conversation{Name: name, count: CountBytes}
	for i, e := range h.Snapshot().All() {
		m := e.Message
		m.Meta = strconv.Itoa(i)
		c.Messages = append(c.Messages, m)
	}
	c.plan, err = newLayout(c)
	return c, err
}

// CountBytes counts tokens for the simulator: one for every four bytes of text,
// names and arguments, and five more for each message.
func CountBytes(m convo.Message) int {
	n := 0
	for _, p := range m.Parts {
		n += partBytes(p)
	}
	return 5 + (n+3)/4
}

func partBytes(p convo.Part) int {
	switch p := p.(type) {
	case convo.Text:
		return len(p)
	case convo.Reasoning:
		return len(p.Text)
	case convo.ToolCall:
		return len(p.Name) + len(p.Arguments)
	case convo.ToolResult:
		n := len(p.Name)
		for _, inner := range p.Parts {
			n += partBytes(inner)
		}
		return n
	case convo.Media:
		return 4 * 1600
	case convo.Opaque:
		return len(p.JSON)
	}
	return 0
}

var seed = maphash.MakeSeed()

// item returns a message for billing. Messages with equal text at different
// places of the conversation get different keys, so that no cache hit is counted
// by accident.
func (c *Conversation) item(m convo.Message) Item {
	var h maphash.Hash
	h.SetSeed(seed)
	write := func(s string) {
		_, _ = h.WriteString(s)
		_ = h.WriteByte(0xff)
	}
	write(string(m.Role))
	write(m.Meta)
	for _, p := range m.Parts {
		writePart(write, p)
	}
	return Item{Key: h.Sum64(), Tokens: c.count(m)}
}

func writePart(write func(string), p convo.Part) {
	switch p := p.(type) {
	case convo.Text:
		write("t")
		write(string(p))
	case convo.Reasoning:
		write("r")
		write(p.Text)
	case convo.ToolCall:
		write("c")
		write(p.ID)
		write(p.Name)
		write(p.Arguments)
	case convo.ToolResult:
		write("a")
		write(p.CallID)
		for _, inner := range p.Parts {
			writePart(write, inner)
		}
	case convo.Media:
		write("m")
		write(p.URL)
		write(p.Data)
	case convo.Opaque:
		write("o")
		write(p.JSON)
	}
}

func (c *Conversation) items(msgs []convo.Message) []Item {
	out := make([]Item, len(msgs))
	for i, m := range msgs {
		out[i] = c.item(m)
	}
	return out
}

// A Clock says how much time passes before each request.
type Clock struct {
	Step  time.Duration // before an ordinary request
	Every int           // every request with a number divisible by it follows a pause; 0 means none
	Pause time.Duration // the length of a pause
}

func (c Clock) before(request int) time.Duration {
	if c.Every > 0 && request > 0 && request%c.Every == 0 {
		return c.Pause
	}
	return c.Step
}

type chatMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	Name       string          `json:"name"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

func (c *chatMessage) message() (convo.Message, error) {
	text := c.text()
	switch c.Role {
	case "system", "developer":
		return convo.System(text), nil
	case "user":
		return convo.User(text), nil
	case "tool":
		return convo.Result(convo.ToolCall{ID: c.ToolCallID, Name: c.Name}, text), nil
	case "assistant":
		var calls []convo.ToolCall
		for _, t := range c.ToolCalls {
			calls = append(calls, convo.ToolCall{ID: t.ID, Name: t.Function.Name, Arguments: t.Function.Arguments})
		}
		return convo.Assistant(text, calls...), nil
	}
	return convo.Message{}, fmt.Errorf("unknown role %q, want system, developer, user, assistant or tool", c.Role)
}

// text returns the content: a string, or the text blocks of a list.
func (c *chatMessage) text() string {
	var text string
	if json.Unmarshal(c.Content, &text) == nil {
		return text
	}
	var blocks []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(c.Content, &blocks) // content that is neither has no text
	var all []byte
	for _, b := range blocks {
		all = append(all, b.Text...)
	}
	return string(all)
}

// ReadMessages reads OpenAI chat messages. Each line is a conversation: a list of
// messages, or an object with such a list named messages.
func ReadMessages(r io.Reader) ([][]convo.Message, error) {
	var all [][]convo.Message
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 256<<20)
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		var in struct{ Messages []chatMessage }
		var err error
		if line[0] == '[' {
			err = json.Unmarshal(line, &in.Messages)
		} else {
			err = json.Unmarshal(line, &in)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if in.Messages == nil {
			return nil, fmt.Errorf("line %d: no messages: want a list of messages or {\"messages\": [...]} on each line", n)
		}
		var msgs []convo.Message
		for i := range in.Messages {
			m, err := in.Messages[i].message()
			if err != nil {
				return nil, fmt.Errorf("line %d, message %d: %w", n, i+1, err)
			}
			msgs = append(msgs, m)
		}
		all = append(all, msgs)
	}
	if len(all) == 0 && lines.Err() == nil {
		return nil, errors.New("no conversation: the file is empty")
	}
	return all, lines.Err()
}

// Chain joins each n conversations into one, without the system messages of all
// but the first. If n is less than 2, nothing is joined.
func Chain(name string, msgs [][]convo.Message, n int) ([]*Conversation, error) {
	var out []*Conversation
	for group := range slices.Chunk(msgs, max(n, 1)) {
		var joined []convo.Message
		for i, part := range group {
			for _, m := range part {
				if i == 0 || m.Role != convo.RoleSystem {
					joined = append(joined, m)
				}
			}
		}
		c, err := NewConversation(fmt.Sprintf("%s %d", name, len(out)+1), joined)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}
