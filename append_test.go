package convo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/internal/thoughts"
)

type foreignPart struct{ convo.Text }

// Which parts a message of each role may have.
func TestAppend_PartsByRole(t *testing.T) {
	parts := map[string]convo.Part{
		"text": convo.Text("t"), "reasoning": convo.Reasoning{Text: "r"}, "call": convo.ToolCall{ID: "c", Name: "f"},
		"result": convo.ToolResult{CallID: "open"}, "media": convo.Media{MIME: "image/png", URL: "https://x"}, "opaque": convo.Opaque{Format: "f", JSON: "{}"},
	}
	allowed := map[convo.Role]string{
		convo.RoleSystem: "text opaque", convo.RoleUser: "text media opaque",
		convo.RoleAssistant: "text reasoning call media opaque", convo.RoleTool: "result",
	}
	for role, names := range allowed {
		for name, part := range parts {
			h, err := convo.New(&convo.Options{Roles: convo.Relaxed()})
			require.NoError(t, err)
			if role == convo.RoleTool {
				_, err = h.Append(convo.Assistant("", convo.ToolCall{ID: "open", Name: "f"}))
				require.NoError(t, err)
			}
			_, err = h.Append(convo.Message{Role: role, Parts: []convo.Part{part}})
			if strings.Contains(" "+names+" ", " "+name+" ") {
				assert.NoError(t, err, "%s in %s", name, role)
				continue
			}
			wrong, ok := errors.AsType[*convo.MessageError](err)
			require.True(t, ok, "%s in %s: %v", name, role, err)
			assert.Equal(t, 0, wrong.Part)
			assert.Equal(t, role, wrong.Role)
		}
	}
}

// The data of media is padded base64 in the standard alphabet.
func TestAppend_Base64(t *testing.T) {
	for data, ok := range map[string]bool{
		"AAAA": true, "AAA=": true, "AA==": true, "+/az": true, "AZ09": true, "aAzZ": true,
		"A": false, "AA": false, "AAA": false, "AAAAA": false, "AA=": false,
		"A===": false, "====": false, "=": false, "AAAAA===": false,
		"AA=A": false, "=AAA": false, "A=A=": false, "AA==AAAA": false,
		"AA-A": false, "AA_A": false, "AA A": false, "AAA\n": false, "AA*A": false, "AA:A": false, "AA@A": false, "AA[A": false, "AA{A": false, "AA`A": false, "AA.A": false,
	} {
		_, err := historyOf(t, nil).Append(convo.User("see", convo.Media{MIME: "image/png", Data: data}))
		if ok {
			assert.NoError(t, err, "%q", data)
		} else {
			assert.Error(t, err, "%q", data)
		}
	}
}

// Options.Spill is called for what is appended only, and sees which call a result
// answers. What it returns cannot go wrong in the pairing any more.
func TestAppend_PairsBeforeItSpills(t *testing.T) {
	var stored []string
	fail := error(nil)
	var h *convo.History
	opts := &convo.Options{MaxResult: 64, Spill: func(_ context.Context, r convo.ToolResult) (string, error) {
		stored = append(stored, r.CallID+" "+r.Name)
		h.Len() // no lock is held
		return "f", fail
	}}
	long := strings.Repeat("word ", 200)
	noID := func() convo.Message {
		return convo.Message{Role: convo.RoleTool, Parts: []convo.Part{convo.ToolResult{Parts: []convo.Part{convo.Text(long)}}}}
	}
	h = historyOf(t, opts, convo.User("go"), convo.Assistant("", callOf("c"), callOf("d")))
	for name, msgs := range map[string][]convo.Message{
		"no such call":                {convo.Result(callOf("x"), long)},
		"answered twice":              {convo.Result(callOf("c"), long), convo.Result(callOf("c"), "again")},
		"ambiguous":                   {noID()},
		"a role that may not follow":  {convo.Result(callOf("c"), long), convo.Result(callOf("d"), "x"), convo.Assistant("a"), convo.Assistant("b")},
		"a message wrong in itself":   {convo.Result(callOf("c"), long), {Role: convo.RoleTool}},
		"a call left open before one": {convo.Result(callOf("c"), long), convo.Assistant("so")},
	} {
		unchanged(t, h, func() {
			_, err := h.Append(msgs...)
			require.Error(t, err, name)
			assert.Empty(t, stored, name)
		})
	}

	// With an error of Spill, nothing is appended, and trying again works.
	fail = errors.New("disk full")
	unchanged(t, h, func() {
		_, err := h.Append(noID(), noID())
		require.ErrorIs(t, err, fail)
	})
	fail, stored = nil, nil
	mustAppend(t, h, noID(), noID())
	assert.Equal(t, []string{"c tool", "d tool"}, stored)
	want := historyOf(t, &convo.Options{MaxResult: 64, Spill: func(context.Context, convo.ToolResult) (string, error) { return "f", nil }},
		convo.User("go"), convo.Assistant("", callOf("c"), callOf("d")), convo.Result(callOf("c"), long), convo.Result(callOf("d"), long))
	assert.Equal(t, textsOf(want.Snapshot()), textsOf(h.Snapshot()))
	assert.Equal(t, want.Snapshot().Tokens(), h.Snapshot().Tokens())

	// Within one batch, and behind calls that it interrupts.
	stored = nil
	opts.Roles.Interrupt = true
	h = historyOf(t, opts, convo.User("go"), convo.Assistant("", callOf("a")))
	mustAppend(t, h, convo.User("wait"), convo.Assistant("", callOf("b")), noID())
	assert.Equal(t, []string{"b tool"}, stored)
	assert.Zero(t, h.Status().OpenCalls)
	assert.Equal(t, 6, h.Len())
}

// If the calls are answered while Options.Spill runs, the result is refused.
func TestAppend_AnsweredWhileItSpills(t *testing.T) {
	var h *convo.History
	opts := &convo.Options{MaxResult: 64, Spill: func(context.Context, convo.ToolResult) (string, error) {
		_, err := h.AnswerOpenCalls("")
		return "f", err
	}}
	h = historyOf(t, opts, convo.User("go"), convo.Assistant("", callOf("c")))
	_, err := h.Append(convo.Result(callOf("c"), strings.Repeat("word ", 200)))
	require.ErrorIs(t, err, convo.ErrAnswered)
	assert.Equal(t, 3, h.Len())
}

// A closed History gives Options.Spill nothing to keep.
func TestAppend_ClosedSpillsNothing(t *testing.T) {
	spilled := 0
	opts := &convo.Options{MaxResult: 64, Spill: func(context.Context, convo.ToolResult) (string, error) { spilled++; return "f", nil }}
	c := callOf("c")
	h := historyOf(t, opts, convo.User("u"), convo.Assistant("", c))
	require.NoError(t, h.Close())
	_, err := h.Append(convo.Result(c, strings.Repeat("x", 1000)))
	require.ErrorIs(t, err, convo.ErrClosed)
	assert.Zero(t, spilled)

	h = toolTurn(t, opts, 3)
	at := h.Snapshot()
	require.NoError(t, h.Close())
	_, err = h.Apply(at, convo.Edit{Clear: []convo.Clear{{ID: 4}}})
	require.ErrorIs(t, err, convo.ErrClosed)
	assert.Zero(t, spilled)

	// One that is closed while the original is handed out has not changed.
	opts.Tokenizer, opts.MaxResult = byBytes, 0
	opts.Spill = func(context.Context, convo.ToolResult) (string, error) { return "f", h.Close() }
	h = toolTurn(t, opts, 3)
	before := h.Snapshot()
	_, err = h.Apply(before, convo.Edit{Clear: []convo.Clear{{ID: 4}}})
	require.ErrorIs(t, err, convo.ErrClosed)
	assert.Equal(t, pictureOf(t, before), pictureOf(t, h.Snapshot()))
}

func TestAppend_Refuses(t *testing.T) {
	text := convo.Text("t")
	for name, m := range map[string]convo.Message{
		"unknown role":          {Role: "robot", Parts: []convo.Part{text}},
		"no role":               {Parts: []convo.Part{text}},
		"nil part":              {Role: convo.RoleUser, Parts: []convo.Part{nil}},
		"pointer":               {Role: convo.RoleUser, Parts: []convo.Part{&text}},
		"nil pointer":           {Role: convo.RoleUser, Parts: []convo.Part{(*convo.Media)(nil)}},
		"nil pointer to a call": {Role: convo.RoleUser, Parts: []convo.Part{(*convo.ToolCall)(nil)}},
		"foreign type":          {Role: convo.RoleUser, Parts: []convo.Part{foreignPart{text}}},
		"nested result":         {Role: convo.RoleTool, Parts: []convo.Part{convo.ToolResult{Parts: []convo.Part{convo.ToolResult{}}}}},
		"no name":               {Role: convo.RoleAssistant, Parts: []convo.Part{convo.ToolCall{ID: "c"}}},
		"media of nothing":      {Role: convo.RoleUser, Parts: []convo.Part{convo.Media{MIME: "image/png"}}},
		"media, no MIME":        {Role: convo.RoleUser, Parts: []convo.Part{convo.Media{Data: "AAAA"}}},
		"media, no base64":      {Role: convo.RoleUser, Parts: []convo.Part{convo.Media{MIME: "image/png", Data: "A-_="}}},
		"opaque, no format":     {Role: convo.RoleUser, Parts: []convo.Part{convo.Opaque{JSON: "{}"}}},
		"opaque, no JSON":       {Role: convo.RoleUser, Parts: []convo.Part{convo.Opaque{Format: "f", JSON: "{"}}},
		"empty":                 {Role: convo.RoleUser},
		"empty text":            {Role: convo.RoleUser, Parts: []convo.Part{convo.Text("")}},
		"tool, no result":       {Role: convo.RoleTool},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := convo.New(nil)
			require.NoError(t, err)
			_, err = h.Append(convo.User("first"), m)
			wrong, ok := errors.AsType[*convo.MessageError](err)
			require.True(t, ok, "%v", err)
			assert.Equal(t, 1, wrong.Index)
			assert.NotEmpty(t, wrong.Error())
			assert.Zero(t, h.Len())
			assert.NotPanics(t, func() { _ = fmt.Sprint(m); _ = m.Text(); _, _ = json.Marshal(m); _ = m.LogValue() })
		})
	}
}

func TestAppend_MakesTextValidOnce(t *testing.T) {
	const bad, good = "a\xff\xfeb", "a\uFFFDb"
	h, err := convo.New(nil)
	require.NoError(t, err)
	_, err = h.Append(convo.User(bad), convo.Message{Role: convo.RoleAssistant, Author: bad, Meta: bad, Origin: convo.Origin{Format: bad, Model: bad}, Parts: []convo.Part{
		convo.Text(bad), convo.Reasoning{ID: bad, Text: bad, Signature: bad, Encrypted: bad},
		convo.ToolCall{ID: bad, Name: bad, Arguments: `{"x":"` + bad + `"}`}, convo.Opaque{Format: bad, JSON: `"` + bad + `"`},
	}})
	require.NoError(t, err)
	e, _ := h.Snapshot().At(1)
	assert.Equal(t, convo.Message{Role: convo.RoleAssistant, Author: good, Meta: good, Origin: convo.Origin{Format: good, Model: good}, Parts: []convo.Part{
		convo.Text(good), convo.Reasoning{ID: good, Text: good, Signature: good, Encrypted: good},
		convo.ToolCall{ID: good, Name: good, Arguments: `{"x":"` + good + `"}`}, convo.Opaque{Format: good, JSON: `"` + good + `"`},
	}}, e.Message)
}

func TestAppend_KeepsBytes(t *testing.T) {
	args := `{ "z": 1.0, "a": 12345678901234567890,  "m": "\u00e9<>&" }`
	h, err := convo.New(nil)
	require.NoError(t, err)
	want := convo.Message{Role: convo.RoleAssistant, Parts: []convo.Part{convo.ToolCall{ID: "c", Name: "f", Arguments: args}, convo.Opaque{Format: "x", JSON: args}}}
	_, err = h.Append(convo.User("u"), want)
	require.NoError(t, err)
	data, err := json.Marshal(h.Snapshot())
	require.NoError(t, err)
	var s convo.Snapshot
	require.NoError(t, json.Unmarshal(data, &s))
	again, err := convo.Restore(&s, nil)
	require.NoError(t, err)
	e, _ := again.Snapshot().At(1)
	assert.Equal(t, want, e.Message)
}

func TestAppend_GivesIDsToCalls(t *testing.T) {
	h, err := convo.New(nil)
	require.NoError(t, err)
	_, err = h.Append(convo.User("u"), convo.Assistant("", convo.ToolCall{Name: "a"}, convo.ToolCall{Name: "b"}, convo.ToolCall{ID: "own", Name: "c"}))
	require.NoError(t, err)
	e, _ := h.Snapshot().At(1)
	calls := e.Message.ToolCalls()
	assert.True(t, calls[0].Minted && calls[1].Minted && !calls[2].Minted)
	assert.NotEqual(t, calls[0].ID, calls[1].ID)
	_, err = h.Append(convo.Result(convo.ToolCall{Name: "b"}, "2"), convo.Result(convo.ToolCall{}, "1"), convo.Result(calls[2], "3"))
	require.NoError(t, err)
	first, _ := h.Snapshot().At(2)
	assert.Equal(t, calls[1].ID, first.Message.ToolResults()[0].CallID)
	second, _ := h.Snapshot().At(3)
	assert.Equal(t, "a", second.Message.ToolResults()[0].Name)
}

// Neither the caller nor the History can change what the other one holds.
func TestAppend_CopiesItsMessages(t *testing.T) {
	inner := []convo.Part{convo.Text("r")}
	m := convo.Message{Role: convo.RoleTool, Parts: []convo.Part{convo.ToolResult{CallID: "c", Parts: inner}}}
	h, err := convo.New(nil)
	require.NoError(t, err)
	_, err = h.Append(convo.User("u"), convo.Assistant("", convo.ToolCall{ID: "c", Name: "f"}), m)
	require.NoError(t, err)
	s := h.Snapshot()
	before := printOf(s)
	inner[0], m.Parts[0] = convo.Text("changed"), convo.Text("changed")
	for _, e := range s.All() {
		for i := range e.Message.Parts {
			if r, ok := e.Message.Parts[i].(convo.ToolResult); ok {
				r.Parts[0] = convo.Text("changed")
			}
			e.Message.Parts[i] = convo.Text("changed")
		}
	}
	for _, m := range s.Messages() {
		m.Parts[0] = convo.Text("changed")
	}
	assert.Equal(t, before, printOf(s))
}

// A result that MaxResult cuts is within the limit, is valid UTF-8, and is not
// cut again.
func TestMaxResult_CutsOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		limit := 256 + rng.IntN(300)
		var parts []convo.Part
		for range 1 + rng.IntN(4) {
			parts = append(parts, convo.Text(strings.Repeat([]string{"a", "é", "中", "😀"}[rng.IntN(4)], rng.IntN(400))))
			if rng.IntN(3) == 0 {
				parts = append(parts, convo.NewMedia("image/png", []byte("x")))
			}
		}
		size, media := sizeOf(parts)
		cut := throughAppend(t, limit, parts)
		gotSize, gotMedia := sizeOf(cut)
		assert.Equal(t, media, gotMedia)
		if size <= limit {
			assert.Equal(t, parts, cut)
			continue
		}
		assert.LessOrEqual(t, gotSize, limit)
		assert.Greater(t, gotSize, limit-20, "cut no more than it must")
		text := convo.ToolResult{Parts: cut}.Text()
		assert.True(t, utf8.ValidString(text))
		marker := regexp.MustCompile(`\n\[cut: (\d+) bytes left out\]\n`).FindStringSubmatch(text)
		if assert.NotNil(t, marker, text) {
			missing, _ := strconv.Atoi(marker[1])
			assert.Equal(t, size, gotSize-len(marker[0])+missing)
		}
		assert.Equal(t, cut, throughAppend(t, limit, cut))
	}
}

// A part that a cut does not touch stays a part of its own.
func TestMaxResult_WholeParts(t *testing.T) {
	const limit, marker = 256, "\n[cut: 772 bytes left out]\n"
	const keep = 1000 - 772
	head, tail := keep-keep/4, keep/4
	x := func(n int) convo.Part { return convo.Text(strings.Repeat("x", n)) }
	for _, tt := range []struct{ parts, want []convo.Part }{
		{[]convo.Part{x(1000 - tail), x(tail)}, []convo.Part{x(head).(convo.Text) + marker, x(tail)}},
		{[]convo.Part{x(1000 - tail - 1), x(tail + 1)}, []convo.Part{x(head).(convo.Text) + marker + x(tail).(convo.Text)}},
		{[]convo.Part{x(1000 - tail + 1), x(tail - 1)}, []convo.Part{x(head).(convo.Text) + marker + "x", x(tail - 1)}},
		{[]convo.Part{x(head), x(1000 - head)}, []convo.Part{x(head), convo.Text(marker) + x(tail).(convo.Text)}},
	} {
		assert.Equal(t, tt.want, throughAppend(t, limit, tt.parts))
	}
}

func sizeOf(parts []convo.Part) (size, media int) {
	for _, p := range parts {
		if t, ok := p.(convo.Text); ok {
			size += len(t)
		} else {
			media++
		}
	}
	return size, media
}

func throughAppend(t *testing.T, limit int, parts []convo.Part) []convo.Part {
	h, err := convo.New(&convo.Options{MaxResult: limit, Tokenizer: byBytes})
	require.NoError(t, err)
	_, err = h.Append(convo.User("u"), convo.Assistant("", convo.ToolCall{ID: "c", Name: "f"}),
		convo.Message{Role: convo.RoleTool, Parts: []convo.Part{convo.ToolResult{CallID: "c", Parts: parts}}})
	require.NoError(t, err)
	e, _ := h.Snapshot().At(2)
	return e.Message.ToolResults()[0].Parts
}

func TestAppend_IDs(t *testing.T) {
	h := historyOf(t, nil)
	id, err := h.Append()
	require.NoError(t, err)
	assert.Zero(t, id)
	assert.EqualValues(t, 3, mustAppend(t, h, convo.System("s"), convo.User("u"), convo.Assistant("a")))
	assert.EqualValues(t, 4, mustAppend(t, h, convo.User("v")))
	id, err = h.Append()
	require.NoError(t, err)
	assert.Zero(t, id, "and not the ID of the newest entry")
	_, err = h.Append(convo.User("w"))
	require.Error(t, err)
	assert.EqualValues(t, 5, mustAppend(t, h, convo.Assistant("b")), "a refused message uses no ID up")
	assert.Equal(t, []convo.ID{1, 2, 3, 4, 5}, idsOf(h.Snapshot()))
}

// When a batch is refused, the calls that it had answered are open again, in the
// same order.
func TestAppend_AllOrNothing(t *testing.T) {
	for _, n := range []int{4, 100} { // below and above the number that is looked up
		t.Run(fmt.Sprint(n, " calls"), func(t *testing.T) {
			var list []convo.ToolCall
			for i := range n {
				list = append(list, callOf(fmt.Sprint("c", i)))
			}
			h := historyOf(t, nil, convo.User("u"), convo.Assistant("", list...))
			mustAppend(t, h, convo.Result(list[1], "x"))
			bad := []convo.Message{
				convo.System("s"), convo.Result(list[1], "again"), convo.Result(callOf("z"), ""),
				convo.Assistant("early"), {Role: "robot"}, {Role: convo.RoleUser, Parts: []convo.Part{nil}},
				convo.Assistant("", callOf("d"), callOf("d")),
			}
			for _, m := range bad {
				unchanged(t, h, func() {
					_, err := h.Append(convo.Result(list[2], "y"), convo.Result(list[0], "y"), m)
					require.Error(t, err)
					byName := resultOf(convo.ToolResult{Name: "tool"})
					_, err = h.Append(byName, byName, m)
					require.Error(t, err)
					_, err = h.Append(m)
					require.Error(t, err)
				})
			}
			two := convo.Message{Role: convo.RoleTool, Parts: []convo.Part{
				convo.ToolResult{CallID: "c0"}, convo.ToolResult{CallID: "c1"},
			}}
			unchanged(t, h, func() {
				_, err := h.Append(two)
				require.ErrorIs(t, err, convo.ErrAnswered)
			})
			// One by its tool alone could be of any call; as many as there are
			// calls answer them in order.
			byName := resultOf(convo.ToolResult{Name: "tool"})
			unchanged(t, h, func() {
				_, err := h.Append(byName, byName)
				require.ErrorIs(t, err, convo.ErrAmbiguous)
			})
			last := mustAppend(t, h, slices.Repeat([]convo.Message{byName}, n-1)...)
			for i := range n - 1 {
				e, _ := h.Snapshot().Find(last - convo.ID(n-2-i))
				want := "c0"
				if i > 0 {
					want = fmt.Sprint("c", i+1)
				}
				require.Equal(t, want, e.Message.ToolResults()[0].CallID)
			}
			require.Zero(t, h.Status().OpenCalls)
			mustAppend(t, h, convo.Assistant("done"))
		})
	}
}

func TestAppend_CopiesWhatItIsGiven(t *testing.T) {
	m := convo.Message{Role: convo.RoleUser, Parts: []convo.Part{convo.Text("one"), convo.Text("two")}}
	inner := []convo.Part{convo.Text("result")}
	c := callOf("c")
	h := historyOf(t, nil, m, convo.Assistant("", c), resultOf(convo.ToolResult{CallID: "c", Parts: inner}))
	before := stateOf(t, h)
	m.Parts[0], inner[0] = convo.Text("changed"), convo.Text("changed")
	e, _ := h.Snapshot().At(0)
	e.Message.Parts[1] = convo.Text("changed")
	h.Snapshot().Messages()[2].Parts[0].(convo.ToolResult).Parts[0] = convo.Text("changed")
	assert.Equal(t, before, stateOf(t, h))
}

func TestAnswerOpenCalls(t *testing.T) {
	a, b, c := callOf("a"), callOf("b"), callOf("c")
	for _, tt := range []struct{ name, reason, want string }{
		{"with a reason", "timed out", "timed out"},
		{"without", "", "no result"},
		{"invalid UTF-8", "bad \xff", "bad \uFFFD"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := historyOf(t, nil, convo.User("u"), convo.Assistant("", a, b, c), convo.Result(b, "ok"))
			n, err := h.AnswerOpenCalls(tt.reason)
			require.NoError(t, err)
			assert.Equal(t, 2, n)
			e, _ := h.Snapshot().Find(5)
			r := e.Message.ToolResults()[0]
			assert.Equal(t, convo.ToolResult{CallID: "c", Name: "tool", Parts: []convo.Part{convo.Text(tt.want)}, IsError: true}, r)
			unchanged(t, h, func() {
				n, err = h.AnswerOpenCalls("again")
				require.NoError(t, err)
				assert.Zero(t, n)
			})
			mustAppend(t, h, convo.Assistant("on"))
		})
	}
}

// An append makes at most 2 allocations and 256 bytes beyond the message, and 1
// allocation more with a snapshot after each.
func TestAppend_Allocations(t *testing.T) {
	n := long.Or(20_000, 100_000)
	allocs, bytes := measureAllocs(n, func() { appendN(n, nil) })
	t.Logf("%.2f allocations, %.0f bytes an append", allocs, bytes)
	assert.LessOrEqual(t, allocs, 2.0)
	assert.LessOrEqual(t, bytes, 256.0)

	with, _ := measureAllocs(n, func() { appendN(n, func(h *convo.History) { h.Snapshot() }) })
	t.Logf("%.2f allocations with a snapshot", with)
	assert.LessOrEqual(t, with, allocs+1.01)
}

func TestHistory_Count(t *testing.T) {
	over := convo.Overheads{Message: 3, Call: 5, Result: 7, Media: func(convo.Media) int { return 900 }}
	h := historyOf(t, &convo.Options{Tokenizer: byBytes, Overheads: over, Limits: convo.Limits{Window: 4_000}})
	call := convo.ToolCall{ID: "c1", Name: "search", Arguments: `{"q":1}`}
	for _, m := range []convo.Message{
		convo.System("Be brief."),
		{Role: convo.RoleUser, Author: "Ann", Parts: []convo.Part{convo.Text("Look: \xff"), convo.NewMedia("image/png", []byte("x"))}},
		thoughts.In(convo.Assistant("I search.", call), convo.Reasoning{Text: "Hm."}),
		convo.Result(call, "found"),
	} {
		before := h.Snapshot()
		n, err := h.Count(m)
		require.NoError(t, err)
		assert.Same(t, before, h.Snapshot())
		mustAppend(t, h, m)
		assert.Equal(t, h.Snapshot().Tokens()-before.Tokens(), n, "%v", m)
	}
	n, err := h.Count(convo.Result(call, strings.Repeat("x", 50_000)))
	require.NoError(t, err)
	assert.Equal(t, 3+7+len("c1")+len("search")+50_000, n, "whole, although Append would cut it")

	for _, m := range []convo.Message{{}, convo.User(""), {Role: convo.RoleUser, Parts: []convo.Part{call}}} {
		_, want := historyOf(t, nil).Append(m)
		_, err := h.Count(m)
		require.Error(t, err)
		assert.Equal(t, want, err)
	}
	require.NoError(t, h.Close())
	n, err = h.Count(convo.User("12345"))
	require.NoError(t, err)
	assert.Equal(t, 8, n)
	_, err = new(convo.History).Count(convo.User("hi"))
	assert.Equal(t, convo.ErrClosed, err)

	calm := true
	h = historyOf(t, &convo.Options{Tokenizer: convo.TokenizerFunc(func(s string) int {
		if !calm {
			panic("boom")
		}
		return len(s)
	})})
	calm = false
	_, err = h.Count(convo.User("hi"))
	var panicked *convo.PanicError
	require.ErrorAs(t, err, &panicked)
}

// keysOf returns the keys of the entries of h, in order.
func keysOf(h *convo.History) (keys []string) {
	for _, e := range h.Snapshot().All() {
		keys = append(keys, e.Message.Key)
	}
	return keys
}

func keyed(key string, m convo.Message) convo.Message {
	m.Key = key
	return m
}

// The replies of Steps hold all messages that were appended, with their keys: an application
// that loops over them can store each as a row.
func TestKey_RepliesOfStepsHoldTheRows(t *testing.T) {
	rows := 0
	h, err := convo.New(&convo.Options{Key: func(m convo.Message) string {
		rows++
		return fmt.Sprint(m.Role, rows)
	}})
	require.NoError(t, err)
	mustAppend(t, h, convo.User("q"))
	stored := []string{"user1"}
	for reply, err := range h.Steps(t.Context(), func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
		if s.Len() > 1 {
			return convo.Reply{Messages: []convo.Message{convo.Assistant("done")}}, nil
		}
		return convo.Reply{Messages: []convo.Message{convo.Assistant("", callOf("a"), callOf("b"))}}, nil
	}, convo.RunOptions{Tools: []convo.Handler{{Tool: convo.Tool{Name: "tool"}, Run: func(context.Context, convo.ToolCall) ([]convo.Part, error) { return nil, nil }}}}) {
		require.NoError(t, err)
		for _, m := range reply.Messages {
			stored = append(stored, m.Key)
		}
	}
	assert.Len(t, stored, 5)
	assert.Equal(t, keysOf(h), stored)
}

// Every way in which a message comes into the conversation keeps its key, or asks
// Options.Key for one.
func TestKey(t *testing.T) {
	rows := 0
	h, err := convo.New(&convo.Options{Key: func(m convo.Message) string {
		rows++
		return fmt.Sprint(m.Role, rows)
	}})
	require.NoError(t, err)
	mustAppend(t, h, keyed("own", convo.User("1")))
	reply, err := h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		require.NoError(t, h.Queue(convo.User("2"), keyed("queued", convo.User("3"))))
		return convo.Reply{Messages: []convo.Message{convo.Assistant("", callOf("a"))}}, nil
	})
	require.NoError(t, err)
	assert.Equal(t, "assistant2", reply.Messages[0].Key)
	mustAppend(t, h, convo.Result(callOf("a"), "r"))
	reply, err = h.AppendReply(h.Snapshot(), convo.Reply{Messages: []convo.Message{convo.Assistant("4")}})
	require.NoError(t, err)
	assert.Equal(t, "assistant4", reply.Messages[0].Key)
	assert.Equal(t, []string{"own", "assistant2", "tool3", "user1", "queued", "assistant4"}, keysOf(h))
	require.NoError(t, h.SetSystem(convo.System("guide")))
	require.NoError(t, h.SetEphemeral(convo.User("now")))
	assert.Equal(t, 4, rows, "not for what is no message of the conversation")
	mustAppend(t, h, keyed("more", convo.User("5")))
	_, err = h.Run(t.Context(), func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
		if e, _ := s.At(s.Len() - 1); e.Message.Role == convo.RoleUser {
			return convo.Reply{Messages: []convo.Message{convo.Assistant("", callOf("b"))}}, nil
		}
		return convo.Reply{Messages: []convo.Message{convo.Assistant("done")}}, nil
	}, convo.RunOptions{Tools: []convo.Handler{{Tool: convo.Tool{Name: "tool"}, Run: func(context.Context, convo.ToolCall) ([]convo.Part, error) { return nil, nil }}}})
	require.NoError(t, err)
	assert.Equal(t, []string{"assistant5", "tool6", "assistant7"}, keysOf(h)[8:])

	for _, m := range h.Snapshot().Messages() {
		data, err := json.Marshal(m)
		require.NoError(t, err)
		var back convo.Message
		require.NoError(t, json.Unmarshal(data, &back))
		assert.Equal(t, m.Key, back.Key)
	}
	data, err := json.Marshal(h.Snapshot())
	require.NoError(t, err)
	var s convo.Snapshot
	require.NoError(t, json.Unmarshal(data, &s))
	again, err := convo.Restore(&s, nil)
	require.NoError(t, err)
	assert.Equal(t, keysOf(h), keysOf(again))
}

// A key is no part of what the model sees, nor of what signed reasoning is bound to.
func TestKey_IsNotSeen(t *testing.T) {
	with, without := historyOf(t, nil, keyed("k", convo.User("1")), signed("2")), historyOf(t, nil, convo.User("1"), signed("2"))
	assert.Equal(t, without.Tokens(), with.Tokens())
	assert.NotContains(t, fmt.Sprintf("%+v", with.Snapshot()), "k:")
	assert.Empty(t, with.Snapshot().Unbound())
}

func TestKey_Faults(t *testing.T) {
	var wrong *convo.MessageError
	h := historyOf(t, nil)
	_, err := h.Append(keyed(strings.Repeat("k", 257), convo.User("1")))
	require.ErrorAs(t, err, &wrong)
	mustAppend(t, h, keyed(strings.Repeat("k", 256), convo.User("1")))
	h = historyOf(t, &convo.Options{Key: func(convo.Message) string { return strings.Repeat("k", 257) }})
	_, err = h.Append(convo.User("1"))
	require.ErrorAs(t, err, &wrong)
	require.ErrorAs(t, h.Queue(convo.User("1")), &wrong)
	h = historyOf(t, &convo.Options{Key: func(convo.Message) string { panic("x") }})
	var panicked *convo.PanicError
	_, err = h.Append(convo.User("1"))
	require.ErrorAs(t, err, &panicked)
	require.ErrorAs(t, h.Queue(convo.User("1")), &panicked)
	mustAppend(t, historyOf(t, &convo.Options{Key: func(convo.Message) string { return "a\xff" }}), convo.User("1"))
}

func TestOptions_Time(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC)
	times := map[string]time.Time{"a": at, "late": time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC)}
	h := historyOf(t, &convo.Options{Roles: convo.Relaxed(), Time: func(m convo.Message) time.Time { return times[m.Key] }})
	mustAppend(t, h, convo.User("1"), keyed("a", convo.Assistant("2")))
	assert.True(t, h.Status().LastAppend.Equal(at))
	e, _ := h.Snapshot().At(1)
	assert.True(t, e.Time.Equal(at))
	first, _ := h.Snapshot().At(0)
	assert.WithinDuration(t, time.Now(), first.Time, time.Minute)
	var wrong *convo.MessageError
	_, err := h.Append(keyed("late", convo.User("3")))
	require.ErrorAs(t, err, &wrong)
	h = historyOf(t, &convo.Options{Time: func(convo.Message) time.Time { panic("x") }})
	var panicked *convo.PanicError
	_, err = h.Append(convo.User("1"))
	require.ErrorAs(t, err, &panicked)
}
