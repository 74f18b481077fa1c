package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/cmd/convo/internal/cli"
)

// fuzzed are the commands that FuzzRun runs. Those that write requests name no format to read.
var fuzzed = []string{
	"show", "show -window 100", "show -html " + os.DevNull, "show -json", "check", "check -history", "check -format anthropic", "check -format gemini", "count", "count -model gpt-4",
	"compact", "compact -target 10", "compact -window 200", "compact -target 30 -strategy truncate", "compact -target 20 -strategy summarize", "compact -target 20 -strategy clear",
	"compact -to openai-chat", "compact -to openai-responses", "compact -to anthropic", "compact -to gemini", "compact -to converse", "compact -to mistral -target 10",
	"convert -to openai-chat", "convert -to openai-responses", "convert -to anthropic", "convert -to gemini", "convert -to converse",
	"convert -to deepseek", "convert -to mistral", "convert -to ollama", "convert -to openai-chat -from converse",
	"compact -format openai-chat", "compact -format openai-responses", "compact -format anthropic", "compact -format gemini", "compact -format converse",
}

// No input makes a command panic or end with a code of its own, and what compact and convert
// write is a request that Check takes and Decode reads.
func FuzzRun(f *testing.F) {
	samples, err := filepath.Glob("internal/session/testdata/*.json*")
	require.NoError(f, err)
	for _, path := range samples {
		if strings.HasSuffix(path, ".want") {
			continue
		}
		data, err := os.ReadFile(path)
		require.NoError(f, err)
		for i := range fuzzed {
			if i%4 == len(data)%4 {
				f.Add(uint8(i), data)
			}
		}
	}
	for i, data := range []string{
		"", "{}", "[]", "null", "{\"messages\":[]}", trip, trip + "\n" + trip, "[" + trip + "]", `[{"role":"user","content":"a"}]`,
		`{"messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{"}}]},{"role":"tool","tool_call_id":"1","content":"b"}],"tools":[{"type":"function","function":{"name":"f"}}]}`,
		`{"contents":[{"parts":[{"text":"a"}]}],"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT"}}]}]}`,
		`{"version":1,"key":"@bcdefgh","last":1,"turn":1,"touched":0,"appended":0,"entries":[{"id":1,"message":{"role":"user","parts":[{"type":"text","text":"a"}]}}]}`,
		"\xff\xfe{\x00", "\x00", "SQLite format 3\x00", "\x1b[2J", `{"error":{"message":"too long"}}`, `{"messages":[{"role":"user","content":"\ud800"}],"temperature":1e999}`,
	} {
		for k := range fuzzed {
			if k%3 == i%3 {
				f.Add(uint8(k), []byte(data))
			}
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		if len(data) > 1<<16 {
			t.Skip("long inputs are slow, and show no more")
		}
		command := fuzzed[int(which)%len(fuzzed)]
		args := strings.Fields(command)
		var out, errs bytes.Buffer
		env := cli.NewEnv(bytes.NewReader(data), &out, &errs)
		code := runIn(t.Context(), env, args)
		if !slices.Contains([]int{cli.OK, cli.Findings, cli.Usage, cli.Unreadable}, code) {
			t.Fatalf("convo %s ends with %d", command, code)
		}
		if code == cli.Unreadable && errs.Len() == 0 {
			t.Fatalf("convo %s says nothing about what it cannot read", command)
		}
		for _, r := range errs.String() {
			if r != '\n' && r != '\t' && r < ' ' || r == 0x7f || r == 0x9b {
				t.Fatalf("convo %s: a control character: %q", command, errs.String())
			}
		}
		if args[0] != "compact" && args[0] != "convert" {
			return
		}
		in := &input{name: "output", r: newReader(&out)}
		for d, err := range in.documents() {
			require.NoError(t, err, "convo %s: %s", command, errs.String())
			name, _ := recognize(d.raw)
			for _, flag := range []string{"-format", "-to"} {
				if i := slices.Index(args, flag); i >= 0 {
					name = args[i+1]
				}
			}
			if isList(d.raw) {
				d.raw = slices.Concat([]byte(`{"`+messagesField(name)+`":`), d.raw, []byte("}"))
			}
			format, err := newFormat(name, modelOf(d.raw))
			require.NoError(t, err)
			require.Empty(t, format.Check(d.raw), "convo %s: %s", command, d.raw)
			_, err = format.Decode(d.raw)
			require.NoError(t, err, "convo %s: %s", command, d.raw)
		}
	})
}
