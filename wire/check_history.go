package wire

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strconv"
)

// A HistoryChecker is a [Format] that compares the requests of one conversation with each
// other. All formats of this package are HistoryCheckers.
type HistoryChecker interface {
	// CheckHistory returns what is wrong with the order of the requests of one
	// conversation, oldest first. Paths begin with the index of the request, such as
	// "requests[2].messages[0]". Cache marks do not count. The rules:
	//
	//   - json: a request is not a JSON object. It is left out of the comparison.
	//   - seal-prefix: signed reasoning is sent after other content than it was made
	//     after. The Path is that of the first such block of the request, and the Problem
	//     names the first change since the request before.
	//   - seal-order: signed reasoning is sent, but not the reasoning that came right
	//     before it, although older reasoning is.
	//   - cache-prefix: the request does not begin with all of the request before, so a
	//     cache misses what follows. The Path is that of the first difference.
	//
	// Reasoning in the first request is taken to be where it was made. Only Anthropic and
	// Converse have the rules about seals. They do not apply to models that Seals says do
	// not check, to reasoning that another model made, and to a request that begins with a
	// compaction block. The time is linear in the size of the requests.
	CheckHistory(requests ...[]byte) []Finding
}

// A historyShape says where a format has what CheckHistory compares.
type historyShape struct {
	format                           string
	model, system, messages, content string                               // the names of fields
	seal                             func(block any) (id string, ok bool) // nil: the format has no seals
	checks                           func(model string) bool
}

// A fingerprint identifies everything up to a place in a request.
type fingerprint [sha256.Size]byte

func (f fingerprint) with(data []byte) fingerprint { return sha256.Sum256(append(f[:], data...)) }

// A historyBlock is a part of a request that is compared as a whole.
type historyBlock struct {
	path   string
	end    fingerprint // of all up to the end of the block
	size   int
	sealed bool        // it is reasoning
	id     string      // its signature
	before fingerprint // of what precedes it, without reasoning
	turn   int         // reasoning: how many entries of plain precede its turn
	at     int         // reasoning: how many entries of plain precede it
}

// A sentRequest is a request in the form in which CheckHistory compares it.
type sentRequest struct {
	shape     historyShape
	model     string
	blocks    []historyBlock
	plain     []historyBlock // the blocks without reasoning, with fingerprints of their own
	role      string         // of the last block
	turn      int            // index in plain where its turn begins
	compacted bool           // it begins with a compaction block
}

func (r *sentRequest) last() fingerprint { return lastOf(r.plain) }

func lastOf(blocks []historyBlock) (f fingerprint) {
	if n := len(blocks); n > 0 {
		f = blocks[n-1].end
	}
	return f
}

// add adds a block.
func (r *sentRequest) add(path, role string, v any) {
	if v == nil {
		return
	}
	if text, ok := v.(string); ok {
		block := map[string]any{"text": text}
		if !formatRules[r.shape.format].keyed {
			block["type"] = "text"
		}
		v = block
	}
	v, ok := withoutMark(v)
	if !ok {
		return
	}
	data, _ := json.Marshal(v) // of decoded JSON: there is no error
	data = append([]byte(role+":"), data...)
	if role != r.role {
		r.role, r.turn = role, len(r.plain)
	}
	b := historyBlock{path: path, size: len(data), end: lastOf(r.blocks).with(data), before: r.last(), turn: r.turn, at: len(r.plain)}
	if r.shape.seal != nil && role == "assistant" {
		b.id, b.sealed = r.shape.seal(v)
	}
	r.blocks = append(r.blocks, b)
	if !b.sealed {
		b.end = r.last().with(data)
		r.plain = append(r.plain, b)
	}
}

// addAll adds the elements of a list as blocks, and any other value as one block.
func (r *sentRequest) addAll(path, role string, v any) {
	list, ok := v.([]any)
	if !ok {
		r.add(path, role, v)
	}
	for i, x := range list {
		r.add(atIndex(path, i), role, x)
	}
}

// message adds the blocks of a message: those of its content, then its other fields.
func (r *sentRequest) message(path string, v any) {
	m, _ := v.(map[string]any)
	role := str(m["role"])
	if role == "" {
		r.add(path, "", v)
		return
	}
	r.addAll(at(path, r.shape.content), role, m[r.shape.content])
	others := map[string]any{}
	for key, v := range m {
		if key != "role" && key != r.shape.content && v != nil {
			others[key] = v
		}
	}
	if len(others) > 0 {
		r.add(path, role, others)
	}
}

func newSentRequest(all map[string]any, shape historyShape) *sentRequest {
	r := &sentRequest{shape: shape, model: str(all[shape.model])}
	r.addAll("tools", "tools", all["tools"])
	key := formatRules[shape.format].tools
	if config, ok := all[key].(map[string]any); ok && key != "" {
		r.addAll(key+".tools", "tools", config["tools"])
	}
	path, system := pick(all, shape.system)
	r.addAll(path, "system", system)
	list, ok := all[shape.messages].([]any)
	if !ok {
		r.add(shape.messages, "user", all[shape.messages])
	}
	for i, m := range list {
		r.message(atIndex(shape.messages, i), m)
	}
	if len(list) > 0 {
		r.compacted = beginsWithCompaction(list[0])
	}
	return r
}

func beginsWithCompaction(message any) bool {
	m, _ := message.(map[string]any)
	blocks, _ := m["content"].([]any)
	if len(blocks) == 0 {
		return false
	}
	first, _ := blocks[0].(map[string]any)
	return str(first["type"]) == "compaction"
}

// withoutMark removes cache marks from a decoded block, and reports whether anything remains.
// Like withoutMarks, it does not look into values that the caller or the model defines.
func withoutMark(v any) (any, bool) {
	switch v := v.(type) {
	case []any:
		var list []any
		for _, x := range v {
			if x, ok := withoutMark(x); ok {
				list = append(list, x)
			}
		}
		return list, true
	case map[string]any:
		if len(v) == 1 && v["cachePoint"] != nil {
			return nil, false
		}
		out := make(map[string]any, len(v))
		for key, x := range v {
			switch key {
			case "content", "output", "tools", "toolResult":
				x, _ = withoutMark(x)
			}
			if !slices.Contains(markFields, key) {
				out[key] = x
			}
		}
		return out, true
	}
	return v, true
}

// A madeSeal is what CheckHistory records about signed reasoning.
type madeSeal struct {
	before   fingerprint
	previous string // the signature of the reasoning before it; empty: not known
	model    string
}

// A historyChecker compares requests in order.
type historyChecker struct {
	shape historyShape
	list  []Finding
	sent  map[fingerprint]string // the models of the requests so far, by all of their plain blocks
	made  map[string]madeSeal    // by signature
}

func checkHistory(requests [][]byte, shape historyShape) []Finding {
	k := historyChecker{shape: shape, sent: map[fingerprint]string{}, made: map[string]madeSeal{}}
	var before *sentRequest
	for i, data := range requests {
		root := atIndex("requests", i)
		all, err := decodeObject(data)
		if err != nil {
			k.list = append(k.list, finding(shape.format, "json", root, "", "reason", err.Error()))
			continue
		}
		r := newSentRequest(all, shape)
		if before != nil {
			k.cache(root, before, r)
		}
		k.seals(root, before, r)
		k.sent[r.last()] = r.model
		before = r
	}
	return k.list
}

func (k *historyChecker) add(name, path string, details ...string) {
	k.list = append(k.list, historyRules[name].finding(k.shape.format, name, path, "", details...))
}

// firstChange returns the index of the first block of b that is not that of a, or false if
// b begins with all of a.
func firstChange(a, b []historyBlock) (int, bool) {
	for i := range a {
		if i >= len(b) || a[i].end != b[i].end {
			return i, true
		}
	}
	return 0, false
}

// pathAt returns the path of a block, or the name of the end of the request.
func pathAt(root string, blocks []historyBlock, i int) string {
	if i < len(blocks) {
		return at(root, blocks[i].path)
	}
	return root
}

// cache reports the first difference between two requests.
func (k *historyChecker) cache(root string, a, b *sentRequest) {
	first, changed := firstChange(a.blocks, b.blocks)
	if !changed {
		return
	}
	same, total := 0, 0
	for i, block := range a.blocks {
		total += block.size
		if i < first {
			same = total
		}
	}
	k.add("cache-prefix", pathAt(root, b.blocks, first), "percent", strconv.Itoa(100*same/total))
}

// seals compares the reasoning of a request with what is recorded about it, and records
// what is not yet.
func (k *historyChecker) seals(root string, before, r *sentRequest) {
	checks := k.shape.checks != nil && k.shape.checks(r.model) && !r.compacted
	moved, order, previous := []historyBlock(nil), []historyBlock(nil), ""
	asked := k.asked(r)
	for _, b := range r.blocks {
		if b.id == "" {
			continue
		}
		made, known := k.made[b.id]
		if !known {
			made, known = k.origin(before, r, b, asked)
			made.previous = previous
			k.made[b.id] = made
		}
		switch own := checks && made.model == r.model; {
		case own && (!known || made.before != b.before):
			moved = append(moved, b)
		case own && previous != "" && made.previous != "" && made.previous != previous:
			order = append(order, b)
		}
		previous = b.id
	}
	if len(moved) > 0 {
		k.add("seal-prefix", at(root, moved[0].path), "count", strconv.Itoa(len(moved)), "change", k.changeBefore(root, before, r, moved[0]))
	}
	if len(order) > 0 {
		k.add("seal-order", at(root, order[0].path))
	}
}

// origin returns the record of reasoning that is in no earlier request. It is made where it
// is if there is no earlier request, or one of them is all that precedes its answer. If it
// was not, its place is not known, and never will be that of a later request.
func (k *historyChecker) origin(before, r *sentRequest, b historyBlock, asked []int) (madeSeal, bool) {
	if before == nil || r.compacted {
		return madeSeal{before: b.before, model: r.model}, true
	}
	if n := asked[b.turn]; n <= b.at {
		return madeSeal{before: b.before, model: k.sent[lastOf(r.plain[:n])]}, true
	}
	return madeSeal{model: before.model}, false
}

// asked returns for each number of entries of plain the next one, or the same, that was all
// of an earlier request; there may be none up to the end.
func (k *historyChecker) asked(r *sentRequest) []int {
	next := make([]int, len(r.plain)+2)
	next[len(r.plain)+1] = len(r.plain) + 1
	for n := len(r.plain); n >= 0; n-- {
		next[n] = next[n+1]
		if _, ok := k.sent[lastOf(r.plain[:n])]; ok {
			next[n] = n
		}
	}
	return next
}

// changeBefore names the change because of which b is not where it was made.
func (k *historyChecker) changeBefore(root string, before, r *sentRequest, b historyBlock) string {
	if before != nil {
		if first, changed := firstChange(before.plain, r.plain); changed && first < max(b.at, 1) {
			return pathAt(root, r.plain, first)
		}
	}
	return "an earlier request"
}
