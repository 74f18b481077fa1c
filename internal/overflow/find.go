package overflow

import (
	"slices"
	"unicode/utf8"
)

// An Item is a part of a request.
type Item struct {
	Kind   Kind     // Image, Document, Arguments, Seal for any signed or encrypted reasoning, Block for any block; NotRefused: a text, or what is not sent
	Texts  []string // a body that holds the part has one of them
	Fields Fields   // of a block
	Side   int      // of an image in pixels; 0: its header does not show it
	Linked bool     // of media: the request holds an address alone
	Entry  int64    // the ID of its entry, which grow; 0: it has none
}

// isOf reports whether an item is of the kind that is refused.
func (r *Refusal) isOf(x *Item) bool {
	switch x.Kind {
	case Arguments:
		return r.Kind == Arguments && utf8.RuneCountInString(x.Texts[0]) > r.Most
	case Seal:
		return r.Kind == Seal || r.Kind == Encrypted
	case Block:
		return r.Refuses(x.Fields)
	}
	return x.Kind == r.Kind
}

// Find returns the indices of the items that may be refused, and of those that are: those at the
// paths of the error, or all if these are the only ones.
func (r *Refusal) Find(items []Item, body *Body) (all, found []int) {
	for i := range items {
		if items[i].Kind != NotRefused && r.isOf(&items[i]) {
			all = append(all, i)
		}
	}
	found, located := r.at(items, all, body)
	switch r.Kind {
	case Seal, Encrypted:
		return all, found
	case Reference: // to this tool
		return all, all
	case Container:
		if r.Name != "" || isOneContainer(items, all) {
			return all, all
		}
	case Block:
		if r.Name != "" {
			return all, all
		}
	case Image:
		for _, i := range all {
			if r.Most > 0 && items[i].Side > r.Most {
				found = append(found, i)
			}
		}
	}
	if len(found) > 0 || located {
		return all, found
	}
	if found = all; len(all) > 1 { // it can be no other than what shows no size
		found = slices.DeleteFunc(slices.Clone(all), func(i int) bool {
			x := &items[i]
			return x.Kind != Image && x.Kind != Document || x.Linked || x.Side > 0
		})
	}
	if len(found) != 1 {
		return all, nil
	}
	return all, found
}

// Choose returns the indices of the items to be cleared, and up to which entry signed reasoning is
// to be left out, if it is not yet: up to the entry that the error names, or the newest one if
// it names none, or if another server has encrypted it. isOutside reports whether one of the
// items belongs to no entry.
func (r *Refusal) Choose(items []Item, body *Body, released int64) (chosen []int, release int64, isOutside bool) {
	all, found := r.Find(items, body)
	newest := func(indices []int) (entry int64) {
		for _, i := range indices {
			entry = max(entry, items[i].Entry)
		}
		return entry
	}
	if r.Kind != Seal && r.Kind != Encrypted {
		return found, 0, slices.ContainsFunc(found, func(i int) bool { return items[i].Entry == 0 })
	}
	named := newest(found)
	if r.Kind == Encrypted || named == 0 {
		named = newest(all)
	}
	for _, i := range all {
		switch x := &items[i]; {
		case x.Entry == 0:
		case x.Kind != Seal: // reasoning that is kept as a block
			chosen = append(chosen, i)
		case x.Entry > released && x.Entry <= named:
			release = named
		}
	}
	return chosen, release, false
}

// WithPartners adds the blocks that are the calls or the results of blocks among the items with
// these indices. Blocks without an entry are not added.
func WithPartners(items []Item, found []int) []int {
	for i := 0; i < len(found); i++ {
		x := &items[found[i]]
		for k, y := range items {
			if x.Kind == Block && y.Kind == Block && y.Entry != 0 && x.Fields.IsPartner(y.Fields) && !slices.Contains(found, k) {
				found = append(found, k)
			}
		}
	}
	return found
}

// Names reports whether a path of the error is one of the body, and whether one of these texts
// stands there.
func (r *Refusal) Names(body *Body, texts Texts) (located, has bool) {
	for _, path := range r.Paths {
		within := body.At(path)
		if within == nil {
			continue
		}
		located = true
		for s := range Strings(within[0]) {
			has = has || texts.Has(s)
		}
	}
	return located, has
}

// at returns which of the items stand at paths of the error, and whether any is a path of the
// body.
func (r *Refusal) at(items []Item, all []int, body *Body) (found []int, located bool) {
	for _, path := range r.Paths {
		within := body.At(path)
		located = located || within != nil
		for _, in := range within {
			texts := TextsIn(in)
			here := slices.DeleteFunc(slices.Clone(all), func(i int) bool {
				x := &items[i]
				return !slices.ContainsFunc(x.Texts, texts.Has) && !(x.Kind == Block && texts.HasOf(x.Fields))
			})
			if len(here) > 0 {
				found = append(found, here...)
				break
			}
		}
	}
	return found, located
}

// isOneContainer reports whether all of these blocks ran in the same container.
func isOneContainer(items []Item, all []int) bool {
	containers := make(map[any]bool)
	for _, i := range all {
		containers[items[i].Fields.Container()] = true
	}
	return len(containers) <= 1
}
