package wire

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/callid"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// A decoder holds the state of one Decode.
type decoder struct {
	format string
	from   string            // Origin.Format; empty: format
	model  string            // the model that the input names
	own    string            // the Model of the format
	names  map[string]string // names of tools, by call id
	in     string            // Origin.Container of the message being read
	calls  messageCalls      // of the newest assistant message with calls
	out    Transcript
	losses int // number of losses, including those without room in out
	ending

	// For a Stream, whose answer is decoded several times:
	minted  map[int]string // IDs made so far, by the number of the call
	numbers []int          // numbers of the remaining calls of the answer, in order
	rest    int            // number of calls after the numbered ones
}

// newCallID returns a new ID for a call. A Stream gets the same ID each time.
func (d *decoder) newCallID(number int) string {
	if d.minted[number] == "" {
		id := callid.New()
		if d.minted == nil {
			return id
		}
		d.minted[number] = id
	}
	return d.minted[number]
}

// messageCalls are the calls of one message.
type messageCalls struct {
	of   *convo.Message
	ids  map[string]bool // ids in the input
	open []pendingCall   // calls without a result
}

type pendingCall struct {
	id   string // id in the input
	call convo.ToolCall
}

// addCall adds a call to an assistant message; see named.
func (d *decoder) addCall(path string, m *convo.Message, c convo.ToolCall) {
	m.Parts = append(m.Parts, d.named(path, m, c))
}

// named returns the next call of an assistant message, with its original name if Encode
// replaced it. A call without an ID, or with the ID of an earlier call of the message,
// gets a new ID. path is the path of the ID.
func (d *decoder) named(path string, m *convo.Message, c convo.ToolCall) convo.ToolCall {
	if d.calls.of != m {
		d.calls = messageCalls{of: m, ids: make(map[string]bool)}
	}
	number := 0
	if len(d.numbers) > 0 {
		number, d.numbers = d.numbers[0], d.numbers[1:]
	} else {
		d.rest++
		number = -d.rest
	}
	c.Name = ownName(c.Name)
	id := c.ID
	if id != "" && d.calls.ids[id] {
		d.lose(path, lostID)
		c.ID = ""
	}
	if c.ID == "" {
		c.ID, c.Minted = d.newCallID(number), true
	}
	d.calls.ids[id] = true
	d.calls.open = append(d.calls.open, pendingCall{id, c})
	return c
}

// nameResult gives a result the ID and the name of the open call that it answers:
// the first call with its ID or, if it has none, the first call of its tool. It
// reports whether there is such a call.
func (d *decoder) nameResult(r *convo.ToolResult) bool {
	open := d.calls.open
	i := slices.IndexFunc(open, func(p pendingCall) bool {
		if r.CallID != "" {
			return p.id == r.CallID
		}
		return r.Name == "" || p.call.Name == r.Name
	})
	if i < 0 {
		if name := d.names[r.CallID]; name != "" && r.CallID != "" {
			r.Name = name
		}
		return false
	}
	r.CallID, r.Name = open[i].call.ID, open[i].call.Name
	if i == 0 { // the usual case
		d.calls.open = open[1:]
	} else {
		d.calls.open = slices.Delete(open, i, i+1)
	}
	return true
}

func (d *decoder) origin() convo.Origin {
	return convo.Origin{Format: cmp.Or(d.from, d.format), Model: cmp.Or(d.model, d.own), Container: d.in}
}

// answer records the ID and the model of an answer. Providers use longer names for their
// models in answers than in requests, so the Model of the format, if set, becomes the
// maker of the message.
func (d *decoder) answer(id, model string) {
	d.out.ID, d.out.Model = id, model
	if d.own != "" {
		d.model = d.own
	}
}

func (d *decoder) lose(path, what string) {
	d.losses++
	d.out.Lost = withLosses(d.out.Lost, Loss{path, what})
}

// maxLost is the maximum number of losses in a Transcript. A server may send any number
// of new names.
const maxLost = 64

// lostMore is the Loss.What that stands for all further losses.
const lostMore = "more of what is lost than is listed here"

// withLosses adds losses that are not yet in a list, while there is room.
func withLosses(list []Loss, more ...Loss) []Loss {
	const longest = 128
	for _, l := range more {
		if len(l.Path) > longest {
			l.Path = l.Path[:text.Floor(l.Path, longest)] + "…"
		}
		switch n := len(list); {
		case n > maxLost:
			return list
		case slices.Contains(list, l):
		case n == maxLost:
			list = append(list, Loss{"", lostMore})
		default:
			list = append(list, l)
		}
	}
	return list
}

// loseRest records the unknown fields of an object as lost. Fields that are
// null are ignored.
func (d *decoder) loseRest(path string, rest map[string]json.RawMessage, known ...string) {
	var lost []string
	for key, value := range rest {
		if !slices.Contains(known, key) && !isNull(value) {
			lost = append(lost, key)
		}
	}
	slices.Sort(lost)
	for _, key := range lost {
		d.lose(at(path, key), lostField)
	}
}

// loseRestAt is loseRest for the fields of an object in a list.
func (d *decoder) loseRestAt(where spot, rest map[string]json.RawMessage, known ...string) {
	for key, value := range rest {
		if !slices.Contains(known, key) && !isNull(value) {
			d.loseRest(where.String(), rest, known...)
			return
		}
	}
}

// keepRest keeps the unknown fields of a message in the Meta of the newest message that
// was decoded from it. from is the number of messages before it. The fields are lost if
// no message was decoded, and in an answer, whose fields come from the provider and not
// from the application.
func (d *decoder) keepRest(from int, path string, all map[string]json.RawMessage, known ...string) {
	if d.answered || len(d.out.Messages) <= from {
		d.loseRest(path, all, known...)
		return
	}
	rest := maps.Clone(all)
	maps.DeleteFunc(rest, func(key string, value json.RawMessage) bool { return isNull(value) || slices.Contains(known, key) })
	if len(rest) == 0 {
		return
	}
	d.out.Messages[len(d.out.Messages)-1].Meta = strings.ToValidUTF8(compact(appendObject(nil, rest)), "\uFFFD")
	for _, key := range sortedKeys(rest) {
		d.lose(at(path, key), keptField)
	}
}

func (d *decoder) add(m convo.Message) {
	for _, c := range m.ToolCalls() {
		d.names[c.ID] = c.Name
	}
	d.out.Messages = append(d.out.Messages, m)
}

// arguments returns the arguments of a call as the model wrote them.
func (d *decoder) arguments(text string) string {
	if isBlank(text) {
		return ""
	}
	if original, ok := unwrapArguments(text); ok {
		return original
	}
	return text
}

// callText returns the Arguments of a call. The text is its arguments or, for a custom
// tool, its input. whole reports whether the provider has ended the call.
func (d *decoder) callText(text string, custom, whole bool) string {
	if custom {
		d.wroteText(text, whole)
		return text
	}
	d.wrote(text, whole)
	return d.arguments(text)
}

// lostID is the Loss.What of the ID of a call that gets a new one.
const lostID = "an id that another call of the message has, too"

// lacksRole is the reason of the error for a message without a role.
const lacksRole = "the message has no role"

// lostField is the Loss.What of a field that Decode does not know.
const lostField = "no place for this field"

// keptField is the Loss.What of a field that is kept, but not sent again.
const keptField = "kept in Meta alone"

// isEmptyRefusal reports whether a part is a refusal without a text. Such a part is not
// a refusal.
func isEmptyRefusal(all map[string]json.RawMessage) bool {
	raw, ok := all["refusal"]
	return ok && string(all["type"]) == `"refusal"` && (isNull(raw) || string(raw) == `""`)
}

// cite keeps the citations of text in a part after it. The text is the last part of m
// unless it is blank.
func (d *decoder) cite(path, key string, raw json.RawMessage, m *convo.Message, text string) {
	if isNull(raw) || compact(raw) == "[]" {
		return
	}
	if isBlank(text) || kindOf(raw) != '[' || m.Role != convo.RoleAssistant && m.Role != convo.RoleUser {
		d.lose(at(path, key), lostCitation)
		return
	}
	m.Parts = append(m.Parts, citationsPart(d.format, raw))
}

const (
	lostMark     = "a cache mark"
	lostCitation = "the citations of a text"
)

// fieldsBlock returns the block that holds f.
func (d *decoder) fieldsBlock(f partFields) convo.Opaque {
	b := appendStringField([]byte{'{'}, "type", fieldsType)
	for _, field := range []struct{ key, value string }{{"id", f.ID}, {"phase", f.Phase}, {"namespace", f.Namespace}, {"call", f.Call}, {"caller", f.Caller}, {"caller_id", f.CallerID}} {
		if field.value != "" {
			b = appendStringField(b, field.key, field.value)
		}
	}
	return convo.Opaque{Format: d.format, JSON: string(append(b, '}'))}
}
