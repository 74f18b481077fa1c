package cli

import (
	"fmt"
	"io"
	"time"
)

// Progress returns a reader that says on the standard error how far it has read, when that is
// a terminal and reading takes longer than a second. The size may be unknown: 0. Call done
// when reading has ended.
func (e *Env) Progress(name string, r io.Reader, size int64) (_ io.Reader, done func()) {
	if !e.StderrTerminal {
		return r, func() {}
	}
	p := &progress{r: r, env: e, name: Line(name, 40), size: size, next: time.Now().Add(time.Second)}
	return p, p.clear
}

type progress struct {
	r     io.Reader
	env   *Env
	name  string
	size  int64
	read  int64
	next  time.Time
	shown bool
}

func (p *progress) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	p.read += int64(n)
	if now := time.Now(); now.After(p.next) {
		p.next = now.Add(200 * time.Millisecond)
		p.shown = true
		far := fmt.Sprintf("%d MB", p.read/1e6)
		if p.size > 0 {
			far += fmt.Sprintf(" of %d MB", p.size/1e6)
		}
		fmt.Fprintf(p.env.Stderr, "\r\x1b[Kreading %s: %s", p.name, far)
	}
	return n, err
}

func (p *progress) clear() {
	if p.shown {
		fmt.Fprint(p.env.Stderr, "\r\x1b[K")
		p.shown = false
	}
}
