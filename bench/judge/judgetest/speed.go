package judgetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/bench/judge"
)

// Long returns the conversation of a coding agent: 600 messages with 300 kB of text, and
// the definitions of three tools.
func Long(b *testing.B) judge.Snapshot {
	h, err := convo.New(nil)
	require.NoError(b, err)
	add := func(msgs ...convo.Message) {
		_, err := h.Append(msgs...)
		require.NoError(b, err)
	}
	add(convo.System(strings.Repeat("You are a coding agent. ", 40)))
	output := strings.Repeat("func main() {\n\tfmt.Println(\"hello, \\\"world\\\"\")\n}\n", 40)
	for i := range 150 {
		call := convo.ToolCall{ID: fmt.Sprintf("call_%024d", i), Name: "read_file", Arguments: fmt.Sprintf(`{"path":"/src/pkg%d/main.go","line":%d}`, i, i)}
		add(convo.User("Please look at the next file and tell me what it does."),
			convo.Assistant("I will read it.", call), convo.Result(call, output),
			convo.Assistant("It prints a greeting. There is nothing else in it, and no test that covers it so far."))
	}
	return judge.Snapshot{Snapshot: h.Snapshot(), Tools: judge.Tools()}
}

// A Race is one thing done by convo and by an SDK.
type Race struct {
	Name       string
	Convo, SDK func() error
}

// Speed runs each race, with the two in turns, and reports the medians, and how many
// times longer the SDK takes.
func Speed(b *testing.B, races ...Race) {
	for _, r := range races {
		b.Run(r.Name, func(b *testing.B) {
			var took [2][]time.Duration
			for i := 0; b.Loop(); i++ {
				for _, turn := range []int{i % 2, 1 - i%2} {
					f := r.Convo
					if turn == 1 {
						f = r.SDK
					}
					start := time.Now()
					if err := f(); err != nil {
						b.Fatal(err)
					}
					took[turn] = append(took[turn], time.Since(start))
				}
			}
			for _, list := range took {
				slices.Sort(list)
			}
			ours, theirs := took[0][len(took[0])/2], took[1][len(took[1])/2]
			b.ReportMetric(float64(ours.Nanoseconds())/1e3, "us/convo")
			b.ReportMetric(float64(theirs.Nanoseconds())/1e3, "us/sdk")
			b.ReportMetric(float64(theirs)/float64(ours), "times")
			b.ReportMetric(0, "ns/op")
		})
	}
}
