package clients

import (
	"cmp"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"time"
	"weak"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// DefaultKeepBytes is how much memory a sender uses to keep requests, unless it sets another
// limit.
const DefaultKeepBytes = 64 << 20

// keepFor is how long a request is kept. The cache of a provider has then ended as well.
const keepFor = 5 * time.Minute

// leastKept is how much memory a request takes at least that is kept: a smaller one is written anew
// in less time than it costs to find it among many.
const leastKept = 64 << 10

// Encode returns what format.Encode returns. It keeps the last requests that sender has made
// in memory, and writes only what is new in the next one of the same conversation; see
// [wire.Encoder]. The messages share these bytes and must not be changed.
//
// The requests kept use at most keepBytes, or [DefaultKeepBytes] if that is zero; the request
// used least recently is dropped first. If keepBytes is negative, nothing is kept. A request
// that has not been used for five minutes is also dropped, and a request that takes less than
// 64 kB is not kept. The sender is identified by its address, so a copy keeps its own requests.
// Encode is safe for concurrent use.
func Encode[S any](sender *S, keepBytes int, format wire.Format, s *convo.Snapshot) (wire.Request, error) {
	if keepBytes < 0 || s == nil || sender == nil || format == nil || !reflect.ValueOf(format).Comparable() {
		return (&wire.Encoder{Format: format}).Encode(s)
	}
	e := encodersOf(sender)
	k := e.take(format, s)
	req, err := k.Encode(s)
	if size := sizeOf(req); err == nil && size >= leastKept {
		k.last, k.size = s, size
		e.keep(k, cmp.Or(keepBytes, DefaultKeepBytes))
	}
	return req, err
}

// senders has the *encoders of each sender, by a weak pointer to it. They are not in the sender,
// since an application may copy it while it is used.
var senders sync.Map

// encodersOf returns the encoders of a sender, which live as long as it does.
func encodersOf[S any](sender *S) *encoders {
	key := weak.Make(sender)
	e, ok := senders.Load(key)
	if !ok {
		if e, ok = senders.LoadOrStore(key, new(encoders)); !ok {
			runtime.AddCleanup(sender, func(key weak.Pointer[S]) { senders.Delete(key) }, key)
		}
	}
	return e.(*encoders)
}

// encoders are the encoders of the conversations that a sender has sent last. One that is in
// use is not among them, so a second request of its conversation at the same time gets a new
// one.
type encoders struct {
	mu    sync.Mutex // protects following
	list  []*kept    // the one used last is the last
	size  int        // of all in list
	sweep bool       // drop will be called
}

// A kept is an encoder with the snapshot of its last request.
type kept struct {
	wire.Encoder
	last *convo.Snapshot
	size int // estimate, in bytes
	used time.Time
}

// take removes the encoder that can write the least of a snapshot, or returns a new one. An
// encoder that would have to go back over half of its request stays, since its request may be
// that of another branch of the conversation.
func (e *encoders) take(f wire.Format, s *convo.Snapshot) *kept {
	e.mu.Lock()
	defer e.mu.Unlock()
	best, most := -1, 0
	for i, k := range e.list {
		if k.Format != f {
			continue
		}
		if same := s.Same(k.last); same > most && 2*same >= k.last.Len() {
			best, most = i, same
		}
	}
	if best < 0 {
		return &kept{Encoder: wire.Encoder{Format: f}}
	}
	k := e.list[best]
	e.remove(best)
	return k
}

// keep adds an encoder, and removes others until all take at most the given number of bytes.
func (e *encoders) keep(k *kept, most int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	k.used = time.Now()
	e.list, e.size = append(e.list, k), e.size+k.size
	for e.size > most {
		e.remove(0)
	}
	e.plan()
}

func (e *encoders) remove(i int) {
	e.size -= e.list[i].size
	e.list = slices.Delete(e.list, i, i+1)
}

// drop removes the encoders that were not used for a while.
func (e *encoders) drop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sweep = false
	for len(e.list) > 0 && time.Since(e.list[0].used) >= keepFor {
		e.remove(0)
	}
	e.plan()
}

// plan has drop called when the oldest encoder may be dropped.
func (e *encoders) plan() {
	if len(e.list) > 0 && !e.sweep {
		e.sweep = true
		time.AfterFunc(keepFor-time.Since(e.list[0].used), e.drop)
	}
}

// sizeOf estimates how much memory an encoder takes after a request: its messages, the entries
// of the snapshot, and about 500 bytes for each message.
func sizeOf(req wire.Request) int {
	size := len(req.System) + len(req.Tools) + 500*len(req.Messages)
	for _, m := range req.Messages {
		size += 2 * len(m)
	}
	return size
}
