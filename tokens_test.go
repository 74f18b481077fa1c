package convo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
)

func TestTokens_OfEachPart(t *testing.T) {
	c := convo.ToolCall{ID: "id1", Name: "name", Arguments: `{"a":1}`}
	u := convo.User("u")
	for _, tt := range []struct {
		name string
		msgs []convo.Message
		want int // of the last message, with the default overheads
	}{
		{"text", []convo.Message{convo.User("12345")}, 4 + 5},
		{"texts", []convo.Message{convo.User("12345", convo.Text("678"))}, 4 + 8},
		{"reasoning", []convo.Message{u, {Role: convo.RoleAssistant, Parts: []convo.Part{convo.Reasoning{ID: "no", Text: "123", Signature: "45", Encrypted: "6"}}}}, 4 + 6},
		{"call", []convo.Message{u, convo.Assistant("hi", c)}, 4 + 2 + 8 + 3 + 4 + 7},
		{"result", []convo.Message{u, convo.Assistant("", c), convo.Result(c, "12345")}, 4 + 4 + 3 + 4 + 5},
		{"result without id and name", []convo.Message{u, convo.Assistant("", c), resultOf(convo.ToolResult{Parts: []convo.Part{convo.Text("12345")}})}, 4 + 4 + 3 + 4 + 5},
		{"error result", []convo.Message{u, convo.Assistant("", c), convo.ResultError(c, errors.New("123"))}, 4 + 4 + 3 + 4 + 3},
		{"opaque", []convo.Message{convo.User("", convo.Opaque{Format: "f", JSON: `{"x":1}`})}, 4 + 7},
		{"image", []convo.Message{convo.User("", convo.NewMedia("image/png", make([]byte, 3<<20)))}, 4 + 1600},
		{"document", []convo.Message{convo.User("", convo.Media{MIME: "application/pdf", URL: "https://example.com/a.pdf"})}, 4 + 3000},
		{"image in a result", []convo.Message{u, convo.Assistant("", c), resultOf(convo.ToolResult{CallID: "id1", Name: "name", Parts: []convo.Part{
			convo.Text("12"), convo.NewMedia("image/jpeg", make([]byte, 3<<20)), convo.Opaque{Format: "f", JSON: "1"}}})}, 4 + 4 + 3 + 4 + 2 + 1600 + 1},
		{"meta and origin are free", []convo.Message{{Role: convo.RoleUser, Meta: "xyz", Origin: convo.Origin{Model: "m"}, Parts: []convo.Part{convo.Text("1")}}}, 4 + 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := historyOf(t, &convo.Options{Tokenizer: byBytes}, tt.msgs...)
			e, ok := h.Snapshot().At(h.Len() - 1)
			require.True(t, ok)
			assert.Equal(t, tt.want, e.Tokens)
			assert.Equal(t, rawTotal(h.Snapshot()), h.Snapshot().Tokens())
			assert.Equal(t, h.Snapshot().Tokens(), h.Tokens().Tokens)
		})
	}
}

func TestTokens_Overheads(t *testing.T) {
	c := callOf("c")
	msgs := []convo.Message{convo.User("u", convo.NewMedia("image/png", []byte("x"))), convo.Assistant("", c), convo.Result(c, "")}
	texts := 1 + 2*len("c"+"tool") + len("{}")
	for _, tt := range []struct {
		name string
		over convo.Overheads
		want int
	}{
		{"default", convo.Overheads{}, 3*4 + 8 + 4 + 1600},
		{"other", convo.Overheads{Message: 10, Call: 20, Result: 30, Media: func(convo.Media) int { return 5 }}, 3*10 + 20 + 30 + 5},
		{"none", convo.Overheads{Message: -1, Call: -1, Result: -1, Media: func(convo.Media) int { return -7 }}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := historyOf(t, &convo.Options{Tokenizer: byBytes, Overheads: tt.over}, msgs...)
			assert.Equal(t, tt.want+texts, h.Tokens().Tokens)
		})
	}
}

func TestTokens_HeuristicIsTheDefault(t *testing.T) {
	text := strings.Repeat("one word more ", 50)
	h := historyOf(t, nil, convo.User(text))
	assert.Equal(t, 4+convo.Heuristic{}.CountTokens(text), h.Tokens().Tokens)
	big := historyOf(t, nil, convo.User("look", convo.NewMedia("image/png", make([]byte, 3<<20))))
	assert.Less(t, big.Tokens().Tokens, 10_000, "an image is not counted by its bytes")
}

// The raw total is the sum of what is in the view, whatever happened.
func TestTokens_TotalIsTheSum(t *testing.T) {
	h := tour(t, bare())
	total := func(ephemeral int) {
		t.Helper()
		assert.Equal(t, rawTotal(h.Snapshot())+ephemeral, h.Snapshot().Tokens())
		assert.Equal(t, h.Snapshot().Tokens(), h.Tokens().Tokens)
		assert.Equal(t, h.Tokens().Tokens, h.Status().Tokens)
	}
	total(0)
	at := h.Snapshot()
	require.NoError(t, h.SetEphemeral(convo.User("rain")))
	total(4)
	require.NoError(t, h.SetSystem(convo.System("one"), convo.System("two")))
	total(4)
	apply(t, h, convo.Edit{Drop: []convo.ID{2}, Clear: []convo.Clear{{ID: 4}}, Summary: &convo.Summary{Text: "s"}})
	total(4)
	mustAppend(t, h, convo.Assistant("", callOf("c")))
	_, err := h.AnswerOpenCalls("")
	require.NoError(t, err)
	total(4)
	mustAppend(t, h, convo.User("v"), convo.Assistant("x"))
	apply(t, h, convo.Edit{Drop: []convo.ID{9}})
	total(4)
	require.NoError(t, h.Rollback(at))
	total(4)
	rewind(t, h)
	total(4)
	require.NoError(t, h.SetEphemeral())
	total(0)
}

func TestTokens_UpperIsAnEighthMore(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 2, 7: 8, 8: 9, 9: 11, 16: 18, 100: 113, 8000: 9000} {
		h := historyOf(t, &convo.Options{Limits: convo.Limits{Tools: n}})
		assert.Equal(t, convo.Estimate{Tokens: n, Upper: want}, h.Tokens())
		assert.Equal(t, []int{n, want}, []int{h.Status().Tokens, h.Status().Upper})
	}
}

func TestTokens_EachTextIsCountedOnce(t *testing.T) {
	counted := map[string]int{}
	opts := &convo.Options{Tokenizer: convo.TokenizerFunc(func(s string) int { counted[s]++; return len(s) })}
	h := historyOf(t, opts, convo.User("alpha"), convo.Assistant("beta"))
	for range 10 {
		h.Tokens()
		h.Status()
		h.Snapshot().Tokens()
	}
	mustAppend(t, h, convo.User("gamma"))
	_, err := h.SplicePrefix(h.Snapshot(), 1, "delta")
	require.NoError(t, err)
	for _, text := range []string{"alpha", "beta", "gamma", "delta"} {
		assert.Equal(t, 1, counted[text], text)
	}
	assert.Zero(t, counted[""], "an empty text is not asked about")
}

func TestTiktoken_Models(t *testing.T) {
	o200k, err := convo.Tiktoken("o200k_base")
	require.NoError(t, err)
	cl100k, err := convo.Tiktoken("cl100k_base")
	require.NoError(t, err)
	require.NotEqual(t, o200k, cl100k)

	for want, models := range map[convo.Tokenizer][]string{
		o200k: {
			"o200k_harmony",
			"gpt-5", "gpt-5-mini", "gpt-5-2025-08-07", "gpt-5.1", "gpt-5.1-codex", "gpt-5-codex",
			"gpt-4.5-preview", "gpt-4.1", "gpt-4.1-nano", "gpt-4o", "gpt-4o-mini", "gpt-4o-2024-08-06",
			"chatgpt-4o-latest", "o1", "o1-preview", "o3", "o3-mini", "o3-pro", "o4-mini", "gpt-oss-120b",
			"ft:gpt-4o-mini:org::id", "ft:gpt-4.1-2025-04-14:org:my/name:id",
			"openai/gpt-4o", "openrouter/openai/gpt-5", "openai/gpt-4o:extended", "gpt-oss:20b",
			"openai/ft:gpt-4o:org::id", "ft:openai/gpt-4o:x", "openai.gpt-oss-20b-1:0", "openai:gpt-5", "GPT-4o", "gpt-4-1-mini", "gpt-4-5-preview",
		},
		cl100k: {
			"gpt-4", "gpt-4-turbo", "gpt-4-0613", "gpt-4-32k", "gpt-4-1106-preview",
			"gpt-3.5", "gpt-3.5-turbo", "gpt-3.5-turbo-16k", "gpt-35-turbo", "azure/gpt-35-turbo",
			"text-embedding-3-small", "text-embedding-3-large", "text-embedding-ada-002",
			"davinci-002", "ft:gpt-3.5-turbo:org::id", "ft:gpt-4:org::id", "ft:babbage-002:org::id",
		},
	} {
		for _, model := range models {
			got, err := convo.Tiktoken(model)
			if assert.NoError(t, err, model) {
				assert.Equal(t, want, got, model)
			}
		}
	}
}

func TestTiktoken_UnknownModel(t *testing.T) {
	for _, model := range []string{
		"", "gpt", "gpt-", "gpt-2", "davinci", "text-davinci-003", "text-embedding-30", "claude-3", "anthropic/claude-sonnet-4",
		"gemini-2.5-pro", "gpt-40x", "gpt-4ox", "gpt-4.2", "gpt-50", "gpt-6", "o100", "o", "o2", "ft:", "ft:claude:org", "openai/", "p50k_base",
		"cl100k_base-2", "openai:", "ft:ft:", "openai.", "claude:gpt-4o",
	} {
		tok, err := convo.Tiktoken(model)
		assert.Nil(t, tok, model)
		var value *convo.ValueError
		if assert.ErrorAs(t, err, &value, model) {
			assert.Equal(t, model, value.Value)
			assert.ErrorContains(t, err, "gpt-4o")
			assert.ErrorContains(t, err, "Heuristic")
			assert.ErrorContains(t, err, "TokenizerFunc")
		}
	}
}

// The error quotes only the beginning of a long name.
func TestTiktoken_LongName(t *testing.T) {
	_, err := convo.Tiktoken(strings.Repeat("é", 3<<20))
	require.Error(t, err)
	assert.Less(t, len(err.Error()), 500)
}

func TestTiktoken_Counts(t *testing.T) {
	// Counts of OpenAI's own code.
	for _, tt := range []struct {
		text          string
		cl100k, o200k int
	}{
		{"", 0, 0},
		{"Hello, world", 3, 3},
		{"<|endoftext|>", 7, 7},
		{"don't HTTPServer", 4, 3},
	} {
		for model, want := range map[string]int{"gpt-4": tt.cl100k, "gpt-4o": tt.o200k} {
			tok, err := convo.Tiktoken(model)
			require.NoError(t, err)
			assert.Equal(t, want, tok.CountTokens(tt.text), "%s of %q", model, tt.text)
		}
	}
}

func TestTiktoken_DoesNotAllocate(t *testing.T) {
	// Of words that are tokens: others need working space, which a collection
	// or the race detector may take away.
	text := strings.Repeat("The rain in Spain stays mainly in the plain, 15 of 20 times.\n", 20)
	for _, model := range []string{"gpt-4", "gpt-4o"} {
		tok, err := convo.Tiktoken(model)
		require.NoError(t, err)
		tok.CountTokens(text)
		assert.Zero(t, testing.AllocsPerRun(100, func() { tok.CountTokens(text) }), model)
	}
}

func TestTiktoken_InHistory(t *testing.T) {
	tok, err := convo.Tiktoken("gpt-4o")
	require.NoError(t, err)
	h := historyOf(t, &convo.Options{Tokenizer: tok, Overheads: convo.Overheads{Message: -1}}, convo.User("Hello, world"))
	assert.Equal(t, 3, h.Tokens().Tokens)

	var counts sync.WaitGroup
	for range 4 {
		counts.Go(func() {
			for range 100 {
				assert.Equal(t, 3, tok.CountTokens("Hello, world"))
			}
		})
	}
	counts.Wait()
}

// The vocabularies are linked into programs that call Tiktoken and into no
// others, in a compact form.
func TestTiktoken_BinarySize(t *testing.T) {
	long.Only(t, "builds two programs")
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skipf("builds two programs, and there is no go command: %v", err)
	}
	root, err := filepath.Abs(".")
	require.NoError(t, err)
	size := func(program string) int64 {
		dir := t.TempDir()
		write := func(name, content string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
		}
		write("go.mod", "module program\n\ngo 1.26\n\nrequire github.com/seed-c1b73e60/convo v0.0.0\n\nreplace github.com/seed-c1b73e60/convo => "+filepath.ToSlash(root)+"\n")
		write("main.go", program)
		cmd := exec.CommandContext(t.Context(), goTool, "build", "-ldflags=-s -w", "-o", "program.exe", ".")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "GOPROXY=off")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		info, err := os.Stat(filepath.Join(dir, "program.exe"))
		require.NoError(t, err)
		return info.Size()
	}
	const head = "package main\n\nimport \"github.com/seed-c1b73e60/convo\"\n\nfunc main() {\n\th, err := convo.New(nil)\n\tprintln(h, err)\n"
	without := size(head + "}\n")
	with := size(head + "\ttok, err := convo.Tiktoken(\"gpt-4o\")\n\tprintln(tok.CountTokens(\"text\"), err)\n}\n")
	t.Logf("%d bytes without, %d more with", without, with-without)
	assert.Less(t, without, int64(6<<20))
	assert.Greater(t, with-without, int64(1<<20), "so that the first figure says that they were left out")
	assert.LessOrEqual(t, with-without, int64(3<<19))
}

// The arguments of a call, and reasoning, count like text.
func TestTokens_ArgumentsAndReasoningCount(t *testing.T) {
	big := convo.ToolCall{ID: "c", Name: "write", Arguments: `{"text":"` + strings.Repeat("lorem ipsum ", 34_000) + `"}`}
	opts := &convo.Options{Limits: convo.Limits{Window: 60_000}, Strategy: convo.Truncate{}}
	h := historyOf(t, opts, convo.User("u"), convo.Assistant("", big), convo.Result(big, "ok"), convo.Assistant("done"), convo.User("next"))
	require.Greater(t, h.Status().Upper, 60_000)
	r, err := h.CompactIfNeeded(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Equal(t, []convo.ID{1, 5}, idsOf(h.Snapshot()))

	thought := convo.Message{Role: convo.RoleAssistant, Parts: []convo.Part{convo.Reasoning{Text: strings.Repeat("hm, ", 100_000)}, convo.Text("so")}}
	h = historyOf(t, opts, convo.User("u"), thought, convo.User("next"))
	assert.Greater(t, h.Status().Upper, 60_000, "reasoning too")
}

// What Overheads.Reasoning says is not sent weighs nothing: in the History, in its
// breakdown, after a rewrite and after a load.
func TestTokens_ReasoningThatIsNotSent(t *testing.T) {
	c := callOf("c")
	thinks := func(text string, calls ...convo.ToolCall) convo.Message {
		m := convo.Assistant(text, calls...)
		m.Parts = append([]convo.Part{convo.Reasoning{Text: "0123456789"}}, m.Parts...)
		return m
	}
	msgs := []convo.Message{
		convo.User("u"), thinks("a"), // no tool is called in this turn
		convo.User("u"), thinks("b"), thinks("", c), convo.Result(c, "r"), thinks("d"), thinks("e"),
		convo.User("u"), thinks("f"),
	}
	for _, tt := range []struct {
		replay convo.Replay
		thinks []bool // which of the messages of the assistant count
	}{
		{convo.ReplayDefault, []bool{true, true, true, true, true, true}},
		{convo.ReplayAll, []bool{true, true, true, true, true, true}},
		{convo.ReplayTools, []bool{false, false, true, true, true, false}},
		{convo.ReplayNone, []bool{false, false, false, false, false, false}},
	} {
		t.Run(fmt.Sprint(tt.replay), func(t *testing.T) {
			opts := &convo.Options{Tokenizer: byBytes, Overheads: convo.Overheads{Reasoning: tt.replay}, Roles: convo.Relaxed()}
			check := func(h *convo.History, text int) {
				t.Helper()
				s, i, sum := h.Snapshot(), 0, 0
				for _, e := range s.All() {
					if e.Message.Role != convo.RoleAssistant {
						continue
					}
					want := 4 + text
					if len(e.Message.ToolCalls()) > 0 {
						want = 4 + 8 + len("c"+"tool"+"{}")
					}
					if tt.thinks[i] {
						want, sum = want+10, sum+10
					}
					assert.Equal(t, want, e.Tokens, "%d", e.ID)
					assert.Zero(t, e.Missing)
					i++
				}
				assert.Equal(t, sum, s.Breakdown().Reasoning)
				assert.Equal(t, rawTotal(s), s.Tokens())
			}
			alone := historyOf(t, opts, msgs...)
			check(alone, 1)
			batch, err := convo.New(opts)
			require.NoError(t, err)
			_, err = batch.Append(msgs...)
			require.NoError(t, err)
			check(batch, 1)
			again, err := convo.Restore(batch.Snapshot(), opts)
			require.NoError(t, err)
			check(again, 1)

			// A batch whose results are spilled is checked twice before it is appended.
			spilling := *opts
			spilling.MaxResult, spilling.Spill = 64, func(context.Context, convo.ToolResult) (string, error) { return "ref", nil }
			twice, err := convo.New(&spilling)
			require.NoError(t, err)
			long := slices.Clone(msgs)
			long[5] = convo.Result(c, strings.Repeat("long ", 100))
			_, err = twice.Append(long...)
			require.NoError(t, err)
			check(twice, 1)

			var e convo.Edit
			for _, entry := range batch.Snapshot().All() {
				if m := entry.Message; m.Role == convo.RoleAssistant && len(m.ToolCalls()) == 0 {
					e.Rewrite = append(e.Rewrite, convo.Rewrite{ID: entry.ID, Parts: []convo.Part{m.Parts[0], convo.Text("other")}})
				}
			}
			r, err := batch.Apply(batch.Snapshot(), e)
			require.NoError(t, err)
			check(batch, 5)
			again, err = convo.Restore(batch.Snapshot(), opts)
			require.NoError(t, err)
			check(again, 5)
			require.NoError(t, batch.Undo(r))
			check(batch, 1)
		})
	}
	_, err := convo.New(&convo.Options{Overheads: convo.Overheads{Reasoning: 4}})
	value, ok := errors.AsType[*convo.ValueError](err)
	require.True(t, ok)
	assert.Equal(t, "Options.Overheads.Reasoning", value.Name)
}

// What was sent with the reasoning of a turn goes on being counted when the calls of
// the turn have been dropped, also after a load.
func TestTokens_ReasoningAfterDroppedCalls(t *testing.T) {
	opts := &convo.Options{Overheads: convo.Overheads{Reasoning: convo.ReplayTools}}
	call := convo.ToolCall{ID: "c", Name: "f", Arguments: "{}"}
	h := historyOf(t, opts, convo.User("u"), convo.Assistant("", call), convo.Result(call, "r"),
		convo.Assistant("a").WithReasoning(convo.Reasoning{Text: "one two three four five six"}), convo.User("v"))
	apply(t, h, convo.Edit{Drop: []convo.ID{2, 3}})
	data, err := json.Marshal(h.Snapshot())
	require.NoError(t, err)
	again, err := convo.Restore(snapshotOf(t, string(data)), opts)
	require.NoError(t, err)
	assert.Equal(t, h.Tokens(), again.Tokens())
	assert.Equal(t, h.Snapshot().Tokens(), again.Snapshot().Tokens())
}

// Count agrees with Append on reasoning that is sent with tool calls only.
func TestCount_Reasoning(t *testing.T) {
	c := callOf("c")
	thinks := func(calls ...convo.ToolCall) convo.Message {
		return convo.Assistant("a", calls...).WithReasoning(convo.Reasoning{Text: "0123456789"})
	}
	for _, replay := range []convo.Replay{convo.ReplayAll, convo.ReplayTools, convo.ReplayNone} {
		h := historyOf(t, &convo.Options{Tokenizer: byBytes, Overheads: convo.Overheads{Reasoning: replay}, Roles: convo.Relaxed()})
		for _, m := range []convo.Message{thinks(), convo.User("u"), thinks(), thinks(c), convo.Result(c, "r"), thinks(), convo.User("u"), thinks()} {
			n, err := h.Count(m)
			require.NoError(t, err)
			assert.Equal(t, n, find(t, h, mustAppend(t, h, m)).Tokens, "%v %v", replay, m)
		}
	}
}

// Of imported messages, those behind the calls of a turn count with their reasoning.
func TestTokens_ReasoningOfAnImport(t *testing.T) {
	opts := &convo.Options{Overheads: convo.Overheads{Reasoning: convo.ReplayTools}}
	call := convo.ToolCall{ID: "c", Name: "f", Arguments: "{}"}
	msgs := []convo.Message{
		convo.User("u"), convo.Assistant("", call), convo.Result(call, "r"),
		convo.Assistant("a").WithReasoning(convo.Reasoning{Text: "one two three four five six"}),
	}
	h, err := convo.Restore(convo.NewSnapshot(msgs), opts)
	require.NoError(t, err)
	assert.Equal(t, historyOf(t, opts, msgs...).Tokens(), h.Tokens())
}

// Reasoning that is not sent would spoil the ratio that usage reports show: after turns
// with much of it, a large message would be underestimated.
func TestUpper_AfterReasoningThatIsNotSent(t *testing.T) {
	for _, replay := range []convo.Replay{convo.ReplayTools, convo.ReplayNone} {
		opts := &convo.Options{Tokenizer: byBytes, Overheads: convo.Overheads{Reasoning: replay}, Limits: convo.Limits{Window: 400_000}}
		h, err := convo.New(opts)
		require.NoError(t, err)
		sent := 0 // bytes of what the provider reads: text alone
		say := func(m convo.Message) {
			mustAppend(t, h, m)
			sent += len(m.Text()) + 4
		}
		truth := func() int { return sent * 13 / 10 }
		for range 10 {
			say(convo.User(strings.Repeat("ask ", 100)))
			require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: truth(), Output: 3000}))
			say(convo.Assistant("The answer.").WithReasoning(convo.Reasoning{Text: strings.Repeat("I think. ", 1000)}))
		}
		say(convo.User(strings.Repeat("large ", 10_000)))
		assert.GreaterOrEqual(t, h.Tokens().Upper, truth(), replay)
		assert.InEpsilon(t, truth(), h.Tokens().Tokens, 0.02, replay)
	}
}
