package convotest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// findings are the rules that were seen broken, each once.
type findings struct {
	of    string // what is checked
	rules map[string]bool
	list  []error
}

// add names a rule, and where it was broken: the first time only.
func (f *findings) add(rule string, where ...string) {
	if f.rules[rule] {
		return
	}
	if f.rules == nil {
		f.rules = make(map[string]bool)
	}
	f.rules[rule] = true
	text := f.of + ": " + rule
	if len(where) > 0 {
		text += " (" + strings.Join(where, ", ") + ")"
	}
	f.list = append(f.list, errors.New(text))
}

func (f *findings) err() error { return errors.Join(f.list...) }

// report makes each joined error a failure of its own.
func report(t testing.TB, err error) {
	t.Helper()
	if err == nil {
		return
	}
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	for _, err := range all {
		t.Error(err)
	}
}

// Rules about how a call ends.
const (
	ruleReturns = "does not return after ctx has ended"
	ruleSlow    = "does not return within a minute"
	rulePanics  = "panics"
	ruleGoexit  = "ends the goroutine that it is called on"
)

// patience is how long a call may take to end by itself, and how long after
// its ctx has ended. It is far more than anything takes that looks at its ctx,
// so that no busy machine makes the difference.
const patience = time.Minute

// soon is when a ctx ends that is to end during a call. What is over by then
// has passed; no verdict hangs on it.
const soon = 5 * time.Millisecond

// An ending says how a call broke a rule by the way it ended.
type ending struct{ rule, detail string }

// isStuck reports whether the call may still be going on, or would take a
// minute each time.
func (e ending) isStuck() bool { return e.rule == ruleReturns || e.rule == ruleSlow }

// where adds the detail to a place.
func (e ending) where(place ...string) []string {
	if e.detail != "" {
		place = append(place, e.detail)
	}
	return place
}

// call calls f on a goroutine of its own, and waits for its end. What f
// returned is to be used only when no rule is broken.
func call[T any](ctx context.Context, f func(context.Context) T) (got T, end ending) {
	type outcome struct {
		got T
		end ending
	}
	done := make(chan outcome, 1)
	go func() {
		out := outcome{end: ending{rule: ruleGoexit}}
		defer func() {
			if v := recover(); v != nil {
				out.end = ending{rulePanics, fmt.Sprintf("%.200q", fmt.Sprint(v))}
			}
			done <- out
		}()
		out.got = f(ctx)
		out.end = ending{}
	}()
	select {
	case out := <-done:
		return out.got, out.end
	case <-ctx.Done():
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case out := <-done:
		return out.got, out.end
	case <-timer.C:
		return got, ending{rule: ruleReturns}
	}
}

// finish is call with a ctx that lives for as long as patience lasts.
func finish[T any](f func(context.Context) T) (got T, end ending) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	got, end = call(ctx, f)
	if end.rule == "" && ctx.Err() != nil {
		end.rule = ruleSlow
	}
	return got, end
}

// stop calls f with a ctx that has ended, and with one that ends during the
// call, and returns the first rule that is broken.
func stop[T any](f func(context.Context) T) ending {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, end := call(ctx, f); end.rule != "" {
		end.detail = strings.TrimPrefix(end.detail+", ctx had ended before the call", ", ")
		return end
	}
	ctx, cancel = context.WithCancel(context.Background())
	defer cancel()
	timer := time.AfterFunc(soon, cancel)
	defer timer.Stop()
	_, end := call(ctx, f)
	if end.rule != "" {
		end.detail = strings.TrimPrefix(end.detail+", ctx ended during the call", ", ")
	}
	return end
}
