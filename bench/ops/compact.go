package ops

import (
	"context"
	"fmt"
	"io"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/bench/internal/measure"
	"github.com/seed-c1b73e60/convo/bench/peer"
)

// window is the window of the conversations that do not say another one.
const window = 200_000

var compactTable = table{
	title: "The default's compaction, by length",
	intro: "One compaction of n messages of 400 bytes, no two of which are alike: to half of a window that they fill, and the first Prepare after a Restore, into a window of 200,000 tokens. The floor reads each byte of the n messages once.",
	rows: []row{
		floorRow("floor, one pass over all text", floorPass),
		oursBy(ourName+" Compact to half", defaults, ourTrim),
		oursBy("convo Compact to half, Truncate alone", truncating, ourTrim),
		oursBy("convo Restore, then Prepare", defaults, ourFirst),
	},
	byFloor: true,
	notes:   []string{"Only Prepare is measured of the last row. Up to 1,000 messages fit the window, so that it has nothing to do."},
}

// WriteCompact writes the table of the default's compaction by length, and how long a full window
// of 200,000 tokens takes.
func WriteCompact(w io.Writer, quick bool) error {
	columns := []int{1_000, 10_000, 100_000, 1_000_000}
	if quick {
		columns = columns[:2]
	}
	effort := measure.EffortOf(quick)
	if err := compactTable.write(w, columns, effort, quick); err != nil {
		return err
	}
	ns, err := Window(effort)
	if err == nil {
		_, err = fmt.Fprintf(w, "A compaction of a full window of 200,000 tokens takes %s.\n\n", measure.Time(ns))
	}
	return err
}

// Window returns the nanoseconds of a compaction at the limit of a window of 200,000 tokens.
func Window(effort measure.Effort) (float64, error) {
	got, err := measure.Cells([]measure.Cell{peer.Case{Max: 20, New: func(k int) (func(int) error, error) {
		all := make([]*convo.History, k)
		for i := range all {
			h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: window}})
			if err != nil {
				return nil, err
			}
			for _, m := range messages(2 * window / peer.PerMessage) {
				if s := h.Status(); s.Upper > s.Limit {
					break
				}
				if _, err := h.Append(m); err != nil {
					return nil, err
				}
			}
			all[i] = h
		}
		return func(i int) error { return prepare(all[i]) }, nil
	}}}, effort)
	if err != nil {
		return 0, err
	}
	return got[0].NS, nil
}

// prepare returns an error if Prepare does not compact.
func prepare(h *convo.History) error {
	_, r, err := h.Prepare(context.Background())
	if err == nil && r.Outcome != convo.OutcomeApplied {
		err = peer.ErrIdle
	}
	return err
}

// ourFirst is the first Prepare of a restored conversation.
func ourFirst(n int, opts convo.Options) peer.Case {
	return peer.Case{Once: n > 100_000, Max: 1 + 200_000/n, New: func(k int) (func(int) error, error) {
		h, err := historyOf(n, opts)
		if err != nil {
			return nil, err
		}
		opts.Limits = convo.Limits{Window: window}
		all := make([]*convo.History, k)
		for i := range all {
			if all[i], err = convo.Restore(h.Snapshot(), &opts); err != nil {
				return nil, err
			}
		}
		return func(i int) error {
			if s := all[i].Status(); s.Upper > s.Limit {
				return prepare(all[i])
			}
			_, _, err := all[i].Prepare(context.Background())
			return err
		}, nil
	}}
}

// floorPass reads every byte.
func floorPass(n int) peer.Case {
	return peer.Case{New: func(int) (func(int) error, error) {
		list := peer.Texts(n)
		return func(int) error {
			sum := 0
			for _, text := range list {
				for i := range len(text) {
					sum += int(text[i])
				}
			}
			if sum == 0 {
				return peer.ErrIdle
			}
			return nil
		}, nil
	}}
}
