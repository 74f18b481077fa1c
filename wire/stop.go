package wire

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// Reply returns a decoded response in the form that [convo.History.Do] takes. Messages
// without content are left out.
func (t Transcript) Reply() convo.Reply {
	msgs := slices.DeleteFunc(slices.Clone(t.Messages), isEmpty)
	return convo.Reply{Messages: msgs, CutOff: t.CutOff, Usage: t.Usage, Stop: t.Stop}
}

// isEmpty reports whether a message holds only empty texts, or nothing.
func isEmpty(m convo.Message) bool {
	return !slices.ContainsFunc(m.Parts, func(p convo.Part) bool {
		t, ok := p.(convo.Text)
		return !ok || t != ""
	})
}

// StopOf returns what a provider's reason for the end of an answer means. The reason is
// the finish_reason of Chat Completions, the reason in the incomplete_details of
// Responses, the stop_reason of Anthropic, the finishReason or blockReason of Gemini, or
// the stopReason of Converse. For an unknown reason it is StopDone. Streams and Decode set
// it in their Transcript; if you assemble an answer yourself, set it as
// [convo.Reply.Stop].
//
// StopLength means that the answer ended at any limit, and not only at a number of
// tokens, such as a limit on calls of the provider's own tools. StopPause means that the
// provider paused in a long round with its own tools (pause_turn), and continues when the
// answer is sent back. StopRefused also means that the provider could not finish the
// answer, or that the model wrote an invalid call; asking again may help.
func StopOf(reason string) convo.Stop { return stops[strings.ToLower(reason)] }

// stops are the known reasons, except those of StopDone.
var stops = map[string]convo.Stop{
	"length": convo.StopLength, "max_tokens": convo.StopLength, "max_output_tokens": convo.StopLength, "max_messages": convo.StopLength, "steered": convo.StopLength,
	"model_length": convo.StopLength, "model_context_window_exceeded": convo.StopLength, "error_limit": convo.StopLength,
	"continuation": convo.StopLength, "too_many_tool_calls": convo.StopLength, "insufficient_system_resource": convo.StopLength,

	"pause_turn": convo.StopPause,

	"tool_calls": convo.StopToolCall, "tool_call": convo.StopToolCall, "tool_use": convo.StopToolCall, "function_call": convo.StopToolCall,

	"refusal": convo.StopRefused, "content_filter": convo.StopRefused, "content_filtered": convo.StopRefused, "guardrail_intervened": convo.StopRefused, "sensitive": convo.StopRefused, "error_toxic": convo.StopRefused,
	"safety": convo.StopRefused, "recitation": convo.StopRefused, "language": convo.StopRefused, "other": convo.StopRefused, "blocklist": convo.StopRefused, "prohibited_content": convo.StopRefused, "spii": convo.StopRefused,
	"image_safety": convo.StopRefused, "image_prohibited_content": convo.StopRefused, "image_recitation": convo.StopRefused, "image_other": convo.StopRefused, "no_image": convo.StopRefused,
	"model_armor": convo.StopRefused, "jailbreak": convo.StopRefused,
	"malformed_function_call": convo.StopRefused, "unexpected_tool_call": convo.StopRefused, "malformed_response": convo.StopRefused, "missing_thought_signature": convo.StopRefused,
	"malformed_tool_use": convo.StopRefused, "malformed_model_output": convo.StopRefused,
	"error": convo.StopRefused, "network_error": convo.StopRefused, "timeout": convo.StopRefused, "abort": convo.StopRefused, "user_cancel": convo.StopRefused, "cancelled": convo.StopRefused, "failed": convo.StopRefused,
}

// An ending describes how an answer ended.
type ending struct {
	answered bool // the input is an answer
	finished bool // the model finished it
	partial  bool // its end was not received yet; see streamBase.transcript

	// Of the newest call:
	written string // its arguments, as the model wrote them
	open    bool   // the provider has not ended the call
	text    bool   // the arguments are any text, and not an object
}

// ended records that the input is an answer, and the reason for its end, which may be
// missing.
func (d *decoder) ended(reason string) {
	d.answered = true
	d.out.Stop, d.out.StopReason = StopOf(reason), reason
	d.finished = reason != "" && (d.out.Stop == convo.StopDone || d.out.Stop == convo.StopToolCall)
}

// wrote records the arguments of a call. The whole argument reports whether the provider
// ended the call, whatever the arguments are.
func (d *decoder) wrote(arguments string, whole bool) {
	d.written, d.open, d.text = arguments, !whole, false
}

// wroteText is like wrote, for the input of a custom tool. The input itself does not show
// whether it is whole.
func (d *decoder) wroteText(input string, whole bool) {
	d.written, d.open, d.text = input, !whole, true
}

// unclear reports whether the newest call may be cut off, judged by its arguments.
func (d *decoder) unclear() bool {
	return d.open && (d.text || isBlank(d.written) || !convo.ToolCall{Arguments: d.written}.Valid())
}

// wroteObject is like wrote, for a provider that sends arguments as an object, which is
// empty if nothing was written. An object that a Stream has assembled may hold the
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

// finish returns what was read. If the model did not finish the answer, and it ends with
// a call that may be cut off, the call is moved to CutOff. If err is not nil, reading
// failed, and finish returns nothing else.
func (d *decoder) finish(err error) (Transcript, error) {
	if err != nil {
		return Transcript{}, err
	}
	n := len(d.out.Messages)
	if !d.answered || n == 0 {
		return d.out, nil
	}
	m := &d.out.Messages[n-1]
	d.putCutAside(m)
	if d.out.Stop == convo.StopDone && len(m.ToolCalls()) > 0 {
		d.out.Stop = convo.StopToolCall // not every provider states this
	}
	if len(m.Parts) == 0 && m.Role == convo.RoleAssistant {
		d.dropLast()
	}
	return d.out, nil
}

// dropLast removes the newest message, which is empty.
func (d *decoder) dropLast() {
	d.out.Messages = d.out.Messages[:len(d.out.Messages)-1]
	if len(d.out.Messages) == 0 {
		d.out.Messages = nil
	}
}

// putCutAside moves the call that was cut off from the answer to CutOff.
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
		return // the part after a call shows that the call is whole
	}
	c.Arguments = d.written
	d.out.CutOff = &c
	m.Parts = slices.Delete(m.Parts, k, k+1)
	m.Parts = slices.Concat(withoutFields(m.Parts[:k], c), m.Parts[k:])
}

// saysNothing reports whether a part after a call leaves open whether the call is whole.
func saysNothing(p convo.Part) bool {
	switch p := p.(type) {
	case convo.Text:
		return isBlank(string(p))
	case convo.Opaque:
		return true
	}
	return false
}
