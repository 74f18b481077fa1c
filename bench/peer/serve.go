package peer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"time"
)

// An Order is one line that bench writes to a program. The program replies to
// each with one line, an Answer.
type Order struct {
	Do string `json:"do"` // "about", "fit", "round", "count", "keep"

	// For fit and round, of either a cell or a counter.
	Cell    *CellOf       `json:"cell,omitempty"`
	Counter *CounterOf    `json:"counter,omitempty"` // also for count
	Lasts   time.Duration `json:"lasts,omitempty"`   // for fit: the length of a round
	K       int           `json:"k,omitempty"`       // for round: the number of operations

	Keeper *KeeperOf `json:"keeper,omitempty"` // for keep
}

// A CellOf names a cell and its size.
type CellOf struct {
	Table Table  `json:"table"`
	Name  string `json:"name"`
	N     int    `json:"n"`
}

// A CounterOf names a counter and what it counts.
type CounterOf struct {
	Name       string   `json:"name"`
	Vocabulary string   `json:"vocabulary"`
	Texts      []string `json:"texts"`
	Whole      bool     `json:"whole,omitempty"` // a round counts each text once
	Once       bool     `json:"once,omitempty"`  // one round is enough
}

// A KeeperOf names a keeper and its job.
type KeeperOf struct {
	Cost bool   `json:"cost,omitempty"` // the keeper is in Costs, not in Talks
	Name string `json:"name"`
	Job  Job    `json:"job"`
}

// An Answer is the reply of a program to an Order.
type Answer struct {
	Error    string   `json:"error,omitempty"`
	About    *About   `json:"about,omitempty"`
	K        int      `json:"k,omitempty"`
	Once     bool     `json:"once,omitempty"`
	Figures  *Figures `json:"figures,omitempty"`
	Counts   []int    `json:"counts,omitempty"`
	Requests []Packed `json:"requests,omitempty"`
}

// A Packed is a Request in the form in which it is sent to bench.
type Packed struct {
	View    []Place `json:"view"`
	TooLong bool    `json:"too_long,omitempty"`
	Apart   []Apart `json:"apart,omitempty"`
}

// A Place is a message of a packed request: a message of the job, named by its
// number, or if M is set, another message.
type Place struct {
	N int      `json:"n"`
	M *Message `json:"m,omitempty"`
}

// Pack converts a request for sending. An unchanged message of the job becomes
// its number.
func (r Request) Pack(job Job) Packed {
	p := Packed{View: make([]Place, len(r.View)), TooLong: r.TooLong, Apart: r.Apart}
	for i, m := range r.View {
		p.View[i] = Place{N: m.N, M: &m}
		if m.N >= 0 && m.N < len(job.Messages) && m.equal(job.Messages[m.N]) {
			p.View[i].M = nil
		}
	}
	return p
}

// Unpack is the inverse of Pack.
func (p Packed) Unpack(job Job) (Request, error) {
	r := Request{View: make([]Message, len(p.View)), TooLong: p.TooLong, Apart: p.Apart}
	for i, place := range p.View {
		switch {
		case place.M != nil:
			r.View[i] = *place.M
		case place.N < 0 || place.N >= len(job.Messages):
			return r, fmt.Errorf("no message %d in a job of %d", place.N, len(job.Messages))
		default:
			r.View[i] = job.Messages[place.N]
		}
	}
	return r, nil
}

// Main is the main function of a peer's program. It carries out the orders on its
// standard input until that ends. What the library prints to standard output goes
// to standard error instead.
func Main(p Peer) {
	out := os.Stdout
	os.Stdout = os.Stderr
	if err := p.Serve(os.Stdin, out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Serve reads orders from in and writes the answers to out until in ends.
func (p Peer) Serve(in io.Reader, out io.Writer) error {
	s := server{Peer: p, counters: map[string]func(string) int{}}
	orders, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var o Order
		if err := orders.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		a, err := s.do(o)
		if err != nil {
			a = Answer{Error: err.Error()}
		}
		if err := answers.Encode(a); err != nil {
			return err
		}
	}
}

type server struct {
	Peer
	counters map[string]func(string) int // loaded, by name and vocabulary
}

func (s *server) do(o Order) (a Answer, err error) {
	switch {
	case o.Do == "about":
		a.About = s.about()
	case o.Do == "count" && o.Counter != nil:
		count, err := s.counter(*o.Counter)
		if err != nil {
			return a, err
		}
		for _, text := range o.Counter.Texts {
			a.Counts = append(a.Counts, count(text))
		}
	case o.Do == "keep" && o.Keeper != nil:
		a.Requests, err = s.keep(*o.Keeper)
	case o.Do == "fit" || o.Do == "round":
		var c Case
		if c, err = s.measured(o); err != nil {
			return a, err
		}
		if o.Do == "fit" {
			a.K, a.Once, err = c.Fit(o.Lasts)
			return a, err
		}
		var f Figures
		f, err = c.Round(o.K)
		a.Figures = &f
	default:
		err = fmt.Errorf("unknown or incomplete order %q", o.Do)
	}
	return a, err
}

// measured returns the case that an order names.
func (s *server) measured(o Order) (Case, error) {
	if c := o.Counter; c != nil {
		count, err := s.counter(*c)
		return CountCase(count, *c), err
	}
	if o.Cell == nil {
		return Case{}, errors.New("the order names neither a cell nor a counter")
	}
	i := slices.IndexFunc(s.Cells, func(c Cell) bool { return c.Table == o.Cell.Table && c.Name == o.Cell.Name })
	if i < 0 {
		return Case{}, fmt.Errorf("no cell %q in table %q", o.Cell.Name, o.Cell.Table)
	}
	return s.Cells[i].New(o.Cell.N), nil
}

// counter returns a counter, and loads it on first use.
func (s *server) counter(of CounterOf) (func(string) int, error) {
	key := of.Name + "\x00" + of.Vocabulary
	if count := s.counters[key]; count != nil {
		return count, nil
	}
	for _, c := range s.Counters {
		if c.Name == of.Name && c.Vocabulary == of.Vocabulary {
			count, err := c.New()
			if err == nil {
				s.counters[key] = count
			}
			return count, err
		}
	}
	return nil, fmt.Errorf("no counter %q for vocabulary %q", of.Name, of.Vocabulary)
}

func (s *server) keep(of KeeperOf) ([]Packed, error) {
	list := s.Talks
	if of.Cost {
		list = s.Costs
	}
	i := slices.IndexFunc(list, func(k Keeper) bool { return k.Name == of.Name })
	if i < 0 {
		return nil, fmt.Errorf("no keeper %q", of.Name)
	}
	requests, err := list[i].Do(of.Job)
	packed := make([]Packed, len(requests))
	for i, r := range requests {
		packed[i] = r.Pack(of.Job)
	}
	return packed, err
}

// errNothing is returned when there is no text to count, or a count is not
// positive.
var errNothing = errors.New("nothing was counted")

// CountCase returns a case whose operations each count one text, taking the texts
// in turn.
func CountCase(count func(string) int, of CounterOf) Case {
	c := Case{Once: of.Once, New: func(int) (func(int) error, error) {
		if len(of.Texts) == 0 {
			return nil, errNothing
		}
		return func(i int) error {
			n := count(of.Texts[i%len(of.Texts)])
			if n <= 0 {
				return errNothing
			}
			runtime.KeepAlive(n)
			return nil
		}, nil
	}}
	if of.Whole {
		c.Step, c.Max = len(of.Texts), len(of.Texts)
	}
	return c
}
