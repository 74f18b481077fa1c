package wire

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// Reply returns what Decode has read of a response, for [convo.History.Do].
// Messages without content are left out.
func (t Transcript) Reply() convo.Reply {
	msgs := slices.DeleteFunc(slices.Clone(t.Messages), isEmpty)
	return convo.Reply{Messages: msgs, CutOff: t.CutOff, Usage: t.Usage, Stop: t.Stop}
}

// isEmpty reports whether a message holds nothing but empty text.
func isEmpty(m convo.Message) bool {
	return !slices.ContainsFunc(m.Parts, func(p convo.Part) bool {
		t, ok := p.(convo.Text)
		return !ok || t != ""
	})
}

// StopOf returns what a provider's reason for the end of an answer means: the
// finish_reason of Chat Completions, the reason in the incomplete_details of
// Responses, the stop_reason of Anthropic, the finishReason or blockReason of Gemini,
// or the stopReason of Converse. It is StopDone for a reason that it does not know.
// Streams and Decode give it to their Transcript; where an answer is assembled by hand, give
// it to [convo.Builder.Stop].
//
// StopLength is an answer that ended at any limit, and not only at a number of tokens:
// also where a provider pauses in a long round with its own tools (pause_turn, which
// goes on when the answer is sent back), or ends one with too many calls. StopRefused is
// also an answer that the provider could not finish, or in which the model got a call
// wrong; to ask again may help.
func StopOf(reason string) convo.Stop { return stops[strings.ToLower(reason)] }

// stops are the reasons that StopOf knows, but for those of StopDone.
var stops = map[string]convo.Stop{
	"length": convo.StopLength, "max_tokens": convo.StopLength, "max_output_tokens": convo.StopLength, "max_messages": convo.StopLength, "steered": convo.StopLength,
	"model_length": convo.StopLength, "model_context_window_exceeded": convo.StopLength, "error_limit": convo.StopLength,
	"pause_turn": convo.StopLength, "continuation": convo.StopLength, "too_many_tool_calls": convo.StopLength, "insufficient_system_resource": convo.StopLength,

	"tool_calls": convo.StopToolCall, "tool_call": convo.StopToolCall, "tool_use": convo.StopToolCall, "function_call": convo.StopToolCall,

	"refusal": convo.StopRefused, "content_filter": convo.StopRefused, "content_filtered": convo.StopRefused, "guardrail_intervened": convo.StopRefused, "sensitive": convo.StopRefused, "error_toxic": convo.StopRefused,
	"safety": convo.StopRefused, "recitation": convo.StopRefused, "language": convo.StopRefused, "other": convo.StopRefused, "blocklist": convo.StopRefused, "prohibited_content": convo.StopRefused, "spii": convo.StopRefused,
	"image_safety": convo.StopRefused, "image_prohibited_content": convo.StopRefused, "image_recitation": convo.StopRefused, "image_other": convo.StopRefused, "no_image": convo.StopRefused,
	"model_armor": convo.StopRefused, "jailbreak": convo.StopRefused,
	"malformed_function_call": convo.StopRefused, "unexpected_tool_call": convo.StopRefused, "malformed_response": convo.StopRefused, "missing_thought_signature": convo.StopRefused,
	"malformed_tool_use": convo.StopRefused, "malformed_model_output": convo.StopRefused,
	"error": convo.StopRefused, "network_error": convo.StopRefused, "timeout": convo.StopRefused, "abort": convo.StopRefused, "user_cancel": convo.StopRefused, "cancelled": convo.StopRefused, "failed": convo.StopRefused,
}

// An ending is what a decoder knows of how an answer ended.
type ending struct {
	answered bool // the input is an answer
	finished bool // the model has finished it
	partial  bool // its end has not come yet; see streamBase.transcript

	// Of the newest call:
	written string // its arguments, as the model wrote them
	open    bool   // the provider has not said that they are whole
	text    bool   // they are any text, and not an object
}

// ended notes that the input is an answer, which ended for this reason. It may
// be missing.
func (d *decoder) ended(reason string) {
	d.answered = true
	d.out.Stop, d.out.StopReason = StopOf(reason), reason
	d.finished = reason != "" && (d.out.Stop == convo.StopDone || d.out.Stop == convo.StopToolCall)
}

// wrote notes the arguments of a call. whole says that the provider has ended the
// call, whatever they are.
func (d *decoder) wrote(arguments string, whole bool) {
	d.written, d.open, d.text = arguments, !whole, false
}

// wroteText is wrote for the input of a custom tool. Nothing in it shows that it is whole.
func (d *decoder) wroteText(input string, whole bool) {
	d.written, d.open, d.text = input, !whole, true
}

// unclear reports whether the arguments of the newest call would look so if the
// answer had been cut off in the call.
func (d *decoder) unclear() bool {
	return d.open && (d.text || isBlank(d.written) || !convo.ToolCall{Arguments: d.written}.Valid())
}

// wroteObject is wrote for a provider that sends arguments as an object, which is
// empty where nothing was written. In one that a Stream has assembled, it may hold the
// beginning of one, see object.
func (d *decoder) wroteObject(raw json.RawMessage) {
	if text, ok := unwrapArguments(string(raw)); ok {
		d.wrote(text, false)
		return
	}
	if all, ok := strictjson.SplitObject(raw); len(all) == 0 && (ok || isNull(raw)) {
		raw = nil
	}
	d.wrote(string(raw), false)
}

// finish returns what was read. If the model did not finish the answer, and it ends
// with a call that looks cut off, the call is put aside.
func (d *decoder) finish() Transcript {
	n := len(d.out.Messages)
	if !d.answered || n == 0 {
		return d.out
	}
	m := &d.out.Messages[n-1]
	d.putCutAside(m)
	if d.out.Stop == convo.StopDone && len(m.ToolCalls()) > 0 {
		d.out.Stop = convo.StopToolCall // not every provider says so
	}
	if len(m.Parts) == 0 && m.Role == convo.RoleAssistant {
		d.dropLast()
	}
	return d.out
}

// dropLast takes back the newest message, which turned out to be empty.
func (d *decoder) dropLast() {
	d.out.Messages = d.out.Messages[:len(d.out.Messages)-1]
	if len(d.out.Messages) == 0 {
		d.out.Messages = nil
	}
}

// putCutAside takes the call that was cut off out of the answer.
func (d *decoder) putCutAside(m *convo.Message) {
	k := len(m.Parts) - 1
	for k >= 0 && saysNothing(m.Parts[k]) {
		k--
	}
	if d.finished || d.partial || k < 0 || !d.unclear() {
		return
	}
	c, ok := m.Parts[k].(convo.ToolCall)
	if !ok {
		return // what follows a call shows that it was whole
	}
	c.Arguments = d.written
	d.out.CutOff = &c
	m.Parts = slices.Delete(m.Parts, k, k+1)
	m.Parts = slices.Concat(withoutFields(m.Parts[:k]), m.Parts[k:])
}

// saysNothing reports whether a part after a call does not show that the call was
// whole.
func saysNothing(p convo.Part) bool {
	switch p := p.(type) {
	case convo.Text:
		return isBlank(string(p))
	case convo.Opaque:
		return true
	}
	return false
}
