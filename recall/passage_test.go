package recall_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/recall"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A word counts in a long message as much as in the part that has it most, and a long
// message is found by any of its parts.
func TestIndex_LongMessages(t *testing.T) {
	filler := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "line %d says little of %d\n", i, i*7919)
		}
		return b.String()
	}
	ix := new(recall.Index)
	ix.Add(entry(1, filler(80)+"the quota of the vault: the quota is 17\n"+filler(80)))
	ix.Add(entry(2, filler(600)+strings.Repeat("a quota\n"+filler(300), 5)))
	ix.Add(entry(3, "nothing of it"), entry(4, "nor here"))
	assert.Equal(t, []convo.ID{1, 2}, ids(ix.Search("quota", 5)), "twice in one place is more than five times far apart")
	assert.Equal(t, []convo.ID{2}, ids(ix.Search("3634821", 5)), "its line 459 alone has this number")
	assert.Equal(t, []convo.ID{2}, ids(ix.Search("4743481", 5)), "as has its line 599")
}

// What removals leave is found by all of its parts.
func TestIndex_LongMessagesAfterPacking(t *testing.T) {
	ix := new(recall.Index)
	for i := convo.ID(1); i <= 300; i++ {
		ix.Add(entry(i, strings.Repeat(fmt.Sprintf("first%d ", i), 900)+strings.Repeat(fmt.Sprintf("last%d ", i), 900)))
	}
	for i := convo.ID(1); i <= 300; i++ {
		if i%5 != 0 {
			require.Equal(t, 1, ix.Remove(i))
		}
	}
	for i := convo.ID(1); i <= 300; i++ {
		want := []convo.ID(nil)
		if i%5 == 0 {
			want = []convo.ID{i}
		}
		assert.Equal(t, want, ids(ix.Search(fmt.Sprintf("first%d", i), 5)))
		assert.Equal(t, want, ids(ix.Search(fmt.Sprintf("last%d", i), 5)))
	}
}

// A message that has the rest of the query comes before more of the same.
func TestIndex_Varied(t *testing.T) {
	ix := new(recall.Index)
	for i := convo.ID(1); i <= 30; i++ {
		ix.Add(entry(i, "nothing of it here"))
	}
	for i := convo.ID(31); i <= 40; i++ {
		ix.Add(entry(i, "deploy the gateway to the region"))
	}
	ix.Add(entry(41, "the certificate expires"))
	assert.Equal(t, []convo.ID{40, 41, 39}, ids(ix.Search("deploy gateway region certificate", 3)))
	all := ids(ix.Search("deploy gateway region certificate", 100))
	assert.Len(t, all, 11)
	assert.ElementsMatch(t, []convo.ID{31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41}, all)
}

// The arguments of a call are found by the words in their strings, whatever their escapes.
func TestIndex_EscapedArguments(t *testing.T) {
	ix := new(recall.Index)
	for i, args := range []string{
		1: `{"text":"func main() {\n\tserveForever()\n}","path":"cmd\/main.go"}`,
		2: `{"text":"caf\u00e9 \ud83d\ude00smile \ud83d x"}`,
		3: `{"text":"not\nJSON`,
		4: `{"path":"C:\\temp\\notes"}`,
	} {
		if args != "" {
			ix.Add(convo.Entry{ID: convo.ID(i), Message: convo.Assistant("", convo.ToolCall{ID: "c", Name: "write", Arguments: args})})
		}
	}
	for query, want := range map[string]convo.ID{
		"serveForever": 1, "cmd/main.go": 1, "café": 2, "smile": 2, "JSON": 3, "notes": 4, "temp": 4,
	} {
		assert.Equal(t, []convo.ID{want}, ids(ix.Search(query, 5)), query)
	}
	assert.Contains(t, ix.Search("serveForever", 1)[0].Excerpt, "{ serveForever() }")
	e, ok := ix.Get(1)
	require.True(t, ok)
	assert.Contains(t, e.Message.ToolCalls()[0].Arguments, `\n\t`)
}
