package inspect_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/inspect"
)

func ExampleHandler() {
	h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: 128_000}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close()
	if _, err := h.Append(convo.User("Which flights go to Rome?")); err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("/debug/convo", inspect.Handler(h))

	// A program would call http.ListenAndServe("localhost:8080", mux).
	for _, url := range []string{"http://localhost:8080/debug/convo", "http://evil.example/debug/convo"} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", url, nil))
		fmt.Println(w.Code, strings.Contains(w.Body.String(), "Which flights go to Rome?"))
	}
	// Output:
	// 200 true
	// 403 false
}

func ExamplePages_store() {
	store := &convotest.MemStore{} // such as a filestore.Store
	pages := &inspect.Pages{
		Store: store,                         // each of its conversations, as of any record
		Hosts: []string{"convo.example.com"}, // a name besides localhost
	}
	w := httptest.NewRecorder()
	pages.ServeHTTP(w, httptest.NewRequest("GET", "https://convo.example.com/", nil))
	fmt.Println(w.Code)
	// Output: 200
}

func ExampleReports() {
	var seen inspect.Reports
	h, err := convo.New(&convo.Options{OnCompaction: seen.Add})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close()
	id, err := h.Append(convo.User("Hello."), convo.Assistant("Good morning."), convo.User("Go on."), convo.Assistant("Yes."))
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{id - 2}}); err != nil {
		fmt.Println(err)
		return
	}
	pages := &inspect.Pages{Conversations: []inspect.Conversation{{History: h, Reports: &seen}}}
	w := httptest.NewRecorder()
	pages.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/?open=c1", nil))
	fmt.Println(strings.Contains(w.Body.String(), "1 message dropped"), strings.Contains(w.Body.String(), "Good morning."))
	// Output: true true
}

func ExampleWriteHTML() {
	s := convo.NewSnapshot([]convo.Message{convo.User("Which flights go to Rome?")})
	var page strings.Builder // such as a file
	if err := inspect.WriteHTML(&page, s); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(strings.Contains(page.String(), "Which flights go to Rome?"))
	// Output: true
}
