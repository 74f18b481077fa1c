package convo_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// Any counter plugs in.
func ExampleTokenizerFunc() {
	words := convo.TokenizerFunc(func(text string) int { return len(strings.Fields(text)) })
	h, _ := convo.New(&convo.Options{Tokenizer: words, Overheads: convo.Overheads{Message: -1}})
	h.Append(convo.User("one two three"))
	fmt.Println(h.Tokens().Tokens)
	// Output:
	// 3
}

// A usage report is bound to the snapshot that was sent: what came since is
// added.
func ExampleHistory_RecordUsage() {
	words := convo.TokenizerFunc(func(text string) int { return len(strings.Fields(text)) })
	h, _ := convo.New(&convo.Options{Tokenizer: words, Overheads: convo.Overheads{Message: -1}})
	h.Append(convo.User("one two three"))
	sent := h.Snapshot()
	h.Append(convo.Assistant("four five"))

	err := h.RecordUsage(sent, convo.Usage{Input: 1003}) // 1,000 of tool schemas
	fmt.Printf("%v %+v\n", err, h.Tokens())
	// Output:
	// <nil> {Tokens:1005 Upper:1007 Measured:1003}
}

// Calibration is kept apart by model.
func ExampleHistory_SetModel() {
	h, _ := convo.New(nil)
	h.Append(convo.User("Hi"))
	h.SetModel("large")
	h.RecordUsage(h.Snapshot(), convo.Usage{Input: 900})
	h.SetModel("small")
	small := h.Tokens().Tokens
	h.SetModel("large")
	fmt.Println(small < 10, h.Tokens().Tokens)
	// Output:
	// true 900
}

func ExampleHistory_Status() {
	h, _ := convo.New(&convo.Options{Limits: convo.Limits{Window: 100_000}})
	h.Append(convo.System("Be brief."), convo.User("Hi"))
	s := h.Status()
	fmt.Println(s.Entries, s.Turns, s.OpenCalls)
	fmt.Println(s.Window, s.Limit, s.High, s.Soft, s.Low, s.MinFree)
	// Output:
	// 2 1 0
	// 100000 87500 87500 65625 43750 10937
}

// Limits that contradict each other are all reported at once.
func ExampleHistory_SetLimits() {
	h, _ := convo.New(nil)
	fmt.Println(h.SetLimits(convo.Limits{Window: 1000, Reserve: -1, High: 2000, Soft: 900}))
	// Output:
	// convo: Limits.High is 2000, want at most Window - Reserve, 1000
	// convo: Limits.Soft is 900, want more than Low, 1000
}

// Histories and sub-agents share a pool.
func ExampleBudget() {
	pool := convo.NewBudget(1000)
	share, err := pool.Reserve(600)
	fmt.Println(err, pool.Free())

	_, err = pool.Reserve(500)
	fmt.Println(err, errors.Is(err, convo.ErrBudget))

	h, _ := convo.New(&convo.Options{Budget: pool})
	h.Append(convo.User(strings.Repeat("word ", 100)))
	fmt.Println(pool.Free() < 400)

	h.Close()
	share.Release()
	share.Release() // once is enough
	fmt.Println(pool.Free())
	// Output:
	// <nil> 400
	// convo: budget: need 500 tokens, 400 are free true
	// true
	// 1000
}

// What is assumed of a model until its first report, by the beginning of its
// name.
func ExampleOptions_priors() {
	words := convo.TokenizerFunc(func(text string) int { return len(strings.Fields(text)) })
	h, _ := convo.New(&convo.Options{
		Tokenizer: words,
		Overheads: convo.Overheads{Message: -1},
		Priors:    map[string]convo.Prior{"claude-": {Ratio: 120, Margin: 25}},
	})
	h.Append(convo.User(strings.Repeat("word ", 1000)))
	for _, model := range []string{"gpt-4o", "claude-opus-4-5"} {
		h.SetModel(model)
		fmt.Printf("%s %+v\n", model, h.Tokens())
	}
	// Output:
	// gpt-4o {Tokens:1000 Upper:1125 Measured:0}
	// claude-opus-4-5 {Tokens:1200 Upper:1500 Measured:0}
}
