package facts

import (
	"errors"
	"fmt"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// A Set is an agent that edits files, and must see a file to edit it. What it does not see,
// it reads again.
type Set struct {
	Name   string
	Window int
	Size   int // tokens of a file
	Edits  int
	file   func(edit int) int // which one is edited
}

// Sets returns the sets of the tables.
func Sets() []Set {
	turn := func(n int) func(int) int { return func(edit int) int { return edit % n } }
	hot := func(edit int) int {
		if edit%3 == 0 {
			return 0
		}
		return 1 + edit
	}
	return []Set{
		{"five files in turn, 71 % of the limit", 20_000, 2500, 200, turn(5)},
		{"seven files in turn, as large as the limit", 20_000, 2500, 200, turn(7)},
		{"one file in each third step, others once", 32_000, 1500, 300, hot},
	}
}

// tries is how often the agent reads a file before it edits what it does not see.
const tries = 4

// A worker is the agent of a set with one policy.
type worker struct {
	Set
	*desk
	words *words
	files map[int]string
	calls int
}

// Work has a policy keep the conversation of a set.
func (p Policy) Work(s Set) (Score, error) {
	d, err := p.desk(nil, s.Window)
	if err != nil {
		return Score{}, err
	}
	w := &worker{Set: s, desk: d, words: newWords(7), files: map[int]string{}}
	err = errors.Join(d.keeper.add(convo.System(w.words.prose(300))), d.keeper.add(convo.User("Change the files one by one. "+w.words.prose(60))))
	for edit := 0; edit < s.Edits && err == nil; edit++ {
		err = w.edit(s.file(edit))
	}
	score, cerr := d.end()
	return score, errors.Join(err, cerr)
}

// edit makes the requests of one edit.
func (w *worker) edit(file int) error {
	text, known := w.files[file]
	if !known {
		text = w.newFile(file)
		w.files[file] = text
	}
	for n := range tries {
		view, err := w.keeper.request()
		if errors.Is(err, errOver) {
			w.score.Over++
		} else if err != nil {
			return err
		}
		sees := strings.Contains(shownAll(view), text)
		if known && n == 0 {
			w.score.Asked++
			if sees {
				w.score.Seen++
			}
		}
		if sees || n == tries-1 {
			change := fmt.Sprintf(`{"path":"part_%d.go","change":%q}`, file, w.words.prose(40))
			return w.step(view, "edit_file", change, "edited")
		}
		if known || n > 0 {
			w.score.Rereads++
		}
		if err := w.step(view, "read_file", fmt.Sprintf(`{"path":"part_%d.go"}`, file), text); err != nil {
			return err
		}
	}
	return nil
}

// step answers a request with a call, and adds the result.
func (w *worker) step(view []convo.Message, tool, arguments, result string) error {
	w.calls++
	c := convo.ToolCall{ID: fmt.Sprintf("call_%d", w.calls), Name: tool, Arguments: arguments}
	answer := convo.Assistant("Next.", c)
	if view != nil {
		if _, err := w.bill(view, answer); err != nil {
			return err
		}
	}
	return errors.Join(w.keeper.add(answer), w.keeper.add(convo.Result(c, result)))
}

// newFile returns a file of the size of the set.
func (w *worker) newFile(file int) string {
	text := fmt.Sprintf("// part %d\n", file)
	for count(text) < w.Size {
		text += w.words.prose(80) + "\n"
	}
	return text
}
