// Package judge lets others say whether the requests of package wire are valid: the
// types of the official SDKs, the chat templates that models are published with, and
// rules that a provider has published and that stand here in other words.
//
// Each directory below that holds a go.mod is a module with a judge, so that no SDK
// becomes a dependency of convo. Command run asks all of them.
package judge

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo/wire"
)

// A Judge reads the requests of some formats.
type Judge struct {
	Name    string                 // whose judgement it is: a module and its type, or a document
	Own     bool                   // the rules are restated here, and no code of others runs
	Formats map[string]wire.Format // whose requests it reads
	Read    func(body []byte) []Objection
	Known   []Known  // objections that are explained
	Sees    []string // ways to spoil a request that it never accepts, see judgetest.Spoil
}

// An Objection is a reason for which a judge refuses a request.
type Objection struct {
	Path string // without numbers, such as "messages[].content[].text"
	Why  string
}

func (o Objection) String() string {
	if o.Path == "" {
		return o.Why
	}
	return o.Path + ": " + o.Why
}

// A Known explains objections, in the words of the README.
type Known struct {
	Path, Why string // the objections: Path is a suffix, and Why a prefix
	Format    string // the beginning of the names of formats; empty: all
	Wrong     string // who is: "judge", "wire", or "both may be"
	Because   string
	Recorded  bool // of recorded conversations only; see Recorded
}

func (k *Known) explains(format string, o Objection) bool {
	return strings.HasSuffix(o.Path, k.Path) && strings.HasPrefix(o.Why, k.Why) && strings.HasPrefix(format, k.Format)
}

// A Count is what a judge said about the requests of a format.
type Count struct {
	Judge, Format string
	Own           bool
	Requests      int // that were read
	Refused       int // of these
	Unexplained   int // refused for a reason that Known does not have
	Reasons       []Reason
	Known         []Known // all that the judge has
}

// A Reason is one kind of objection.
type Reason struct {
	Objection string
	Requests  int    // that have it
	Shortest  string // of these
	Wrong     string // see Known; empty: not explained
	Because   string
}

// Count has the judge read at least n requests, made of random conversations that
// begin with seed, and then those of more conversations, which may be nil.
func (j *Judge) Count(n int, seed uint64, more Source) ([]Count, error) {
	names := slices.Sorted(maps.Keys(j.Formats))
	counts := make([]Count, len(names))
	reasons := make([]map[string]*Reason, len(names))
	for i, name := range names {
		counts[i] = Count{Judge: j.Name, Format: name, Own: j.Own, Known: j.Known}
		reasons[i] = map[string]*Reason{}
	}
	total := 0
	look := func(s Snapshot) (bool, error) {
		for i, name := range names {
			body, err := s.Request(j.Formats[name])
			if errors.Is(err, wire.ErrEmpty) {
				continue
			}
			if err != nil {
				return false, fmt.Errorf("%s: %w", name, err)
			}
			total++
			counts[i].add(j, reasons[i], body)
		}
		return total < n, nil
	}
	for total < n {
		if err := Random(rand.New(rand.NewPCG(seed, 7)), look); err != nil {
			return nil, err
		}
		seed++
	}
	if more != nil {
		if err := more(func(s Snapshot) (bool, error) { _, err := look(s); return true, err }); err != nil {
			return nil, err
		}
	}
	for i := range counts {
		for _, k := range slices.Sorted(maps.Keys(reasons[i])) {
			counts[i].Reasons = append(counts[i].Reasons, *reasons[i][k])
		}
		slices.SortStableFunc(counts[i].Reasons, func(a, b Reason) int { return cmp.Compare(b.Requests, a.Requests) })
	}
	return counts, nil
}

// add counts what the judge says about a request.
func (c *Count) add(j *Judge, reasons map[string]*Reason, body []byte) {
	c.Requests++
	seen := map[string]bool{}
	unexplained := false
	for _, o := range j.Read(body) {
		key := o.String()
		if seen[key] {
			continue
		}
		seen[key] = true
		r := reasons[key]
		if r == nil {
			r = &Reason{Objection: key}
			if i := slices.IndexFunc(j.Known, func(k Known) bool { return k.explains(c.Format, o) }); i >= 0 {
				r.Wrong, r.Because = j.Known[i].Wrong, j.Known[i].Because
			}
			reasons[key] = r
		}
		r.Requests++
		if r.Shortest == "" || len(body) < len(r.Shortest) {
			r.Shortest = string(body)
		}
		unexplained = unexplained || r.Wrong == ""
	}
	if len(seen) > 0 {
		c.Refused++
	}
	if unexplained {
		c.Unexplained++
	}
}

// With returns a request with more fields, such as the model, which the caller of wire
// adds.
func With(body []byte, fields string) []byte {
	return append(append([]byte{'{'}, fields...), append([]byte{','}, bytes.TrimPrefix(body, []byte{'{'})...)...)
}

// List returns the elements of a field of a JSON object, or nil.
func List(body []byte, field string) []json.RawMessage {
	var all map[string]json.RawMessage
	var list []json.RawMessage
	if json.Unmarshal(body, &all) != nil || json.Unmarshal(all[field], &list) != nil {
		return nil
	}
	return list
}
