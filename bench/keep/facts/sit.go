package facts

import (
	"errors"
	"hash/maphash"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/bench/cost"
)

// A Score is what a policy made of talks.
type Score struct {
	Asked, Seen int   // facts that were needed, and those of them that the request held
	Tokens      int64 // of the requests that needed a fact, once for each
	Over        int   // requests that did not fit, and were not sent
	Rereads     int   // calls of an agent for what it had read and no longer saw

	Compactions int
	Calls       int // of the model, for summaries
	Cleared     int // results
	cost.Tally
}

// View returns the share of needed facts that the requests held.
func (s Score) View() float64 { return float64(s.Seen) / float64(max(s.Asked, 1)) }

// Mean returns the mean tokens of the requests that needed a fact.
func (s Score) Mean() float64 { return float64(s.Tokens) / float64(max(s.Asked, 1)) }

// Billed returns the price of everything in uncached input tokens: what is read from the
// cache costs 0.1, what is written to it 1.25, and output 5. What a summarizer is sent and
// writes is part of it.
func (s Score) Billed() float64 { return s.Units(cost.Profiles()[0]) }

// plus adds up two scores.
func (s Score) plus(o Score) Score {
	s.Asked, s.Seen, s.Tokens = s.Asked+o.Asked, s.Seen+o.Seen, s.Tokens+o.Tokens
	s.Over, s.Rereads, s.Compactions, s.Calls, s.Cleared = s.Over+o.Over, s.Rereads+o.Rereads, s.Compactions+o.Compactions, s.Calls+o.Calls, s.Cleared+o.Cleared
	s.Bill, s.Side = sum(s.Bill, o.Bill), sum(s.Side, o.Side)
	s.Requests += o.Requests
	s.Input += o.Input
	return s
}

func sum(a, b cost.Bill) cost.Bill {
	return cost.Bill{Read: a.Read + b.Read, Write: a.Write + b.Write, Uncached: a.Uncached + b.Uncached, Output: a.Output + b.Output}
}

// errOver is the error of a policy whose request does not fit.
var errOver = errors.New("the request does not fit")

// A keeper decides what the requests of one talk hold.
type keeper interface {
	add(convo.Message) error
	request() ([]convo.Message, error) // errOver: it is not sent
	sent(tokens int) error             // the provider's count of the last request
	close() error
}

// A Policy starts a keeper.
type Policy struct {
	Name   string
	Source string // what it is rebuilt after; empty: of convo
	start  func(*desk) (keeper, error)
}

// A desk is where one policy goes through one talk.
type desk struct {
	facts  []Fact
	at     int // index of the message that comes next
	window int
	meter  *cost.Meter
	keeper keeper
	reader *reader
	score  Score
	sizes  map[uint64]int // by hash
	view   string         // what the last request held
}

// Sit has a policy go through a talk with a window.
func (p Policy) Sit(t Talk, window int) (Score, error) {
	d, err := p.desk(t.Facts, window)
	if err != nil {
		return Score{}, err
	}
	for i, m := range t.Messages {
		d.at = i
		if m.Role == convo.RoleAssistant {
			if err := d.request(m); err != nil {
				return Score{}, errors.Join(err, d.keeper.close())
			}
		}
		if err := d.keeper.add(m); err != nil {
			return Score{}, errors.Join(err, d.keeper.close())
		}
	}
	return d.end()
}

func (p Policy) desk(facts []Fact, window int) (*desk, error) {
	d := &desk{facts: facts, window: window, meter: &cost.Meter{Cache: cost.Cache{Min: 1024}, Limit: window}, sizes: map[uint64]int{}}
	d.reader = &reader{facts: facts}
	var err error
	d.keeper, err = p.start(d)
	return d, err
}

// end closes the keeper and returns the score.
func (d *desk) end() (Score, error) {
	d.score.Tally = d.meter.Tally
	d.score.Calls = d.reader.calls
	return d.score, d.keeper.close()
}

// request makes the request that an answer came to, and looks for the facts that it needs.
func (d *desk) request(answer convo.Message) error {
	view, err := d.keeper.request()
	if errors.Is(err, errOver) {
		d.score.Over++
		d.look(nil, 0)
		return nil
	}
	if err != nil {
		return err
	}
	tokens, err := d.bill(view, answer)
	d.look(view, tokens)
	return err
}

// bill bills a request with its answer, and returns the tokens of the request.
func (d *desk) bill(view []convo.Message, answer convo.Message) (int, error) {
	usage := d.meter.Request(d.items(view), d.item(answer).Tokens)
	return usage.Input, d.keeper.sent(usage.Input)
}

// look searches a request for the facts that are needed.
func (d *desk) look(view []convo.Message, tokens int) {
	d.view = ""
	for _, f := range d.facts {
		for _, due := range f.Due {
			if due != d.at {
				continue
			}
			if d.view == "" {
				d.view = shownAll(view)
			}
			d.score.Asked++
			d.score.Tokens += int64(tokens)
			if strings.Contains(d.view, f.Text) {
				d.score.Seen++
			}
		}
	}
}

// shown returns the texts of a message, of its calls and of its results.
func shown(m convo.Message) string {
	var b strings.Builder
	b.WriteString(m.Text()) // also of results
	for _, c := range m.ToolCalls() {
		b.WriteString("\n" + c.Arguments)
	}
	return b.String()
}

func shownAll(view []convo.Message) string {
	var b strings.Builder
	for _, m := range view {
		b.WriteString(shown(m) + "\n")
	}
	return b.String()
}

var seed = maphash.MakeSeed()

// item returns the size of a message as the provider counts it, by the default tokenizer
// and overheads of convo.
func (d *desk) item(m convo.Message) cost.Item {
	var h maphash.Hash
	h.SetSeed(seed)
	h.WriteString(string(m.Role))
	h.WriteString(m.Text())
	for _, c := range m.ToolCalls() {
		h.WriteString(c.ID + c.Arguments)
	}
	for _, r := range m.ToolResults() {
		h.WriteString(r.CallID)
	}
	media := 0
	for _, p := range m.Parts {
		if _, ok := p.(convo.Media); ok {
			media++
			h.WriteString("\x00media")
		}
	}
	key := h.Sum64()
	size, ok := d.sizes[key]
	if !ok {
		size = 4 + count(m.Text()) + 1600*media
		for _, c := range m.ToolCalls() {
			size += 8 + count(c.ID) + count(c.Name) + count(c.Arguments)
		}
		for _, r := range m.ToolResults() {
			size += 4 + count(r.CallID)
		}
		d.sizes[key] = size
	}
	return cost.Item{Key: key, Tokens: size}
}

func (d *desk) items(view []convo.Message) []cost.Item {
	items := make([]cost.Item, len(view))
	for i, m := range view {
		items[i] = d.item(m)
	}
	return items
}

func count(text string) int { return convo.Heuristic{}.CountTokens(text) }
