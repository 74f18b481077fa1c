package wire

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// A decoder holds the state of one Decode.
type decoder struct {
	format string
	from   string            // Origin.Format; empty: format
	model  string            // the model that the input names
	own    string            // the Model of the format
	names  map[string]string // the names of tools, by call id
	calls  messageCalls      // of the newest assistant message with calls
	out    Transcript
	ending

	// Of a Stream, whose answer is decoded several times:
	minted  map[int]string // the IDs that were made so far, by the number of the call
	numbers []int          // of the calls of the answer, in order
	rest    int            // how many calls there were after these
}

// newCallID returns a new ID for a call. A Stream gets the same one each time.
func (d *decoder) newCallID(number int) string {
	if d.minted[number] == "" {
		id := convo.NewCallID()
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
	ids  map[string]bool // that they have in the input
	open []pendingCall   // without a result yet
}

type pendingCall struct {
	id   string // that it has in the input
	call convo.ToolCall
}

// addCall adds a call to an assistant message, see named.
func (d *decoder) addCall(path string, m *convo.Message, c convo.ToolCall) {
	m.Parts = append(m.Parts, d.named(path, m, c))
}

// named returns the next call of an assistant message. If it has no ID, or that of
// an earlier call of the message, it gets a new one. path is where its ID is. A name that
// Encode has put in the place of another one is turned back.
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
// the first one with its ID or, if it has none, of its tool. It reports whether
// there is one.
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
	return convo.Origin{Format: cmp.Or(d.from, d.format), Model: cmp.Or(d.model, d.own)}
}

// answer notes that the input is an answer, with the ID and the model that it names.
// Providers use longer names for their models in answers than in requests, so the
// Model of the format is taken for the maker of the message, if it is set.
func (d *decoder) answer(id, model string) {
	d.out.ID, d.out.Model = id, model
	if d.own != "" {
		d.model = d.own
	}
}

func (d *decoder) lose(path, what string) { d.out.Lost = append(d.out.Lost, Loss{path, what}) }

// loseRest reports the fields of an object that are not among the known ones.
// Fields that are null are ignored.
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

// keepRest keeps the fields of a message that are not among the known ones in the Meta of
// the newest message that came of it. from is how many messages came before. Where none
// came of it, and in an answer, whose fields are the provider's and not the application's,
// the fields are lost.
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

// callText returns the Arguments of a call whose arguments or, if it is one of a custom
// tool, whose input is this text. whole says that the provider has ended the call.
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

// keptField is that of a field which is kept, but not sent again.
const keptField = "kept in Meta alone"

// isEmptyRefusal reports whether a part is a refusal without a text, which is none.
func isEmptyRefusal(all map[string]json.RawMessage) bool {
	raw, ok := all["refusal"]
	return ok && string(all["type"]) == `"refusal"` && (isNull(raw) || string(raw) == `""`)
}

// inner returns a string in a JSON object, or "" if there is none.
func inner(data json.RawMessage, key string) string {
	all, _ := fields("-", data)
	return stringOf(all[key])
}

// cite keeps the citations of text, which is the last part of m unless it is blank, in a
// part after it.
func (d *decoder) cite(path, key string, raw json.RawMessage, m *convo.Message, text string) {
	if isNull(raw) || compact(raw) == "[]" {
		return
	}
	if isBlank(text) || kindOf(raw) != '[' || m.Role != convo.RoleAssistant && m.Role != convo.RoleUser {
		d.lose(at(path, key), lostCitation)
		return
	}
	m.Parts = append(m.Parts, attachment(d.format, raw))
}

const (
	lostMark     = "a cache mark"
	lostCitation = "the citations of a text"
)

// fieldsBlock returns the block for fields.
func (d *decoder) fieldsBlock(f partFields) convo.Opaque {
	b := appendStringField([]byte{'{'}, "type", fieldsType)
	for _, field := range []struct{ key, value string }{{"id", f.ID}, {"phase", f.Phase}, {"namespace", f.Namespace}, {"call", f.Call}} {
		if field.value != "" {
			b = appendStringField(b, field.key, field.value)
		}
	}
	return convo.Opaque{Format: d.format, JSON: string(append(b, '}'))}
}
