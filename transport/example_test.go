package transport_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/transport"
)

// A program that sends its whole conversation with each request, to a provider with a window of
// 8,000 tokens.
func Example() {
	server := httptest.NewServer(provider.New(provider.Options{Window: 8000}))
	defer server.Close()
	t := transport.New(transport.Options{
		History: func(transport.Conversation) *convo.Options {
			return &convo.Options{Limits: convo.Limits{Window: 8000, Reserve: 500}}
		},
	})
	defer t.Close()
	client := &http.Client{Transport: t} // the line that changes

	list := []string{`{"role":"user","content":"The password is Zebra."}`}
	for n := 1; ; n++ {
		body := `{"model":"gpt-5","messages":[` + strings.Join(list, ",") + `]}`
		resp, err := client.Post(server.URL+"/v1/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			fmt.Println(err)
			return
		}
		answer, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK || n == 100 {
			fmt.Printf("request %d: %s, bytes %d\n", n, resp.Status, len(body))
			break
		}
		if !bytes.Contains(answer, []byte(`"ok"`)) {
			fmt.Printf("%s\n", answer)
		}
		list = append(list, `{"role":"assistant","content":"ok"}`, fmt.Sprintf(`{"role":"user","content":"%d %s"}`, n, strings.Repeat("and so on ", 60)))
	}
	h := t.Conversations()[0].History
	fmt.Println("the first message is in the last request:", strings.Contains(fmt.Sprint(h.Snapshot().Messages()), "Zebra"))
	// Output:
	// request 100: 200 OK, bytes 66204
	// the first message is in the last request: true
}

// Nothing but the HTTP client of a program changes.
func ExampleNew() {
	client := &http.Client{Transport: transport.New(transport.Options{})}
	fmt.Println(client.Transport.(*transport.Transport).Conversations())
	// Output: []
}
