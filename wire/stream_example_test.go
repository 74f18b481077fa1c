package wire_test

import (
	"fmt"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// An answer is shown while it arrives. At its end it is the answer that Decode returns
// for the whole response.
func ExampleRead() {
	body := strings.NewReader(`data: {"choices":[{"delta":{"content":"The 9:10, "}}]}

data: {"choices":[{"delta":{"content":"from platform 3."}}]}

data: {"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":12,"completion_tokens":9}}

data: [DONE]

`)
	s := wire.OpenAIChat{}.Stream()
	for delta, err := range wire.Read(body, s) {
		if err != nil {
			panic(err)
		}
		fmt.Printf("%q\n", delta.Text)
	}
	answer, err := s.Transcript()
	fmt.Println(answer.Messages[0].Text(), answer.Usage.Output, err)
	// Output:
	// "The 9:10, "
	// "from platform 3."
	// The 9:10, from platform 3. 9 <nil>
}

// An Encoder is kept with its conversation. Its requests are the same as those of its
// format.
func ExampleEncoder() {
	h, err := convo.New(nil)
	if err != nil {
		panic(err)
	}
	e := &wire.Encoder{Format: wire.Gemini{}}
	for _, text := range []string{"Which train?", "And back?"} {
		if _, err := h.Append(convo.User(text)); err != nil {
			panic(err)
		}
		req, err := e.Encode(h.Snapshot())
		if err != nil {
			panic(err)
		}
		fmt.Println(string(req.Body()))
		if _, err := h.Append(convo.Assistant("The 9:10.")); err != nil {
			panic(err)
		}
	}
	// Output:
	// {"contents":[{"role":"user","parts":[{"text":"Which train?"}]}]}
	// {"contents":[{"role":"user","parts":[{"text":"Which train?"}]},{"role":"model","parts":[{"text":"The 9:10."}]},{"role":"user","parts":[{"text":"And back?"}]}]}
}
