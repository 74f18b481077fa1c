// Resume is a chat that goes on where the last run left it, however that ended. It
// answers each line of its input, saves, and then says that the turn is saved:
//
//	$ echo "Flights to Rome?" | go run ./examples/resume
//	a new conversation
//	You said: Flights to Rome?
//	saved: Flights to Rome?
//	$ echo "And a hotel." | go run ./examples/resume
//	resumed after record 1: History(2 entries, 1 turn, 21 tokens)
//	You said: And a hotel.
//	saved: And a hotel.
//
// With -all it prints every message that was ever saved. The script kill.sh kills it
// many times, and then looks whether each turn that was said to be saved is there. A
// fake model answers; it needs no network.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/filestore"
)

func main() {
	dir := flag.String("dir", filepath.Join(os.TempDir(), "convo-resume"), "where conversations are kept")
	all := flag.Bool("all", false, "print every message that was saved")
	flag.Parse()
	ctx := context.Background()
	store := &filestore.Store{Dir: *dir, Logger: slog.Default()}
	var err error
	if *all {
		err = show(ctx, store, os.Stdout)
	} else {
		err = run(ctx, store, os.Stdin, os.Stdout)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// open opens the one conversation of this program. Its window is so small that old
// turns soon leave the view. They stay in the archive.
func open(ctx context.Context, store convo.Store) (*convo.History, error) {
	return convo.Open(ctx, store, "chat", &convo.Options{Limits: convo.Limits{Window: 1_000}})
}

func run(ctx context.Context, store convo.Store, in io.Reader, out io.Writer) error {
	h, err := open(ctx, store)
	if err != nil {
		return err
	}
	defer h.Close()
	if _, seq := h.Saved(); seq == 0 {
		fmt.Fprintln(out, "a new conversation")
	} else {
		fmt.Fprintf(out, "resumed after record %d: %v\n", seq, h)
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if _, err := h.Append(convo.User(lines.Text())); err != nil {
			return err
		}
		reply, err := h.Do(ctx, model)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, reply.Text())
		// A turn that is not saved when the program is killed is as if it had not been.
		if err := h.Save(ctx); err != nil {
			return err
		}
		fmt.Fprintln(out, "saved:", lines.Text())
	}
	return lines.Err()
}

// show prints the messages in the archive, also those that left the view long ago.
func show(ctx context.Context, store convo.Store, out io.Writer) error {
	h, err := open(ctx, store)
	if err != nil {
		return err
	}
	defer h.Close()
	for a, err := range h.Archive(ctx) {
		if err != nil {
			return err
		}
		if a.Entry != nil {
			fmt.Fprintf(out, "%v: %s\n", a.Entry.Message.Role, a.Entry.Message.Text())
		}
	}
	return nil
}

// model takes the place of a call of your model.
func model(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
	msgs := s.Messages()
	answer := convo.Assistant("You said: " + msgs[len(msgs)-1].Text())
	return convo.Reply{Messages: []convo.Message{answer}}, nil
}
