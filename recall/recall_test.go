package recall_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/recall"
	"github.com/seed-c1b73e60/convo/wire"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func entry(id convo.ID, text string) convo.Entry {
	return convo.Entry{ID: id, Message: convo.User(text), Time: time.Unix(int64(id), 0)}
}

func ids(hits []recall.Hit) (ids []convo.ID) {
	for _, h := range hits {
		ids = append(ids, h.Entry.ID)
	}
	return ids
}

// A search finds words, identifiers by their pieces, and writing without spaces.
func TestIndex_Finds(t *testing.T) {
	ix := new(recall.Index)
	for i, text := range []string{
		1: "We chose port 8443 for staging.",
		2: "The function parseConfigFile lives in store/file_7.go",
		3: "Der Zug nach Zürich fährt um 9:10 Uhr.",
		4: "会议改到星期三下午三点，地点在上海。",
		5: "see https://example.com/Docs/guide.html#top for HTTPServer",
		6: "error ECONNREFUSED at step-12, exit status 2",
		7: "mixed 東京tower and Ünïcödé",
		8: "東",
	} {
		if text != "" {
			ix.Add(entry(convo.ID(i), text))
		}
	}
	assert.Equal(t, 8, ix.Len())
	for query, want := range map[string]convo.ID{
		"which port is staging?": 1, "8443": 1, "PARSECONFIGFILE": 2, "config": 2, "file_7": 2, "store/file_7.go": 2, "file_7.go": 2,
		"zürich": 3, "ZÜRICH 9:10": 3, "星期三": 4, "上海": 4, "guide": 5, "example.com": 5, "server": 5, "econnrefused": 6, "step-12": 6,
		"tower": 7, "東京": 7, "ünïcödé": 7, "東": 8,
	} {
		got := ids(ix.Search(query, 3))
		if assert.NotEmpty(t, got, query) {
			assert.Equal(t, want, got[0], query)
		}
	}
	for _, query := range []string{"", " ", "...", "nothing of this", "843", "fig"} {
		assert.Empty(t, ix.Search(query, 3), query)
	}
	assert.Empty(t, ix.Search("port", 0))
	assert.Empty(t, ix.Search("port", -1))
	assert.Empty(t, new(recall.Index).Search("port", 3))
}

// Rare words weigh more than common ones, and of equal messages the newer comes first.
func TestIndex_Order(t *testing.T) {
	ix := new(recall.Index)
	for i := convo.ID(1); i <= 50; i++ {
		ix.Add(entry(i, "the train to Rome leaves in the morning"))
	}
	ix.Add(entry(51, "the zebra"))
	assert.Equal(t, []convo.ID{51, 50, 49}, ids(ix.Search("the zebra train", 3)))
	assert.Equal(t, []convo.ID{50, 49, 48, 47}, ids(ix.Search("train", 4)))
	assert.Len(t, ix.Search("train", 1000), 50)
}

// An entry is there once, in its most complete form, and what is returned is a copy.
func TestIndex_Replaces(t *testing.T) {
	ix := new(recall.Index)
	cut := entry(7, "short")
	cut.Missing = 100
	ix.Add(cut)
	ix.Add(entry(7, "the whole text with a needle"))
	ix.Add(cut)
	assert.Equal(t, 1, ix.Len())
	assert.Empty(t, ix.Search("short", 5))
	assert.Equal(t, []convo.ID{7}, ids(ix.Search("needle", 5)))
	got, ok := ix.Get(7)
	require.True(t, ok)
	got.Message.Parts[0] = convo.Text("changed")
	got, _ = ix.Get(7)
	assert.Equal(t, "the whole text with a needle", got.Message.Text())
	_, ok = ix.Get(8)
	assert.False(t, ok)
	ix.Add(entry(9, " \n"), convo.Entry{})
	assert.Equal(t, 1, ix.Len(), "without text there is nothing to find")
}

func TestIndex_Redact(t *testing.T) {
	ix := &recall.Index{Redact: func(m convo.Message) convo.Message {
		if strings.Contains(m.Text(), "private") {
			return convo.Message{}
		}
		m.Parts[0] = convo.Text(strings.ReplaceAll(m.Text(), "hunter2", "****"))
		return m
	}}
	e := entry(1, "the password is hunter2")
	ix.Add(e, entry(2, "private password"))
	assert.Empty(t, ix.Search("hunter2", 5))
	assert.Equal(t, []convo.ID{1}, ids(ix.Search("password", 5)))
	assert.Equal(t, "the password is hunter2", e.Message.Text(), "it changes a copy")
}

// A Redact that panics costs its message only, and a Tokenizer that panics nothing.
func TestIndex_Panics(t *testing.T) {
	ix := &recall.Index{
		Redact: func(m convo.Message) convo.Message {
			if strings.Contains(m.Text(), "bad") {
				panic("x")
			}
			return m
		},
		Tokenizer: convo.TokenizerFunc(func(string) int { panic("x") }),
	}
	ix.Add(entry(1, "one apple"), entry(2, "a bad apple"), entry(3, "last apple"))
	assert.Equal(t, []convo.ID{3, 1}, ids(ix.Search("apple", 5)))
	m := ix.Answer(convo.ToolCall{ID: "c", Arguments: `{"query":"apple"}`})
	assert.Contains(t, m.Text(), "[3, user, 1970-01-01 00:00] last apple")
}

// A search gives the same hits in the same order each time.
func TestIndex_SameEachTime(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	ix := new(recall.Index)
	for i := range 300 {
		ix.Add(entry(convo.ID(i+1), sentence(rng, i%7)))
	}
	query := sentence(rng, 3)
	first := ix.Search(query, 300)
	for range 20 {
		require.Equal(t, first, ix.Search(query, 300))
	}
}

func TestIndex_Drop(t *testing.T) {
	ix := new(recall.Index)
	for i := convo.ID(1); i <= 300; i++ {
		ix.Add(entry(i, fmt.Sprintf("number %d of all", i)))
	}
	ix.Add(convo.Entry{ID: 301, Message: convo.User("without a time, of all")})
	assert.Equal(t, 250, ix.Drop(time.Unix(251, 0)))
	assert.Equal(t, 0, ix.Drop(time.Unix(251, 0)))
	assert.Equal(t, 51, ix.Len())
	assert.Len(t, ix.Search("all", 1000), 51)
	assert.Empty(t, ix.Search("250", 5))
	assert.Equal(t, []convo.ID{251}, ids(ix.Search("251", 5)))
}

// The index holds what compactions took out, and finds it.
func TestIndex_Observe(t *testing.T) {
	ix := new(recall.Index)
	h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: 4000}, OnCompaction: ix.Observe})
	require.NoError(t, err)
	for i := range 200 {
		c := convo.ToolCall{ID: fmt.Sprint("c", i), Name: "read", Arguments: fmt.Sprintf(`{"path":"dir/file_%d.go"}`, i)}
		_, err := h.Append(convo.User(fmt.Sprint("look at file ", i)), convo.Assistant("", c),
			convo.Result(c, strings.Repeat("some words of it ", 40)+fmt.Sprint("needle", i)), convo.Assistant("done"))
		require.NoError(t, err)
		_, _, err = h.Prepare(t.Context())
		require.NoError(t, err)
	}
	for i := range 150 {
		hits := ix.Search(fmt.Sprint("needle", i), 1)
		require.Len(t, hits, 1, i)
		assert.Contains(t, hits[0].Excerpt, fmt.Sprint("needle", i))
		assert.LessOrEqual(t, len(hits[0].Excerpt), 400)
		assert.Equal(t, convo.RoleTool, hits[0].Entry.Message.Role)
	}
}

// Load reads an archive: what is in the view is left out.
func TestIndex_Load(t *testing.T) {
	store := new(convotest.MemStore)
	h, err := convo.Open(t.Context(), store, "k", &convo.Options{Limits: convo.Limits{Window: 3000}})
	require.NoError(t, err)
	for i := range 100 {
		_, err := h.Append(convo.User(fmt.Sprint("question", i)), convo.Assistant(strings.Repeat("word ", 30)))
		require.NoError(t, err)
		_, _, err = h.Prepare(t.Context())
		require.NoError(t, err)
		require.NoError(t, h.Save(t.Context()))
	}
	ix := new(recall.Index)
	require.NoError(t, ix.Load(t.Context(), h))
	view := h.Snapshot()
	assert.Equal(t, 200-view.Len(), ix.Len())
	for i := range 100 {
		_, inView := view.Find(convo.ID(2*i + 1))
		assert.Equal(t, !inView, len(ix.Search(fmt.Sprint("question", i), 1)) == 1, i)
	}
	require.NoError(t, ix.Load(t.Context(), h), "again")
	assert.Equal(t, 200-view.Len(), ix.Len())

	none, err := convo.New(nil)
	require.NoError(t, err)
	require.ErrorIs(t, ix.Load(t.Context(), none), convo.ErrNoStore)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, ix.Load(ended, h), context.Canceled)
}

func TestIndex_Tool(t *testing.T) {
	ix := &recall.Index{MaxTokens: 120}
	for i := convo.ID(1); i <= 60; i++ {
		ix.Add(entry(i, fmt.Sprintf("step %d: the value of the setting is %d, and that is %s", i, 7*i, strings.Repeat("long ", 300))))
	}
	for _, w := range []wire.ToolWriter{wire.OpenAIChat{}, wire.OpenAIResponses{}, wire.Anthropic{}, wire.Gemini{}, wire.Converse{}} {
		_, err := w.Tools(ix.Tool())
		require.NoError(t, err)
	}
	answer := func(args string) convo.ToolResult {
		m := ix.Answer(convo.ToolCall{ID: "c", Name: recall.ToolName, Arguments: args})
		require.Equal(t, convo.RoleTool, m.Role)
		r := m.ToolResults()[0]
		require.Equal(t, "c", r.CallID)
		assert.LessOrEqual(t, convo.Heuristic{}.CountTokens(r.Text()), 120, args)
		return r
	}
	r := answer(`{"query":"step 41"}`)
	assert.False(t, r.IsError)
	assert.True(t, strings.HasPrefix(r.Text(), "[41, user, 1970-01-01 00:00] step 41: the value of the setting is 287"), r.Text())
	assert.Contains(t, answer(`{"id":7}`).Text(), "[7, user, 1970-01-01 00:00] step 7: the value")
	assert.Contains(t, answer(`{"id":7}`).Text(), "[the rest is left out]")
	assert.Contains(t, answer(`{"query":"nowhere"}`).Text(), "Nothing was found")
	for args, want := range map[string]string{
		``: "not a JSON object", `x`: "not a JSON object", `[]`: "not a JSON object", `{"query":7}`: "not a JSON object",
		`{}`: "give a query", `{"query":"  "}`: "give a query", `{"id":99}`: "no message with the id 99",
	} {
		r := answer(args)
		assert.True(t, r.IsError, args)
		assert.Contains(t, r.Text(), want, args)
	}
}

// Whatever is added and asked, a search finds a message by any of its words, and excerpts
// are valid text within their bound.
func checkFinds(t *testing.T, text, other string) {
	t.Helper()
	ix := new(recall.Index)
	ix.Add(entry(1, text), entry(2, other))
	for _, query := range []string{text, other, text + other} {
		for _, h := range ix.Search(query, 5) {
			require.LessOrEqual(t, len(h.Excerpt), 400)
			if utf8.ValidString(text) && utf8.ValidString(other) {
				require.True(t, utf8.ValidString(h.Excerpt))
			}
		}
	}
	for word := range strings.FieldsSeq(text) {
		if strings.IndexFunc(word, func(r rune) bool { return r < 'a' || r > 'z' }) < 0 && len(word) <= 100 && len(text) < 60<<10 {
			found := false
			for _, id := range ids(ix.Search(word, 5)) {
				found = found || id == 1
			}
			require.True(t, found, "%q in %q", word, text)
		}
	}
	args, err := json.Marshal(map[string]string{"query": text})
	require.NoError(t, err)
	ix.Answer(convo.ToolCall{Arguments: string(args)})
	ix.Answer(convo.ToolCall{Arguments: text})
}

func TestIndex_FindsAnyWord(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	alphabet := []rune("abcXYZ019 _-./:#@+\n\t\"'éß东京タワー한국ไทย\u0301\u200b😀")
	random := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteRune(alphabet[rng.IntN(len(alphabet))])
		}
		return b.String()
	}
	for range long.Or(60, 300) {
		checkFinds(t, random(rng.IntN(2000)), random(rng.IntN(100)))
	}
	checkFinds(t, strings.Repeat("word ", 50_000), "\xff\xfe")
}

func FuzzIndex(f *testing.F) {
	f.Add("parseConfig in store/file_7.go", "其他")
	f.Add("a\xffb", "...")
	f.Fuzz(checkFinds)
}

func TestIndex_Races(t *testing.T) {
	ix := new(recall.Index)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 200 {
				ix.Add(entry(convo.ID(1+i*4+g), fmt.Sprint("text ", i)))
				ix.Search("text", 3)
				ix.Get(convo.ID(i))
				if i%50 == 0 {
					ix.Drop(time.Unix(int64(i), 0))
				}
				ix.Len()
			}
		})
	}
	wg.Wait()
	assert.Positive(t, ix.Len())
}

// An error of the store ends Load, and what was read stays.
func TestIndex_LoadStops(t *testing.T) {
	store := new(convotest.MemStore)
	h, err := convo.Open(t.Context(), store, "k", nil)
	require.NoError(t, err)
	_, err = h.Append(convo.User("q"), convo.Assistant("a"))
	require.NoError(t, err)
	require.NoError(t, h.Save(t.Context()))
	require.NoError(t, store.Delete(t.Context(), "k"))
	err = new(recall.Index).Load(t.Context(), h)
	assert.True(t, err == nil || errors.Is(err, convo.ErrNotFound), "%v", err)
}

func filled(b *testing.B, n int) *recall.Index {
	b.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	ix := new(recall.Index)
	for i := range n {
		ix.Add(entry(convo.ID(i+1), sentence(rng, i)))
	}
	return ix
}

// sentence returns about 400 bytes, with a few rare words.
func sentence(rng *rand.Rand, i int) string {
	var b strings.Builder
	for range 60 {
		fmt.Fprintf(&b, "word%d ", int(rng.ExpFloat64()*300))
	}
	fmt.Fprintf(&b, "in store/file_%d.go", i)
	return b.String()
}

func BenchmarkIndex_Search10000(b *testing.B) {
	ix := filled(b, 10_000)
	b.ResetTimer()
	for i := range b.N {
		if len(ix.Search(fmt.Sprintf("what did we decide about word%d in store/file_%d.go?", i%700, i%10_000), 5)) == 0 {
			b.Fatal("nothing found")
		}
	}
}

func BenchmarkIndex_Add(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	texts := make([]convo.Entry, 10_000)
	for i := range texts {
		texts[i] = entry(convo.ID(i+1), sentence(rng, i))
	}
	b.ResetTimer()
	var ix *recall.Index
	for i := range b.N {
		if i%len(texts) == 0 {
			ix = new(recall.Index)
		}
		ix.Add(texts[i%len(texts)])
	}
}

// What the History is made to forget leaves the index.
func TestIndex_Forgets(t *testing.T) {
	ix := new(recall.Index)
	h, err := convo.New(&convo.Options{OnCompaction: ix.Observe})
	require.NoError(t, err)
	c := convo.ToolCall{ID: "c", Name: "env", Arguments: "{}"}
	_, err = h.Append(convo.User("show"), convo.Assistant("", c), convo.Result(c, "token hunter2 "+strings.Repeat("and more ", 50)), convo.Assistant("so"), convo.User("next"))
	require.NoError(t, err)
	_, err = h.Apply(h.Snapshot(), convo.Edit{Clear: []convo.Clear{{ID: 3}}})
	require.NoError(t, err)
	require.Equal(t, []convo.ID{3}, ids(ix.Search("hunter2", 5)))
	_, err = h.Apply(h.Snapshot(), convo.Edit{Clear: []convo.Clear{{ID: 3, Forget: true}}})
	require.NoError(t, err)
	assert.Empty(t, ix.Search("hunter2", 5))
	assert.Zero(t, ix.Remove(99))
}

// A long message is read by ranges of lines, and searched by itself.
func TestIndex_Answer_Part(t *testing.T) {
	var lines []string
	for i := range 900 {
		lines = append(lines, fmt.Sprintf("line %d of the listing", i+1))
	}
	lines[699] = "the token of staging is amber-7"
	ix := new(recall.Index)
	ix.Add(convo.Entry{ID: 7, Message: convo.Result(convo.ToolCall{ID: "c", Name: "read", Arguments: "{}"}, strings.Join(lines, "\n"))})
	ask := func(args string) (string, bool) {
		r := ix.Answer(convo.ToolCall{ID: "r", Name: recall.ToolName, Arguments: args}).ToolResults()[0]
		return r.Text(), r.IsError
	}
	text, isErr := ask(`{"id":7,"from":698,"lines":3}`)
	assert.False(t, isErr)
	assert.Contains(t, text, "lines 698 to 700 of 900:\nline 698 of the listing\nline 699 of the listing\nthe token of staging is amber-7")
	text, isErr = ask(`{"id":7,"query":"staging token"}`)
	assert.False(t, isErr)
	assert.Contains(t, text, "of 900 lines:\n700: the token of staging is amber-7")
	text, _ = ask(`{"id":7,"from":899}`)
	assert.Contains(t, text, "lines 899 to 900 of 900")
	for _, args := range []string{`{"id":7,"from":901}`, `{"id":7,"lines":-1}`, `{"id":7,"query":"zebra"}`, `{"id":7,"from":1,"lines":9,"query":"amber"}`} {
		_, isErr = ask(args)
		assert.True(t, isErr, args)
	}
	text, isErr = ask(`{"id":7,"from":-9223372036854775808,"lines":9223372036854775807}`)
	assert.False(t, isErr)
	assert.Contains(t, text, "[the rest is left out]")
}
