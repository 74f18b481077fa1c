package convotest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// A rule describes one way to break the rules, and its remedy.
type rule struct{ broken, remedy string }

// findings collects the broken rules, each once.
type findings struct {
	of    string // the kind of thing checked, such as "summarizer"
	rules map[rule]bool
	list  []error
}

// add adds a broken rule and the place where it was broken, unless the rule has
// been added before.
func (f *findings) add(r rule, where ...string) {
	if f.rules[r] {
		return
	}
	if f.rules == nil {
		f.rules = make(map[rule]bool)
	}
	f.rules[r] = true
	text := f.of + ": " + r.broken
	if len(where) > 0 {
		text += " (" + strings.Join(where, ", ") + ")"
	}
	f.list = append(f.list, errors.New(text+"; "+r.remedy))
}

func (f *findings) err() error { return errors.Join(f.list...) }

// report calls t.Error for each of the joined errors.
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

// The rules that the end of a call can break.
var (
	ruleReturns = rule{"does not return after ctx has ended", "pass ctx on to whatever waits, and return when it has ended"}
	ruleSlow    = rule{"does not return within a minute", "test it with a stand-in for the model that answers at once"}
	rulePanics  = rule{"panics", "return an error instead"}
	ruleGoexit  = rule{"ends the goroutine that it is called on", "call neither runtime.Goexit nor FailNow of a test in it"}
)

// patience is how long a call may take, and grace is how long it may continue after
// its ctx has ended. Both are far longer than a call that checks its ctx can take, so
// the result does not depend on the load of the machine.
const (
	patience = time.Minute
	grace    = 10 * time.Second
)

// soon is the timeout of a ctx that should end during a call. A call that has
// returned by then breaks no rule.
const soon = 5 * time.Millisecond

// An ending describes how a call broke a rule by the way it ended.
type ending struct {
	rule   rule // the broken rule; the zero rule if there is none
	detail string
}

// isBad reports whether the call broke a rule.
func (e ending) isBad() bool { return e.rule != rule{} }

// isStuck reports whether the call did not return, or whether each call would take a
// minute.
func (e ending) isStuck() bool { return e.rule == ruleReturns || e.rule == ruleSlow }

// where returns the place with the detail added.
func (e ending) where(place ...string) []string {
	if e.detail != "" {
		place = append(place, e.detail)
	}
	return place
}

// call calls f on a new goroutine and waits until it ends. The result of f is
// valid only if no rule was broken.
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
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case out := <-done:
		return out.got, out.end
	case <-timer.C:
		return got, ending{rule: ruleReturns}
	}
}

// finish is like call, but with a ctx that ends after patience.
func finish[T any](f func(context.Context) T) (got T, end ending) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	got, end = call(ctx, f)
	if !end.isBad() && ctx.Err() != nil {
		end.rule = ruleSlow
	}
	return got, end
}

// stop calls f with a ctx that has ended, and then with a ctx that ends during
// the call. It returns the first broken rule.
func stop[T any](f func(context.Context) T) ending {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, end := call(ctx, f); end.isBad() {
		end.detail = strings.TrimPrefix(end.detail+", ctx had ended before the call", ", ")
		return end
	}
	ctx, cancel = context.WithCancel(context.Background())
	defer cancel()
	timer := time.AfterFunc(soon, cancel)
	defer timer.Stop()
	_, end := call(ctx, f)
	if end.isBad() {
		end.detail = strings.TrimPrefix(end.detail+", ctx ended during the call", ", ")
	}
	return end
}
