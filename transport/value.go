package transport

import (
	"bytes"
	"hash/maphash"
	"slices"
	"sync"

	"github.com/seed-c1b73e60/convo"
)

// A value is one or more adjacent raw messages of a body: as many as one message of convo is made
// of, and beside it those of which the model reads nothing that counts.
type value struct {
	raw      [][]byte
	sum      uint64 // of the bytes
	read     uint64 // of what the model reads, with the marks below; 0: nothing that counts
	isSystem bool   // it is the field with the system text, which stands outside the list
	isFront  bool   // it is system text, and nothing else stands before it

	msgs []convo.Message // what read was made of, until the Mirror has it, which alone reads it
	was  *value          // of a value that a compaction has changed, so that it says msgs
}

// size returns the bytes of the raw messages.
func (v *value) size() (n int) {
	for _, raw := range v.raw {
		n += len(raw)
	}
	return n
}

// The lowest bits of value.read say what kind of message it is of.
const (
	systemMark = 1 << iota // system text and nothing else
	answerMark             // an answer of the model
	otherMark
	marks = systemMark | answerMark | otherMark
)

// same reports whether two values have the same bytes.
func (v *value) same(w *value) bool {
	return v == w || v.sum == w.sum && v.isSystem == w.isSystem && slices.EqualFunc(v.raw, w.raw, bytes.Equal)
}

// A reader makes values of bodies. It remembers what the model reads of bytes that it has seen, so
// that only what is new in a body is decoded.
type reader struct {
	seed maphash.Seed

	mu       sync.Mutex
	now, old map[uint64]uint64
}

const remembered = 1 << 17 // values in each of the two maps of a reader

func newReader() *reader {
	return &reader{seed: maphash.MakeSeed(), now: map[uint64]uint64{}}
}

func (r *reader) recall(sum uint64) (read uint64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if read, ok = r.now[sum]; ok {
		return read, true
	}
	if read, ok = r.old[sum]; ok {
		r.keep(sum, read)
	}
	return read, ok
}

func (r *reader) keep(sum, read uint64) {
	if len(r.now) >= remembered {
		r.old, r.now = r.now, make(map[uint64]uint64)
	}
	r.now[sum] = read
}

// sum returns a hash of raw messages that are read in the same way.
func (r *reader) sum(a api, isSystem bool, raw [][]byte) uint64 {
	var h maphash.Hash
	h.SetSeed(r.seed)
	h.WriteString(a.name)
	if isSystem {
		h.WriteByte(1)
	}
	for _, m := range raw {
		h.WriteByte(0)
		h.Write(m)
	}
	return h.Sum64()
}

// value returns the value for raw messages.
func (r *reader) value(a api, isSystem bool, raw ...[]byte) (*value, error) {
	v := &value{raw: raw, isSystem: isSystem, sum: r.sum(a, isSystem, raw)}
	if read, ok := r.recall(v.sum); ok {
		v.read = read
		return v, nil
	}
	var err error
	if v.msgs, v.read, err = v.decode(a); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keep(v.sum, v.read)
	return v, nil
}

// decode returns what v says to the model, and a fingerprint of it.
func (v *value) decode(a api) (msgs []convo.Message, read uint64, err error) {
	if v.isSystem {
		msgs, err = a.decodeSystem(v.raw[0])
	} else {
		msgs, err = a.decode(v.raw)
	}
	if err != nil || len(msgs) == 0 {
		return nil, 0, err
	}
	mark := uint64(systemMark)
	for _, m := range msgs {
		read = mix(read, m.Sum())
		switch {
		case m.Role == convo.RoleAssistant:
			mark = answerMark
		case m.Role != convo.RoleSystem && mark == systemMark:
			mark = otherMark
		}
	}
	return msgs, read&^marks | mark, nil
}

// mix adds b to a fingerprint a. It gives the same in every process.
func mix(a, b uint64) uint64 {
	a ^= b
	a *= 0x9e3779b97f4a7c15
	a ^= a >> 32
	a *= 0xd6e8feb86659fd93
	return a ^ a>>29
}

// values returns the values of a list of raw messages. What the model reads nothing of goes to the
// value before it, or to the first one after it if there is none.
func (r *reader) values(a api, body []byte, list []span) (all []*value, err error) {
	var blank [][]byte // in front
	joined := make(map[int]bool)
	for i := 0; i < len(list); {
		n := 1
		for isOutput(a, list[i].of(body)) && i+n < len(list) && isOutput(a, list[i+n].of(body)) {
			n++
		}
		raw := make([][]byte, n)
		for k := range raw {
			raw[k] = list[i+k].of(body)
		}
		i += n
		v, err := r.value(a, false, raw...)
		switch {
		case err != nil:
			return nil, err
		case v.read == 0 && len(all) == 0:
			blank = append(blank, v.raw...)
		case v.read == 0:
			last := all[len(all)-1]
			last.raw = append(last.raw, v.raw...)
			joined[len(all)-1] = true
		default:
			if len(blank) > 0 {
				v.raw, blank = append(blank, v.raw...), nil
				joined[len(all)] = true
			}
			all = append(all, v)
		}
	}
	isFront := true
	for i, v := range all {
		if joined[i] { // together they may say more
			if all[i], err = r.value(a, false, v.raw...); err != nil {
				return nil, err
			}
		}
		isFront = isFront && all[i].read&systemMark != 0
		all[i].isFront = isFront
	}
	return all, nil
}
