package convo

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/seed-c1b73e60/convo/internal/fingerprint"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// The package documentation describes the JSON of a message.

// MarshalJSON encodes m in the stable form that docs/format.md describes. Arguments and
// opaque blocks keep their bytes; invalid UTF-8 is replaced by U+FFFD. It returns an
// error for a part of an unknown type, and for a tool result that holds anything but
// Text, Media and Opaque.
func (m Message) MarshalJSON() ([]byte, error) {
	return appendMessage(make([]byte, 0, m.jsonSize()), &m)
}

// UnmarshalJSON decodes the form that MarshalJSON writes. It returns a [*MessageError],
// and leaves m unchanged, when a field, a part's type or the role is unknown, a key
// occurs twice in one object, or data continues after the message. Append checks whether
// the role may hold the parts.
func (m *Message) UnmarshalJSON(data []byte) error {
	r := strictjson.NewReader(data)
	next, part := *m, -1
	if !r.Null() {
		next, part = readMessage(r, nil)
	}
	r.End()
	if r.Err() != nil {
		return &MessageError{Role: next.Role, Part: part, Reason: r.Err().Error()}
	}
	*m = next
	return nil
}

// jsonSize returns the approximate size of the JSON of m in bytes.
func (m *Message) jsonSize() int {
	n := 64 + len(m.Author) + len(m.Origin.Format) + len(m.Origin.Model) + len(m.Origin.Container) + len(m.Meta) + len(m.Key)
	for p := range m.allParts {
		n += 64
		switch p := p.(type) {
		case Text:
			n += len(p) + len(p)/16
		case Reasoning:
			n += len(p.ID) + len(p.Text) + len(p.Text)/16 + len(p.Signature) + len(p.Encrypted)
		case ToolCall:
			n += len(p.ID) + len(p.Name) + len(p.Arguments) + len(p.Arguments)/8
		case ToolResult:
			n += len(p.CallID) + len(p.Name)
		case Media:
			n += len(p.MIME) + len(p.Data) + len(p.URL)
		case Opaque:
			n += len(p.Format) + len(p.JSON) + len(p.JSON)/8
		}
	}
	return n
}

// A messageRoom is memory for a message, and for a part of each kind, while its JSON is written
// or read.
type messageRoom struct {
	msg    Message
	fields []strictjson.Field // of msg
	parts  []partJSON         // as in kinds
	kind   string             // the type of the part
	part   int                // the index of the part that could not be read, or -1
	err    error              // of a part that cannot be written
}

var messageRooms = sync.Pool{New: func() any {
	r := new(messageRoom)
	m := &r.msg
	r.fields = []strictjson.Field{
		{Key: "role", Value: (*strictjson.Name)(&m.Role)},
		{Key: "author", Value: (*strictjson.Name)(&m.Author)},
		{Key: "origin", Value: []strictjson.Field{
			{Key: "format", Value: (*strictjson.Name)(&m.Origin.Format)},
			{Key: "model", Value: (*strictjson.Name)(&m.Origin.Model)},
			{Key: "container", Value: (*strictjson.Name)(&m.Origin.Container)},
		}},
		{Key: "meta", Value: &m.Meta},
		{Key: "key", Value: &m.Key},
		{Key: "parts", Value: partsJSON{&m.Parts, r, false}},
	}
	for _, k := range kinds {
		r.parts = append(r.parts, k.json(r))
	}
	return r
}}

// release makes the room free for another message.
func (r *messageRoom) release() {
	r.msg, r.err = Message{}, nil
	messageRooms.Put(r)
}

// of returns the memory for a part of a kind.
func (r *messageRoom) of(k *kind) *partJSON { return &r.parts[slices.Index(kinds[:], k)] }

// A partJSON is a part of a kind while its JSON is written or read.
type partJSON struct {
	put    func(Part) // nil: an empty one
	take   func() Part
	fields []strictjson.Field
}

// jsonOf returns what makes memory for a part in a room. fields returns its fields without the
// type.
func jsonOf[P Part](fields func(*P, *messageRoom) []strictjson.Field) func(*messageRoom) partJSON {
	return func(r *messageRoom) partJSON {
		at, kind := new(P), strictjson.Field{Key: "type", Value: (*strictjson.Name)(&r.kind)}
		return partJSON{
			put:    func(p Part) { *at, _ = p.(P) },
			take:   func() Part { return *at },
			fields: append([]strictjson.Field{kind}, fields(at, r)...),
		}
	}
}

// appendMessage appends the JSON of m.
func appendMessage(dst []byte, m *Message) ([]byte, error) {
	r := messageRooms.Get().(*messageRoom)
	defer r.release()
	r.msg = *m
	dst = strictjson.AppendObject(dst, r.fields)
	return dst, r.err
}

// readMessage reads a message. A single part is put into inline, if that is not
// nil. part is the index of the part that could not be read, or -1.
func readMessage(r *strictjson.Reader, inline *[1]Part) (m Message, part int) {
	room := messageRooms.Get().(*messageRoom)
	defer room.release()
	room.part = -1
	if inline != nil {
		room.msg.Parts = inline[:0]
	}
	r.Fields(room.fields)
	m = room.msg
	if !slices.Contains(roles, m.Role) {
		r.Fail(fmt.Errorf("unknown role %.40q", string(m.Role)))
	}
	if len(m.Parts) == 0 {
		m.Parts = nil
	}
	return m, room.part
}

// A partsJSON is the value of the parts of a message or, if inResult is set, of a tool result.
type partsJSON struct {
	list     *[]Part
	room     *messageRoom
	inResult bool
}

func (v partsJSON) IsZero() bool { return len(*v.list) == 0 }

func (v partsJSON) Append(dst []byte) []byte {
	dst = append(dst, '[')
	for _, p := range *v.list {
		k := known(p).kind()
		if k == nil || v.inResult && !k.inResult {
			v.room.err = fmt.Errorf("convo: encode message: a part of type %T is not allowed here", p)
			return dst
		}
		v.room.kind = k.name
		v.room.of(k).put(p)
		dst = strictjson.AppendObject(strictjson.Next(dst), v.room.of(k).fields)
	}
	return append(dst, ']')
}

func (v partsJSON) Read(r *strictjson.Reader) {
	for i := range r.Array {
		if k := readKind(r, v.inResult); k != nil {
			part := v.room.of(k)
			part.put(nil)
			r.Fields(part.fields)
			*v.list = append(*v.list, part.take())
		}
		if r.Err() != nil && !v.inResult {
			v.room.part = i
		}
	}
}

// readKind returns the kind of the part that is next, or nil if it has none.
func readKind(r *strictjson.Reader, inResult bool) *kind {
	name := r.Peek("type")
	if name == nil {
		r.Fail(errors.New("part without a type"))
	}
	for _, k := range kinds {
		if string(name) != k.name {
			continue
		}
		if inResult && !k.inResult {
			r.Fail(fmt.Errorf("part of type %q is not allowed inside a %s", k.name, resultKind.name))
		}
		return k
	}
	r.Fail(fmt.Errorf("unknown part type %.40q", name))
	return nil
}

// content returns the fingerprint of what the model sees of m. Reasoning is left out: a
// signature is not part of what later ones are made for.
func (m *Message) content() fingerprint.Sum {
	return contentOf(m.head(), m.Parts)
}

// head returns the fingerprint of the role and the author of m.
func (m *Message) head() fingerprint.Sum {
	sum := fingerprint.Sum(0).String(string(m.Role))
	if m.Author != "" && m.Role != RoleTool {
		sum = sum.String(text.Valid(m.Author))
	}
	return sum
}

func contentOf(sum fingerprint.Sum, parts []Part) fingerprint.Sum {
	for _, p := range parts {
		sum = known(p).sum(sum)
	}
	return sum
}

// Sum returns a fingerprint of what the model reads of m, the same in every process. It
// takes role and author, texts without white space at their ends, calls with arguments as
// JSON values, results without the IDs of their calls, media by their bytes, and opaque
// blocks. Reasoning is left out, as are the key and other fields that no model
// sees. [Resume] compares rows by it.
func (m Message) Sum() uint64 {
	return uint64(sumOf(m.head(), m.Parts))
}

func sumOf(sum fingerprint.Sum, parts []Part) fingerprint.Sum {
	var said strings.Builder // texts that follow one another
	end := func() {
		if t := strings.TrimSpace(said.String()); t != "" {
			sum = Text(t).rowSum(sum)
		}
		said.Reset()
	}
	for _, p := range parts {
		switch p := p.(type) { // texts that follow one another count as one, whatever reasoning is between them
		case Text:
			said.WriteString(string(p))
		case Reasoning:
		default:
			end()
			sum = known(p).rowSum(sum)
		}
	}
	end()
	return sum
}
