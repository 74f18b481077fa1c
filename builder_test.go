package convo_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

type delta func(b *convo.Builder)

func textDelta(s string) delta { return func(b *convo.Builder) { b.Text(s) } }

func callDelta(index int, id, name, args string) delta {
	return func(b *convo.Builder) { b.ToolCall(index, convo.ToolCall{ID: id, Name: name, Arguments: args}) }
}

func endPart(b *convo.Builder) { b.EndPart() }

func reasoningDelta(text, signature string) delta {
	return func(b *convo.Builder) { b.Reasoning(convo.Reasoning{Text: text, Signature: signature}) }
}

func TestBuilder(t *testing.T) {
	for _, tt := range []struct {
		name   string
		deltas []delta
		want   []convo.Part // nil: no message
	}{
		{"nothing", nil, nil},
		{"empty deltas", []delta{textDelta(""), reasoningDelta("", "")}, nil},
		{"text appends", []delta{textDelta("a"), textDelta("b")}, []convo.Part{convo.Text("ab")}},
		{"arguments append, id comes late, name overwrites", []delta{callDelta(0, "", "f", `{"a"`), callDelta(0, "y", "g", `:1}`), callDelta(0, "y", "", " ")},
			[]convo.Part{convo.ToolCall{ID: "y", Name: "g", Arguments: `{"a":1} `}}},
		{"parallel calls with one index", []delta{callDelta(0, "a", "x", `{"q"`), callDelta(0, "", "", `:1}`), callDelta(0, "b", "y", `{"q"`), callDelta(0, "b", "", `:2`), callDelta(0, "", "", `}`)},
			[]convo.Part{convo.ToolCall{ID: "a", Name: "x", Arguments: `{"q":1}`}, convo.ToolCall{ID: "b", Name: "y", Arguments: `{"q":2}`}}},
		{"by index", []delta{callDelta(1, "b", "g", ""), callDelta(0, "a", "f", "{}"), callDelta(1, "", "", "{}")},
			[]convo.Part{convo.ToolCall{ID: "b", Name: "g", Arguments: "{}"}, convo.ToolCall{ID: "a", Name: "f", Arguments: "{}"}}},
		{"a call without a name is dropped", []delta{callDelta(0, "a", "", "{}"), textDelta("t")}, []convo.Part{convo.Text("t")}},
		{"only such a call", []delta{callDelta(0, "a", "", "{}")}, nil},
		{"no arguments", []delta{callDelta(0, "a", "f", "")}, []convo.Part{convo.ToolCall{ID: "a", Name: "f"}}},
		{"interleaved", []delta{reasoningDelta("r", ""), textDelta("a"), callDelta(0, "c", "f", "{}"), textDelta("b")},
			[]convo.Part{convo.Reasoning{Text: "r"}, convo.Text("a"), convo.ToolCall{ID: "c", Name: "f", Arguments: "{}"}, convo.Text("b")}},
		{"a signature ends a block", []delta{reasoningDelta("a", ""), reasoningDelta("b", ""), reasoningDelta("", "s1"), reasoningDelta("c", "s2")},
			[]convo.Part{convo.Reasoning{Text: "ab", Signature: "s1"}, convo.Reasoning{Text: "c", Signature: "s2"}}},
		{"a signature in pieces", []delta{reasoningDelta("a", ""), reasoningDelta("", "s1"), reasoningDelta("", "s2"), reasoningDelta("c", "")},
			[]convo.Part{convo.Reasoning{Text: "a", Signature: "s1s2"}, convo.Reasoning{Text: "c"}}},
		{"two blocks", []delta{reasoningDelta("a", ""), endPart, reasoningDelta("b", ""), endPart, textDelta("c"), endPart, textDelta("d"), textDelta("e")},
			[]convo.Part{convo.Reasoning{Text: "a"}, convo.Reasoning{Text: "b"}, convo.Text("c"), convo.Text("de")}},
		{"two blocks of signatures", []delta{reasoningDelta("", "s1"), endPart, reasoningDelta("", "s2")},
			[]convo.Part{convo.Reasoning{Signature: "s1"}, convo.Reasoning{Signature: "s2"}}},
		{"nothing to end", []delta{endPart, textDelta("a")}, []convo.Part{convo.Text("a")}},
		{"reasoning by ID", []delta{func(b *convo.Builder) {
			b.Reasoning(convo.Reasoning{Text: "a"})
			b.Reasoning(convo.Reasoning{ID: "1"})
			b.Reasoning(convo.Reasoning{ID: "1", Text: "b"})
			b.Reasoning(convo.Reasoning{ID: "2", Text: "c"})
			b.Reasoning(convo.Reasoning{Encrypted: "x"})
			b.Reasoning(convo.Reasoning{Encrypted: "y"})
		}}, []convo.Part{convo.Reasoning{ID: "1", Text: "ab"}, convo.Reasoning{ID: "2", Text: "c", Encrypted: "x"}, convo.Reasoning{Encrypted: "y"}}},
		{"the signature of a call", []delta{reasoningDelta("a", ""), func(b *convo.Builder) {
			b.Part(convo.Reasoning{Signature: "s", ID: "c"})
			b.Part(convo.Reasoning{})
			b.Part(convo.ToolCall{ID: "c", Name: "f"})
		}, reasoningDelta("b", "")}, []convo.Part{convo.Reasoning{Text: "a"}, convo.Reasoning{Signature: "s", ID: "c"}, convo.ToolCall{ID: "c", Name: "f"}, convo.Reasoning{Text: "b"}}},
		{"a name in pieces", []delta{callDelta(0, "a", "get", ""), callDelta(0, "", "_time", ""), callDelta(0, "", "get_time", "{}")},
			[]convo.Part{convo.ToolCall{ID: "a", Name: "get_time", Arguments: "{}"}}},
		{"interleaved calls with one index and IDs", []delta{callDelta(0, "a", "f", "{"), callDelta(0, "b", "g", "["), callDelta(0, "a", "", "}"), callDelta(0, "b", "", "]")},
			[]convo.Part{convo.ToolCall{ID: "a", Name: "f", Arguments: "{}"}, convo.ToolCall{ID: "b", Name: "g", Arguments: "[]"}}},
		{"whole parts", []delta{func(b *convo.Builder) {
			b.Part(convo.Text("a"))
			b.Part(convo.Opaque{Format: "f", JSON: "1"})
			b.Part(convo.ToolCall{ID: "c", Name: "f"})
			b.Part(convo.ToolCall{ID: "d", Name: "g"})
		}}, []convo.Part{convo.Text("a"), convo.Opaque{Format: "f", JSON: "1"}, convo.ToolCall{ID: "c", Name: "f"}, convo.ToolCall{ID: "d", Name: "g"}}},
		{"invalid UTF-8 over two deltas", []delta{textDelta("\xe4\xb8"), textDelta("\xad\xff")}, []convo.Part{convo.Text("中\uFFFD")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b convo.Builder
			for _, d := range tt.deltas {
				d(&b)
			}
			b.Stop(convo.StopDone)
			msgs := b.Messages()
			if tt.want == nil {
				assert.Empty(t, msgs)
				return
			}
			require.Len(t, msgs, 1)
			assert.Equal(t, convo.Message{Role: convo.RoleAssistant, Parts: tt.want}, msgs[0])
			b.Reset()
			assert.Empty(t, b.Messages())
		})
	}
}

// A call whose arguments are no JSON object is kept as it came, can be answered, and
// says so.
func TestBuilder_ArgumentsThatAreNoObject(t *testing.T) {
	for _, raw := range []string{`{"a":`, `[1]`, `null`, "x", `{"a":1}{"b":2}`, `{'a': 1}`, strings.Repeat("é", 3000)} {
		var b convo.Builder
		b.Origin(convo.Origin{Model: "m"})
		b.ToolCall(0, convo.ToolCall{ID: "a", Name: "f", Arguments: raw})
		b.ToolCall(1, convo.ToolCall{ID: "b", Name: "g", Arguments: " {} "})
		b.ToolCall(2, convo.ToolCall{ID: "c", Name: "g"})
		b.Stop(convo.StopToolCall)
		msgs := b.Messages()
		require.Len(t, msgs, 1)
		assert.Equal(t, "m", msgs[0].Origin.Model)
		calls := msgs[0].ToolCalls()
		assert.Equal(t, raw, calls[0].Arguments)
		assert.Equal(t, []bool{false, true, true}, []bool{calls[0].Valid(), calls[1].Valid(), calls[2].Valid()})

		h := historyOf(t, nil, convo.User("u"), msgs[0], convo.ResultError(calls[0], errors.New("no JSON object")))
		assert.Equal(t, 2, h.Status().OpenCalls)
	}
}

// Where no call has an ID and all have one index, the names tell them apart.
func TestBuilder_CallsByName(t *testing.T) {
	for _, tt := range []struct {
		name   string
		deltas []delta
		want   []string
	}{
		{"two names", []delta{callDelta(0, "", "f", "{}"), callDelta(0, "", "g", "{}")}, []string{"f {}", "g {}"}},
		{"one name, whole arguments", []delta{callDelta(0, "", "f", `{"a":1}`), callDelta(0, "", "f", `{"a":2}`)}, []string{`f {"a":1}`, `f {"a":2}`}},
		{"the name with each piece", []delta{callDelta(0, "", "f", `{"a"`), callDelta(0, "", "f", `:1}`), callDelta(0, "", "f", "")}, []string{`f {"a":1}`}},
		{"one name, ended", []delta{callDelta(0, "", "f", ""), func(b *convo.Builder) { b.EndToolCall(0) }, callDelta(0, "", "f", "")}, []string{"f ", "f "}},
		{"one name, ended as a part", []delta{callDelta(0, "", "f", ""), endPart, callDelta(0, "", "f", "")}, []string{"f ", "f "}},
		{"the arguments come later", []delta{callDelta(0, "", "f", ""), callDelta(0, "", "", "{"), callDelta(0, "", "", "}"), callDelta(0, "", "g", "")}, []string{"f {}", "g "}},
	} {
		var b convo.Builder
		for _, d := range tt.deltas {
			d(&b)
		}
		b.Stop(convo.StopToolCall)
		var got []string
		for _, c := range b.Messages()[0].ToolCalls() {
			got = append(got, c.Name+" "+c.Arguments)
		}
		assert.Equal(t, tt.want, got, tt.name)
	}
}

// Call ids that are missing or used twice are made unique.
func TestBuilder_NamesCalls(t *testing.T) {
	var b convo.Builder
	for i, id := range []string{"a", "a", ""} {
		b.ToolCall(i, convo.ToolCall{ID: id, Name: "f"})
	}
	b.Stop(convo.StopToolCall)
	calls := b.Messages()[0].ToolCalls()
	assert.Equal(t, "a", calls[0].ID)
	assert.False(t, calls[0].Minted)
	assert.True(t, calls[1].Minted && calls[2].Minted)
	assert.NotEqual(t, calls[1].ID, calls[2].ID)
	assert.Equal(t, calls, b.Messages()[0].ToolCalls(), "they keep their IDs")
}

// Whatever the deltas are, Append accepts the message that is built from them.
func FuzzBuilder(f *testing.F) {
	f.Add([]byte("\x00hello\x01\x02c1\x02{}"))
	f.Add([]byte{3, 0, 3, 1, 2, 2, 2, 0, 1, 255, 4, 4})
	f.Fuzz(func(t *testing.T, data []byte) {
		var b convo.Builder
		for len(data) >= 3 {
			op, index, size := data[0]%8, int(data[1]%4), int(data[2]%9)
			data = data[3:]
			size = min(size, len(data))
			text := string(data[:size])
			data = data[size:]
			switch op {
			case 0:
				b.Text(text)
			case 1:
				b.Reasoning(convo.Reasoning{Text: text})
			case 2:
				b.Reasoning(convo.Reasoning{Signature: text, ID: text})
			case 3:
				b.ToolCall(index, convo.ToolCall{Name: text})
			case 4:
				b.ToolCall(index, convo.ToolCall{ID: text, Arguments: text})
			case 5:
				b.ToolCall(index, convo.ToolCall{ID: text, Name: text, Arguments: `{"a":`})
			case 6:
				b.EndPart()
			case 7:
				b.Part(convo.Reasoning{Signature: text, ID: text})
			}
		}
		msgs := b.Messages()
		if len(msgs) == 0 {
			return
		}
		h, err := convo.New(nil)
		require.NoError(t, err)
		_, err = h.Append(convo.User("u"))
		require.NoError(t, err)
		_, err = h.Append(msgs...)
		require.NoError(t, err, "%v", msgs)
		checkPairs(t, h.Snapshot())
	})
}

// A call that comes whole is never taken for one of a stream.
func TestBuilder_WholeAndStreamedCalls(t *testing.T) {
	var b convo.Builder
	b.ToolCall(0, convo.ToolCall{ID: "s0", Name: "streamed", Arguments: "{"})
	b.Part(convo.ToolCall{ID: "w0", Name: "whole", Arguments: "{}"})
	b.ToolCall(1, convo.ToolCall{ID: "s1", Name: "streamed", Arguments: "{"})
	b.Part(convo.ToolCall{ID: "w1", Name: "whole", Arguments: "{}"})
	b.ToolCall(0, convo.ToolCall{Arguments: "}"})
	b.ToolCall(1, convo.ToolCall{Arguments: "}"})
	msgs := b.Messages()
	require.Len(t, msgs, 1)
	var got []string
	for _, c := range msgs[0].ToolCalls() {
		got = append(got, c.ID+" "+c.Name+" "+c.Arguments)
	}
	assert.Equal(t, []string{"s0 streamed {}", "w0 whole {}", "s1 streamed {}", "w1 whole {}"}, got)
}

// The last call of an answer that the model did not finish is put aside if its
// arguments are empty or no JSON object.
func TestBuilder_Cut(t *testing.T) {
	call := func(index int, name, args string) func(*convo.Builder) {
		return func(b *convo.Builder) {
			b.ToolCall(index, convo.ToolCall{ID: "c" + itoa(index), Name: name})
			b.ToolCall(index, convo.ToolCall{Arguments: args})
		}
	}
	const unknown = convo.StopRefused + 1 // Stop is not called
	text := func(b *convo.Builder) { b.Text("Then") }
	end := func(b *convo.Builder) { b.EndToolCall(0) }
	endAsPart := func(b *convo.Builder) { b.EndPart() }
	for _, tt := range []struct {
		name  string
		stop  convo.Stop
		build []func(*convo.Builder)
		calls int    // in the messages
		cut   string // name and arguments of the call that is put aside
	}{
		{"right after the name", convo.StopLength, []func(*convo.Builder){text, call(0, "delete_all", "")}, 0, "delete_all "},
		{"blank arguments", convo.StopLength, []func(*convo.Builder){call(0, "delete_all", " ")}, 0, "delete_all  "},
		{"inside the arguments", convo.StopLength, []func(*convo.Builder){call(0, "rm", `{"path": "/ho`)}, 0, `rm {"path": "/ho`},
		{"no object", convo.StopLength, []func(*convo.Builder){call(0, "rm", `"/home`)}, 0, `rm "/home`},
		{"the second of two", convo.StopLength, []func(*convo.Builder){call(0, "ls", ""), call(1, "rm", "")}, 1, "rm "},
		{"whole arguments", convo.StopLength, []func(*convo.Builder){call(0, "rm", `{}`)}, 1, ""},
		{"the provider ended it", convo.StopLength, []func(*convo.Builder){call(0, "now", ""), end}, 1, ""},
		{"the provider ended the part", convo.StopLength, []func(*convo.Builder){call(0, "now", ""), endAsPart}, 1, ""},
		{"a text follows", convo.StopLength, []func(*convo.Builder){call(0, "now", ""), text}, 1, ""},
		{"blank text follows", convo.StopLength, []func(*convo.Builder){text, call(0, "delete_all", ""), func(b *convo.Builder) { b.Text("\n") }}, 0, "delete_all "},
		{"an opaque part follows", convo.StopLength, []func(*convo.Builder){text, call(0, "delete_all", ""), func(b *convo.Builder) { b.Part(convo.Opaque{Format: "f", JSON: "{}"}) }}, 0, "delete_all "},
		{"reasoning follows", convo.StopLength, []func(*convo.Builder){call(0, "now", ""), func(b *convo.Builder) { b.Reasoning(convo.Reasoning{Text: "so"}) }}, 1, ""},
		{"it stopped for the call", convo.StopToolCall, []func(*convo.Builder){call(0, "now", "")}, 1, ""},
		{"it was done", convo.StopDone, []func(*convo.Builder){call(0, "now", "")}, 1, ""},
		{"it was broken off", convo.StopRefused, []func(*convo.Builder){text, call(0, "delete_all", "")}, 0, "delete_all "},
		{"no reason was told", unknown, []func(*convo.Builder){call(0, "delete_all", "")}, 0, "delete_all "},
		{"no reason was told inside the arguments", unknown, []func(*convo.Builder){call(0, "rm", `{"path": "/ho`)}, 0, `rm {"path": "/ho`},
		{"no reason was told and whole arguments", unknown, []func(*convo.Builder){call(0, "rm", `{}`)}, 1, ""},
		{"no reason was told and the provider ended it", unknown, []func(*convo.Builder){call(0, "now", ""), end}, 1, ""},
		{"an empty part follows", convo.StopLength, []func(*convo.Builder){call(0, "now", ""), func(b *convo.Builder) { b.Part(convo.Reasoning{}) }}, 0, "now "},
		{"no call", convo.StopLength, []func(*convo.Builder){text}, 0, ""},
		{"nothing at all", convo.StopLength, nil, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b convo.Builder
			for _, f := range tt.build {
				f(&b)
			}
			if tt.stop != unknown {
				b.Stop(tt.stop)
			}
			b.Usage(convo.Usage{Input: 3})
			b.EndToolCall(9) // there is none
			r := b.Reply()
			assert.Equal(t, tt.stop%unknown, r.Stop)
			assert.Equal(t, 3, r.Usage.Input)
			assert.Len(t, r.OpenCalls(), tt.calls)
			if tt.cut == "" {
				assert.Nil(t, r.CutOff)
			} else if assert.NotNil(t, r.CutOff) {
				assert.Equal(t, tt.cut, r.CutOff.Name+" "+r.CutOff.Arguments)
			}
			h := historyOf(t, nil, convo.User("u"))
			_, err := h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) { return r, nil })
			require.NoError(t, err)
			assert.Equal(t, tt.calls, h.Status().OpenCalls)
		})
	}
}
