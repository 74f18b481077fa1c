package convo

import (
	"fmt"
	"slices"

	"github.com/seed-c1b73e60/convo/internal/fingerprint"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// A NativeSummary is what a provider itself made of the entries that a summary covers. The
// format of package wire with its name sends Items, byte for byte, in place of the text of
// the summary to the model that made them. Every other request carries the text.
type NativeSummary struct {
	Format string   // as in [Origin]
	Model  string   // the model that made the items
	Items  []string // JSON objects, in the order in which they are sent

	// What stood before the entries that follow, as the provider knows it. Set by Native.
	before  fingerprint.Sum   // of the summary that it replaced
	list    fingerprint.List  // of the entries that it covers
	earlier []fingerprint.Sum // of the native summaries that it replaced, the newest first
}

// mostEarlier is how many of the native summaries before it a native summary knows.
const mostEarlier = 8

func (n *NativeSummary) clone() *NativeSummary {
	if n == nil {
		return nil
	}
	own := *n
	own.Items, own.earlier = slices.Clone(n.Items), slices.Clone(n.earlier)
	return &own
}

// fault says what is wrong with n.
func (n *NativeSummary) fault() string {
	if n.Format == "" || len(n.Items) == 0 {
		return "the native summary has no format or no items"
	}
	for i, item := range n.Items {
		if !strictjson.Valid([]byte(item)) || item[0] != '{' {
			return fmt.Sprintf("item %d of the native summary is not a JSON object", i)
		}
	}
	return ""
}

// content returns the fingerprint of the items.
func (n *NativeSummary) content() fingerprint.Sum {
	sum := fingerprint.Sum(9).String(n.Format)
	for _, item := range n.Items {
		sum = sum.String(item)
	}
	return sum
}

// coverFrom records what n covers: the first entries of the list of s, and what stood
// before these.
func (n *NativeSummary) coverFrom(s *state, entries int) {
	p := s.front()
	for _, e := range s.list[:entries] {
		p.add(e)
	}
	n.before, n.list, n.earlier = s.summaryBefore(), p.list, nil
	if old := s.summary; old != nil && old.sum.Native != nil {
		n.earlier = slices.Concat([]fingerprint.Sum{old.content}, old.sum.Native.earlier)
		n.earlier = n.earlier[:min(len(n.earlier), mostEarlier)]
	}
}

// isPlaced reports whether coverFrom was called.
func (n *NativeSummary) isPlaced() bool { return n.before != 0 || n.list != 0 }
