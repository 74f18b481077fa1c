package proxy

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Secrets are the newest keys that programs have sent. They are kept in memory, to hide them in
// what quotes them, such as an error of a provider.
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

// addOne adds a key, which is then the newest.
func (s *secrets) addOne(v string) {
	if len(v) < leastSecret {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(slices.DeleteFunc(s.list, func(old string) bool { return old == v }), v)
	s.list = s.list[max(len(s.list)-mostSecrets, 0):]
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
	longest := func(a, b string) int { return len(b) - len(a) } // may hold others
	for _, v := range slices.SortedFunc(slices.Values(s.list), longest) {
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
