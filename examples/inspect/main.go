// Command inspect shows a conversation that was compacted as a page. Without the flag
// -addr, it requests the page once, prints its figures and ends.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/inspect"
)

func main() {
	addr := flag.String("addr", "", "where to serve the page, such as localhost:8080")
	flag.Parse()
	seen := new(inspect.Reports)
	h, err := convo.New(&convo.Options{
		Limits:       convo.Limits{Window: 4_000, Reserve: 500},
		OnCompaction: seen.Add, // the page lists the compactions
	})
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()
	if err := talk(h); err != nil {
		log.Fatal(err)
	}
	pages := &inspect.Pages{Conversations: []inspect.Conversation{{Name: "A trip to Rome", History: h, Reports: seen}}}
	if *addr != "" {
		http.Handle("/debug/convo", pages)
		fmt.Printf("http://%s/debug/convo\n", *addr)
		log.Fatal(http.ListenAndServe(*addr, nil))
	}
	if err := request(pages); err != nil {
		log.Fatal(err)
	}
}

// talk fills a conversation: it pins a condition, compacts, and leaves a call open.
func talk(h *convo.History) error {
	id, err := h.Append(convo.User("Window seats only. Which flights go to Rome?"))
	if err != nil {
		return err
	}
	if err := h.Pin(id); err != nil {
		return err
	}
	for day := 1; day <= 20; day++ {
		call := convo.ToolCall{ID: fmt.Sprint("call_", day), Name: "flights", Arguments: fmt.Sprintf(`{"day":%d}`, day)}
		if _, err := h.Append(convo.Assistant(fmt.Sprintf("I look at day %d.", day), call)); err != nil {
			return err
		}
		if day == 20 {
			break // the call has no result
		}
		found := strings.Repeat(fmt.Sprintf("Flight %d leaves at nine and has a seat at the window. ", 100+day), 20)
		if _, err := h.Append(convo.Result(call, found), convo.Assistant("There is one at nine."), convo.User("And the next day?")); err != nil {
			return err
		}
		s, _, err := h.Prepare(context.Background())
		if err != nil {
			return err
		}
		// A provider would say how many tokens it counted in the request.
		if err := h.RecordUsage(s, convo.Usage{Input: s.Tokens()}); err != nil {
			return err
		}
	}
	return nil
}

// request prints the figures of the page.
func request(pages http.Handler) error {
	server := httptest.NewServer(pages)
	defer server.Close()
	response, err := http.Get(server.URL)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	figures := figure.FindAllStringSubmatch(string(page), -1)
	if figures == nil {
		return errors.New("the page has no figures")
	}
	for _, f := range figures {
		fmt.Printf("%s: %s (%s)\n", f[1], f[2], f[3])
	}
	return nil
}

// figure matches a figure of the page: its name, its value, and what it means.
var figure = regexp.MustCompile(`<dt>(.*?)</dt><dd><b>(.*?)</b> <span class="label">(.*?)</span>`)
