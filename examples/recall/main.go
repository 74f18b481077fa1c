// Command recall shows an agent that answers a question about something which was
// removed from its context forty turns ago. It needs no network: the model is a fake one
// that reads what it is sent.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/recall"
)

func main() { run(os.Stdout) }

// run has the conversation, and writes what happens to w.
func run(w io.Writer) {
	ix := new(recall.Index)
	h, err := convo.New(&convo.Options{
		Limits:       convo.Limits{Window: 2_000},
		OnCompaction: ix.Observe,      // what leaves the view goes into the index
		SummaryHint:  recall.Hint,     // each summary says that the tool is there
		RecallTool:   recall.ToolName, // and each marker in place of a result, how to read it
	})
	check(err)

	for day := 1; day <= 42; day++ {
		ask(w, h, ix, fmt.Sprintf("Day %d: read the log and tell me how it went.", day))
	}
	fmt.Fprintf(w, "%v; the index holds %d messages that left\n", h.Status(), ix.Len())
	fmt.Fprintln(w, "is the name still in the view?", shows(h.Snapshot(), leader(2)))
	fmt.Fprintln(w, "does the summary name the tool?", shows(h.Snapshot(), recall.Hint))

	fmt.Fprintln(w, "\nuser: Who led the rehearsal of day 2?")
	fmt.Fprintln(w, "model:", ask(w, h, ix, "Who led the rehearsal of day 2?"))
}

// shows reports whether the model sees a text.
func shows(s *convo.Snapshot, text string) bool {
	return slices.ContainsFunc(s.Messages(), func(m convo.Message) bool { return strings.Contains(m.Text(), text) })
}

// ask lets the model answer, and runs its tools.
func ask(w io.Writer, h *convo.History, ix *recall.Index, question string) string {
	_, err := h.Append(convo.User(question))
	check(err)
	for {
		reply, err := h.Do(context.Background(), model)
		check(err)
		calls := reply.OpenCalls()
		if len(calls) == 0 {
			return reply.Text()
		}
		for _, call := range calls {
			result := convo.Result(call, read(call))
			if call.Name == recall.ToolName {
				fmt.Fprintln(w, "the model searches for", call.Arguments)
				result = ix.Answer(call)
			}
			_, err := h.Append(result)
			check(err)
		}
	}
}

// read is the tool of the agent itself.
func read(call convo.ToolCall) string {
	var args struct{ Day int }
	check(json.Unmarshal([]byte(call.Arguments), &args))
	return fmt.Sprintf("The rehearsal of day %d was led by %s. ", args.Day, leader(args.Day)) + strings.Repeat("Nothing unusual was seen. ", 10)
}

// leader returns the name of who led the rehearsal of a day.
func leader(day int) string {
	first := []string{"Ada", "Bela", "Carla", "Dora", "Emil", "Finn", "Gerd"}
	last := []string{"Abel", "Brun", "Cole", "Dorn", "Engel", "Falk"}
	return first[day%len(first)] + " " + last[day%len(last)]
}

var (
	logOf = regexp.MustCompile(`^Day (\d+): `)
	ledBy = regexp.MustCompile(`rehearsal of day 2 was led by (\w+ \w+)`)
)

// model stands in for a model. A real one is sent ix.Tool() with the other tools.
func model(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
	msgs := s.Messages()
	last := msgs[len(msgs)-1]
	call := convo.ToolCall{Name: "read"}
	answer := convo.Assistant("It went well.")
	switch found := ledBy.FindStringSubmatch(last.Text()); {
	case last.Role == convo.RoleTool && last.ToolResults()[0].Name != recall.ToolName:
	case found != nil:
		answer = convo.Assistant(found[1] + " did.")
	case logOf.MatchString(last.Text()):
		call.Arguments = `{"day":` + logOf.FindStringSubmatch(last.Text())[1] + `}`
		answer = convo.Assistant("", call)
	default:
		call.Name, call.Arguments = recall.ToolName, `{"query":"rehearsal day 2 led by"}`
		answer = convo.Assistant("", call)
	}
	return convo.Reply{Messages: []convo.Message{answer}}, nil
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
