package wire_test

import (
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/wire"
)

// encoderFormats are formats, and settings with which requests may begin differently from
// the previous one.
var encoderFormats = func() map[string]wire.Format {
	all := maps.Clone(formats)
	maps.Copy(all, map[string]wire.Format{
		"anthropic 4": wire.Anthropic{UserLast: true, SystemSummary: true, CacheTools: true, Cache: true},
		"converse 4":  wire.Converse{ResultsAlone: true, SystemSummary: true},
		"gemini 5":    wire.Gemini{Model: "gemini-3-x", SystemSummary: true},
		"ollama 3":    wire.OpenAIChat{Dialect: wire.Ollama, Model: "m1", Reasoning: convo.ReplayNone},
		"responses 7": wire.OpenAIResponses{Plain: true, SystemSummary: true, Model: "m1"},
	})
	return all
}()

// blocks are opaque blocks that a format pairs with other blocks, so what is sent depends
// on distant messages.
var blocks = []convo.Opaque{
	{Format: "anthropic", JSON: `{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{}}`},
	{Format: "anthropic", JSON: `{"type":"web_search_tool_result","tool_use_id":"srv_1","content":[]}`},
	{Format: "converse", JSON: `{"document":{"format":"pdf","name":"report","source":{"bytes":"aGVsbG8="}}}`},
	{Format: "converse", JSON: `{"document":{"format":"pdf","name":"a/b","source":{"bytes":"aGVsbG8="}}}`},
	{Format: "converse", JSON: `{"reasoningContent":{"redactedContent":"aGVsbG8="}}`},
	{Format: "converse", JSON: `{"toolUse":{"toolUseId":"srv_2","name":"f","input":{}}}`},
	{Format: "converse", JSON: `{"toolUse":{"toolUseId":"srv_2","name":"f","input":{},"type":"server_tool_use"}}`},
	{Format: "converse", JSON: `{"toolResult":{"toolUseId":"srv_2","content":[]}}`},
	{Format: "converse", JSON: `{"citationsContent":null}`},
	{Format: "gemini", JSON: `{"executableCode":{"language":"PYTHON","code":"1"}}`},
	{Format: "openai-responses", JSON: `{"type":"custom_tool_call","call_id":"ct_1","name":"f","input":"x"}`},
	{Format: "openai-responses", JSON: `{"type":"custom_tool_call_output","call_id":"ct_1","output":"x"}`},
	{Format: "openai-responses", JSON: `{"type":"web_search_call","id":"ws_1","status":"completed"}`},
	{Format: "openai-responses", JSON: `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"ZW5j"}`},
	{Format: "openai-chat", JSON: `{"type":"refusal","refusal":"no"}`},
	{Format: "openai-chat", JSON: `{"type":"refusal","refusal":""}`},
	{Format: "openai-responses", JSON: `{"type":"refusal","refusal":""}`},
	{Format: "anthropic", JSON: `{"role":"system","content":"be brief"}`},
	{Format: "anthropic", JSON: `{"type":"text","text":"marked","cache_control":{"type":"ephemeral"}}`},
	{Format: "gemini", JSON: `{"executableCode":{"language":"PYTHON","code":"1"},"thoughtSignature":"c2ln"}`},
	{Format: "openai-responses", JSON: `{"type":"convo_fields","phase":"commentary","namespace":"ns"}`},
	{Format: "anthropic", JSON: `{"type":"code_execution_tool_result","tool_use_id":"srv_1","content":{"type":"code_execution_result","stdout":"4","stderr":"","return_code":0}}`},
	{Format: "anthropic", JSON: `{"citations":[{"type":"web_search_result_location","cited_text":"c","encrypted_index":"x","title":"A","url":"https://a"}]}`},
	{Format: "openai-responses", JSON: `{"annotations":[{"type":"url_citation","start_index":0,"end_index":1,"url":"https://a","title":"A"}]}`},
	{Format: "converse", JSON: `{"citationsContent":{"citations":[{"title":"A"}]}}`},
	{Format: "converse", JSON: `{"cachePoint":{"type":"default"}}`},
	wire.CacheMark(0), wire.CacheMark(time.Hour),
}

// extra appends a message of a kind that step does not make.
func (g *generator) extra() {
	m := convo.Message{Role: convo.RoleAssistant, Origin: g.origins[g.n(len(g.origins))]}
	if g.n(4) == 0 {
		m = convo.Message{Role: convo.RoleUser}
	}
	for range 1 + g.n(3) {
		switch {
		case g.n(3) > 0:
			m.Parts = append(m.Parts, blocks[g.n(len(blocks))])
		case m.Role == convo.RoleAssistant:
			m.Parts = append(m.Parts, convo.Reasoning{Text: "hm", ID: "rs_7", Signature: "msg_7", Encrypted: g.pick("", "ZW5j")})
		default:
			m.Parts = append(m.Parts, convo.Media{MIME: "application/pdf", Data: "aGVsbG8="})
		}
	}
	g.append(m)
}

// some returns the names of some formats, others for each seed, or all in the long form.
func some(names []string, seed int) (list []string) {
	for i, name := range names {
		if long.On() || (i+seed)%6 == 0 {
			list = append(list, name)
		}
	}
	return list
}

// An Encoder returns the same bytes as its Format, regardless of changes to the
// conversation between two requests and to the bytes returned before.
func TestEncoder_EncodesAsItsFormat(t *testing.T) {
	names := slices.Sorted(maps.Keys(encoderFormats))
	var requests, messages, lost int
	did := map[int]int{}
	for seed := range long.Or[uint64](15, 250) {
		rng := rand.New(rand.NewPCG(seed, 11))
		h, err := convo.New(&convo.Options{Roles: convo.Relaxed(), Strategy: strategies[rng.IntN(len(strategies))]})
		require.NoError(t, err)
		g := &generator{rng: rng, h: h, origins: origins}
		encoders := map[string]*wire.Encoder{}
		some := some(names, int(seed))
		for _, name := range some {
			encoders[name] = &wire.Encoder{Format: encoderFormats[name]}
		}
		var kept []*convo.Snapshot
		var given []wire.Request
		var bodies []string // the bodies of given
		for range rng.IntN(3) {
			mustAppend(t, h, convo.System(g.text()+"."))
			kept = append(kept, h.Snapshot())
		}
		for range 24 {
			op := rng.IntN(16)
			did[op]++
			s := (*convo.Snapshot)(nil)
			switch op {
			case 0:
				if len(kept) > 0 && h.Rollback(kept[rng.IntN(len(kept))]) == nil {
					did[-1]++
				}
			case 1:
				_, _ = h.Compact(t.Context(), "")
			case 2:
				disturb(t, g)
			case 3:
				_ = h.SetSystem(slices.Repeat([]convo.Message{g.system()}, rng.IntN(3))...)
			case 4:
				_ = h.SetEphemeral(convo.User("it is "+g.text()), convo.User("so"))
			case 5:
				_ = h.SetEphemeral()
			case 6: // an old snapshot, or one that was never in the History
				if len(kept) > 0 {
					s = kept[rng.IntN(len(kept))]
				}
				if s != nil && s.Len() > 1 && rng.IntN(2) == 0 {
					e, _ := s.At(rng.IntN(s.Len()))
					if with, err := s.With(convo.Edit{Rewrite: []convo.Rewrite{{ID: e.ID, Parts: g.rewritten(e.Message)}}}); err == nil {
						s = with
					}
				}
			case 7: // another conversation, which may break every rule
				msgs := h.Snapshot().Messages()
				rng.Shuffle(len(msgs), func(i, j int) {
					if rng.IntN(4) == 0 {
						msgs[i], msgs[j] = msgs[j], msgs[i]
					}
				})
				s = convo.NewSnapshot(msgs)
			case 8, 9:
				g.extra()
			default:
				for range rng.IntN(5) {
					g.step()
				}
			}
			if s == nil {
				s = h.Snapshot()
				kept = append(kept, s)
			}
			for _, name := range some {
				want, wantErr := encoderFormats[name].Encode(s)
				got, err := encoders[name].Encode(s)
				require.Equal(t, wantErr, err, "seed %d, %s", seed, name)
				if err == nil && (string(want.Body()) != string(got.Body()) || want.NeedsTools != got.NeedsTools || want.NoThinking != got.NoThinking || len(want.Messages) != len(got.Messages)) {
					t.Fatalf("seed %d, %s, op %d: %v %v\n%s\n%s", seed, name, op, got.NeedsTools, got.NoThinking, want.Body(), got.Body())
				}
				if !slices.Equal(want.Lost, got.Lost) {
					require.Equal(t, want.Lost, got.Lost, "seed %d, %s, op %d", seed, name, op)
				}
				lost += len(got.Lost)
				requests++
				messages += len(got.Messages)
				if err == nil && rng.IntN(3) == 0 {
					given = append(given, got)
					bodies = append(bodies, string(want.Body()))
				}
				if err == nil && rng.IntN(3) == 0 { // the caller owns everything but the bytes
					mine := got
					if rng.IntN(2) == 0 {
						mine.Messages = slices.Clone(got.Messages)
					}
					for i, m := range mine.Messages {
						mine.Messages[i] = append(m, "oops"...)
					}
					_ = append(got.System, "oops"...)
					_ = append(mine.Messages, []byte("oops"))
					if len(given) > 0 && len(mine.Messages) > 0 && len(given[len(given)-1].Messages) > 0 && &given[len(given)-1].Messages[0] == &mine.Messages[0] {
						given, bodies = given[:len(given)-1], bodies[:len(bodies)-1]
					}
				}
			}
		}
		for i, r := range given { // returned bytes were not changed
			require.Equal(t, bodies[i], string(r.Body()), "seed %d", seed)
		}
	}
	t.Logf("%d requests, %d messages in them, operations %v", requests, messages, did)
	assert.Positive(t, did[-1])
	assert.Greater(t, lost, requests)
	assert.Greater(t, messages, 4*requests)
}

// A custom format, and a format that embeds a format of the package.
type shout struct{ wire.Anthropic }

func (f shout) Encode(s *convo.Snapshot) (wire.Request, error) {
	r, err := f.Anthropic.Encode(s)
	r.System = []byte(`"LOUD"`)
	return r, err
}

func TestEncoder_OtherFormats(t *testing.T) {
	h := historyOf(t, convo.User("hello"))

	var none wire.Encoder
	_, err := none.Encode(h.Snapshot())
	var wrong *convo.ValueError
	require.ErrorAs(t, err, &wrong)
	assert.Equal(t, "Encoder.Format", wrong.Name)

	for _, f := range []wire.Format{shout{}, &shout{}} {
		r := mustEncode(t, (&wire.Encoder{Format: f}), h.Snapshot())
		assert.Equal(t, `"LOUD"`, string(r.System))
	}
	for name, f := range formats {
		e := &wire.Encoder{Format: f}
		_, err := e.Encode(nil)
		require.ErrorIs(t, err, wire.ErrEmpty, name)
		_, err = e.Encode(new(convo.Snapshot))
		require.ErrorIs(t, err, wire.ErrEmpty, name)
		r := mustEncode(t, e, h.Snapshot(), name)
		assert.Empty(t, f.Check(r.Body()), name)
	}

	e := &wire.Encoder{Format: wire.OpenAIChat{}}
	for _, f := range []wire.Format{wire.OpenAIChat{}, wire.Anthropic{}, &wire.Gemini{}, wire.OpenAIChat{Developer: true}, shout{}, wire.OpenAIChat{}} {
		e.Format = f
		want := mustEncode(t, f, h.Snapshot())
		got := mustEncode(t, e, h.Snapshot())
		assert.Equal(t, want, got, "%T", f)
	}
}

func TestEncoder_ConcurrentUse(t *testing.T) {
	for _, name := range some(slices.Sorted(maps.Keys(encoderFormats)), 0) {
		f := encoderFormats[name]
		rng := rand.New(rand.NewPCG(7, 7))
		h := relaxedOf(t)
		g := &generator{rng: rng, h: h, origins: origins}
		var list []*convo.Snapshot
		for range 30 {
			g.step()
			g.extra()
			list = append(list, h.Snapshot())
		}
		e := &wire.Encoder{Format: f}
		var wg sync.WaitGroup
		for n := range 4 {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(n), 1))
				for range long.Or(5, 30) {
					s := list[rng.IntN(len(list))]
					got, err := e.Encode(s)
					want, wantErr := f.Encode(s)
					if !assert.Equal(t, wantErr, err, name) || !assert.Equal(t, string(want.Body()), string(got.Body()), name) {
						return
					}
					for i, m := range got.Messages {
						got.Messages[i] = append(m, "oops"...)
					}
				}
			})
		}
		wg.Wait()
	}
}

// requireSameBytes checks that an Encoder writes the request that its format writes, or
// returns the same error.
func requireSameBytes(t *testing.T, f wire.Format, e *wire.Encoder, s *convo.Snapshot, about ...any) {
	t.Helper()
	want, wantErr := f.Encode(s)
	got, err := e.Encode(s)
	require.Equal(t, wantErr, err, about...)
	require.Equal(t, string(want.Body()), string(got.Body()), about...)
}

// An Encoder goes back to any point of a conversation, also to results without the user
// message after them, and to the message after a summary.
func TestEncoder_GoesBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	g := &generator{rng: rng, h: relaxedOf(t), origins: origins}
	var list []*convo.Snapshot
	for range long.Or(100, 250) {
		g.step()
		list = append(list, g.h.Snapshot())
	}
	call := convo.ToolCall{ID: "c1", Name: "f", Arguments: "{}"}
	h := relaxedOf(t, convo.User("go"), convo.Assistant("", call), convo.Result(call, "done"), users(convo.Media{MIME: "image/png", Data: "aGVsbG8="}))
	short := h.Snapshot()
	mustAppend(t, h, convo.User(strings.Repeat("and so on ", 10)))
	half := []*convo.Snapshot{h.Snapshot(), short, h.Snapshot(), short}

	h = historyOf(t, convo.System("guide"), convo.User("q"), convo.Assistant("a"), convo.User("p"), convo.Assistant("b"), convo.User("r"))
	mustApply(t, h, convo.Edit{Drop: []convo.ID{2, 3}, Summary: &convo.Summary{Text: "so far"}})
	rewritten := []*convo.Snapshot{h.Snapshot()}
	for _, text := range []string{"first", "second"} {
		mustApply(t, h, convo.Edit{Rewrite: []convo.Rewrite{{ID: 4, Parts: []convo.Part{convo.Text(text)}}}})
		rewritten = append(rewritten, h.Snapshot())
	}
	for name, f := range encoderFormats {
		far := []*convo.Snapshot{}
		for range long.Or(2, 80) {
			far = append(far, list[len(list)-1], list[rng.IntN(len(list))])
		}
		for _, snapshots := range [][]*convo.Snapshot{far, half, rewritten} {
			e := &wire.Encoder{Format: f}
			for _, s := range snapshots {
				requireSameBytes(t, f, e, s, name)
			}
		}
	}
}

// A pointer to a format of this package counts as the format, even after the format has
// changed.
func TestEncoder_Pointers(t *testing.T) {
	h := historyOf(t, convo.System("s"), convo.User("u"), convo.Assistant("a"), convo.User("v"))
	first := h.Snapshot()
	mustAppend(t, h, convo.Assistant("b"), convo.User("w"))
	for _, f := range []wire.Format{&wire.Anthropic{}, &wire.Converse{}, &wire.Gemini{}, &wire.OpenAIChat{}, &wire.OpenAIResponses{}} {
		e := &wire.Encoder{Format: f}
		a := mustEncode(t, e, first)
		b := mustEncode(t, e, h.Snapshot())
		want := mustEncode(t, f, h.Snapshot())
		assert.Equal(t, string(want.Body()), string(b.Body()), "%T", f)
		i := len(a.Messages) - 3 // the first message that is not system text
		assert.Same(t, &a.Messages[i][0], &b.Messages[i][0], "%T: encoded again", f)
	}

	f := &wire.OpenAIChat{}
	e := &wire.Encoder{Format: f}
	before := mustEncode(t, e, first)
	f.Developer = true
	after := mustEncode(t, e, first)
	want := mustEncode(t, f, first)
	assert.Equal(t, string(want.Body()), string(after.Body()))
	assert.NotEqual(t, string(before.Body()), string(after.Body()))

	for _, f := range []wire.Format{(*wire.Anthropic)(nil), (*wire.Converse)(nil), (*wire.Gemini)(nil), (*wire.OpenAIChat)(nil), (*wire.OpenAIResponses)(nil)} {
		for _, s := range []*convo.Snapshot{nil, first} {
			_, err := (&wire.Encoder{Format: f}).Encode(s)
			var wrong *convo.ValueError
			require.ErrorAs(t, err, &wrong, "%T", f)
			assert.Equal(t, "Encoder.Format", wrong.Name)
			assert.Contains(t, wrong.Error(), "(nil)")
		}
	}

	assert.Equal(t, wire.OverheadsFor(wire.OpenAIChat{Dialect: wire.DeepSeek}, "m"), wire.OverheadsFor(&wire.OpenAIChat{Dialect: wire.DeepSeek}, "m"))
	assert.NotEqual(t, wire.OverheadsFor(wire.OpenAIChat{Dialect: wire.DeepSeek}, "m"), wire.OverheadsFor((*wire.OpenAIChat)(nil), "m"))
}

// An Encoder keeps the amount of memory that its documentation states: at most about
// three times the bytes of the request.
func TestEncoder_Memory(t *testing.T) {
	s := conversationOf(10).Snapshot()
	for _, name := range some(slices.Sorted(maps.Keys(formats)), 0) {
		f := formats[name]
		req := mustEncode(t, f, s)
		body := len(req.Body())
		assert.InDelta(t, 21_000, body, 6_000, name)
		req = wire.Request{}
		list := make([]*wire.Encoder, long.Or(10, 50))
		var before, after runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range list {
			list[i] = &wire.Encoder{Format: f}
			mustEncode(t, list[i], s)
		}
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&after)
		kept := (int(after.HeapAlloc) - int(before.HeapAlloc)) / len(list)
		assert.Less(t, kept, 7*body/2, name)
		assert.Greater(t, kept, body, name)
		runtime.KeepAlive(list)
	}
}
