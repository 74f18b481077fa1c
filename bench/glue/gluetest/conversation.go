package gluetest

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/bench/glue"
)

// Questions is how many questions the conversation has.
const Questions = 30

// Files are the agents of each module, from the least to the most comfortable:
// with the SDK alone and until the window is full; with the SDK alone; with the
// single steps of convo; with Do; and with Run and the client for the SDK. A module may lack some.
var Files = []string{"bare.go", "byhand.go", "steps.go", "convo.go", "client.go"}

// Test has the conversation with the agent of each file, and checks what the
// provider receives. newAgent returns the agent of a file for the fake provider
// at a URL, and name is the row of the module in bench/README.md.
func Test(t *testing.T, name string, newProvider func() *Provider, newAgent func(t *testing.T, file, url string) glue.Ask) {
	for _, file := range Files {
		if !exists(file) {
			continue
		}
		t.Run(file, func(t *testing.T) {
			p := newProvider()
			if file != "bare.go" {
				p.Odd = 20
			}
			server := httptest.NewServer(p)
			defer server.Close()
			ask := newAgent(t, file, server.URL)
			answered := converse(t, ask)
			refused, most := 0, 0
			for _, r := range p.Requests() {
				assert.Empty(t, r.Findings)
				if r.Refused {
					refused++
					continue
				}
				most = max(most, r.Tokens)
				assert.LessOrEqual(t, r.Tokens, glue.Window)
				assert.Contains(t, r.Body, glue.System)
			}
			t.Logf("%d questions answered in %d requests of up to %d tokens, %d refused", answered, len(p.Requests()), most, refused)
			if file == "bare.go" {
				assert.Less(t, answered, Questions, "the window is full, and stays full")
				assert.Equal(t, Questions-answered, refused, "every further question is refused")
				return
			}
			assert.Equal(t, Questions, answered)
			assert.Equal(t, 1, refused, "only the odd one")
			assert.Greater(t, most, glue.Window/2, "the window is used")
			checkRequests(t, p.Requests())
		})
	}
	checkTable(t, name)
}

// converse asks all questions, and returns how many were answered.
func converse(t *testing.T, ask glue.Ask) (answered int) {
	for number := 1; number <= Questions; number++ {
		var shown strings.Builder
		err := ask(t.Context(), question(number), func(delta string) { shown.WriteString(delta) })
		if err != nil {
			t.Logf("question %d: %v", number, err)
			continue
		}
		answered++
		assert.Contains(t, shown.String(), "Let me look. ")
		assert.Contains(t, shown.String(), fmt.Sprintf("Answer %d: Take the train", number))
		assert.Equal(t, 6, strings.Count(shown.String(), "Take the train at ten past nine. "), "each delta is shown once")
	}
	return answered
}

func question(number int) string {
	return fmt.Sprintf("Question %d: how do I get to %s, and what do I wear there?", number, City(number))
}

// checkRequests checks that the request for each answer holds the question and
// the results of its calls.
func checkRequests(t *testing.T, requests []Request) {
	asked := map[int][]string{} // bodies of the requests that were answered
	for _, r := range requests {
		number := 0
		fmt.Sscanf(r.Question, "Question %d:", &number)
		if !r.Refused {
			asked[number] = append(asked[number], r.Body)
		}
	}
	for number := 1; number <= Questions; number++ {
		require.Len(t, asked[number], 2, "question %d", number)
		last := asked[number][1]
		_, rest, ok := strings.Cut(last, fmt.Sprintf("Question %d:", number))
		assert.True(t, ok)
		assert.Contains(t, rest, "Weather in "+City(number))
		if City(number) == "Nowhere" {
			assert.Contains(t, rest, "no such city: Nowhere", "the model sees the error")
		} else {
			assert.Contains(t, rest, "Train to "+City(number))
		}
	}
}

// checkTable counts the lines of the agents, and checks that they stand in
// bench/README.md.
func checkTable(t *testing.T, name string) {
	cells := []string{"", name}
	for _, file := range Files {
		if !exists(file) {
			cells = append(cells, "–")
			continue
		}
		n, err := lines(file)
		require.NoError(t, err)
		cells = append(cells, strconv.Itoa(n))
	}
	checkRow(t, cells)
}

// exists reports whether a module has an agent.
func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// checkRow checks that a row of a table stands in bench/README.md.
func checkRow(t *testing.T, cells []string) {
	row := strings.Join(cells, " | ")[1:] + " |"
	t.Log(row)
	_, here, _, _ := runtime.Caller(0)
	page, err := os.ReadFile(filepath.Join(filepath.Dir(here), "..", "..", "README.md"))
	require.NoError(t, err)
	assert.Contains(t, string(page), row+"\n")
}
