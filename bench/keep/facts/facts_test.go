package facts

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-c1b73e60/convo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A talk is the same each time. Each fact that is needed was said 10 to 200 answers before, and
// is not said again.
func TestKind_Talk(t *testing.T) {
	for _, k := range Kinds() {
		talk := k.Talk(1)
		assert.Equal(t, talk, k.Talk(1), k.Name)
		assert.NotEqual(t, talk, k.Talk(2), k.Name)
		answers := make([]int, len(talk.Messages)+1) // before each message
		for i, m := range talk.Messages {
			answers[i+1] = answers[i]
			if m.Role == convo.RoleAssistant {
				answers[i+1]++
			}
		}
		assert.Equal(t, k.Turns, answers[len(talk.Messages)], k.Name)
		needed := 0
		for _, f := range talk.Facts {
			var said []int
			for i, m := range talk.Messages {
				if strings.Contains(shown(m), f.Text) {
					said = append(said, i)
				}
			}
			require.Len(t, said, 1, "%s: %s", k.Name, f.Text)
			for _, due := range f.Due {
				needed++
				require.Less(t, said[0], due, "%s: %s", k.Name, f.Text)
				require.Equal(t, convo.RoleAssistant, talk.Messages[due].Role)
				require.LessOrEqual(t, answers[due]-answers[said[0]], latest, "%s: %s", k.Name, f.Text)
			}
		}
		assert.Greater(t, needed, 50, k.Name)
	}
}

// A fact that was replaced is not needed any more.
func TestScript_Replace(t *testing.T) {
	s := newScript(1, 300)
	f := s.learn("the rent is forty")
	s.replace(f, "the rent is fifty")
	for range s.turns {
		s.user("Go on.")
		s.answer("Yes.")
	}
	assert.Empty(t, s.Facts[0].Due)
	assert.Len(t, s.Facts[1].Due, 1)
}

// A reader writes the shares of its skill, lists no fact that it was not given or that is not
// needed later, and writes no more than it may.
func TestReader_Write(t *testing.T) {
	w := newWords(3)
	var facts []Fact
	for range 2000 {
		facts = append(facts, Fact{Text: w.fact(), Due: []int{9}})
	}
	var text strings.Builder
	for _, f := range facts[:1000] {
		text.WriteString(f.Text + ".\n")
	}
	kept := func(summary string) (n int) {
		for _, f := range facts {
			if strings.Contains(summary, "- "+f.Text+"\n") {
				n++
			}
		}
		return n
	}
	all := (&reader{facts: facts, skill: ideal}).write("", text.String(), 9, 1e6, count) + "\n"
	assert.Equal(t, 1000, kept(all))
	r := &reader{facts: facts, skill: mediocre}
	first := r.write("", text.String(), 9, 1e6, count) + "\n"
	assert.InDelta(t, 1000*0.55*0.95, kept(first), 50)
	assert.InDelta(t, 1000*0.55*0.05, strings.Count(first, "something else"), 15)
	second := r.write(first, "", 9, 1e6, count) + "\n"
	assert.InDelta(t, 0.9*float64(kept(first)), kept(second), 25)
	assert.Zero(t, kept(r.write("", text.String(), 10, 1e6, count)+"\n"), "not needed any more")
	assert.Equal(t, 3, r.calls)
	short := (&reader{facts: facts, skill: ideal}).write("", text.String(), 9, 600, count) + "\n"
	assert.LessOrEqual(t, count(short), 600)
	assert.Positive(t, kept(short))
	later := &reader{facts: facts, skill: ideal, later: facts[0].Text + facts[999].Text}
	short = later.write("", text.String(), 9, 600, count) + "\n"
	assert.Positive(t, kept(short))
	assert.NotContains(t, short, facts[999].Text, "it leaves later, and there is no room")
	assert.Equal(t, 1000, kept(later.write("", text.String(), 9, 1e6, count)+"\n"))
}

// The policies of others keep what their sources say.
func TestRivals(t *testing.T) {
	talk := Talk{Messages: []convo.Message{convo.System("You help.")}}
	for i := range 40 {
		c := convo.ToolCall{ID: fmt.Sprint(i), Name: "look"}
		talk.Messages = append(talk.Messages, convo.User(fmt.Sprintf("Question %d. %s", i, strings.Repeat("please ", 20))), convo.Assistant("", c),
			convo.Result(c, strings.Repeat("result ", 40)), convo.Assistant("An answer."))
	}
	views := map[string][]convo.Message{}
	for _, p := range Policies()[3:] {
		d, err := p.desk(nil, 2_000)
		require.NoError(t, err)
		for _, m := range talk.Messages {
			require.NoError(t, d.keeper.add(m))
		}
		view, err := d.keeper.request()
		require.NoError(t, err)
		views[p.Name] = view
		assert.Equal(t, 1, d.score.Compactions, p.Name)
		assert.Equal(t, talk.Messages[0], view[0], p.Name)
	}
	code := views["Claude Code, ideal"]
	assert.Len(t, code, 2)
	assert.Contains(t, code[1].Text(), "## Facts")
	cli := views["Codex, ideal"]
	require.Greater(t, len(cli), 8)
	for _, m := range cli[1:] {
		assert.Equal(t, convo.RoleUser, m.Role)
	}
	assert.Contains(t, cli[len(cli)-1].Text(), "## Facts")
	assert.Contains(t, cli[len(cli)-2].Text(), "Question 39.")
	half := views["trim to half"]
	assert.NotEqual(t, convo.RoleTool, half[1].Role)
	assert.Equal(t, talk.Messages[len(talk.Messages)-1], half[len(half)-1])
}

// A score says what the requests held, and what everything cost.
func TestPolicy_Sit(t *testing.T) {
	talk := Kinds()[0].Talk(1)
	talk.Messages = talk.Messages[:401]
	for i := range talk.Facts {
		due := &talk.Facts[i].Due
		for len(*due) > 0 && (*due)[len(*due)-1] > 400 {
			*due = (*due)[:len(*due)-1]
		}
	}
	scores := map[string]Score{}
	for _, p := range Policies() {
		whole, err := p.Sit(talk, 1_000_000)
		require.NoError(t, err)
		assert.EqualValues(t, 1, whole.View(), p.Name)
		assert.Zero(t, whole.Compactions, p.Name)
		s, err := p.Sit(talk, 16_000)
		require.NoError(t, err)
		again, err := p.Sit(talk, 16_000)
		require.NoError(t, err)
		assert.Equal(t, s, again, p.Name)
		assert.Equal(t, whole.Asked, s.Asked, p.Name)
		assert.Less(t, s.Mean(), whole.Mean(), p.Name)
		assert.Positive(t, s.Compactions, p.Name)
		assert.Equal(t, strings.Contains(p.Name, "ideal") || strings.Contains(p.Name, "mediocre"), s.Calls > 0, p.Name)
		scores[p.Name] = s
	}
	for _, name := range []string{"convo", "Claude Code", "Codex"} {
		assert.Greater(t, scores[name+", ideal"].View(), scores[name+", mediocre"].View(), name)
		assert.Positive(t, scores[name+", ideal"].Side.Output, "the model's calls are billed")
	}
	assert.Greater(t, scores["convo, ideal"].View(), scores["trim to half"].View())
}

// An agent reads again what it does not see, and nothing else.
func TestPolicy_Work(t *testing.T) {
	set := Sets()[0]
	set.Edits = 30
	for _, p := range Policies() {
		small, err := p.Work(set)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, small.Rereads, small.Asked-small.Seen, p.Name)
		assert.Equal(t, 25, small.Asked, p.Name)
		wide := set
		wide.Window = 200_000
		all, err := p.Work(wide)
		require.NoError(t, err)
		assert.Zero(t, all.Rereads, p.Name)
		assert.Equal(t, 35, all.Requests, p.Name)
	}
}

// The picture has a line for each policy with sizes, and a dot for each point in each panel.
func TestDraw(t *testing.T) {
	var points []Point
	for i, name := range []string{"convo, default", "convo, ideal", "convo, mediocre", "trim"} {
		for _, low := range lows {
			points = append(points, Point{Policy: name, Low: low, View: 100*i + low, Tokens: 400 + low, Billed: 800 + 2*low})
		}
	}
	for _, p := range Policies()[3:7] {
		points = append(points, Point{Policy: p.Name, View: 900, Tokens: 500, Billed: 900})
	}
	drawn := string(Draw(points))
	assert.Equal(t, 2*len(points)+len(colours), strings.Count(drawn, "<circle"))
	assert.Equal(t, 2*4, strings.Count(drawn, `stroke-width="2"`))
	for _, c := range colours {
		assert.Contains(t, drawn, ">"+c.name+"</text>")
	}
}

func TestWrite(t *testing.T) {
	var b strings.Builder
	require.NoError(t, Write(&b, true, "agent in 8k,five files"))
	assert.Contains(t, b.String(), "| agent in 8k |")
	assert.Contains(t, b.String(), "| five files in turn")
	assert.NotContains(t, b.String(), "chat")
	assert.Contains(t, b.String(), "openai/codex")
}
