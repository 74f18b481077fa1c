package convo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/wire"
)

// refuseOnce returns a Send that is refused with a text, and then answers.
func refuseOnce(text string) convo.Send {
	asked := false
	return func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		if !asked {
			asked = true
			return convo.Reply{}, errors.New(text)
		}
		return convo.Reply{Messages: []convo.Message{convo.Assistant("yes")}}, nil
	}
}

// A refuser is a provider that refuses requests in which it finds a text, and names the path.
type refuser struct {
	format  wire.Format
	refuses string // part of what it refuses
	path    func(steps []any) string
	message string // "%s" is the path
	asked   int
	bodies  []string
}

func (r *refuser) send(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
	r.asked++
	req, err := r.format.Encode(s)
	if err != nil {
		return convo.Reply{}, err
	}
	body := req.Body()
	r.bodies = append(r.bodies, string(body))
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return convo.Reply{}, err
	}
	if steps := stepsTo(v, r.refuses); steps != nil {
		message := r.message
		if strings.Contains(message, "%s") {
			message = fmt.Sprintf(message, r.path(steps))
		}
		return convo.Reply{}, fmt.Errorf("400 Bad Request: {\"error\":{\"message\":%q}}", message)
	}
	return convo.Reply{Messages: []convo.Message{convo.Assistant("yes")}}, nil
}

// stepsTo returns the names and indexes on the way to the first string that contains a text, or
// nil.
func stepsTo(v any, text string) []any {
	switch v := v.(type) {
	case string:
		if strings.Contains(v, text) {
			return []any{}
		}
	case []any:
		for i, in := range v {
			if steps := stepsTo(in, text); steps != nil {
				return append([]any{i}, steps...)
			}
		}
	case map[string]any:
		for name, in := range v {
			if steps := stepsTo(in, text); steps != nil {
				return append([]any{name}, steps...)
			}
		}
	}
	return nil
}

func dotted(steps []any) string {
	var words []string
	for _, s := range steps {
		words = append(words, fmt.Sprint(s))
	}
	return strings.Join(words, ".")
}

func bracketed(steps []any) string {
	path := ""
	for _, s := range steps {
		if i, ok := s.(int); ok {
			path += fmt.Sprintf("[%d]", i)
		} else if path += "." + s.(string); path[0] == '.' {
			path = path[1:]
		}
	}
	return path
}

// refusers are providers with the grammar of their paths. Converse names paths of another body.
var refusers = map[string]refuser{
	"anthropic": {format: wire.Anthropic{}, path: dotted},
	"chat":      {format: wire.OpenAIChat{}, path: bracketed},
	"responses": {format: wire.OpenAIResponses{}, path: bracketed},
	"gemini":    {format: wire.Gemini{}, path: bracketed},
}

// image returns an image of which no other has the bytes.
func image(name string) convo.Media {
	return convo.NewMedia("image/png", []byte("\x89PNG image "+name))
}

// manyImages is a conversation with images between and in other messages.
func manyImages(t *testing.T, opts *convo.Options) *convo.History {
	if opts == nil {
		opts = &convo.Options{}
	}
	opts.Roles = convo.Relaxed()
	call := callOf("a")
	result := convo.Result(call, "two pictures")
	in := result.ToolResults()[0]
	in.Parts = append(in.Parts, image("in 1"), image("in 2"))
	result.Parts[0] = in
	h := historyOf(t, opts, convo.User("look", image("one")), convo.Assistant("a", call), result, convo.Assistant("seen"),
		convo.User("and", image("two"), convo.Text("and this"), image("three")), convo.Assistant("seen"))
	require.NoError(t, h.SetSystem(convo.System("system")))
	mustAppend(t, h, convo.System("a note"))
	mustAppend(t, h, convo.User("next"), convo.User("more"))
	return h
}

// What a provider refuses at a place is cleared there, and nothing else.
func TestRecover_Place(t *testing.T) {
	for name, r := range refusers {
		for _, bad := range []struct {
			name  string
			image convo.Media
			place convo.RefusedPart
		}{
			{"of a user", image("three"), convo.RefusedPart{ID: 5, Part: 3, Inside: -1}},
			{"in a result", image("in 2"), convo.RefusedPart{ID: 3, Part: 0, Inside: 2}},
		} {
			t.Run(name+" "+bad.name, func(t *testing.T) {
				var told []convo.Report
				h := manyImages(t, &convo.Options{OnCompaction: func(r convo.Report) { told = append(told, r) }})
				before := h.Snapshot().Messages()
				r := r
				r.refuses, r.message = bad.image.Data, "%s: Could not process image"
				reply, err := h.Do(t.Context(), func(ctx context.Context, s *convo.Snapshot) (convo.Reply, error) {
					assert.Empty(t, told, "it is not proved yet")
					return r.send(ctx, s)
				})
				require.NoError(t, err)
				assert.Equal(t, 2, r.asked)
				require.Len(t, reply.Reports, 1)
				report := reply.Reports[0]
				bad.place.Words = report.Refused[0].Words
				assert.Equal(t, []convo.RefusedPart{bad.place}, report.Refused)
				assert.Contains(t, bad.place.Words, "Could not process image")
				assert.Equal(t, convo.ReasonRefused, report.Reason)
				assert.Equal(t, convo.OutcomeApplied, report.Outcome)
				assert.Equal(t, []convo.ID{bad.place.ID}, report.Rewritten)
				require.Len(t, told, 1)
				assert.Equal(t, report.Refused, told[0].Refused)

				after := h.Snapshot().Messages()
				all := fmt.Sprint(after)
				assert.Contains(t, all, "removed, since the provider refused it")
				assert.Equal(t, 4, countMedia(after))
				require.NoError(t, h.Undo(report))
				restored := h.Snapshot().Messages()
				assert.Equal(t, before, restored[:len(before)])
			})
		}
	}
}

// Code of the provider whose container has expired is cleared, and code of other containers is not.
func TestRecover_ExpiredContainer(t *testing.T) {
	const format = "openai-responses"
	ran := func(id, container string) convo.Opaque {
		return convo.Opaque{Format: format, JSON: fmt.Sprintf(`{"type":"code_interpreter_call","id":%q,"status":"completed","code":"print(1)","container_id":%q,"outputs":[]}`, id, container)}
	}
	origin := convo.Origin{Format: format, Model: "gpt-5"}
	for name, tt := range map[string]struct {
		message string
		others  string // the container of the other code
		cleared int
	}{
		"named":               {"Expected container_id: old.", "new", 2},
		"not named":           {"Container is expired.", "old", 3},
		"not named, one left": {"Container is expired.", "new", 0},
	} {
		t.Run(name, func(t *testing.T) {
			answer := func(parts ...convo.Part) convo.Message {
				return convo.Message{Role: convo.RoleAssistant, Origin: origin, Parts: append(parts, convo.Text("One."))}
			}
			h := historyOf(t, nil, convo.User("run it"), answer(ran("ci_1", "old"), ran("ci_2", "old")), convo.User("again"), answer(ran("ci_3", tt.others)), convo.User("and"))
			r := refuser{format: wire.OpenAIResponses{}, refuses: "ci_1", path: bracketed, message: tt.message}
			reply, err := h.Do(t.Context(), r.send)
			if tt.cleared == 0 {
				require.ErrorContains(t, err, tt.message)
				assert.Empty(t, reply.Reports)
				return
			}
			require.NoError(t, err)
			assert.Len(t, reply.Reports[0].Refused, tt.cleared)
			assert.Equal(t, 3-tt.cleared, strings.Count(r.bodies[1], `"type":"code_interpreter_call"`))
			assert.Contains(t, r.bodies[1], "removed, since the provider refused it")
		})
	}
}

func countMedia(msgs []convo.Message) (n int) {
	for _, m := range msgs {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case convo.Media:
				n++
			case convo.ToolResult:
				n += countMedia([]convo.Message{{Parts: p.Parts}})
			}
		}
	}
	return n
}

// If the provider refuses the request as before, what was cleared is back, and the first error is
// returned.
func TestRecover_PlaceInVain(t *testing.T) {
	for _, again := range []string{"messages.0.content.1: Could not process image", "messages.0.content.1: The image was specified using the image/png media type"} {
		var told []convo.Report
		h := manyImages(t, &convo.Options{OnCompaction: func(r convo.Report) { told = append(told, r) }})
		before := h.Snapshot()
		first := errors.New("messages.0.content.1: Could not process image")
		asked := 0
		reply, err := h.Do(t.Context(), func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
			_, _ = wire.Anthropic{}.Encode(before)
			_, _ = wire.Anthropic{}.Encode(s)
			if asked++; asked == 1 {
				return convo.Reply{}, first
			}
			assert.Equal(t, 4, countMedia(s.Messages()))
			return convo.Reply{}, errors.New(again)
		})
		if again == first.Error() {
			assert.Equal(t, first, err)
			assert.Equal(t, before.Messages(), h.Snapshot().Messages())
			for _, r := range slices.Concat(told, reply.Reports) {
				assert.NotEqual(t, convo.OutcomeApplied, r.Outcome)
			}
			require.Len(t, reply.Reports, 1)
			assert.Equal(t, "compaction failed at 1,000 tokens", strings.SplitN(fmt.Sprint(reply.Reports[0]), ":", 2)[0][:17]+" at 1,000 tokens")
		}
		assert.Equal(t, 2, asked)
	}
}

// A failure that says nothing of the place leaves what was cleared, and it is told.
func TestRecover_PlaceThenOther(t *testing.T) {
	for _, other := range []string{"503 Service Unavailable", "connection reset", `{"error":{"type":"overloaded_error","message":"Overloaded"}}`} {
		var told []convo.Report
		h := manyImages(t, &convo.Options{OnCompaction: func(r convo.Report) { told = append(told, r) }})
		r := refusers["anthropic"]
		r.refuses, r.message = image("two").Data, "%s: Could not process image"
		reply, err := h.Do(t.Context(), func(ctx context.Context, s *convo.Snapshot) (convo.Reply, error) {
			reply, err := r.send(ctx, s)
			if r.asked > 1 {
				err = errors.New(other)
			}
			return reply, err
		})
		require.EqualError(t, err, other)
		assert.Equal(t, 2, r.asked)
		assert.Equal(t, 4, countMedia(h.Snapshot().Messages()))
		require.Len(t, reply.Reports, 1)
		assert.Equal(t, convo.OutcomeApplied, reply.Reports[0].Outcome)
		assert.Len(t, told, 1)
	}
}

// What cannot be found, what is not of the kind that was refused, and what is pinned stays.
func TestRecover_PlaceNotFound(t *testing.T) {
	for _, text := range []string{
		"messages.0.content.0: Could not process image",   // a text
		"messages.99.content.1: Could not process image",  // out of range
		"messages[0].content[1]: Could not process image", // another grammar, and there are five images
		"contents[0].parts[1]: Could not process image",   // the same
		"messages.0.content.1: The PDF specified is password protected.",
		"Could not process image",
		"system.0: Could not process image",
		"messages.0.content.1: Tool reference 'X' not found in available tools",
		"Invalid 'messages[1].tool_calls[0].function.arguments': string too long. Expected a string with maximum length 1048576, but got a string with length 1900000 instead.",
		"rate limit: messages.0.content.1: Could not process image",
	} {
		h := manyImages(t, nil)
		cause := errors.New(text)
		unchanged(t, h, func() {
			asked := 0
			_, err := h.Do(t.Context(), func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
				asked++
				_, _ = wire.Anthropic{}.Encode(s)
				return convo.Reply{}, cause
			})
			require.Equal(t, cause, err, text)
			assert.Equal(t, 1, asked, text)
		})
	}
	h := manyImages(t, nil)
	require.NoError(t, h.Pin(1))
	cause := errors.New("messages.0.content.1: Could not process image")
	unchanged(t, h, func() {
		_, err := h.Do(t.Context(), func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
			_, _ = wire.Anthropic{}.Encode(s)
			return convo.Reply{}, cause
		})
		require.ErrorIs(t, err, cause)
		require.ErrorContains(t, err, "Unpin it first")
		wrong, ok := errors.AsType[*convo.EditError](err)
		require.True(t, ok)
		assert.EqualValues(t, 1, wrong.ID)
	})
	require.NoError(t, h.SetEphemeral(convo.User("now", image("now"))))
	_, err := h.Do(t.Context(), func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
		_, _ = wire.OpenAIChat{}.Encode(s)
		return convo.Reply{}, errors.New("messages[7].content[1].image_url: Could not process image")
	})
	require.ErrorContains(t, err, "Could not process image")
}

// After content nothing is cleared, and a request is sent again at most three times.
func TestDo_PlaceRetries(t *testing.T) {
	h := manyImages(t, nil)
	unchanged(t, h, func() {
		_, err := h.Do(t.Context(), func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
			_, _ = wire.Anthropic{}.Encode(s)
			return convo.Reply{Messages: []convo.Message{convo.Assistant("I")}}, errors.New("messages.0.content.1: Could not process image")
		})
		require.EqualError(t, err, "messages.0.content.1: Could not process image")
	})

	// Each image is refused: two are cleared, and the third refusal is returned.
	asked := 0
	reply, err := h.Do(t.Context(), func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
		asked++
		req, err := wire.Anthropic{}.Encode(s)
		require.NoError(t, err)
		var v any
		require.NoError(t, json.Unmarshal(req.Body(), &v))
		return convo.Reply{}, errors.New(dotted(stepsTo(v, "base64")) + ": Could not process image")
	})
	require.ErrorContains(t, err, "Could not process image")
	assert.Equal(t, 3, asked)
	assert.Len(t, reply.Reports, 2)
	assert.Equal(t, 3, countMedia(h.Snapshot().Messages()))
}

// Arguments become an object that says what was there, and reports, rows and stores know it.
func TestRecover_PlaceSaved(t *testing.T) {
	long := `{"text":"` + strings.Repeat("long ", 300_000) + `"}`
	call := convo.ToolCall{ID: "c1", Name: "write", Arguments: long}
	search := convo.Opaque{Format: "anthropic", JSON: `{"type":"server_tool_use","id":"srvtoolu_0123456789","name":"web_search","input":{"query":"x"}}`}
	found := convo.Opaque{Format: "anthropic", JSON: `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_0123456789","content":[{"type":"web_search_result","encrypted_content":"0123456789abcdef","title":"t","url":"u"}]}`}
	seek := convo.Opaque{Format: "anthropic", JSON: `{"type":"server_tool_use","id":"srvtoolu_seek","name":"tool_search_tool_bm25","input":{"query":"x"}}`}
	sought := convo.Opaque{Format: "anthropic", JSON: `{"type":"tool_search_tool_result","tool_use_id":"srvtoolu_seek","content":{"type":"tool_search_tool_search_result","tool_references":[{"type":"tool_reference","tool_name":"mcp_x"}]}}`}
	for name, tt := range map[string]struct {
		format  wire.Format
		message convo.Message
		refusal string
		gone    []string
	}{
		"arguments":               {wire.OpenAIResponses{}, convo.Assistant("a", call), "Invalid 'input[2].arguments': string too long. Expected a string with maximum length 1048576, but got a string with length 1500011 instead.", []string{"long long"}},
		"a block and its partner": {wire.Anthropic{}, convo.Message{Role: convo.RoleAssistant, Parts: []convo.Part{search, found, convo.Text("so")}}, "messages.1.content.1.web_search_tool_result.content.0: Invalid `encrypted_content` in `web_search_result` block", []string{"srvtoolu_0123456789"}},
		"a reference":             {wire.Anthropic{}, convo.Message{Role: convo.RoleAssistant, Parts: []convo.Part{convo.Text("s"), seek, sought}}, "messages.1.content.1: Tool reference 'mcp_x' not found in available tools", []string{"tool_reference"}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			store := new(convotest.MemStore)
			key := 0
			opts := func() *convo.Options {
				return &convo.Options{Key: func(convo.Message) string { key++; return fmt.Sprint("k", key) }}
			}
			h, err := convo.Open(ctx, store, "k", opts())
			require.NoError(t, err)
			msgs := []convo.Message{convo.User("go"), tt.message}
			if len(tt.message.ToolCalls()) > 0 {
				msgs = append(msgs, convo.Result(call, "written"))
			}
			msgs = append(msgs, convo.User("next"))
			mustAppend(t, h, msgs...)
			rows := h.Snapshot().Messages()
			shown := func(h *convo.History) string {
				r, err := tt.format.Encode(h.Snapshot())
				require.NoError(t, err)
				return string(r.Body())
			}
			decisions := func(h *convo.History) []byte {
				d, err := h.Decisions()
				require.NoError(t, err)
				return d
			}
			size := len(decisions(h))
			asked := 0
			reply, err := h.Do(ctx, func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
				if asked++; asked == 1 {
					_, err := tt.format.Encode(s)
					require.NoError(t, err)
					return convo.Reply{}, errors.New(tt.refusal)
				}
				return convo.Reply{Messages: []convo.Message{convo.Assistant("yes")}}, nil
			})
			require.NoError(t, err)
			require.Len(t, reply.Reports, 1)
			require.NotEmpty(t, reply.Reports[0].Refused)
			assert.NotEmpty(t, reply.Reports[0].Refused[0].Key)
			rows = append(rows, reply.Messages...)
			body := shown(h)
			for _, gone := range tt.gone {
				assert.NotContains(t, body, gone)
			}
			assert.Empty(t, tt.format.(interface{ Check([]byte) []wire.Finding }).Check([]byte(body)))

			saved := decisions(h)
			assert.Less(t, len(saved), size+1500, "the message is not in it")
			d, err := convo.ReadDecisions(saved)
			require.NoError(t, err)
			again, err := convo.Resume(d, rowsOf(rows...), nil)
			require.NoError(t, err)
			assert.Equal(t, body, shown(again))
			assert.Equal(t, string(saved), string(decisions(again)))
			d, err = convo.ReadDecisions(saved)
			require.NoError(t, err)
			changed := slices.Clone(rows)
			changed[1] = convo.Assistant("x")
			_, err = convo.Resume(d, rowsOf(changed...), nil)
			_, ok := errors.AsType[*convo.RowError](err)
			assert.True(t, ok, "%v", err)

			require.NoError(t, h.Save(ctx))
			opened, err := convo.Open(ctx, store, "k", opts())
			require.NoError(t, err)
			assert.Equal(t, body, shown(opened))
			require.NoError(t, h.Undo(reply.Reports[0]))
			for _, gone := range tt.gone {
				assert.Contains(t, shown(h), gone)
			}
		})
	}
}

// A Send that writes the body itself names the places.
func TestPartError(t *testing.T) {
	h := manyImages(t, nil)
	cause := errors.New("no such picture")
	places := []convo.RefusedPart{{ID: 3, Part: 0, Inside: 1}, {ID: 5, Part: 1, Inside: -1}}
	asked := 0
	reply, err := h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		if asked++; asked == 1 {
			return convo.Reply{}, fmt.Errorf("send: %w", &convo.PartError{Parts: places, Err: cause})
		}
		return convo.Reply{Messages: []convo.Message{convo.Assistant("yes")}}, nil
	})
	require.NoError(t, err)
	require.Len(t, reply.Reports, 1)
	assert.Len(t, reply.Reports[0].Refused, 2)
	assert.Equal(t, 3, countMedia(h.Snapshot().Messages()))

	for name, p := range map[string]convo.RefusedPart{"an unknown entry": {ID: 99}, "a part": {ID: 1, Part: 9, Inside: -1}, "a part of a result": {ID: 3, Inside: 9}, "a text": {ID: 1, Part: 0, Inside: -1}, "negative": {ID: 1, Part: -1}} {
		unchanged(t, h, func() {
			retry, r, err := h.Recover(t.Context(), h.Snapshot(), &convo.PartError{Parts: []convo.RefusedPart{p}, Err: cause})
			assert.False(t, retry, name)
			require.ErrorIs(t, err, cause, name)
			_, ok := errors.AsType[*convo.EditError](err)
			assert.True(t, ok, "%s: %v", name, err)
			assert.NotEqual(t, convo.OutcomeApplied, r.Outcome)
		})
	}
}

// A PartError that is returned again puts back what it named, and an edit between keeps it and
// tells it.
func TestRecover_PartErrorInVain(t *testing.T) {
	for _, isEdited := range []bool{false, true} {
		var told []convo.Report
		h := manyImages(t, &convo.Options{OnCompaction: func(r convo.Report) { told = append(told, r) }})
		before := h.Snapshot().Messages()
		first := &convo.PartError{Parts: []convo.RefusedPart{{ID: 1, Part: 1, Inside: -1}}, Err: errors.New("no")}
		asked := 0
		reply, err := h.Do(t.Context(), func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
			if asked++; asked == 2 && isEdited {
				_, err := h.Apply(s, convo.Edit{Clear: []convo.Clear{{ID: 3}}})
				require.NoError(t, err)
			}
			return convo.Reply{}, first
		})
		require.Equal(t, error(first), err)
		assert.Equal(t, 2, asked)
		applied := slices.ContainsFunc(told, func(r convo.Report) bool { return len(r.Refused) > 0 })
		assert.Equal(t, isEdited, applied)
		assert.Len(t, reply.Reports, map[bool]int{false: 1, true: 2}[isEdited])
		if !isEdited {
			assert.Equal(t, before, h.Snapshot().Messages())
		}
	}
}

// A PartError that comes again puts back a result that it names as a whole, and reasoning.
func TestRecover_PartErrorAgain(t *testing.T) {
	for name, place := range map[string]convo.RefusedPart{"a whole result": {ID: 3, Inside: -1}, "reasoning": {ID: 4, Inside: -1}} {
		t.Run(name, func(t *testing.T) {
			call := callOf("a")
			result := convo.Result(call, "a picture")
			in := result.ToolResults()[0]
			in.Parts = append(in.Parts, image("in 1"), image("in 2"))
			result.Parts[0] = in
			h := historyOf(t, nil, convo.User("look"), convo.Assistant("", call), result)
			at, _, err := h.Prepare(t.Context())
			require.NoError(t, err)
			signed := convo.Message{Role: convo.RoleAssistant, Parts: []convo.Part{convo.Reasoning{Text: "hm", Signature: "s"}, convo.Text("seen")}}
			_, err = h.AppendReply(at, convo.Reply{Messages: []convo.Message{signed}})
			require.NoError(t, err)
			mustAppend(t, h, convo.User("and"))
			before, bound := h.Snapshot().Messages(), h.Snapshot().Bound(4)
			require.True(t, bound)
			reply, err := h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) {
				return convo.Reply{}, &convo.PartError{Parts: []convo.RefusedPart{place}, Err: errors.New("no")}
			})
			require.Error(t, err)
			require.NotEmpty(t, reply.Reports)
			assert.NotEqual(t, convo.OutcomeApplied, reply.Reports[len(reply.Reports)-1].Outcome)
			assert.Equal(t, before, h.Snapshot().Messages())
			assert.Equal(t, bound, h.Snapshot().Bound(4))
		})
	}
}

// Requests that are refused at the same time are all sent again.
func TestRecover_PlaceConcurrent(t *testing.T) {
	for range 20 {
		h := manyImages(t, nil)
		at := h.Snapshot()
		_, err := wire.Anthropic{}.Encode(at)
		require.NoError(t, err)
		var all sync.WaitGroup
		for _, place := range []string{"messages.0.content.1", "messages.0.content.1", "messages.4.content.1", "messages.4.content.3"} {
			all.Go(func() {
				retry, _, err := h.Recover(t.Context(), at, errors.New(place+": Could not process image"))
				assert.True(t, retry)
				assert.NoError(t, err)
			})
		}
		all.Wait()
		assert.Less(t, countMedia(h.Snapshot().Messages()), 5)
	}
}

// An own loop proves what was cleared by the usage or the answer that it reports.
func TestRecover_PlaceOwnLoop(t *testing.T) {
	for name, accepted := range map[string]func(h *convo.History){
		"usage": func(h *convo.History) {
			require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 3000, Output: 5}))
		},
		"answer": func(h *convo.History) { mustAppend(t, h, convo.Assistant("answer")) },
		"close":  func(h *convo.History) { require.NoError(t, h.Close()) },
	} {
		var told []convo.Report
		h := historyOf(t, &convo.Options{OnCompaction: func(r convo.Report) { told = append(told, r) }}, convo.User("look", image("one")))
		retry, _, err := h.Recover(t.Context(), h.Snapshot(), errors.New("Could not process image"))
		require.NoError(t, err)
		assert.True(t, retry)
		assert.Empty(t, told)
		accepted(h)
		require.Len(t, told, 1, name)
		assert.Len(t, told[0].Refused, 1)
	}
}

// A part that an edit by hand has replaced by an empty text is in Decisions as a whole message.
func TestResume_EmptyText(t *testing.T) {
	row := convo.User("look", image("x"))
	row.Key = "k1"
	h := historyOf(t, nil, row)
	_, err := h.Apply(h.Snapshot(), convo.Edit{Rewrite: []convo.Rewrite{{ID: 1, Parts: []convo.Part{convo.Text("look"), convo.Text("")}}}})
	require.NoError(t, err)
	data, err := h.Decisions()
	require.NoError(t, err)
	d, err := convo.ReadDecisions(data)
	require.NoError(t, err)
	again, err := convo.Resume(d, rowsOf(row), nil)
	require.NoError(t, err)
	assert.Equal(t, h.Snapshot().Messages(), again.Snapshot().Messages())
}

// A refusal is what a provider in TestRefused_Random refuses, by a text that stands in it.
type refusal struct {
	text, message string
}

// A refusingTalk is a conversation with a provider that refuses some of its parts.
type refusingTalk struct {
	t       *testing.T
	rand    *rand.Rand
	name    string // of the provider
	h       *convo.History
	encoder wire.Encoder // of some of the requests
	rows    []convo.Message
	bad     []refusal
	pinned  map[convo.ID]bool
	told    []convo.Report
	n       int // makes names
	asked   int
	lies    bool // it names another place, always the same; what stands there may be cleared if that helps by chance
	lie     string
	echoes  bool // it writes what a tool has written in front
	forever bool // it refuses again whatever was cleared
}

func (r *refusingTalk) text(kind string) string {
	r.n++
	return fmt.Sprintf("%s number %d of this talk", kind, r.n)
}

// badOrNot returns the text of a part, and sometimes adds it to what is refused.
func (r *refusingTalk) badOrNot(text, message string) {
	if message != "" && r.rand.IntN(5) == 0 {
		r.bad = append(r.bad, refusal{text, message})
	}
}

func (r *refusingTalk) media() convo.Part {
	if r.rand.IntN(4) == 0 {
		m := convo.NewMedia("application/pdf", []byte("%PDF-1.7 "+r.text("document")))
		r.badOrNot(m.Data, map[string]string{"anthropic": "%s: The PDF specified is password protected.", "gemini": ""}[r.name])
		return m
	}
	m := image(r.text("image"))
	r.badOrNot(m.Data, "%s: Could not process image")
	return m
}

// answer returns an answer, and results of its calls.
func (r *refusingTalk) answer() (msgs []convo.Message) {
	m := convo.Message{Role: convo.RoleAssistant, Origin: convo.Origin{Format: r.format().name}}
	if r.rand.IntN(3) == 0 {
		text := r.text("sealed")
		sealed := convo.Reasoning{Text: "hm", Signature: text}
		message := "%s: Invalid `signature` in `thinking` block"
		if r.name == "responses" {
			sealed = convo.Reasoning{ID: fmt.Sprint("rs_", r.n), Encrypted: text}
			message = fmt.Sprintf("The encrypted content for item rs_%d could not be verified.", r.n)
		}
		if r.name == "anthropic" || r.name == "responses" {
			m.Parts = append(m.Parts, sealed)
			r.badOrNot(text, message)
		}
	}
	if r.name == "anthropic" && r.rand.IntN(3) == 0 {
		id, text := fmt.Sprintf("srvtoolu_%016d", r.n), r.text("found")
		m.Parts = append(m.Parts,
			convo.Opaque{Format: "anthropic", JSON: fmt.Sprintf(`{"type":"server_tool_use","id":%q,"name":"web_search","input":{"query":"x"}}`, id)},
			convo.Opaque{Format: "anthropic", JSON: fmt.Sprintf(`{"type":"web_search_tool_result","tool_use_id":%q,"content":[{"type":"web_search_result","encrypted_content":%q,"title":"t","url":"u"}]}`, id, text)})
		r.badOrNot(text, "%s: Invalid `encrypted_content` in `web_search_result` block")
	}
	m.Parts = append(m.Parts, convo.Text(r.text("said")))
	var calls []convo.ToolCall
	for range r.rand.IntN(3) {
		c := convo.ToolCall{ID: fmt.Sprint("call_", r.n), Name: "read", Arguments: fmt.Sprintf(`{"path":%q}`, r.text("path"))}
		if r.rand.IntN(4) == 0 && (r.name == "chat" || r.name == "responses") {
			c.Arguments = fmt.Sprintf(`{"path":%q}`, strings.Repeat("é", 300)+r.text("long"))
			r.badOrNot(c.Arguments, "Invalid '%s': string too long. Expected a string with maximum length 299, but got a string with length 400 instead.")
		}
		calls = append(calls, c)
		m.Parts = append(m.Parts, c)
	}
	msgs = append(msgs, m)
	for _, c := range calls {
		result := convo.ToolResult{CallID: c.ID, Name: c.Name, Parts: []convo.Part{convo.Text(r.text("result"))}}
		for range r.rand.IntN(3) {
			result.Parts = append(result.Parts, r.media())
		}
		msgs = append(msgs, convo.Message{Role: convo.RoleTool, Parts: []convo.Part{result}})
	}
	return msgs
}

// A grammar is a format, and how its provider names places.
type grammar struct {
	name   string
	format wire.Format
	path   func(steps []any) string
}

func (r *refusingTalk) format() grammar {
	return map[string]grammar{
		"anthropic": {wire.FormatAnthropic, wire.Anthropic{}, dotted},
		"chat":      {wire.FormatOpenAIChat, wire.OpenAIChat{}, bracketed},
		"responses": {wire.FormatOpenAIResponses, wire.OpenAIResponses{}, bracketed},
		"gemini":    {wire.FormatGemini, wire.Gemini{}, bracketed},
	}[r.name]
}

// append appends messages with keys.
func (r *refusingTalk) append(msgs ...convo.Message) {
	for i := range msgs {
		r.n++
		msgs[i].Key = fmt.Sprint("key ", r.n)
	}
	ids, err := r.h.Append(msgs...)
	require.NoError(r.t, err)
	r.rows = append(r.rows, msgs...)
	if r.rand.IntN(8) == 0 {
		require.NoError(r.t, r.h.Pin(ids))
	}
}

// send is the provider.
func (r *refusingTalk) send(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
	r.asked++
	g := r.format()
	var req wire.Request
	var err error
	if r.rand.IntN(2) == 0 {
		if r.encoder.Format == nil {
			r.encoder.Format = g.format
		}
		req, err = r.encoder.Encode(s)
		fresh, _ := g.format.Encode(s)
		require.Equal(r.t, string(fresh.Body()), string(req.Body()))
	} else {
		req, err = g.format.Encode(s)
	}
	require.NoError(r.t, err)
	var v any
	require.NoError(r.t, json.Unmarshal(req.Body(), &v))
	for _, bad := range r.bad {
		steps := stepsTo(v, bad.text)
		if steps == nil && !r.forever {
			continue
		}
		message := bad.message
		if strings.Contains(message, "%s") {
			path := g.path(append([]any{}, steps...))
			if r.lies {
				path = r.lie
			}
			message = fmt.Sprintf(message, path)
		}
		if r.echoes {
			message = "messages.1.content.0.tool_result.content: Input should be a valid string, got " + message
		}
		body, _ := json.Marshal(map[string]any{"error": map[string]any{"type": "invalid_request_error", "message": message}})
		return convo.Reply{}, errors.New([]string{"", "400 Bad Request: ", `POST "https://example.com/v1": 400 Bad Request `}[r.rand.IntN(3)] + string(body))
	}
	return convo.Reply{Messages: r.answer()[:1]}, nil
}

// isBad reports whether a part, or its partner, is refused.
func (r *refusingTalk) isBad(p convo.Part, m convo.Message) bool {
	for _, bad := range r.bad {
		switch p := p.(type) {
		case convo.Media:
			if p.Data == bad.text {
				return true
			}
		case convo.ToolCall:
			if p.Arguments == bad.text {
				return true
			}
		}
		if o, ok := p.(convo.Opaque); ok {
			if strings.Contains(o.JSON, bad.text) {
				return true
			}
			for _, q := range m.Parts {
				if partner, ok := q.(convo.Opaque); ok && strings.Contains(partner.JSON, bad.text) {
					var a, b struct{ ID, Tool_use_id string }
					_ = json.Unmarshal([]byte(o.JSON), &a)
					_ = json.Unmarshal([]byte(partner.JSON), &b)
					if a.ID == b.Tool_use_id {
						return true
					}
				}
			}
		}
	}
	return false
}

// check compares the view with the rows: what differs is refused, and not pinned.
func (r *refusingTalk) check() (cleared int) {
	same := func(was, now convo.Part, m convo.Message, id convo.ID) {
		if assert.ObjectsAreEqual(was, now) {
			return
		}
		cleared++
		assert.True(r.t, r.lies || r.isBad(was, m), "%T was cleared: %v", was, now)
		assert.False(r.t, r.pinned[id], "it was pinned")
		_, isText := was.(convo.Text)
		assert.False(r.t, isText, "a text was cleared")
	}
	i := 0
	for _, e := range r.h.Snapshot().All() {
		row := r.rows[i]
		i++
		require.Equal(r.t, row.Key, e.Message.Key)
		require.Len(r.t, e.Message.Parts, len(row.Parts))
		for k, p := range row.Parts {
			was, isResult := p.(convo.ToolResult)
			if !isResult {
				same(p, e.Message.Parts[k], row, e.ID)
				continue
			}
			now := e.Message.Parts[k].(convo.ToolResult)
			require.Len(r.t, now.Parts, len(was.Parts))
			for j := range was.Parts {
				same(was.Parts[j], now.Parts[j], row, e.ID)
			}
		}
	}
	assert.Equal(r.t, i, len(r.rows))
	return cleared
}

// live is one conversation.
func (r *refusingTalk) live() {
	if r.lies && (r.name == "gemini" || r.name == "chat") {
		r.lies = false // media of results move when others are cleared, so that another part stands at the same place
	}
	for range 2 + r.rand.IntN(5) {
		m := convo.User(r.text("asked"))
		for range r.rand.IntN(3) {
			m.Parts = append(m.Parts, r.media())
		}
		r.append(m)
		r.append(r.answer()...)
	}
	r.append(convo.User("go on"))
	for _, e := range r.h.Snapshot().All() {
		r.pinned[e.ID] = e.Pinned
	}
	before := r.h.Snapshot().Messages()
	refusedPinned := false
	for range 20 {
		r.asked = 0
		reply, err := r.h.Do(r.t.Context(), r.send)
		require.LessOrEqual(r.t, r.asked, 4)
		if err == nil {
			for i := range reply.Messages {
				reply.Messages[i].Key = ""
			}
			last, _ := r.h.Snapshot().At(r.h.Snapshot().Len() - 1)
			r.rows = append(r.rows, last.Message)
			r.check()
			r.restart()
			return
		}
		r.check()
		if strings.Contains(err.Error(), "Unpin it first") {
			refusedPinned = true
			break
		}
		if r.lies || r.echoes || r.forever {
			if !slices.ContainsFunc(r.told, func(r convo.Report) bool { return r.Outcome == convo.OutcomeApplied }) {
				assert.Equal(r.t, before, r.h.Snapshot().Messages())
			}
			return
		}
	}
	assert.True(r.t, refusedPinned || r.lies || r.echoes || r.forever, "it is stuck: %v", r.bad)
}

// restart makes the History again from its Decisions and the rows.
func (r *refusingTalk) restart() {
	g := r.format()
	body := func(h *convo.History) string {
		req, err := g.format.Encode(h.Snapshot())
		require.NoError(r.t, err)
		return string(req.Body())
	}
	data, err := r.h.Decisions()
	require.NoError(r.t, err)
	d, err := convo.ReadDecisions(data)
	require.NoError(r.t, err)
	again, err := convo.Resume(d, rowsOf(r.rows...), nil)
	require.NoError(r.t, err)
	assert.Equal(r.t, body(r.h), body(again))
	reports := slices.Clone(r.told)
	slices.Reverse(reports)
	for _, report := range reports {
		if report.Outcome == convo.OutcomeApplied && len(report.Refused) > 0 {
			require.NoError(r.t, r.h.Undo(report))
		}
	}
	assert.Zero(r.t, r.check())
}

// A provider refuses random parts in the words that are published: what it names is cleared, and
// nothing else, and the conversation goes on.
func TestRefused_Random(t *testing.T) {
	for seed := range long.Or(uint64(300), 100_000) {
		rnd := rand.New(rand.NewPCG(seed, 48))
		r := &refusingTalk{t: t, rand: rnd, name: []string{"anthropic", "chat", "responses", "gemini"}[seed%4], pinned: make(map[convo.ID]bool)}
		switch rnd.IntN(8) {
		case 0:
			r.lies = true
			r.lie = r.format().path([]any{[]string{"messages", "input", "contents"}[rnd.IntN(3)], rnd.IntN(6), []string{"content", "parts"}[rnd.IntN(2)], rnd.IntN(3)})
		case 1:
			r.echoes = true
		case 2:
			r.forever = true
		}
		r.h = historyOf(t, &convo.Options{OnCompaction: func(report convo.Report) { r.told = append(r.told, report) }, Key: func(convo.Message) string { r.n++; return fmt.Sprint("key ", r.n) }})
		r.live()
		if t.Failed() {
			t.Fatalf("seed %d, %s", seed, r.name)
		}
	}
}
