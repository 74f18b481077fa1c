package convo_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// longTrip returns a conversation of some 1,600 tokens.
func longTrip(opts *convo.Options) *convo.History {
	h, err := convo.New(opts)
	if err != nil {
		panic(err)
	}
	h.Append(convo.System("You are a travel agent."))
	for i := range 10 {
		call := convo.ToolCall{ID: fmt.Sprint("c", i), Name: "search", Arguments: `{}`}
		h.Append(
			convo.User(fmt.Sprintf("And day %d?", i+1)),
			convo.Assistant("", call),
			convo.Result(call, strings.Repeat("A train at nine, a bus at ten. ", 12)),
			convo.Assistant("There is a train."),
		)
	}
	return h
}

func ExampleHistory_Prepare() {
	h := longTrip(&convo.Options{Limits: convo.Limits{Window: 1_500, Reserve: 300}})
	snap, report, err := h.Prepare(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(report.Outcome, "because of", report.Reason)
	for _, link := range report.Links {
		fmt.Println(link.Strategy, link.Outcome)
	}
	fmt.Println(report.MessagesBefore, "messages, now", len(snap.Messages()))
	// Output:
	// applied because of high
	// clear-tool-results applied
	// truncate applied
	// 41 messages, now 17
}

func ExampleSummarize() {
	model := convo.SummarizerFunc(func(ctx context.Context, req convo.SummaryRequest) (convo.Summary, error) {
		text, err := complete(ctx, req.Prompt) // your model
		return convo.Summary{Text: text}, err
	})
	h := longTrip(&convo.Options{
		Limits:   convo.Limits{Window: 1_500, Reserve: 300},
		Strategy: convo.Chain(convo.Summarize{With: model, MaxTokens: 100, Window: 200_000}, convo.Truncate{}),
	})
	report, err := h.CompactIfNeeded(context.Background())
	fmt.Println(report.Outcome, len(report.Summarised), "entries, error:", err)
	sum, _ := h.Snapshot().Summary()
	fmt.Println(sum.Text, sum.Covers)
	// Output:
	// applied 32 entries, error: <nil>
	// The user looked at flights. [{2 33}]
}

// A focus says what the summary should dwell on.
func ExampleHistory_Compact() {
	model := convo.SummarizerFunc(func(_ context.Context, req convo.SummaryRequest) (convo.Summary, error) {
		return convo.Summary{Text: "About " + req.Focus + ": there are trains."}, nil
	})
	h := longTrip(&convo.Options{Strategy: convo.Summarize{With: model, MaxTokens: 100}})
	report, err := h.Compact(context.Background(), "trains")
	fmt.Println(report.Outcome, err)
	report, err = h.Compact(context.Background(), "trains")
	fmt.Println(report.Outcome, err)
	sum, _ := h.Snapshot().Summary()
	fmt.Println(sum.Text)
	// Output:
	// applied <nil>
	// not needed <nil>
	// About trains: there are trains.
}

func ExampleHistory_CompactInBackground() {
	ctx := context.Background()
	h := longTrip(&convo.Options{
		Limits:   convo.Limits{Window: 4_000, Reserve: -1, Soft: 1_000, Low: 500},
		Strategy: convo.Summarize{},
	})
	fmt.Println("started:", h.CompactInBackground(ctx))
	h.Append(convo.User("And then?")) // the conversation goes on
	report, err := h.Wait(ctx)
	fmt.Println(report.Outcome, "because of", report.Reason, err)
	e, _ := h.Snapshot().At(h.Len() - 1)
	fmt.Println(e)
	// Output:
	// started: true
	// applied because of soft <nil>
	// 42 user: And then?
}

func ExampleHistory_MakeRoom() {
	ctx := context.Background()
	h := longTrip(&convo.Options{Limits: convo.Limits{Window: 2_500, Reserve: 300}})
	room, report, err := h.MakeRoom(ctx, 1_000) // a long document is about to come in
	fmt.Println(report.Outcome, room.Tokens(), err)
	room.Release()

	_, _, err = h.MakeRoom(ctx, 5_000)
	var floor *convo.FloorError
	if errors.As(err, &floor) {
		fmt.Println("only", floor.Limit-floor.Floor, "can be made free")
	}
	// Output:
	// applied 1000 <nil>
	// only 2169 can be made free
}

func ExampleHistory_Recover() {
	ctx := context.Background()
	h := longTrip(nil) // nobody told it the window
	send := func(s *convo.Snapshot) error {
		if s.Tokens() > 1_000 {
			return errors.New("400: prompt is too long: 1500 tokens > 1000 maximum")
		}
		return nil
	}
	for {
		snap := h.Snapshot()
		err := send(snap)
		if err == nil {
			fmt.Println("sent")
			break
		}
		retry, report, err := h.Recover(ctx, snap, err)
		fmt.Println("retry:", retry, report.Outcome, err)
		if !retry {
			break
		}
	}
	// Output:
	// retry: true applied <nil>
	// sent
}

// A strategy of your own reads a snapshot and returns an edit. This one keeps
// the newest three turns.
func ExampleStrategyFunc() {
	threeTurns := convo.StrategyFunc(func(_ context.Context, s *convo.Snapshot, _ convo.Goal) (convo.Edit, error) {
		newest, _ := s.At(s.Len() - 1)
		var e convo.Edit
		for x := range s.Exchanges() {
			if !x.Floor && x.Turn <= newest.Turn-3 {
				e.Drop = append(e.Drop, x.IDs()...)
			}
		}
		return e, nil // with nothing in it, it declines
	})
	h := longTrip(&convo.Options{Strategy: threeTurns.Named("three-turns")})
	report, err := h.Compact(context.Background(), "")
	fmt.Println(report.Strategy, report.Outcome, err, h.Status().Turns, "turns")
	// Output:
	// three-turns applied <nil> 3 turns
}

func ExampleSlidingWindow() {
	h := longTrip(&convo.Options{Strategy: convo.SlidingWindow{Keep: 10, TriggerAt: 40}})
	report, err := h.CompactIfNeeded(context.Background())
	fmt.Println(report.Outcome, "because of", report.Reason, err)
	fmt.Println(h.Len())
	// Output:
	// applied because of trigger <nil>
	// 11
}

func ExampleExtract() {
	h := longTrip(nil)
	sum, err := h.Handoff(context.Background(), convo.Extract{}, "") // for a handoff
	fmt.Println(err)
	fmt.Println(sum.Text[strings.Index(sum.Text, "Tools"):])
	// Output:
	// <nil>
	// Tools called:
	// - search 10
	// Last answer:
	// - There is a train.
}

// One line says what a compaction did, and %+v also which entries it was.
func ExampleReport_String() {
	h := longTrip(&convo.Options{Limits: convo.Limits{Window: 1_500, Reserve: 300}})
	report, err := h.CompactIfNeeded(context.Background())
	fmt.Println(report, err)
	fmt.Printf("%+v\n", report)
	// Output:
	// compacted 1,755 → 596 of 1,200 tokens: 1 result cleared, 24 messages dropped <nil>
	// compacted 1,755 → 596 of 1,200 tokens: 1 result cleared [28], 24 messages dropped [2-25]
}

func ExampleStatus_String() {
	h := longTrip(&convo.Options{Limits: convo.Limits{Window: 4_000, High: 3_000}})
	fmt.Println(h.Status())
	// Output:
	// 1,755 of 3,500 tokens (50 %): 41 entries in 10 turns; compacts above 3,000
}

// What fills the window?
func ExampleSnapshot_Breakdown() {
	h := longTrip(&convo.Options{Limits: convo.Limits{Window: 4_000, Tools: 250}})
	fmt.Println(h.Snapshot().Breakdown())
	// Output:
	// results 1,220, tools 250, assistant 130, calls 120, user 80, system 10; free 1,690 and reserve 500 of 4,000
}

// A line of each level: a compaction that was applied, one that failed, and one
// that was declined.
func ExampleOptions_logger() {
	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == "duration" {
				return slog.Attr{} // differs from run to run
			}
			return a
		},
	}))
	with := func(err error) convo.CompactionStrategy {
		return convo.StrategyFunc(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
			if err != nil {
				return convo.Edit{}, err
			}
			return convo.Truncate{}.Compact(ctx, s, g)
		}).Named("mine")
	}
	for _, err := range []error{nil, errors.New("no idea"), convo.ErrNoGain} {
		h := longTrip(&convo.Options{Limits: convo.Limits{Window: 4_000, High: 1_000}, Strategy: with(err), Logger: log})
		h.CompactIfNeeded(context.Background())
	}
	// Output:
	// level=INFO msg="convo: compaction applied" outcome=applied reason=high strategy=mine cause=<nil> fits=true limit=3500 tokens_before=1755 tokens_after=360 messages_before=41 messages_after=9 dropped=32 summarised=0 cleared=0 shortened=0 rewritten=0 kept=0 summary_before=0 summary_after=0 model="" calls=0 unread=0 not_kept=0 prefix_kept=0.00641025641025641 named_limit=0
	// level=WARN msg="convo: compaction failed" outcome=failed reason=high strategy=mine cause="convo: strategy mine: no idea" fits=true limit=3500 tokens_before=1755 tokens_after=1755 messages_before=41 messages_after=41 dropped=0 summarised=0 cleared=0 shortened=0 rewritten=0 kept=0 summary_before=0 summary_after=0 model="" calls=1 unread=0 not_kept=0 prefix_kept=1 named_limit=0
	// level=DEBUG msg="convo: compaction declined" outcome=declined reason=high strategy=mine cause="convo: nothing worth removing" fits=true limit=3500 tokens_before=1755 tokens_after=1755 messages_before=41 messages_after=41 dropped=0 summarised=0 cleared=0 shortened=0 rewritten=0 kept=0 summary_before=0 summary_after=0 model="" calls=0 unread=0 not_kept=0 prefix_kept=1 named_limit=0
}

// Old tool results are cleared at a mark of their own, before anything is dropped.
// A trigger may look at the messages: it is called without a lock.
func ExampleWhen_messages() {
	var h *convo.History
	changesSubject := func(convo.Status) bool {
		s := h.Snapshot()
		newest, _ := s.At(s.Len() - 1)
		return strings.HasPrefix(newest.Message.Text(), "Now to something else")
	}
	h = longTrip(&convo.Options{Strategy: convo.When(changesSubject, convo.SlidingWindow{Keep: 4})})
	for _, text := range []string{"And the hotel?", "Now to something else: Paris."} {
		h.Append(convo.User(text))
		report, err := h.CompactIfNeeded(context.Background())
		fmt.Println(report.Outcome, h.Len(), err)
		h.Append(convo.Assistant("Of course."))
	}
	// Output:
	// not needed 42 <nil>
	// applied 4 <nil>
}

func ExampleWhen() {
	micro := func(s convo.Status) bool { return s.Upper > s.Window*60/100 }
	h := longTrip(&convo.Options{
		Limits:   convo.Ratios(2_500, 0.70, 0.85),
		Strategy: convo.Chain(convo.When(micro, convo.ClearToolResults{}), convo.Truncate{}),
	})
	_, report, err := h.Prepare(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(report.Reason, report.Links)
	fmt.Println(report)
	// Output:
	// trigger [clear-tool-results applied]
	// compacted 1,755 → 960 of 2,188 tokens: 7 results cleared
}
