package recipes_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients"
	"github.com/seed-c1b73e60/convo/examples/recipes"
	"github.com/seed-c1b73e60/convo/wire"
)

func ExampleServer() {
	s := recipes.Server{Send: echo, Options: convo.Options{Limits: convo.Limits{Window: 128_000}}}
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	post := func(do, body string) {
		fmt.Println("POST", do, body)
		resp, err := http.Post(server.URL+"/anna/"+do, "application/json", strings.NewReader(body))
		check(err)
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			fmt.Print(resp.StatusCode, " ")
		}
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			if line := lines.Text(); line != "" {
				fmt.Println(line)
			}
			if strings.Contains(lines.Text(), "Wait") { // the user presses a key
				stopped, err := http.Post(server.URL+"/anna/stop", "", nil)
				check(err)
				stopped.Body.Close()
			}
		}
	}
	post("message", `{"text":"Flights to Roma?"}`)
	post("edit", `{"id":1,"text":"Flights to Rome?"}`)
	post("edit", `{"id":1,"text":"Flights to Bern?"}`) // in another tab
	post("regenerate", `{"id":3}`)
	post("message", `{"text":"Wait."}`)
	// Output:
	// POST message {"text":"Flights to Roma?"}
	// data: {"question":1}
	// data: {"text":"You said: "}
	// data: {"text":"Flights to Roma?"}
	// data: {"done":true}
	// POST edit {"id":1,"text":"Flights to Rome?"}
	// data: {"question":3}
	// data: {"text":"You said: "}
	// data: {"text":"Flights to Rome?"}
	// data: {"done":true}
	// POST edit {"id":1,"text":"Flights to Bern?"}
	// 409 convo: stale snapshot: entry 1 was taken back; read the conversation again
	// POST regenerate {"id":3}
	// data: {"question":3}
	// data: {"text":"You said: "}
	// data: {"text":"Flights to Rome?"}
	// data: {"done":true}
	// POST message {"text":"Wait."}
	// data: {"question":6}
	// data: {"text":"You said: "}
	// data: {"text":"Wait."}
	// data: {"done":true}
}

// A second question ends the answer to the first, and is answered.
func TestServer_SecondQuestion(t *testing.T) {
	s := recipes.Server{Send: echo}
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	ask := func(text string) *http.Response {
		resp, err := http.Post(server.URL+"/anna/message", "application/json", strings.NewReader(`{"text":"`+text+`"}`))
		require.NoError(t, err)
		return resp
	}
	first := ask("Wait.")
	defer first.Body.Close()
	lines := bufio.NewReader(first.Body)
	for line := ""; !strings.Contains(line, "Wait."); {
		var err error
		line, err = lines.ReadString('\n')
		require.NoError(t, err)
	}
	second := ask("Hello")
	defer second.Body.Close()
	for body, end := range map[io.Reader]string{lines: `{"done":true}`, second.Body: `{"text":"Hello"}`} {
		rest, err := io.ReadAll(body)
		require.NoError(t, err)
		assert.Contains(t, string(rest), end)
	}
}

// A stop before the first piece keeps the question, and the next message joins it.
func TestServer_StopBeforeTheFirstPiece(t *testing.T) {
	asked, requests := make(chan struct{}), 0
	s := recipes.Server{Send: func(show func(wire.Delta)) convo.Send {
		return func(ctx context.Context, snap *convo.Snapshot) (convo.Reply, error) {
			if requests++; requests > 1 {
				show(wire.Delta{Text: fmt.Sprint(snap.Len(), " messages")})
				return convo.Reply{Messages: []convo.Message{convo.Assistant("Hello")}}, nil
			}
			close(asked)
			<-ctx.Done()
			return convo.Reply{}, context.Cause(ctx)
		}
	}}
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	post := func(do, body string) string {
		resp, err := http.Post(server.URL+"/anna/"+do, "application/json", strings.NewReader(body))
		if !assert.NoError(t, err) {
			return ""
		}
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		assert.NoError(t, err)
		return string(data)
	}
	go func() {
		<-asked
		post("stop", "")
	}()
	assert.Equal(t, "data: {\"question\":1}\n\ndata: {\"done\":true}\n\n", post("message", `{"text":"Flights?"}`))
	assert.Contains(t, post("message", `{"text":"To Rome."}`), "2 messages")
}

// echo stands for a model. It streams "You said: " and what the user has said, and if that is
// "Wait.", it never ends by itself.
func echo(show func(wire.Delta)) convo.Send {
	return func(ctx context.Context, s *convo.Snapshot) (convo.Reply, error) {
		question, _ := s.At(s.Len() - 1)
		said := ""
		for _, piece := range []string{"You said: ", question.Message.Text()} {
			show(wire.Delta{Text: piece})
			said += piece
		}
		if question.Message.Text() == "Wait." {
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), clients.ErrStop) {
				return convo.Reply{}, context.Cause(ctx)
			}
		}
		return convo.Reply{Messages: []convo.Message{convo.Assistant(said)}, Stop: convo.StopDone}, nil
	}
}
