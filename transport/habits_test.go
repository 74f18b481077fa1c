package transport_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/transport"
)

// small returns a Transport for a small window.
func small(t *testing.T, o transport.Options) *transport.Transport {
	o.Logger = logger(t)
	o.History = smallHistory
	tr := transport.New(o)
	t.Cleanup(func() { require.NoError(t, tr.Close()) })
	return tr
}

func smallHistory(transport.Conversation) *convo.Options {
	return &convo.Options{Limits: convo.Limits{Window: 8000, Reserve: 600}}
}

// newProgram returns a program that speaks a format through a client.
func newProgram(t *testing.T, client *http.Client, url, format string) *program {
	p := &program{t: t, client: client, base: url, format: format, model: "gemini-2.5-pro", system: "You are an agent."}
	p.user("Read all files, one after the other; " + rule + ".")
	return p
}

// run goes on until the model has no calls, at most for n steps. It returns how many steps it took.
func (p *program) run(n int, before func(step int)) (steps int) {
	for ; steps < n; steps++ {
		if before != nil {
			before(steps)
		}
		calls, err := p.step()
		require.NoError(p.t, err, "request %d", steps)
		if len(calls) == 0 {
			break
		}
		p.results(calls, file)
	}
	return steps
}

// copied returns a deep copy.
func copied[T any](t *testing.T, v T) (c T) {
	data, err := json.Marshal(v)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &c))
	return c
}

// Programs that change what the model does not read keep their conversation.
func TestTransport_Habits(t *testing.T) {
	mark := func(p *program) { // moves the cache mark to the newest message, as pi does
		p.change = func(list []any) []any {
			list = copied(p.t, list)
			content := list[len(list)-1].(obj)["content"].([]any)
			content[len(content)-1].(obj)["cache_control"] = obj{"type": "ephemeral"}
			return list
		}
	}
	habits := []struct {
		name    string
		formats []string
		set     func(p *program)
	}{
		{"moving marks", []string{provider.FormatAnthropic}, mark},
		{"reminders that come and go", []string{provider.FormatAnthropic}, func(p *program) {
			p.change = func(list []any) []any {
				list = copied(p.t, list)
				last := list[len(list)-1].(obj)
				last["content"] = append(last["content"].([]any), obj{"type": "text", "text": fmt.Sprintf("<system-reminder>%d messages so far</system-reminder>", len(list))})
				return list
			}
		}},
		{"a reminder in front", formats[:2], func(p *program) {
			p.change = func(list []any) []any {
				text := fmt.Sprintf("<system-reminder>%d messages so far</system-reminder>", len(list))
				return append([]any{obj{"role": "user", "content": text}}, list...)
			}
		}},
		{"white space and order of keys", formats, func(p *program) {
			p.extra = obj{"metadata": obj{"z": "1"}}
		}},
	}
	for _, h := range habits {
		for _, format := range h.formats {
			t.Run(h.name+" "+format, func(t *testing.T) {
				s, url := serve(t, 8000, 60)
				tr := small(t, transport.Options{})
				p := newProgram(t, &http.Client{Transport: tr}, url, format)
				h.set(p)
				require.Equal(t, 60, p.run(100, nil))
				require.Empty(t, s.Refused())
				require.Contains(t, string(s.Requests()[60].Body), rule)
				require.Len(t, tr.Conversations(), 1)
				require.Less(t, compactions(s), 12)
			})
		}
	}
}

// compactions returns how often the beginning of the requests has changed.
func compactions(s *provider.Server) (n int) {
	var last []byte
	for _, r := range s.Requests() {
		if len(r.Body) < len(last) {
			n++
		}
		last = r.Body
	}
	return n
}

// A call or two without tools are not kept, and leave the conversation alone.
func TestTransport_SideCalls(t *testing.T) {
	for _, format := range formats {
		t.Run(format, func(t *testing.T) {
			s, url := serve(t, 8000, 40)
			tr := small(t, transport.Options{})
			client := &http.Client{Transport: tr}
			p := newProgram(t, client, url, format)
			p.run(100, func(step int) {
				if step%5 == 0 {
					side := newProgram(t, client, url, format)
					side.list = nil
					side.user("A title for this in three words?")
					side.extra = obj{"tools": nil}
					_, err := side.step()
					require.NoError(t, err)
				}
			})
			require.Empty(t, s.Refused())
			require.Len(t, tr.Conversations(), 1)
		})
	}
}

// The same request again, as after a timeout of the program, goes out with the same bytes.
func TestTransport_Resend(t *testing.T) {
	for _, format := range formats {
		t.Run(format, func(t *testing.T) {
			s, url := serve(t, 8000, 40)
			tr := small(t, transport.Options{})
			p := newProgram(t, &http.Client{Transport: tr}, url, format)
			p.run(100, func(step int) {
				if step > 0 && step%7 == 0 {
					status, _ := p.post()
					require.Equal(t, http.StatusOK, status)
				}
			})
			require.Empty(t, s.Refused())
			require.Len(t, tr.Conversations(), 1)
			var last []byte
			again := 0
			for _, r := range s.Requests() {
				if bytes.Equal(r.Body, last) {
					again++
				}
				last = r.Body
			}
			require.Equal(t, 5, again)
		})
	}
}

// Several branches of one conversation, in turns, are kept apart.
func TestTransport_Forks(t *testing.T) {
	for _, format := range formats {
		t.Run(format, func(t *testing.T) {
			s, url := serve(t, 8000, 200)
			tr := small(t, transport.Options{})
			p := newProgram(t, &http.Client{Transport: tr}, url, format)
			p.run(30, nil)
			var branches []*program
			for i := range 3 {
				q := *p
				q.list = slices.Clone(p.list)
				q.user(fmt.Sprintf("branch %d: go on", i))
				branches = append(branches, &q)
			}
			for range 20 {
				for _, q := range branches {
					q.run(1, nil)
				}
			}
			require.Empty(t, s.Refused())
			for i, r := range s.Requests()[30:] {
				require.Contains(t, string(r.Body), fmt.Sprintf("branch %d", i%3), "request %d", i)
				for other := range 3 {
					if other != i%3 {
						require.NotContains(t, string(r.Body), fmt.Sprintf("branch %d:", other))
					}
				}
			}
			require.LessOrEqual(t, len(tr.Conversations()), 4)
			// A branch begins with what was decided before it: with the bytes of the last request.
			first, last := s.Requests()[30].Body, s.Requests()[29].Body
			require.Greater(t, common(first, last), len(last)*9/10)
		})
	}
}

func common(a, b []byte) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// Parallel calls, with results in another order.
func TestTransport_Parallel(t *testing.T) {
	for _, format := range formats {
		t.Run(format, func(t *testing.T) {
			n := 0
			s, url := server(t, provider.Options{Window: 8000, Answer: func(provider.Request) provider.Answer {
				var blocks []provider.Block
				if n += 3; n > 90 {
					return provider.Answer{Blocks: []provider.Block{provider.Text("done")}}
				}
				for i := range 3 {
					blocks = append(blocks, provider.Call{Name: "read", Arguments: fmt.Sprintf(`{"path":"src/f%d.go"}`, n+i)})
				}
				return provider.Answer{Blocks: blocks}
			}})
			tr := small(t, transport.Options{})
			p := newProgram(t, &http.Client{Transport: tr}, url, format)
			for {
				calls, err := p.step()
				require.NoError(t, err)
				if len(calls) == 0 {
					break
				}
				if format != provider.FormatGemini { // whose results without IDs have the order of the calls
					slices.Reverse(calls)
				}
				p.results(calls, file)
			}
			require.Empty(t, s.Refused())
			require.Len(t, s.Requests(), 31)
			require.Len(t, tr.Conversations(), 1)
		})
	}
}

// A program that compacts itself is followed.
func TestTransport_OwnCompaction(t *testing.T) {
	for _, format := range formats {
		t.Run(format, func(t *testing.T) {
			s, url := serve(t, 8000, 100)
			tr := small(t, transport.Options{})
			p := newProgram(t, &http.Client{Transport: tr}, url, format)
			p.run(100, func(step int) {
				if step > 0 && step%15 == 0 {
					p.list = nil
					p.user(fmt.Sprintf("Summary of the conversation so far: file number %d was read; %s.", step, rule))
				}
			})
			require.Empty(t, s.Refused())
			all := s.Requests()
			require.Contains(t, string(all[len(all)-1].Body), rule)
		})
	}
}

// After a restart, the requests begin as before.
func TestTransport_Restart(t *testing.T) {
	for _, format := range formats {
		t.Run(format, func(t *testing.T) {
			s, url := serve(t, 8000, 60)
			dir := transport.Dir(t.TempDir())
			tr := small(t, transport.Options{Store: dir})
			p := newProgram(t, nil, url, format)
			p.client = &http.Client{Transport: tr}
			p.run(30, nil)
			p.client = &http.Client{Transport: small(t, transport.Options{Store: dir})}
			p.run(100, nil)
			require.Empty(t, s.Refused())
			all := s.Requests()
			require.Len(t, all, 61)
			require.Greater(t, compactions(s), 2)
			require.Greater(t, common(all[30].Body, all[29].Body), len(all[29].Body)*9/10)
		})
	}
}

// A program may abort, and its provider may fail.
func TestTransport_Faults(t *testing.T) {
	for _, format := range formats {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprint(format, stream), func(t *testing.T) {
				s, url := serve(t, 8000, 40)
				tr := small(t, transport.Options{})
				p := newProgram(t, &http.Client{Transport: tr}, url, format)
				p.stream = stream
				p.run(100, func(step int) {
					switch step % 6 {
					case 1:
						s.Script(provider.Answer{Fault: &provider.Fault{Status: 529}})
						status, data := p.post()
						require.Equal(t, 529, status)
						require.NotEmpty(t, data)
					case 3:
						ctx, cancel := context.WithCancel(t.Context())
						r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+p.path(), bytes.NewReader(p.body()))
						require.NoError(t, err)
						resp, err := p.client.Do(r)
						require.NoError(t, err)
						_, _ = resp.Body.Read(make([]byte, 10))
						cancel()
						require.NoError(t, resp.Body.Close())
					}
				})
				require.Empty(t, s.Refused())
				require.Len(t, tr.Conversations(), 1)
			})
		}
	}
}

// A request that the provider finds too long is made smaller before the program sees anything.
func TestTransport_TooLong(t *testing.T) {
	for _, format := range formats {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprint(format, stream), func(t *testing.T) {
				s, url := serve(t, 8000, 60)
				tr := transport.New(transport.Options{Logger: logger(t), History: func(transport.Conversation) *convo.Options {
					return &convo.Options{Limits: convo.Limits{Window: 100_000}} // more than the provider has
				}})
				defer tr.Close()
				p := newProgram(t, &http.Client{Transport: keyed{tr}}, url, format)
				p.stream = stream
				require.Equal(t, 60, p.run(100, nil))
				require.NotEmpty(t, s.Refused())
				again := false
				for _, r := range s.Requests() {
					require.Equal(t, again, r.Header.Get("Idempotency-Key") == "", "a request with another body has the key of the first one")
					again = r.Error != ""
				}
			})
		}
	}
}

// Watch changes nothing, and sees everything.
func TestTransport_Watch(t *testing.T) {
	for _, format := range formats {
		t.Run(format, func(t *testing.T) {
			s, url := serve(t, 8000, 60)
			tr := small(t, transport.Options{Watch: true})
			p := newProgram(t, &http.Client{Transport: tr}, url, format)
			var err error
			for n := 0; err == nil; n++ {
				require.Less(t, n, 60)
				body := p.body()
				var calls []called
				calls, err = p.step()
				p.results(calls, file)
				require.Equal(t, string(body), string(s.Requests()[n].Body))
			}
			require.Len(t, s.Refused(), 1)
			c := tr.Conversations()[0]
			require.Equal(t, 400, c.Last.Status)
			require.NotEmpty(t, c.Last.Error)
			require.Greater(t, c.History.Status().Upper, 7000)
			require.Contains(t, c.First[len(c.First)-1].Text(), rule)
		})
	}
}

// Until something was decided, what the program wrote goes out byte for byte, and so do messages
// that no compaction has touched.
func TestTransport_Bytes(t *testing.T) {
	for _, format := range formats {
		t.Run(format, func(t *testing.T) {
			s, url := serve(t, 8000, 60)
			tr := small(t, transport.Options{})
			p := newProgram(t, &http.Client{Transport: tr}, url, format)
			p.change = func(list []any) []any { // fields that no format knows
				list = copied(t, list)
				for i, m := range list {
					m := maps.Clone(m.(obj))
					if format == provider.FormatOpenAIChat {
						m["zz"] = i
					}
					list[i] = m
				}
				return list
			}
			changed := false
			for n := range 60 {
				body := p.body()
				p.run(1, nil)
				sent := s.Requests()[n].Body
				changed = changed || len(sent) < len(body)
				if !changed {
					require.Equal(t, string(body), string(sent))
					continue
				}
				list := p.change(p.list)
				newest, err := json.Marshal(list[len(list)-3])
				require.NoError(t, err)
				require.Contains(t, string(sent), string(newest))
				if format == provider.FormatOpenAIChat {
					require.Equal(t, n*2+1, strings.Count(string(sent), `"zz"`), "each message keeps its own fields")
				}
			}
			require.True(t, changed)
		})
	}
}
