// Package judgetest tests judges: that they have nothing to say against the requests of
// package wire but what is explained, and that they refuse what was spoiled.
package judgetest

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/bench/judge"
	"github.com/seed-c1b73e60/convo/internal/long"
)

// Test has the judges read random requests, and spoils requests in each of the ways
// that the judge claims to see.
func Test(t *testing.T, judges ...*judge.Judge) {
	require.NotEmpty(t, judges)
	counts, err := judge.All(judges, long.Or(200, 1_000), 1)
	require.NoError(t, err)
	for _, c := range counts {
		assert.Positive(t, c.Requests, "%s, %s", c.Judge, c.Format)
		for _, r := range c.Reasons {
			if r.Wrong == "" {
				t.Errorf("%s, %s: not explained in %d requests: %s\n%s", c.Judge, c.Format, r.Requests, r.Objection, r.Shortest)
			}
		}
	}
	for _, j := range judges {
		t.Run(j.Name, func(t *testing.T) { spoiled(t, j) })
	}
}

// spoiled spoils requests that the judge accepts, and wants each to be refused.
func spoiled(t *testing.T, j *judge.Judge) {
	require.NotEmpty(t, j.Sees)
	enough := long.Or(5, 20) // of each way in each format
	rng := rand.New(rand.NewPCG(1, 3))
	for name, f := range j.Formats {
		made := map[string]int{}
		lacking := func() bool {
			for _, way := range j.Sees {
				if made[way] < enough {
					return true
				}
			}
			return false
		}
		for i := 0; i < 3_000 && lacking(); i++ {
			err := judge.Random(rng, func(s judge.Snapshot) (bool, error) {
				body, err := s.Request(f)
				if err != nil || len(j.Read(body)) > 0 {
					return true, nil // there is nothing to send, or nothing to spoil
				}
				for _, way := range j.Sees {
					bad := Spoil(t, rng, way, body)
					if bad == nil || made[way] == enough {
						continue
					}
					made[way]++
					if len(j.Read(bad)) == 0 {
						t.Errorf("%s: accepted, though spoiled by %q: %s", name, way, bad)
					}
				}
				return lacking(), nil
			})
			require.NoError(t, err)
		}
		for _, way := range j.Sees {
			assert.Equal(t, enough, made[way], "%s: requests spoiled by %q", name, way)
		}
	}
}

// Spoil returns a request of any format with a fault, or nil if it has no place for
// one. The ways are
//
//   - role: a message has a role that there is not
//   - field: a message, or a block of its content, has a field that there is not
//   - shape: the content of a message is a number
//   - block: a block of a content has a type that there is not
//   - none: there are no messages
//   - twice: the first user message comes twice
//   - id: a call has no id
//   - calls: a message of the assistant has one call more, or two if it has none; not one
//     of the first two, of which the templates of Llama 3 take one for that of the user
//   - system: there is a system message
func Spoil(t testing.TB, rng *rand.Rand, way string, body []byte) []byte {
	var all map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(body, &all))
	key, content := "messages", "content"
	switch {
	case all["input"] != nil:
		key = "input"
	case all["contents"] != nil:
		key, content = "contents", "parts"
	}
	var list []map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(all[key], &list))
	require.NotEmpty(t, list)
	order := rng.Perm(len(list))
	done := false
	for _, i := range order {
		m := list[i]
		var blocks []map[string]json.RawMessage
		_ = json.Unmarshal(m[content], &blocks) // a text has none
		switch way {
		case "role":
			if done = m["role"] != nil; done {
				m["role"] = json.RawMessage(`"wizard"`)
			}
		case "field":
			done = true
			if len(blocks) > 0 && rng.IntN(2) == 0 {
				blocks[0]["bogus"] = json.RawMessage("1")
				m[content] = marshal(t, blocks)
			} else {
				m["bogus"] = json.RawMessage("1")
			}
		case "shape":
			if done = m[content] != nil && m["role"] != nil; done {
				m[content] = json.RawMessage("5")
			}
		case "block":
			if done = len(blocks) > 0; done && blocks[0]["type"] != nil {
				blocks[0]["type"] = json.RawMessage(`"wizardry"`)
			} else if done {
				blocks[0] = map[string]json.RawMessage{"wizardry": json.RawMessage(`{"a":1}`)}
			}
			if done {
				m[content] = marshal(t, blocks)
			}
		case "none":
			list, done = list[:0], true
		case "twice":
			if done = string(m["role"]) == `"user"`; done {
				list = append(list[:i+1:i+1], list[i:]...)
			}
		case "id", "calls":
			var calls []map[string]json.RawMessage
			_ = json.Unmarshal(m["tool_calls"], &calls) // most messages have none
			if len(calls) == 0 && way == "calls" && string(m["role"]) == `"assistant"` {
				calls = []map[string]json.RawMessage{{"function": json.RawMessage(`{"name":"f","arguments":"{}"}`)}}
			}
			if done = i > 1 && len(calls) > 0; !done {
				continue
			}
			if way == "id" {
				delete(calls[0], "id")
			} else {
				calls = append(calls, calls[0])
			}
			m["tool_calls"] = marshal(t, calls)
		case "system":
			list = slices.Insert(list, 0, map[string]json.RawMessage{"role": json.RawMessage(`"system"`), "content": json.RawMessage(`"s"`)})
			done = true
		default:
			t.Fatalf("no such way to spoil a request: %s", way)
		}
		if done {
			break
		}
	}
	if !done {
		return nil
	}
	all[key] = marshal(t, list)
	return marshal(t, all)
}

func marshal(t testing.TB, v any) []byte {
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return data
}
