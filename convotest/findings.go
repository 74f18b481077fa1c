package convotest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// findings collects the broken rules, each once.
type findings struct {
	of    string // what is checked, such as "summarizer"
	rules map[string]bool
	list  []error
}

// add adds a broken rule and the place where it was broken, unless the rule has
// been added before.
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

// How the end of a call can break a rule.
const (
	ruleReturns = "does not return after ctx has ended"
	ruleSlow    = "does not return within a minute"
	rulePanics  = "panics"
	ruleGoexit  = "ends the goroutine that it is called on"
)

// patience is how long a call may take, and how long it may go on after its ctx
// has ended. It is far longer than any call takes that watches its ctx, so that
// the result does not depend on how busy the machine is.
const patience = time.Minute

// soon is when a ctx ends that is meant to end during a call. A call that has
// returned by then breaks no rule.
const soon = 5 * time.Millisecond

// An ending describes how a call broke a rule by the way it ended.
type ending struct{ rule, detail string }

// isStuck reports whether the call has not returned, or would take a minute
// each time.
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
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case out := <-done:
		return out.got, out.end
	case <-timer.C:
		return got, ending{rule: ruleReturns}
	}
}

// finish is like call, with a ctx that ends after patience.
func finish[T any](f func(context.Context) T) (got T, end ending) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	got, end = call(ctx, f)
	if end.rule == "" && ctx.Err() != nil {
		end.rule = ruleSlow
	}
	return got, end
}

// stop calls f with a ctx that has ended, and then with one that ends during
// the call. It returns the first rule that was broken.
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
