package convo_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
)

// ofOptions are the functions that a History calls without a ctx, with what they must not
// call, as Options says. None may call Do or Run. Repair and OnImport are not among them,
// since Restore and Open call them before there is a History.
var ofOptions = map[string][]string{
	"Tokenizer":       append(slices.Clone(waitForReload), waitForCompaction...),
	"Overheads.Media": append(slices.Clone(waitForReload), waitForCompaction...),
	"Pin":             append(slices.Clone(waitForReload), waitForCompaction...),
	"AfterCompaction": waitForCompaction,
	"Due":             waitForCompaction,
	"Key":             nil,
	"Time":            nil,
	"IsOverflow":      nil,
	"OnCompaction":    {"Wait"},
	"Logger":          nil,
	"Same":            waitForCompaction,
	"Redact":          waitForCompaction,
}

var (
	waitForReload     = []string{"Save", "SaveFull", "Reload", "Attach", "Prune"}
	waitForCompaction = []string{"Prepare", "CompactIfNeeded", "Compact", "MakeRoom", "Recover", "Wait"}
)

// A method that a function of Options calls returns, unless Options says that the function
// must not call it.
func TestOptions_WhatFunctionsMayCall(t *testing.T) {
	methods := map[string]func(*convo.History, context.Context) error{
		"Prepare":         func(h *convo.History, ctx context.Context) error { _, _, err := h.Prepare(ctx); return err },
		"CompactIfNeeded": func(h *convo.History, ctx context.Context) error { _, err := h.CompactIfNeeded(ctx); return err },
		"Compact":         func(h *convo.History, ctx context.Context) error { _, err := h.Compact(ctx, ""); return err },
		"MakeRoom":        func(h *convo.History, ctx context.Context) error { _, _, err := h.MakeRoom(ctx, 1); return err },
		"Recover": func(h *convo.History, ctx context.Context) error {
			_, _, err := h.Recover(ctx, h.Snapshot(), errors.New("prompt is too long"))
			return err
		},
		"Wait": func(h *convo.History, ctx context.Context) error { _, err := h.Wait(ctx); return err },
		"CompactTool": func(h *convo.History, ctx context.Context) error {
			_, _ = h.CompactTool().Run(ctx, convo.ToolCall{ID: "c", Name: "compact", Arguments: "{}"})
			return ctx.Err()
		},
		"CompactInBackground": func(h *convo.History, ctx context.Context) error { h.CompactInBackground(ctx); return nil },
		"Handoff": func(h *convo.History, ctx context.Context) error {
			_, err := h.Handoff(ctx, convo.Extract{}, "")
			return err
		},
		"Save":     (*convo.History).Save,
		"SaveFull": (*convo.History).SaveFull,
		"Reload":   func(h *convo.History, ctx context.Context) error { _, _, err := h.Reload(ctx); return err },
		"Attach": func(h *convo.History, ctx context.Context) error {
			return h.Attach(ctx, new(convotest.MemStore), "other")
		},
		"Prune":  func(h *convo.History, ctx context.Context) error { return h.Prune(ctx, time.Time{}) },
		"Append": func(h *convo.History, _ context.Context) error { _, err := h.Append(convo.User("a note")); return err },
		"Queue":  func(h *convo.History, _ context.Context) error { return h.Queue(convo.User("a note")) },
		"Apply": func(h *convo.History, _ context.Context) error {
			_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{1}})
			return err
		},
		"SetSystem": func(h *convo.History, _ context.Context) error { return h.SetSystem(convo.System("be brief")) },
	}
	var called sync.Map
	for of, mustNot := range ofOptions {
		for method, call := range methods {
			var waits atomic.Bool
			synctest.Test(t, func(t *testing.T) {
				var inside atomic.Bool
				everything(t, func(name string, h *convo.History) {
					if name != of || h == nil || waits.Load() || !inside.CompareAndSwap(false, true) {
						return
					}
					defer inside.Store(false)
					called.Store(of, true)
					ctx, cancel := context.WithTimeout(context.Background(), time.Second)
					defer cancel()
					if errors.Is(call(h, ctx), context.DeadlineExceeded) {
						waits.Store(true)
					}
				})
			})
			if waits.Load() {
				assert.Contains(t, mustNot, method, of)
			}
		}
		_, isCalled := called.Load(of)
		assert.True(t, isCalled, of)
	}
}

// everything has a History call each function, which calls f with its name.
func everything(t *testing.T, f func(string, *convo.History)) {
	var h *convo.History
	var store convotest.MemStore
	opts := &convo.Options{
		Limits:          convo.Limits{Window: 2000},
		Tokenizer:       convo.TokenizerFunc(func(text string) int { f("Tokenizer", h); return len(text) }),
		Overheads:       convo.Overheads{Media: func(convo.Media) int { f("Overheads.Media", h); return 10 }},
		IsOverflow:      func(error) bool { f("IsOverflow", h); return true },
		Pin:             func(convo.Message) bool { f("Pin", h); return false },
		Key:             func(convo.Message) string { f("Key", h); return "" },
		Time:            func(convo.Message) time.Time { f("Time", h); return time.Time{} },
		AfterCompaction: func(convo.Report) []convo.Message { f("AfterCompaction", h); return nil },
		Redact:          func(m convo.Message) convo.Message { f("Redact", h); return m },
		OnCompaction:    func(convo.Report) { f("OnCompaction", h) },
		Logger:          slog.New(handlerFunc(func() { f("Logger", h) })),
		Strategy: convo.Chain(
			convo.When(func(convo.Status) bool { f("Due", h); return true }, convo.ClearToolResults{
				KeepLast: -1, Same: func(c convo.ToolCall) string { f("Same", h); return c.Arguments },
			}),
			convo.Summarize{With: convo.Extract{}}, convo.Truncate{},
		),
	}
	ctx := t.Context()
	h, err := convo.Open(ctx, &store, "k", opts)
	require.NoError(t, err)
	defer h.Close()
	more := func(h *convo.History) {
		image := convo.Media{MIME: "image/png", URL: "https://example.com/i.png"}
		_, _ = h.Append(convo.Message{Role: convo.RoleUser, Parts: []convo.Part{convo.Text("look"), image}})
		for _, id := range []string{"1", "2"} {
			_, _ = h.Append(convo.Assistant("", convo.ToolCall{ID: id, Name: "read", Arguments: "{}"}))
			_, _ = h.Append(convo.Result(convo.ToolCall{ID: id, Name: "read"}, strings.Repeat("words ", 50)))
		}
		_, _ = h.Append(convo.Assistant(strings.Repeat("words ", 50)), convo.User("next"), convo.Assistant("done"))
	}
	for range 3 {
		_, _, _ = h.Prepare(ctx) // below the limit, for Due
		more(h)
		_ = h.Save(ctx)
		other, err := convo.Open(ctx, &store, "k", &convo.Options{Roles: convo.Relaxed()})
		require.NoError(t, err)
		more(other)
		_, _ = other.Append(convo.Assistant("two in a row"))
		_ = other.Save(ctx)
		more(h)
		_, _, _ = h.Reload(ctx)
		_ = h.Save(ctx)
		_, _, _ = h.Prepare(ctx)
		_, _, _ = h.Recover(ctx, h.Snapshot(), errors.New("prompt is too long"))
		_, _ = h.Handoff(ctx, convo.Extract{}, "")
		h.CompactInBackground(ctx)
		_, _ = h.Wait(ctx)
	}
}

// A handlerFunc is a slog.Handler without a lock of its own.
type handlerFunc func()

func (handlerFunc) Enabled(context.Context, slog.Level) bool    { return true }
func (f handlerFunc) Handle(context.Context, slog.Record) error { f(); return nil }
func (f handlerFunc) WithAttrs([]slog.Attr) slog.Handler        { return f }
func (f handlerFunc) WithGroup(string) slog.Handler             { return f }
