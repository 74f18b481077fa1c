package convo

import (
	"fmt"
	"time"
)

// Status describes a [History] at one moment. Sizes are in tokens.
type Status struct {
	Entries   int // including system entries
	System    int // system entries
	Turns     int // with at least one entry in the view
	OpenCalls int // tool calls without a result
	Media     int // images, documents and other media, including those in results
	MostMedia int // how many of them the model takes: fewer if one is a large image; 0: not known, or Media is small
	Queued    int // messages waiting in the queue; see [History.Queue]
	Unsaved   int // changes since the last saved state; 0: Save would write nothing, or there is no Store
	Torn      int // bytes at the end of the log that are not a whole record: a crash interrupted a Save before it returned, or the newest record is damaged; the next Save removes them
	Tokens    int // as in Estimate
	Upper     int // as in Estimate

	// The limits with their defaults, less the tokens that MakeRoom reserved (see [Limits]),
	// and within the limit that Recover found. Limit is Window - Reserve. 0: no such limit.
	Window, Limit, High, Low, Soft, MinFree int

	// AwaitsAnswer reports whether it is the model's turn: no call is open, and the newest
	// message is from the user or a tool, or is an answer that its provider has paused. A
	// loop that runs while it is set needs a bound, since a model may call tools without end.
	AwaitsAnswer bool

	Assumed bool // whether Window is a guess; see Limits.Assumed

	// Decisions grows with each change that the messages themselves do not show, such as a
	// compaction, a cut, a pin, a rollback, a queued message or new marks.set. When it has
	// changed, store what [History.Decisions] returns.
	Decisions uint64

	Again       int // results up to the last compaction that were read again since they had left, as in Report; not saved
	AgainTokens int // their raw tokens

	Originals  int       // raw tokens of the originals kept in memory; see Options.KeepOriginals
	Appended   int       // raw tokens since the last applied edit
	LastAppend time.Time // zero: never
	LastEdit   time.Time // when an edit was last applied; zero: never
}

// String describes in one line how full the window is:
//
//	41,200 of 112,000 tokens (36 %): 30 entries in 15 turns, 2 open calls; compacts above 98,000
func (s Status) String() string {
	out := ofLimit(s.Upper, s.Limit)
	if s.Limit > 0 {
		out += fmt.Sprintf(" (%d %%)", int(100*float64(s.Upper)/float64(s.Limit)))
	}
	out += fmt.Sprintf(": %s in %s", counted(s.Entries, "entry", "entries"), counted(s.Turns, "turn", "turns"))
	if s.OpenCalls > 0 {
		out += ", " + counted(s.OpenCalls, "open call", "open calls")
	}
	if s.High > 0 && s.High != s.Limit {
		out += "; compacts above " + grouped(s.High)
	}
	return out
}

// Status returns the current numbers of h, in constant time.
func (h *History) Status() Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.statusLocked()
}

func (h *History) statusLocked() Status {
	e, marks, b := h.estimate(), h.meter.marks(), h.recorder.book()
	most, _ := h.mediaLimit()
	again := orNil(h.reread.Load())
	appended, edited := h.times()
	return Status{
		Entries:      h.state.len(),
		System:       len(h.sys),
		Turns:        h.turns,
		OpenCalls:    h.openCount(),
		Media:        h.media,
		MostMedia:    most,
		Queued:       len(h.queue),
		Unsaved:      b.unsaved(&h.state, h.compactor.saved()),
		Torn:         clampInt(b.torn),
		Tokens:       e.Tokens,
		Upper:        e.Upper,
		Window:       marks.set.Window,
		AwaitsAnswer: h.awaitsNext(true),
		Assumed:      marks.set.Assumed,
		Limit:        orZero(marks.limit, marks.set.Window),
		High:         orZero(marks.high, clampInt(marks.set.most())),
		Low:          orZero(marks.low, clampInt(marks.set.most())),
		Soft:         orZero(marks.soft, clampInt(marks.set.most())),
		MinFree:      clampInt(marks.minFree),
		Decisions:    h.decisions(),
		Again:        again.calls,
		AgainTokens:  clampInt(again.tokens),
		Originals:    clampInt(h.originalRaw),
		Appended:     clampInt(h.appended),
		LastAppend:   appended,
		LastEdit:     edited,
	}
}

// timeOf returns the time of Unix nanoseconds, or the zero time for 0.
func timeOf(nanos int64) time.Time {
	if nanos == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanos)
}
