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
