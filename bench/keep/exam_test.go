package keep

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/bench/internal/plot"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A talk is the same each time, and each of its needles stands in its message alone,
// beside the words that it is asked for by.
func TestNewTalk(t *testing.T) {
	talk := NewTalk(1, 400_000)
	assert.Equal(t, talk, NewTalk(1, 400_000))
	assert.NotEqual(t, talk, NewTalk(2, 400_000))
	require.Greater(t, len(talk.Needles), 25)
	for _, n := range talk.Needles {
		for i, m := range talk.Messages {
			assert.Equal(t, i == n.Entry, strings.Contains(key(m), n.Text), "%+v, message %d", n, i)
		}
		assert.Contains(t, key(talk.Messages[n.Entry]), n.Query)
		assert.NotContains(t, n.Query, n.Text)
	}
}

// The key of a message holds each of its texts once.
func TestKey(t *testing.T) {
	c := convo.ToolCall{ID: "c1", Name: "look", Arguments: `{"at":"the well"}`}
	for text, m := range map[string]convo.Message{"a rope": convo.Result(c, "a rope"), "the well": convo.Assistant("", c), "hello": convo.User("hello")} {
		assert.Equal(t, 1, strings.Count(key(m), text), key(m))
	}
}

// The talk of an agent is the same each time. Each of its needles stands in its message, is
// needed after that, and is asked for by other words.
func TestAgent_Talk(t *testing.T) {
	steps := long.Or(50, 100)
	agent := Agent{Steps: steps, Calls: 2, Users: 30, Window: 128_000, Seed: 1}
	talk := agent.Talk()
	assert.Equal(t, talk, agent.Talk())
	require.Greater(t, len(talk.Needles), steps/25*6, "every 25 steps the task and five rules, at least")
	edits := 0
	for _, n := range talk.Needles {
		require.Less(t, n.Entry, n.Due)
		assert.Contains(t, said(talk.Messages[n.Entry]), n.Text)
		assert.NotContains(t, n.Query, n.Text)
		if strings.HasPrefix(n.Text, "edit-") {
			edits++
		}
	}
	assert.Positive(t, edits)
}

// The exam says of each needle where it is, and of those that left whether recall has them.
func TestScore_Sit_Places(t *testing.T) {
	filler := strings.Repeat("nothing of note here ", 300)
	talk := Talk{Needles: []Needle{
		{Text: "srv/a_1", Query: "where is the ledger kept"},
		{Text: "srv/b_2", Query: "where is the vault kept"},
		{Text: "srv/c_3", Query: "zebra"},
		{Text: "srv/d_4", Query: "where is the queue kept"},
		{Text: "srv/e_5", Query: "where is the mirror kept"},
	}}
	for _, text := range []string{
		"The ledger is kept in srv/a_1.", "The vault is kept in srv/b_2.", "The tenant is kept in srv/c_3.", "The queue is kept in srv/d_4.",
		filler, filler, filler, filler, "The mirror is kept in srv/e_5.",
	} {
		talk.Messages = append(talk.Messages, convo.User(text), convo.Assistant("Noted."))
	}
	var score Score
	require.NoError(t, score.Sit(talk, 6_000, summarised("", func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
		return convo.Summary{Text: "There is srv/a_1.", Names: "srv/b_2"}, nil
	}, func(s *convo.Snapshot, _ convo.Goal) []convo.ID { return oldest(s, 0) })))
	assert.Equal(t, 5, score.Needles)
	assert.Equal(t, 1, score.View, "srv/e_5 is new")
	assert.Equal(t, 2, score.Summary, "one in its text, one in its names")
	assert.Equal(t, 2, score.Gone)
	assert.Equal(t, [3]int{1, 1, 1}, score.Hits, "no message has a zebra")
	assert.InDelta(t, 0.6, score.Kept(), 1e-9)
	assert.InDelta(t, 0.5, score.Recalled(1), 1e-9)
}

// The exam sees what a strategy keeps, where it keeps it, and what it loses.
func TestScore_Sit(t *testing.T) {
	talk := NewTalk(1, 400_000)
	sit := func(s convo.CompactionStrategy) (score Score) {
		require.NoError(t, score.Sit(talk, 16_000, s))
		assert.Equal(t, score.Needles, score.View+score.Summary+score.Gone)
		assert.Len(t, talk.Needles, score.Needles, "every policy has the same needles")
		assert.Positive(t, score.After)
		return score
	}
	ours := sit(nil)
	none := sit(convo.Chain(convo.SlidingWindow{KeepLast: 2, TriggerAt: 20}, convo.Truncate{}))
	assert.Greater(t, ours.Kept(), 2*none.Kept())
	assert.Zero(t, none.Summary)
	for k := range found {
		assert.GreaterOrEqual(t, ours.Recalled(k), 0.9, "planted facts are asked for by their own words")
	}

	var all strings.Builder // a summary that has every needle
	for _, n := range talk.Needles {
		all.WriteString(n.Text + " ")
	}
	told := sit(summarised("tells all", func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
		return convo.Summary{Text: all.String()}, nil
	}, tailOf(recentTokens)))
	assert.Zero(t, told.Gone)
	assert.Positive(t, told.Summary)
}

// With a good part of the window, the default is not beaten by what others do: none of
// them keeps as much in fewer tokens.
func TestExam_DefaultIsOnTheFront(t *testing.T) {
	windows := long.Or([]int{16_000}, []int{16_000, 32_000, 64_000})
	all, err := Exam("generated", windows, Generated(1))
	require.NoError(t, err)
	assert.Len(t, all, len(windows)*len(Policies()))
	for _, window := range windows {
		assert.Contains(t, Front(all, window), "convo, default")
	}
	for _, r := range all {
		assert.Zero(t, r.Over, "%s, %d", r.Policy, r.Window)
		assert.GreaterOrEqual(t, r.Recalled(1), 0.9, "%s, %d", r.Policy, r.Window)
	}
}

// Each policy of others says after which project it is rebuilt.
func TestPolicies(t *testing.T) {
	names := map[string]bool{}
	for _, p := range Policies() {
		assert.False(t, names[p.Name], p.Name)
		names[p.Name] = true
		assert.Equal(t, strings.HasPrefix(p.Name, "convo, "), p.Source == "", p.Name)
	}
	var b strings.Builder
	require.NoError(t, writeNotes(&b))
	for _, project := range []string{"LangChain", "Anthropic", "hermes-agent", "pi,", "Codex", "opencode"} {
		assert.Contains(t, b.String(), project)
	}
}

// The summary of hermes-agent's lean mode holds what code adds to it, the newest first.
func TestWithAnchors(t *testing.T) {
	req := convo.SummaryRequest{MaxTokens: 120, Count: convo.Heuristic{}.CountTokens}
	for i := range 40 {
		req.Messages = append(req.Messages, convo.User(fmt.Sprintf("open srv/conf_%d please", i)))
	}
	summary, err := withAnchors(Mediocre)(t.Context(), req)
	require.NoError(t, err)
	_, after, ok := strings.Cut(summary.Text, "## User messages\n")
	require.True(t, ok)
	users, anchors, ok := strings.Cut(after, "\n## Anchors\n")
	require.True(t, ok)
	for _, text := range []string{users, anchors} {
		assert.Contains(t, text, "srv/conf_39")
		assert.NotContains(t, text, "srv/conf_1 ")
		assert.LessOrEqual(t, req.Count(text), 45)
	}
	req.Previous, req.Messages = summary.Text, req.Messages[:1]
	summary, err = withAnchors(Mediocre)(t.Context(), req)
	require.NoError(t, err)
	assert.Contains(t, summary.Text, "srv/conf_39", "what the summary before held is older, and stays while there is room")
}

// The picture is an XML document with the name and the number of each policy. No label
// covers another one or a dot, even where policies are close to each other.
func TestDraw(t *testing.T) {
	var all []Result
	for w, window := range []int{16_000, 32_000, 64_000, 128_000} {
		kind := []string{"talks", "talks", "talks", "runs"}[w]
		for i, p := range Policies() {
			at := []int{i * 7, 0, i % 5, 50 + i/4}[w] // far apart, not drawn, close, and in heaps
			all = append(all, Result{Kind: kind, Policy: p.Name, Window: window, Score: Score{Needles: 100, View: at, Tokens: int64(window * at / 100), After: 1}})
		}
	}
	drawn := Draw(pointsOf(all))
	for _, p := range Policies() {
		assert.Contains(t, string(drawn), ">"+p.Name+"</text>")
	}
	assert.Equal(t, 4*len(Policies()), strings.Count(string(drawn), "<circle"), "three panels and the legend")
	assert.NotContains(t, string(drawn), "talks, window of 32,000", "between the others")

	number := regexp.MustCompile(`^\d+(, \d+)*$`)
	var labels, dots []plot.Box
	numbers := 0
	isText := false
	var x, y int
	for d := xml.NewDecoder(bytes.NewReader(drawn)); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			isText = token.Name.Local == "text"
			for _, a := range token.Attr {
				switch v, _ := strconv.Atoi(a.Value); a.Name.Local {
				case "x", "cx":
					x = v
				case "y", "cy":
					y = v
				}
			}
			if token.Name.Local == "circle" {
				dots = append(dots, plot.Box{Left: x - dot, Top: y - dot, Right: x + dot, Bottom: y + dot})
			}
		case xml.CharData:
			if s := string(token); isText && number.MatchString(s) {
				numbers += 1 + strings.Count(s, ",")
				wide := digit * len(s)
				labels = append(labels, plot.Box{Left: x - wide/2, Top: y - 5 - letter/2, Right: x + wide/2, Bottom: y - 5 + letter/2})
			}
		}
	}
	assert.Equal(t, 4*len(Policies()), numbers)
	for i, l := range labels[:len(labels)-len(Policies())] {
		for k, o := range labels {
			assert.False(t, i != k && l.Covers(o), "label %d covers label %d", i, k)
		}
		for k, o := range dots {
			assert.False(t, l.Covers(o), "label %d covers dot %d", i, k)
		}
	}
}

// An identifier that a later message uses is a needle there, unless it stands in many.
func TestRealTalks(t *testing.T) {
	dir := t.TempDir()
	lines := `{"messages":[{"role":"system","content":"use read_file"},{"role":"user","content":"fix load_config in src/main.go"},` +
		`{"role":"assistant","content":"I look.","tool_calls":[{"id":"call_77aa","function":{"name":"read_file","arguments":"{\"path\":\"src/main.go\",\"why\":\"a\\nnewValue\"}"}}]},` +
		`{"role":"tool","tool_call_id":"call_77aa","content":"func main"},` +
		`{"role":"user","content":"go on"},{"role":"assistant","content":"now load_config is right, with newValue"}]}
[{"role":"user","content":"load_config"},{"role":"assistant","content":"load_config?"}]`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.jsonl"), []byte(lines), 0o600))
	talks, err := RealTalks(dir)
	require.NoError(t, err)
	require.Len(t, talks, 1)
	assert.Len(t, talks[0].Messages, 8)
	assert.Equal(t, []Needle{
		{Text: "src/main.go", Query: "I look.\npath   why a\nnewValue \n", Entry: 1, Due: 2},
		{Text: "load_config", Query: "now   is right, with newValue\n", Entry: 1, Due: 5},
		{Text: "newValue", Query: "now load_config is right, with  \n", Entry: 2, Due: 5},
		{Text: "load_config", Query: " ?\n", Entry: 6, Due: 7},
	}, talks[0].Needles, "the last one stands in its own conversation, and call IDs and names of tools are no needles")
	assert.Empty(t, Real(talks)(1000), "all of them are near")
	assert.Len(t, Real(talks)(3), 1)
}

// A needle is due if more than a window stands between its newest mention and its use.
func TestReal(t *testing.T) {
	filler := strings.Repeat("nothing of note here ", 300)
	size := convo.Heuristic{}.CountTokens(filler)
	msgs := []convo.Message{
		convo.User("srv/conf_1 and srv/conf_2"), convo.Assistant(filler),
		convo.User("srv/conf_2"), convo.Assistant(filler), convo.User("both srv/conf_1 and srv/conf_2"),
	}
	talks := []Talk{{Messages: msgs, Needles: needlesIn(msgs)}}
	require.Len(t, talks[0].Needles, 3)
	near, far := Real(talks)(size*3/4), Real(talks)(size*5/4)
	assert.Len(t, near[0].Needles, 3)
	require.Len(t, far, 1)
	require.Len(t, far[0].Needles, 1)
	assert.Equal(t, "srv/conf_1", far[0].Needles[0].Text)
	assert.Equal(t, 4, far[0].Needles[0].Due)

	msgs[2] = convo.User("srv/conf_2 and srv/conf_11")
	assert.Empty(t, Real([]Talk{{Messages: msgs, Needles: needlesIn(msgs)}})(size*5/4), "srv/conf_1 is part of a newer word")
}
