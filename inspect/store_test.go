package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"html"
	"iter"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/inspect"
	"github.com/seed-c1b73e60/convo/internal/long"
)

// Each record of a Store is a page, with links to the one before and the one after.
func TestPages_Store(t *testing.T) {
	store := &convotest.MemStore{}
	key := `../a/b?c=<1>&"` + "\x1b"
	h := openHistory(t, store, key, nil)
	for n := range 3 {
		mustAppend(t, h, convo.User(fmt.Sprint("Question ", n)), convo.Assistant(fmt.Sprint("Answer ", n)))
		require.NoError(t, h.Save(t.Context()))
	}
	p := &inspect.Pages{Store: store}
	link := regexp.MustCompile(`<li><a href="([^"]*)"`).FindStringSubmatch(ask(t, p, "/"))
	require.Len(t, link, 2)
	page := ask(t, p, link[1])
	has(t, page, "Record 3 of 3: 6 messages in 3 turns")
	has(t, page, "Answer 2")
	hasNot(t, page, `rel="next"`)
	prev := regexp.MustCompile(`<a href="([^"]*)" rel="prev">The record before`)
	next := regexp.MustCompile(`<a href="([^"]*)" rel="next">The record after`)
	page = ask(t, p, prev.FindStringSubmatch(page)[1])
	has(t, page, "Record 2 of 3: ")
	has(t, page, "Answer 1")
	hasNot(t, page, "Answer 2")
	has(t, ask(t, p, next.FindStringSubmatch(page)[1]), "Answer 2")
	page = ask(t, p, prev.FindStringSubmatch(page)[1])
	has(t, page, "Record 1 of 3: ")
	assert.Nil(t, prev.FindStringSubmatch(page))

	for _, query := range []string{"?key=none", "?seq=9&key=" + url.QueryEscape(key), "?seq=18446744073709551615&key=" + url.QueryEscape(key)} {
		status, page := get(t, p, query)
		assert.Equal(t, 404, status, query)
		has(t, page, "The record cannot be shown")
	}
	status, page := get(t, p, "?key="+strings.Repeat("k", 5000))
	assert.Equal(t, 404, status)
	has(t, page, "1 to 4096 bytes")
}

// The list of a Store has pages.
func TestPages_LongList(t *testing.T) {
	store := &convotest.MemStore{}
	for n := range 250 {
		h := openHistory(t, store, fmt.Sprintf("%s/%03d", strings.Repeat(`<">`, long.Or(100, 1000)), n), nil)
		mustAppend(t, h, convo.User("Hello."))
		require.NoError(t, h.Save(t.Context()))
		h.Close()
	}
	p := &inspect.Pages{Store: store}
	found := map[string]bool{}
	target, pages := "?list", 0
	for ; target != ""; pages++ {
		page := ask(t, p, target)
		assert.Less(t, len(page), 3_000_000)
		for _, m := range regexp.MustCompile(`<li><a href="([^"]*)"`).FindAllStringSubmatch(page, -1) {
			found[m[1]] = true
		}
		target = ""
		if more := regexp.MustCompile(`<a href="([^"]*)">More</a>`).FindStringSubmatch(page); more != nil {
			target = more[1]
		}
	}
	assert.Len(t, found, 250)
	assert.Equal(t, 3, pages)
}

// The archive shows what a summary covers and what a result was.
func TestPages_Archive(t *testing.T) {
	store := &convotest.MemStore{}
	h := openHistory(t, store, "k", &convo.Options{Limits: convo.Limits{Window: 5_000, Reserve: 1_000}})
	fill(t, h)
	require.NoError(t, h.Save(t.Context()))
	p := inspect.Handler(h)
	p.Store = store
	for _, address := range []string{"?c=1", "?key=k"} {
		page := ask(t, p, address)
		covered := regexp.MustCompile(`As they were appended: <a href="([^"]*)">(\d+)`).FindStringSubmatch(page)
		require.NotNil(t, covered, address)
		archive := ask(t, p, covered[1])
		has(t, archive, "Flight 0 leaves at nine")
		assert.True(t, isOpen(t, archive, "e"+covered[2]))
		newer := regexp.MustCompile(`<a href="([^"]*)" rel="next">Newer`).FindStringSubmatch(archive)
		require.NotNil(t, newer)
		has(t, ask(t, p, newer[1]), "Older messages")
		back := regexp.MustCompile(`<a href="([^"]*)">The conversation</a>`).FindStringSubmatch(archive)
		require.NotNil(t, back)
		assert.Equal(t, address, html.UnescapeString(back[1]))
		was := regexp.MustCompile(`<a href="([^"]*)">As it was appended</a>`).FindStringSubmatch(page)
		require.NotNil(t, was)
		has(t, ask(t, p, was[1]), "leaves at nine")
	}
	for _, key := range []string{"none", strings.Repeat("k", 5000)} {
		status, page := get(t, p, "?archive=1&key="+key)
		assert.Equal(t, 404, status)
		has(t, page, "The archive cannot be shown: ")
	}
}

// A faulty is a Store that fails.
type faulty struct {
	convotest.MemStore
	fault func(ctx context.Context) error
}

func (f *faulty) List(ctx context.Context, _ convo.ListOptions) iter.Seq2[convo.LogInfo, error] {
	return func(yield func(convo.LogInfo, error) bool) {
		if yield(convo.LogInfo{Key: evil, Title: evil}, nil) {
			yield(convo.LogInfo{}, f.fault(ctx))
		}
	}
}

func (f *faulty) Records(ctx context.Context, _ string, _ uint64) iter.Seq2[convo.Record, error] {
	return func(yield func(convo.Record, error) bool) { yield(convo.Record{}, f.fault(ctx)) }
}

func TestPages_FaultyStore(t *testing.T) {
	for name, fault := range map[string]func(context.Context) error{
		"errors":  func(context.Context) error { return errors.New(strings.Repeat(evil, 1000)) },
		"damage":  func(context.Context) error { return &convo.DamageError{Key: evil, Err: errors.New(evil)} },
		"panics":  func(context.Context) error { panic(evil) },
		"is slow": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			p := &inspect.Pages{Store: &faulty{fault: fault}}
			for _, query := range []string{"list", "key=k", "key=k&seq=3", "key=k&archive=1"} {
				ctx, cancel := context.WithCancel(t.Context())
				r := httptest.NewRequestWithContext(ctx, "GET", "/?"+query, nil)
				r.Host = "localhost"
				w := httptest.NewRecorder()
				if name == "is slow" {
					cancel() // the client is gone
				}
				p.ServeHTTP(w, r)
				cancel()
				assert.Equal(t, 500, w.Code, query)
				checkPage(t, w.Body.String())
				assert.Less(t, w.Body.Len(), 60_000)
				has(t, w.Body.String(), `role="alert"`)
			}
		})
	}
}

// A Store that answers only when its ctx ends keeps a page waiting for 30 seconds.
func TestPages_SlowStore(t *testing.T) {
	p := &inspect.Pages{Store: &faulty{fault: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}}
	for _, query := range []string{"list", "key=k", "key=k&seq=3", "key=k&archive=1"} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			status, page := get(t, p, query)
			assert.Equal(t, 500, status, query)
			has(t, page, "context deadline exceeded")
			assert.Equal(t, 30*time.Second, time.Since(began), query)
		})
	}
}

// A record shows the marks if it holds limits, and otherwise says that it does not.
func TestPages_RecordLimits(t *testing.T) {
	store := &convotest.MemStore{}
	h := openHistory(t, store, "k", &convo.Options{Limits: convo.Limits{Window: 9_000}})
	mustAppend(t, h, convo.User("Hello."))
	require.NoError(t, h.Save(t.Context()))
	require.NoError(t, h.SetLimits(convo.Limits{Window: 10_000, Reserve: 1_000, High: 8_000, Soft: 7_000, Low: 3_000}))
	require.NoError(t, h.Save(t.Context()))
	p := &inspect.Pages{Store: store}
	page := ask(t, p, "?key=k&seq=1")
	has(t, page, "The window and the marks low, soft, high and limit are not known: this record has no limits, as neither SetLimits nor SetModel had set any.")
	has(t, page, "the limit is not known")
	hasNot(t, page, "Marks:")
	page = ask(t, p, "?key=k&seq=2")
	has(t, page, `aria-label="Marks: low 3,000, soft 7,000, high 8,000, limit 9,000"`)
	has(t, page, `data-kind="reserve" data-tokens="1000"`)
	has(t, page, "of 9,000 tokens")
	has(t, page, "Before the next compaction")
	hasNot(t, page, "limits")
	has(t, page, "<dt>Measured</dt><dd><b>not known</b>")
	has(t, ask(t, p, "?list"), "</bdi></a> <span class=\"faint\">1 message, ")
}
