package convoopenai_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/openai/openai-go/v3"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients/convoopenai"
	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/wire"
)

// agent answers each line of in until the end, in a window that never fills. It streams the
// answers to out, runs tools, keeps the first line of the user, and compacts in the
// background.
func agent(ctx context.Context, client openai.Client, in io.Reader, out io.Writer) error {
	params := openai.ChatCompletionNewParams{Model: "gpt-5.5"}
	sender := &convoopenai.ChatSender{Client: client, Params: params, Show: func(d wire.Delta) { fmt.Fprint(out, d.Text) }}
	h, err := convo.New(&convo.Options{
		Limits: convo.Limits{Window: 200_000}, Background: true, PinFirstUser: true,
		Strategy: convo.Chain(convo.ClearToolResults{}, convo.Summarize{With: sender.Summarizer("gpt-5.5-mini")}, convo.Truncate{}),
	})
	if err != nil {
		return err
	}
	defer h.Close()
	if err := h.SetSystem(convo.System("You know the weather.")); err != nil {
		return err
	}
	weather := convo.Handler{
		Tool: convo.Tool{Name: "weather", Description: "The weather in a city", Schema: `{"type":"object","properties":{"city":{"type":"string"}}}`},
		Run: func(_ context.Context, call convo.ToolCall) ([]convo.Part, error) {
			return []convo.Part{convo.Text("sunny, 21 °C")}, nil
		},
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if _, err := h.Append(convo.User(lines.Text())); err != nil {
			return err
		}
		reply, err := h.Run(ctx, sender.Send, convo.RunOptions{Tools: []convo.Handler{weather}})
		if err != nil {
			return err
		}
		fmt.Fprintf(out, " [%d tokens]\n", reply.Usage.Input)
	}
	return nil
}

func Example() {
	p := provider.New(provider.Options{}) // stands for the provider
	p.Script(
		provider.Answer{Blocks: []provider.Block{provider.Text("Let me look. "), provider.Call{Name: "weather", Arguments: `{"city":"Rome"}`}}},
		provider.Answer{Blocks: []provider.Block{provider.Text("It is sunny.")}, Usage: &provider.Usage{Input: 300, Output: 5}},
	)
	server := httptest.NewServer(p)
	defer server.Close()
	if err := agent(context.Background(), newClient(server.URL), strings.NewReader("How is the weather in Rome?\n"), os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output: Let me look. It is sunny. [300 tokens]
}

// A list that a program has kept until now becomes a History.
func ExampleChat_list() {
	p := provider.New(provider.Options{}) // stands for the provider
	p.Script(provider.Answer{Blocks: []provider.Block{provider.Text("Rain.")}})
	server := httptest.NewServer(p)
	defer server.Close()
	send := convoopenai.Chat(newClient(server.URL), openai.ChatCompletionNewParams{Model: "gpt-5.5"}, nil)
	call := openai.ChatCompletionMessageFunctionToolCallParam{ID: "t1", Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: "weather", Arguments: `{"city":"Rome"}`}}
	list := []openai.ChatCompletionMessageParamUnion{
		openai.SystemMessage("You know the weather."),
		openai.UserMessage("How is the weather in Rome?"),
		{OfAssistant: &openai.ChatCompletionAssistantMessageParam{
			ToolCalls: []openai.ChatCompletionMessageToolCallUnionParam{{OfFunction: &call}},
			Audio:     openai.ChatCompletionAssistantMessageParamAudio{ID: "audio_1"},
		}},
		openai.ToolMessage("sunny, 21 °C", "t1"),
		openai.UserMessage("And tomorrow?"),
	}

	data, err := json.Marshal(list) // []openai.ChatCompletionMessageParamUnion
	check(err)
	in, err := wire.OpenAIChat{}.Decode(data)
	check(err)
	fmt.Println("lost:", in.Lost)
	h, err := convo.Restore(convo.NewSnapshot(in.Messages), &convo.Options{Limits: convo.Limits{Window: 200_000}})
	check(err)
	_, err = h.Run(context.Background(), send, convo.RunOptions{}) // the list ends with a question
	check(err)
	for _, e := range h.Snapshot().All() {
		fmt.Println(e)
	}
	// Output:
	// lost: [[2].audio: kept in Meta alone]
	// 1 system: You know the weather.
	// 2 user: How is the weather in Rome?
	// 3 assistant: call weather({"city":"Rome"})
	// 4 tool: result of weather(sunny, 21 °C)
	// 5 user: And tomorrow?
	// 6 assistant: Rain.
}

// The answers are JSON that follows a schema, and the summary is text.
func ExampleChatSender_structured() {
	p := provider.New(provider.Options{Answer: func(r provider.Request) provider.Answer { // stands for the provider
		text := "The user asks how warm it is in several cities. It has 21 degrees in Rome."
		if strings.Contains(string(r.Body), `"response_format"`) {
			text = `{"city":"Rome","degrees":21}`
		}
		return provider.Answer{Blocks: []provider.Block{provider.Text(text)}}
	}})
	server := httptest.NewServer(p)
	defer server.Close()
	ctx, client := context.Background(), newClient(server.URL)

	params := openai.ChatCompletionNewParams{Model: "gpt-5.5"}
	params.ResponseFormat.OfJSONSchema = &openai.ResponseFormatJSONSchemaParam{
		JSONSchema: openai.ResponseFormatJSONSchemaJSONSchemaParam{Name: "weather", Strict: openai.Bool(true), Schema: json.RawMessage(
			`{"type":"object","properties":{"city":{"type":"string"},"degrees":{"type":"integer"}},"required":["city","degrees"],"additionalProperties":false}`,
		)},
	}
	sender := &convoopenai.ChatSender{Client: client, Params: params}
	h, err := convo.New(&convo.Options{
		Limits:   convo.Limits{Window: 8_000},
		Strategy: convo.Summarize{With: sender.Summarizer("gpt-5.5-mini")},
	})
	check(err)
	var answer struct {
		City    string
		Degrees int
	}
	for i := range 60 {
		_, err = h.Append(convo.User(fmt.Sprint("How warm is it in Rome on day ", i, "? ", strings.Repeat("Please be exact. ", 20))))
		check(err)
		reply, err := h.Run(ctx, sender.Send, convo.RunOptions{})
		check(err)
		check(json.Unmarshal([]byte(reply.Text()), &answer))
	}
	fmt.Println(answer.City, answer.Degrees)
	summary, _ := h.Snapshot().Summary()
	fmt.Println(summary.Text)
	// Output:
	// Rome 21
	// The user asks how warm it is in several cities. It has 21 degrees in Rome.
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
