package repotest_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/wire"
)

// vocabulary is what texts consist of.
var vocabulary = strings.Fields(`the quick brown fox "jumps" over \ the lazy dog <tag> @abcdefg @abcdefh été 今天 😀 line\nbreak {"a":1} [1,2] ]]> & 	tab null`)

// randomText returns up to n words, among them what is escaped or masked.
func randomText(r *rand.Rand, n int) string {
	var b strings.Builder
	for range r.IntN(n) + 1 {
		b.WriteString(vocabulary[r.IntN(len(vocabulary))])
		b.WriteByte(" \n\t"[r.IntN(3)])
	}
	return b.String()
}

// The same conversations give the same bytes in every format, since a provider's prompt
// cache goes by them. If a change means to alter requests, put the new sum here and say so
// in the CHANGELOG.
func TestRequests_StayTheSame(t *testing.T) {
	want := map[int]string{ // by the number of conversations
		100:  "b2b3abf7bff886da19eb70155d09551771fbc3220a1952e272b1a200e64c09ae",
		1000: "6beed7864ef608b63f1dfe2d3931e38fd59ffe468d34f5bfb9b10c679e3d8c08",
	}
	total := sha256.New()
	formats := []wire.Format{
		wire.Anthropic{}, wire.Converse{}, wire.Gemini{}, wire.OpenAIChat{}, wire.OpenAIChat{Dialect: wire.Mistral}, wire.OpenAIChat{Dialect: wire.Gemma}, wire.OpenAIChat{Dialect: wire.DeepSeek},
		wire.OpenAIResponses{}, wire.Anthropic{CacheTools: true, SystemSummary: true}, wire.OpenAIChat{Host: "openrouter.ai", Model: "m"},
	}
	names := []string{"anthropic", "openai-chat", "openai-responses", "gemini", "converse"}
	requests := 0
	seeds := long.Or(100, 1000)
	for seed := range seeds {
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		h := historyOf(t, &convo.Options{Roles: convo.Relaxed(), TagKey: "@abcdefg"})
		add := func(m convo.Message) { mustAppend(t, h, m) }
		if r.IntN(2) == 0 {
			add(convo.System(randomText(r, 20)))
		}
		for i := range 4 + r.IntN(20) {
			u := convo.User(randomText(r, 30))
			if r.IntN(3) == 0 {
				u.Author = []string{"ann", "bob", "x y"}[r.IntN(3)]
			}
			if r.IntN(6) == 0 {
				u.Parts = append(u.Parts, convo.NewMedia("image/png", []byte(randomText(r, 9))))
			}
			add(u)
			a := convo.Assistant(randomText(r, 30))
			a.Origin = convo.Origin{Format: names[r.IntN(5)], Model: "m"}
			if r.IntN(3) == 0 {
				a.Parts = append([]convo.Part{convo.Reasoning{ID: fmt.Sprint("rs", i), Text: randomText(r, 9), Signature: "c2ln", Encrypted: "ZW5j"}}, a.Parts...)
			}
			if r.IntN(6) == 0 {
				a.Parts = append([]convo.Part{convo.Opaque{Format: a.Origin.Format, JSON: `{"type":"server_tool_use","id":"s` + fmt.Sprint(i) + `","name":"web_search","input":{}}`}}, a.Parts...)
			}
			var calls []convo.ToolCall
			for k := range r.IntN(3) {
				args, _ := json.Marshal(map[string]string{"q": randomText(r, 5)})
				if r.IntN(9) == 0 {
					args = []byte("no json")
				}
				c := convo.ToolCall{ID: fmt.Sprintf("c%d_%d", i, k), Name: []string{"search", "run it", "a.b"}[r.IntN(3)], Arguments: string(args)}
				calls = append(calls, c)
				a.Parts = append(a.Parts, c)
			}
			add(a)
			for _, c := range calls {
				res := convo.Result(c, randomText(r, 60))
				if r.IntN(8) == 0 {
					res = convo.ResultError(c, fmt.Errorf("%s", randomText(r, 4)))
				}
				add(res)
			}
			if len(calls) > 0 && r.IntN(2) == 0 {
				add(convo.Assistant(randomText(r, 9)))
			}
		}
		if r.IntN(2) == 0 {
			var drop []convo.ID
			n := 0
			want := r.IntN(6)
			for x := range h.Snapshot().Exchanges() {
				if x.Floor {
					continue
				}
				if n++; n > want {
					break
				}
				drop = append(drop, x.IDs()...)
			}
			e := convo.Edit{Drop: drop}
			if r.IntN(2) == 0 && len(drop) > 0 {
				e.Summary = &convo.Summary{Text: randomText(r, 30)}
			}
			if len(drop) > 0 {
				_, err := h.Apply(h.Snapshot(), e)
				require.NoError(t, err)
			}
		}
		if r.IntN(4) == 0 {
			require.NoError(t, h.SetEphemeral(convo.User(randomText(r, 10))))
		}
		if r.IntN(2) == 0 {
			f := formats[r.IntN(len(formats))]
			enc := &wire.Encoder{Format: f}
			_, _ = enc.Encode(h.Snapshot())
			add(convo.User(randomText(r, 9)))
			req, err := enc.Encode(h.Snapshot())
			_, _ = fmt.Fprintln(total, string(req.System), err != nil)
			for _, m := range req.Messages {
				total.Write(m)
			}
		}
		for _, f := range formats {
			req, err := f.Encode(h.Snapshot())
			if err != nil {
				_, _ = fmt.Fprintln(total, "error", err)
				continue
			}
			body, err := req.With(map[string]any{"model": "m"})
			require.NoError(t, err)
			requests++
			total.Write(body)
		}
	}
	assert.Equal(t, 10*seeds, requests)
	assert.Equal(t, want[seeds], fmt.Sprintf("%x", total.Sum(nil)))
}
