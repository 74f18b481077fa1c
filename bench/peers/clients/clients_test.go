package main

import (
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/bench/peer"
	"github.com/seed-c1b73e60/convo/clients/convoopenai"
)

// Each cell checks the answers that it gets.
func TestCells(t *testing.T) {
	for _, cell := range library.Cells {
		t.Run(cell.Name, func(t *testing.T) {
			for _, n := range []int{10, 100} {
				assert.NoError(t, cell.New(n).Do(5), "n = %d", n)
			}
		})
	}
}

// The turns of a long agent, for a profile:
//
//	go test -run '^$' -bench Agent/Chat -benchtime 1000x -cpuprofile cpu.out .
func BenchmarkAgent(b *testing.B) {
	for name, sender := range map[string]func(*http.Client) convo.Send{"Chat": chatSend, "Anthropic": anthropicSend} {
		b.Run(name, func(b *testing.B) {
			a, send, err := newAgent(2_000, sender)
			require.NoError(b, err)
			b.Cleanup(func() { _ = os.RemoveAll(dir) })
			a.sent = nil
			for b.Loop() {
				require.NoError(b, a.take(send, true))
			}
			sum := 0
			for _, n := range a.sent {
				sum += n
			}
			b.ReportMetric(float64(sum)/float64(b.N), "sent-B/op")
		})
	}
}

// Memory of 10,000 conversations of 20 messages, after a request of each through one client.
func BenchmarkIdle(b *testing.B) {
	const conversations = 10_000
	texts := peer.Texts(19)
	for name, keep := range map[string]int{"default": 0, "KeepBytes=-1": -1} {
		b.Run(name, func(b *testing.B) {
			sender := &convoopenai.ChatSender{Client: openaiClient(&http.Client{Transport: canned{}}), Params: chatParams, KeepBytes: keep}
			list := make([]*convo.History, conversations)
			before := heap()
			for i := range list {
				h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: 2_000_000}})
				require.NoError(b, err)
				for i, text := range texts {
					m := convo.Assistant(strings.Clone(text))
					if peer.IsUser(i) {
						m = convo.User(strings.Clone(text))
					}
					_, err := h.Append(m)
					require.NoError(b, err)
				}
				_, err = h.Do(b.Context(), sender.Send)
				require.NoError(b, err)
				list[i] = h
			}
			b.ReportMetric(float64(heap()-before)/conversations, "B/conversation")
			runtime.KeepAlive(list)
			runtime.KeepAlive(sender)
		})
	}
}

// heap returns the bytes that are in use.
func heap() int64 {
	for range 3 { // pools are emptied by the second
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
