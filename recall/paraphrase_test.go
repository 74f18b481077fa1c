package recall_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/recall"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// asked are facts in plain words, a question that uses their words, and a question that shares none of
// their rare words.
var asked = [][3]string{
	{"My sister is allergic to walnuts, so no cake with them.", "what is my sister allergic to", "which nuts may she not eat"},
	{"We agreed that the launch slips to the second week of May.", "when is the launch", "at what date do we go live"},
	{"The client wants the invoice in Swiss francs.", "currency of the invoice for the client", "how should the customer be billed"},
	{"Never restart the database during office hours.", "may I restart the database", "is it fine to reboot postgres at noon"},
	{"The landlord accepts dogs but no cats.", "which pets does the landlord accept", "can I move in with a kitten"},
	{"Her flight lands in Lisbon at a quarter past nine.", "when does her flight land in Lisbon", "what time is the plane from Portugal due"},
	{"The tests fail because the clock of the runner is an hour slow.", "why do the tests fail", "what is the cause of the red build"},
	{"I prefer tabs over spaces in all new files.", "tabs or spaces", "which indentation does the user like"},
	{"The contract ends after eighteen months unless somebody renews it.", "when does the contract end", "how long does the agreement last"},
	{"Grandfather worked as a beekeeper near Toledo.", "where did grandfather work", "what was his job in Spain"},
	{"The cheapest supplier of copper wire is Norden.", "who is the cheapest supplier of copper wire", "from whom do we buy cables at the best price"},
	{"The old parser cannot read nested comments.", "what can the old parser not read", "which syntax breaks our previous reader"},
	{"We meet in the library because the office is being painted.", "why do we meet in the library", "what is the reason for the other place"},
	{"The doctor said to take the tablets after meals.", "when to take the tablets", "is the medicine for before or after eating"},
	{"The bridge is closed to lorries over seven tonnes.", "which lorries may not use the bridge", "how heavy can a truck be to cross"},
	{"Our mascot is a blue heron called Otto.", "what is our mascot called", "name of the bird on the logo"},
	{"The warranty does not cover damage by water.", "does the warranty cover water", "will they pay if it gets wet"},
	{"Marta will present the budget instead of Jens.", "who presents the budget", "which of them talks about money"},
	{"The red cable must stay unplugged while the pump runs.", "which cable must stay unplugged", "what wire should not be connected"},
	{"The museum lets students in for free on Thursdays.", "when do students get in for free", "what day costs nothing for learners"},
	{"Use the staging mirror, since the primary one is rate limited.", "which mirror to use", "where should downloads come from"},
	{"The recipe needs half the sugar at this altitude.", "how much sugar does the recipe need", "should it be as sweet in the mountains"},
	{"He was born in the year of the great flood.", "when was he born", "how old is he"},
	{"The report must not mention the merger.", "what must the report not mention", "which topic is secret in the paper"},
}

// TestIndex_Paraphrased measures how many of the facts are among the first five that a search
// finds, of 1,200 messages. docs/strategies.md has the figures.
func TestIndex_Paraphrased(t *testing.T) {
	rng := rand.New(rand.NewPCG(52, 1))
	seen := make(map[string]int) // in how many facts and questions
	for _, a := range asked {
		for _, text := range a {
			for word := range strings.FieldsSeq(strings.ToLower(strings.Trim(text, "."))) {
				seen[word]++
			}
		}
	}
	var common []string
	for _, word := range slices.Sorted(maps.Keys(seen)) {
		if seen[word] > 2 {
			common = append(common, word)
		}
	}
	ix := new(recall.Index)
	for i := range convo.ID(1200) {
		if i%50 == 7 {
			ix.Add(entry(i+1, asked[i/50][0]))
			continue
		}
		var b strings.Builder // the other messages have the common words and words of their own
		for n := range 30 {
			word := common[rng.IntN(len(common))]
			if n%2 == 0 {
				word = fmt.Sprint("word", rng.IntN(2000))
			}
			b.WriteString(word + " ")
		}
		ix.Add(entry(i+1, b.String()))
	}
	found := func(of int) (n int) {
		for k, a := range asked {
			for _, id := range ids(ix.Search(a[of], 5)) {
				if id == convo.ID(50*k+8) {
					n++
				}
			}
		}
		return n
	}
	page, err := os.ReadFile("../docs/strategies.md")
	require.NoError(t, err)
	want := fmt.Sprintf("\n  %d with the words of the fact, and %d with none of its rare words,", found(1), found(2))
	if !strings.Contains(string(page), want) {
		t.Errorf("docs/strategies.md lacks %q", want)
	}
	assert.Len(t, asked, 24)
}
