package mirror_test

import (
	"context"
	"fmt"
	"log"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/mirror"
)

// A note is a message of a framework that has its own type.
type note struct {
	Role, Text string
	Color      string // which convo does not know
}

// codec says what a note says to the model, and makes one of what convo has written.
var codec = mirror.Codec[*note]{
	Decode: func(n *note) ([]convo.Message, error) {
		return []convo.Message{{Role: convo.Role(n.Role), Parts: []convo.Part{convo.Text(n.Text)}}}, nil
	},
	Encode: func(m convo.Message, was **note) (*note, error) {
		n := &note{Role: string(m.Role), Text: m.Text()}
		if was != nil {
			n.Color = (*was).Color
		}
		return n, nil
	},
}

// A framework hands over its list before each request, and gets its own values back, as many
// as fit. Its list stays whole.
func Example() {
	h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: 600}})
	if err != nil {
		log.Fatal(err)
	}
	m := mirror.New(h, codec)

	list := []*note{{Role: "system", Text: "You plan trips."}}
	var view []*note
	for day := range 40 {
		list = append(list, &note{Role: "user", Text: fmt.Sprint("What shall we do on day ", day, "?"), Color: "blue"})
		if view, _, err = m.Prepare(context.Background(), list); err != nil { // the seam of the framework
			log.Fatal(err)
		}
		list = append(list, &note{Role: "assistant", Text: "A walk along the river, and a museum if it rains."})
	}
	fmt.Println("messages of the framework:", len(list))
	fmt.Println("fewer are sent:", len(view) < 40)
	fmt.Println("the newest is the framework's own:", view[len(view)-1] == list[len(list)-2])
	// Output:
	// messages of the framework: 81
	// fewer are sent: true
	// the newest is the framework's own: true
}

// Two agents work in one session. They read the same list, each through a Mirror and a History
// of its own: the writer's window is large, the reviewer's is small, and each has its own
// system text and its own compactions.
func ExampleMirror_agents() {
	agent := func(window int) *mirror.Mirror[*note] {
		h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: window}, Roles: convo.Relaxed()})
		if err != nil {
			log.Fatal(err)
		}
		return mirror.New(h, codec)
	}
	writer, reviewer := agent(100_000), agent(500)
	ask := func(m *mirror.Mirror[*note], system string, session []*note) []*note {
		view, _, err := m.Prepare(context.Background(), append([]*note{{Role: "system", Text: system}}, session...))
		if err != nil {
			log.Fatal(err)
		}
		return view
	}

	var session []*note
	var whole, short []*note
	for chapter := range 30 {
		session = append(session, &note{Role: "user", Text: fmt.Sprint("Chapter ", chapter, ", please.")})
		whole = ask(writer, "You write.", session)
		session = append(session, &note{Role: "assistant", Text: "It was a dark night." + strings.Repeat(" It rained.", 3)})
		session = append(session, &note{Role: "user", Text: "Is that good?"})
		short = ask(reviewer, "You review.", session)
		session = append(session, &note{Role: "assistant", Text: "Yes."})
	}
	fmt.Println("the session has", len(session), "messages")
	fmt.Println("the writer sees", len(whole)-1, "of them, and its own instruction:", whole[0].Text)
	fmt.Println("the reviewer sees fewer:", len(short) < 60, short[0].Text)
	// Output:
	// the session has 120 messages
	// the writer sees 117 of them, and its own instruction: You write.
	// the reviewer sees fewer: true You review.
}

// The program stops and starts again. It has stored the framework's list, as it always does,
// and what Decisions returned.
func ExampleResume() {
	opts := &convo.Options{Limits: convo.Limits{Window: 600}}
	h, err := convo.New(opts)
	if err != nil {
		log.Fatal(err)
	}
	m := mirror.New(h, codec)
	var list []*note
	var before []*note
	for day := range 40 {
		list = append(list, &note{Role: "user", Text: fmt.Sprint("What shall we do on day ", day, "?")})
		if before, _, err = m.Prepare(context.Background(), list); err != nil {
			log.Fatal(err)
		}
		list = append(list, &note{Role: "assistant", Text: "A walk along the river, and a museum if it rains."})
	}
	list = list[:len(list)-1]
	data, err := m.Decisions()
	if err != nil {
		log.Fatal(err)
	}

	m, _, err = mirror.Resume(data, list, codec, opts)
	if err != nil {
		log.Fatal(err)
	}
	after, _, err := m.Prepare(context.Background(), list)
	if err != nil {
		log.Fatal(err)
	}
	same := func(a, b *note) bool { return a.Role == b.Role && a.Text == b.Text }
	fmt.Println("the same messages:", slices.EqualFunc(before, after, same))
	// Output:
	// the same messages: true
}
