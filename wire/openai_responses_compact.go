package wire

import (
	"fmt"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// CompactRequest implements [Compacter], for the path /responses/compact. The endpoint takes
// the model, the input and the instructions alone, so tools are left out, and so is the
// instruction: the provider has its own.
func (f OpenAIResponses) CompactRequest(r Request, _ string) (Request, error) {
	if f.Plain {
		return Request{}, &convo.ValueError{Name: "OpenAIResponses.Plain", Value: true, Want: "false: only OpenAI and servers that do as it does compact"}
	}
	r.Tools, r.NeedsTools = nil, false
	return r, nil
}

// DecodeCompaction implements [Compacter]. The items are all those of the answer: messages of
// the user, and one compaction, which is encrypted.
func (f OpenAIResponses) DecodeCompaction(data []byte) (convo.Summary, error) {
	d := decoder{format: FormatOpenAIResponses, own: f.Model}
	all, err := fields("", data)
	if err != nil {
		return convo.Summary{}, err
	}
	if saysError(all["error"]) || isErrorItem(all) {
		return convo.Summary{}, reported("", providerError(data))
	}
	list, ok := strictjson.SplitArray(all["output"])
	if !ok {
		return convo.Summary{}, unreadable(all, data, "not an answer: want a field output")
	}
	d.model = stringOf(all["model"])
	d.answer(stringOf(all["id"]), d.model)
	d.out.Usage = d.responsesUsage("usage", all["usage"])
	var items []string
	compactions := 0
	for i, raw := range list {
		item, err := fields(atIndex("output", i), raw)
		if err != nil {
			return convo.Summary{}, err
		}
		if isCompaction(stringOf(item["type"])) {
			compactions++
			if isNull(item["encrypted_content"]) {
				return convo.Summary{Usage: d.out.Usage}, &DecodeError{Path: at(atIndex("output", i), "encrypted_content"), Reason: "the compaction has no content"}
			}
		}
		items = append(items, string(raw))
	}
	if compactions != 1 {
		return convo.Summary{Usage: d.out.Usage}, &DecodeError{Path: "output", Reason: fmt.Sprintf("want one compaction item, have %d", compactions)}
	}
	return d.compactionOf("", items...), nil
}

// isCompaction reports whether an item of a type is a compaction.
func isCompaction(kind string) bool { return kind == "compaction" || kind == "compaction_summary" }

// takesCompaction reports whether the items of a compaction can be sent.
func (f OpenAIResponses) takesCompaction([]string) bool { return !f.Plain }

// compaction implements nativeWriter. Later notes stand after the items, as after a message
// of the user.
func (w *responsesWriter) compaction(items []string) {
	w.number++
	for _, raw := range items {
		all, _ := strictjson.SplitObject([]byte(raw))
		w.use(stringOf(all["id"]))
		w.add(responsesItem{kind: "user", raw: []byte(raw)})
	}
}
