package proxy

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Secrets are keys that clients have sent. They are kept in memory so that nothing that quotes
// one, such as an error of a provider, is written with it.
type secrets struct {
	mu   sync.Mutex
	list []string
}

const (
	mostSecrets = 1000
	leastSecret = 8 // bytes; a shorter one is no key
)

// add adds the keys of a request.
func (s *secrets) add(r *http.Request) {
	for name, values := range r.Header {
		if isSecret(name) {
			for _, v := range values {
				s.addOne(v)
				for _, word := range strings.FieldsFunc(v, func(r rune) bool { return strings.ContainsRune(" ;,=", r) }) {
					s.addOne(word)
				}
			}
		}
	}
	for name, values := range r.URL.Query() {
		if isSecret(name) {
			for _, v := range values {
				s.addOne(v)
			}
		}
	}
}

func (s *secrets) addOne(v string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(v) < leastSecret || slices.Contains(s.list, v) {
		return
	}
	if len(s.list) == mostSecrets {
		s.list = slices.Delete(s.list, 0, 1)
	}
	s.list = append(s.list, v)
	slices.SortStableFunc(s.list, func(a, b string) int { return len(b) - len(a) }) // the longest is hidden first
}

// isSecret reports whether a header or a parameter of this name has a key.
func isSecret(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"auth", "key", "token", "cookie", "secret"}, func(part string) bool { return strings.Contains(name, part) })
}

// hide returns a text without the secrets.
func (s *secrets) hide(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.list {
		text = strings.ReplaceAll(text, v, "[key]")
	}
	return text
}

// writer returns a writer that hides the secrets in each Write.
func (s *secrets) writer(to io.Writer) io.Writer { return &hiding{s, to} }

type hiding struct {
	secrets *secrets
	to      io.Writer
}

func (h *hiding) Write(b []byte) (int, error) {
	if _, err := io.WriteString(h.to, h.secrets.hide(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}
