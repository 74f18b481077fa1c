package convo_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

func seedSnapshot(t testing.TB) []byte {
	h, err := convo.New(&convo.Options{Roles: convo.Relaxed()})
	require.NoError(t, err)
	call := convo.ToolCall{ID: "c1", Name: "run", Arguments: `{"x": 1.0}`}
	_, err = h.Append(convo.System("s"), convo.User("u"), convo.Assistant("a", call), convo.Result(call, "r"),
		convo.Assistant("b"), convo.User("v"), convo.Assistant("", call))
	require.NoError(t, err)
	require.NoError(t, h.Pin(2))
	_, err = h.SplicePrefix(h.Snapshot(), 4, "summary")
	require.NoError(t, err)
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 500}))
	data, err := json.Marshal(h.Snapshot())
	require.NoError(t, err)
	return data
}

// What decodes encodes, and then decodes to the same.
func FuzzMessageJSON(f *testing.F) {
	for _, s := range []string{
		`{"role":"user","parts":[{"type":"text","text":"hi"}]}`,
		`{"role":"assistant","origin":{"format":"f","model":"m"},"parts":[{"type":"reasoning","text":"t","signature":"s"},{"type":"tool_call","id":"c","name":"n","arguments":"{\"a\": 1.0}"}]}`,
		`{"role":"tool","parts":[{"type":"tool_result","call_id":"c","is_error":true,"parts":[{"type":"text","text":"r"},{"type":"media","mime":"image/png","data":"AAAA"}]}]}`,
		`{"role":"user","author":"bob","meta":"m","parts":[{"type":"opaque","format":"f","json":"{}"}]}`,
		`{"role":"tool","parts":[{"type":"tool_result","parts":[{"type":"tool_result"}]}]}`,
		`{"role":"robot"}`, `null`, `{"role":"user","parts":[null]}`, `[[[[`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var m convo.Message
		if json.Unmarshal(data, &m) != nil {
			require.Equal(t, convo.Message{}, m, "a failed decode leaves the target alone")
			return
		}
		once, err := json.Marshal(m)
		if err != nil {
			t.Fatalf("decoded %s and cannot encode it: %v", data, err)
		}
		if m.Role == convo.RoleNone {
			return // null
		}
		var again convo.Message
		require.NoError(t, json.Unmarshal(once, &again))
		require.Equal(t, m, again)
	})
}

// What decodes is safe to read, encodes to the same, and Restore refuses it
// with a typed error or takes it. Mended, it loads again without a fault.
func FuzzSnapshotJSON(f *testing.F) {
	f.Add(seedSnapshot(f))
	f.Add([]byte(`{"version":1,"key":"abcdefgh","last_id":3,"turn":1,"entries":[{"id":1,"turn":1,"message":{"role":"user"}},{"id":3,"turn":1,"message":{"role":"tool","parts":[{"type":"tool_result"}]}}]}`))
	f.Add([]byte(`{"version":1,"key":"abcdefgh","last_id":9007199254730000,"turn":2,"touched_turn":2}`))
	f.Add([]byte(`{"version":2,"entries":"other"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := new(convo.Snapshot)
		if json.Unmarshal(data, s) != nil {
			require.Zero(t, s.Len())
			return
		}
		before := printOf(s)
		once, err := json.Marshal(s)
		require.NoError(t, err)
		again := new(convo.Snapshot)
		require.NoError(t, json.Unmarshal(once, again), "%s", once)
		require.Equal(t, before, printOf(again))

		var numbers struct {
			Last, Turn int64
		}
		require.NoError(t, json.Unmarshal([]byte(strings.Replace(string(once), "last_id", "last", 1)), &numbers))
		if numbers.Last > 1<<53-10_000 || numbers.Turn > 1<<52-10_000 {
			return // what follows would go beyond what is read
		}
		for _, roles := range []convo.RolePolicy{convo.Strict(), convo.Relaxed()} {
			for _, load := range []convo.OnLoad{convo.OnLoadKeep, convo.OnLoadClose, convo.OnLoadDrop} {
				opts := &convo.Options{Roles: roles, OnLoad: load}
				if h, err := convo.Restore(s, opts); err == nil {
					checkRestored(t, h)
				}
				told := 0
				opts.Repair = func(convo.Fault) { told++ }
				h, err := convo.Restore(s, opts)
				require.NoError(t, err, "everything is mended")
				checkRestored(t, h)

				saved, err := json.Marshal(h.Snapshot())
				require.NoError(t, err)
				mended := new(convo.Snapshot)
				require.NoError(t, json.Unmarshal(saved, mended), "%s", saved)
				_, err = convo.Restore(mended, &convo.Options{Roles: roles})
				require.NoError(t, err, "after %d repairs: %s", told, saved)
			}
		}
		require.Equal(t, before, printOf(s), "nothing has changed the snapshot")
	})
}

func checkRestored(t *testing.T, h *convo.History) {
	checkPairs(t, h.Snapshot())
	total := 0
	for x := range h.Snapshot().Exchanges() {
		total += x.Tokens
	}
	if sum, ok := h.Snapshot().Summary(); ok {
		total += sum.Tokens
	}
	require.Equal(t, h.Snapshot().Tokens(), total)
	if h.Status().OpenCalls > 0 {
		_, err := h.AnswerOpenCalls("late")
		require.NoError(t, err)
	}
	if _, err := h.Append(convo.User("next")); err != nil {
		_, err = h.Append(convo.Assistant("answer"))
		require.NoError(t, err)
	}
	checkPairs(t, h.Snapshot())
}

// Whatever the deltas are, Append takes what comes out.
func FuzzBuilder(f *testing.F) {
	f.Add([]byte("\x00hello\x01\x02c1\x02{}"))
	f.Add([]byte{3, 0, 3, 1, 2, 2, 2, 0, 1, 255, 4, 4})
	f.Fuzz(func(t *testing.T, data []byte) {
		var b convo.Builder
		for len(data) >= 3 {
			op, index, size := data[0]%6, int(data[1]%4), int(data[2]%9)
			data = data[3:]
			size = min(size, len(data))
			text := string(data[:size])
			data = data[size:]
			switch op {
			case 0:
				b.Text(text)
			case 1:
				b.Reasoning(convo.Reasoning{Text: text})
			case 2:
				b.Reasoning(convo.Reasoning{Signature: text, ID: text})
			case 3:
				b.ToolCall(index, convo.ToolCall{Name: text})
			case 4:
				b.ToolCall(index, convo.ToolCall{ID: text, Arguments: text})
			case 5:
				b.ToolCall(index, convo.ToolCall{ID: text, Name: text, Arguments: `{"a":`})
			}
		}
		msgs := b.Messages()
		if len(msgs) == 0 {
			return
		}
		h, err := convo.New(nil)
		require.NoError(t, err)
		_, err = h.Append(convo.User("u"))
		require.NoError(t, err)
		_, err = h.Append(msgs...)
		require.NoError(t, err, "%v", msgs)
		checkPairs(t, h.Snapshot())
	})
}
