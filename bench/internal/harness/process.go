package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/seed-c1b73e60/convo/bench/internal/measure"
	"github.com/seed-c1b73e60/convo/bench/peer"
)

// A Peer is a running program that waits for orders.
type Peer struct {
	peer.About
	Name string // the name of its directory
	Dir  string // the path of its directory

	cmd     *exec.Cmd
	in      io.WriteCloser
	orders  *json.Encoder
	answers *json.Decoder
	said    tail
	end     func() error // close, once
}

// Start starts a program that was built already.
func Start(binary string) (*Peer, error) { return start(filepath.Base(binary), "", binary) }

// Close ends the program.
func (p *Peer) Close() error { return p.end() }

func start(name, dir, binary string) (*Peer, error) {
	p := &Peer{Name: name, Dir: dir, cmd: exec.Command(binary)}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	p.cmd.Stderr, p.end = &p.said, sync.OnceValue(p.close)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.orders, p.answers = json.NewEncoder(p.in), json.NewDecoder(out)
	a, err := p.ask(peer.Order{Do: "about"})
	if err == nil && a.About == nil {
		err = errors.New("the first answer does not describe the peer")
	}
	if err == nil {
		p.About = *a.About
		err = p.check()
	}
	if err != nil {
		_ = p.end()
		return nil, err
	}
	return p, nil
}

// check returns an error if a cell or a note names a table that does not exist.
func (p *Peer) check() error {
	var used []peer.Table
	for _, c := range p.Cells {
		used = append(used, c.Table)
	}
	for _, n := range p.Notes {
		used = append(used, n.Table)
	}
	for _, t := range used {
		if !slices.Contains(peer.Tables, t) {
			return fmt.Errorf("there is no table %q", t)
		}
	}
	return nil
}

// close closes the program's standard input, which ends it, and waits for that.
func (p *Peer) close() error {
	_ = p.in.Close() // fails only if the program has ended already
	done := make(chan error, 1)
	go func() { done <- p.cmd.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("%s: %w: %s", p.Name, err, p.said.String())
		}
		return nil
	case <-time.After(10 * time.Second):
		_ = p.cmd.Process.Kill()
		<-done
		return fmt.Errorf("%s: the program did not end within 10 seconds of being told to", p.Name)
	}
}

// ask sends an order and waits for the answer.
func (p *Peer) ask(o peer.Order) (a peer.Answer, err error) {
	if err = p.orders.Encode(o); err == nil {
		err = p.answers.Decode(&a)
	}
	if err != nil {
		// The program has probably ended and printed the reason.
		return a, fmt.Errorf("%s: no answer: %w", p.Name, errors.Join(err, p.end()))
	}
	if a.Error != "" {
		return a, fmt.Errorf("%s: %s", p.Name, a.Error)
	}
	return a, nil
}

// Cell returns a cell that is measured in the peer's process.
func (p *Peer) Cell(c peer.Cell, n int) measure.Cell {
	return cell{p, peer.Order{Cell: &peer.CellOf{Table: c.Table, Name: c.Name, N: n}}}
}

// CountCell returns a cell that counts texts in the peer's process.
func (p *Peer) CountCell(of peer.CounterOf) measure.Cell {
	return cell{p, peer.Order{Counter: &of}}
}

type cell struct {
	peer  *Peer
	order peer.Order
}

func (c cell) Fit(lasts time.Duration) (k int, once bool, err error) {
	o := c.order
	o.Do, o.Lasts = "fit", lasts
	a, err := c.peer.ask(o)
	return a.K, a.Once, err
}

func (c cell) Round(k int) (peer.Figures, error) {
	o := c.order
	o.Do, o.K = "round", k
	a, err := c.peer.ask(o)
	if err != nil {
		return peer.Figures{}, err
	}
	if a.Figures == nil {
		return peer.Figures{}, fmt.Errorf("%s: the answer to a round has no figures", c.peer.Name)
	}
	return *a.Figures, nil
}

// Count returns the counts of texts by a counter of the peer.
func (p *Peer) Count(c peer.Counter, texts []string) ([]int, error) {
	a, err := p.ask(peer.Order{Do: "count", Counter: &peer.CounterOf{Name: c.Name, Vocabulary: c.Vocabulary, Texts: texts}})
	if err == nil && len(a.Counts) != len(texts) {
		err = fmt.Errorf("%s: %d counts for %d texts", p.Name, len(a.Counts), len(texts))
	}
	return a.Counts, err
}

// Keep has a keeper do a job. The keeper is one of Costs if cost is set, and one
// of Talks otherwise.
func (p *Peer) Keep(cost bool, name string, job peer.Job) ([]peer.Request, error) {
	a, err := p.ask(peer.Order{Do: "keep", Keeper: &peer.KeeperOf{Cost: cost, Name: name, Job: job}})
	if err != nil {
		return nil, err
	}
	if len(a.Requests) != len(job.Asks) {
		return nil, fmt.Errorf("%s: %d requests, want %d", p.Name, len(a.Requests), len(job.Asks))
	}
	out := make([]peer.Request, len(a.Requests))
	for i, packed := range a.Requests {
		if out[i], err = packed.Unpack(job); err != nil {
			return nil, fmt.Errorf("%s: request %d: %w", p.Name, i, err)
		}
	}
	return out, nil
}

// A tail keeps the last 4 kB that a program prints to standard error.
type tail struct {
	mu   sync.Mutex // protects said
	said []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.said = append(t.said, b...)
	t.said = t.said[max(len(t.said)-4<<10, 0):]
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.said))
}
