package provider

import "fmt"

// maxMarks is how many cache marks a request may have.
const maxMarks = 4

// A markCheck counts the cache marks of a request, and checks the order of their lifetimes.
type markCheck struct {
	key   string // that a block with a mark has
	count int
	short bool // a mark was for five minutes
	fault string
}

// look looks for marks in blocks and messages, in order.
func (k *markCheck) look(path string, v any) {
	for i, e := range list(v) {
		k.look(fmt.Sprintf("%s.%d", path, i), e)
	}
	o := obj(v)
	for _, key := range []string{"content", "toolResult"} {
		if o[key] != nil {
			k.look(path+"."+key, o[key])
		}
	}
	if o[k.key] == nil {
		return
	}
	k.count++
	switch long := obj(o[k.key])["ttl"] == "1h"; {
	case !long:
		k.short = true
	case k.short && k.fault == "":
		k.fault = fmt.Sprintf("%s.%s.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`.", path, k.key)
	}
}

// marksFault returns what is wrong with the cache marks of a request, or "". The tools are
// those of its list, and a block with a mark has a key.
func marksFault(all object, tools any, key string) string {
	k := markCheck{key: key}
	k.look("tools", tools)
	k.look("system", all["system"])
	k.look("messages", all["messages"])
	if all[key] != nil { // the mark at the end of all
		k.look("request", object{key: all[key]})
	}
	if k.count > maxMarks {
		return fmt.Sprintf("A maximum of %d blocks with cache_control may be provided. Found %d.", maxMarks, k.count)
	}
	return k.fault
}
