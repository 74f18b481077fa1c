package convo

import (
	"fmt"

	"github.com/seed-c1b73e60/convo/internal/text"
)

// How many bytes a title and the data beside it may have.
const (
	maxTitle = 256
	maxMeta  = 64 << 10
)

// A meta is what the application keeps beside a conversation.
type meta struct{ title, data string }

// check returns a [*ValueError] if the title or the data is too long.
func (m meta) check() error {
	switch {
	case len(m.title) > maxTitle:
		return &ValueError{Name: "title", Value: fmt.Sprintf("%s bytes long", grouped(len(m.title))), Want: fmt.Sprintf("at most %d bytes", maxTitle)}
	case len(m.data) > maxMeta:
		return &ValueError{Name: "data", Value: fmt.Sprintf("%s bytes long", grouped(len(m.data))), Want: fmt.Sprintf("at most %s bytes", grouped(maxMeta))}
	}
	return nil
}

// SetMeta replaces the title of the conversation and the data that the application
// keeps with it, such as the id of its user. The title may have 256 bytes and the
// data 64 KiB; empty strings remove them. Both are saved and restored, and go with a
// fork. No model sees them, and no count includes them. [Snapshot.Meta] returns them.
//
// Invalid UTF-8 is replaced by U+FFFD. What is then too long is a [*ValueError], and
// neither changes. Rollback, Rewind and Undo do not change them, and the version of
// the view stays, since the next request is the same.
func (h *History) SetMeta(title, data string) error {
	next := meta{text.Valid(title), text.Valid(data)}
	if err := next.check(); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.endedLocked():
		return ErrClosed
	case next == h.meta:
		return nil
	}
	h.meta, h.snap = next, nil
	return nil
}

// Meta returns what [History.SetMeta] was given: the title of the conversation and
// the data of the application.
func (s *Snapshot) Meta() (title, data string) { return s.meta.title, s.meta.data }
