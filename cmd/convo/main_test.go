package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/cmd/convo/internal/cli"
	"github.com/seed-c1b73e60/convo/filestore"
	"github.com/seed-c1b73e60/convo/wire"
)

const trip = `{"messages":[{"role":"user","content":"Flights to Rome?"}]}`

// runs runs a command with an input.
func runs(stdin io.Reader, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(context.Background(), args, stdin, &out, &errs)
	return code, out.String(), errs.String()
}

// The largest number that a flag takes, which is not the same on every machine, overflows nothing.
func TestFlags_LargestNumber(t *testing.T) {
	const talk = `{"messages":[{"role":"user","content":"Flights to Rome?"},{"role":"assistant","content":"Two."}]}`
	largest := strconv.Itoa(math.MaxInt)
	for _, name := range []string{"show", "compact", "replay"} {
		code, _, stderr := runs(strings.NewReader(talk), name, "-window", largest)
		assert.Equal(t, cli.OK, code, "%s: %s", name, stderr)
	}
	for _, flag := range []string{"-overhead", "-cache-min"} {
		code, _, stderr := runs(strings.NewReader(talk), "replay", "-window", "8000", flag, largest)
		assert.NotContains(t, stderr, "panic", flag)
		assert.Contains(t, []int{cli.OK, cli.Usage}, code, "%s: %s", flag, stderr)
	}
}

// What is no conversation is refused, with what it is and what to do.
func TestInput_Refused(t *testing.T) {
	dir := t.TempDir()
	utf16 := []byte{0xff, 0xfe}
	for _, c := range trip {
		utf16 = append(utf16, byte(c), 0)
	}
	for name, c := range map[string]struct {
		data string
		want string
	}{
		"empty":       {"", "the input is empty; want JSON or JSONL"},
		"white space": {" \n\n ", "the input is empty; want JSON or JSONL"},
		"binary":      {"\x7fELF\x02\x01\x00\x00", "the content is binary; want JSON or JSONL"},
		"UTF-16":      {string(utf16), "the text is UTF-16; convert it, such as with iconv -f UTF-16 -t UTF-8"},
		"no mark":     {string(utf16[2:]), "the text is UTF-16; convert it, such as with iconv -f UTF-16 -t UTF-8"},
		"compressed":  {"\x1f\x8b\x08", "the content is compressed; send it through gunzip first"},
		"text":        {"hello", ":1: want a JSON object or array, but there is 'h'"},
		"cut":         {`{"messages":[{"role":`, ":1: the input ends inside the JSON value that begins in line 1; the file may be cut off"},
		"second line": {trip + "\n{]}", ":2: the JSON is not valid: invalid character ']' looking for beginning of object key string"},
		"rest":        {trip + "\nx", ":2: want a JSON object or array, but there is 'x'"},
		"database":    {"SQLite format 3\x00", "SQLite database"},
		"NULs":        {trip + "\n{\x00}", ":2: the JSON is not valid: invalid character '\\x00' looking for beginning of object key string"},
		"deep":        {`{"messages":[],"x":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`, "the JSON is not valid"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, command := range []string{"show", "count", "compact", "convert -to gemini"} {
				path := filepath.Join(dir, strings.ReplaceAll(name, " ", ""))
				require.NoError(t, os.WriteFile(path, []byte(c.data), 0o600))
				for _, where := range []string{path, "standard input"} {
					args := strings.Fields(command)
					if where == path {
						args = append(args, path)
					}
					code, stdout, stderr := runs(strings.NewReader(c.data), args...)
					assert.Equal(t, cli.Unreadable, code, "%s: %s", command, stderr)
					assert.Contains(t, stderr, "convo: "+where)
					assert.Contains(t, stderr, c.want)
					if c.data == "" || !strings.HasPrefix(c.data, trip) {
						assert.Empty(t, stdout)
					}
				}
			}
			code, _, stderr := runs(strings.NewReader(c.data), "check")
			assert.Equal(t, cli.Unreadable, code)
			assert.Contains(t, stderr, c.want)
		})
	}
}

// A repeated is an input that repeats a text.
type repeated struct {
	text string
	left int64
}

func (r *repeated) Read(b []byte) (int, error) {
	if r.left <= 0 {
		return 0, io.EOF
	}
	n := 0
	for n < len(b) {
		n += copy(b[n:], r.text)
	}
	n = int(min(int64(n), r.left))
	r.left -= int64(n)
	return n, nil
}

// Much input takes no memory when nothing of it is kept.
func TestInput_Much(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, text := range []string{"\x00", " ", "\n"} {
		for _, command := range []string{"show", "check"} {
			size := int64(1 << 30)
			if text != "\x00" {
				size = 8 << 20 // is read to its end
			}
			code, _, stderr := runs(&repeated{text, size}, command)
			assert.Equal(t, cli.Unreadable, code, stderr)
		}
	}
	runtime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(32<<20))
}

func TestInput_FailsWhileReading(t *testing.T) {
	broken := io.MultiReader(strings.NewReader(trip[:20]), &failing{})
	code, _, stderr := runs(broken, "show")
	assert.Equal(t, cli.Unreadable, code)
	assert.Contains(t, stderr, "standard input: reading failed: the cable is cut")
}

type failing struct{}

func (*failing) Read([]byte) (int, error) { return 0, errors.New("the cable is cut") }

// A crash of the system can leave NULs in a file. They damage a line of a session, and not all of it.
func TestInput_NULs(t *testing.T) {
	const line = `{"type":"user","uuid":"%d","sessionId":"s","message":{"role":"user","content":"hi"}}` + "\n"
	nuls := strings.Repeat("\x00", 4096)
	code, stdout, stderr := runs(strings.NewReader(fmt.Sprintf(line, 1)+fmt.Sprintf(line, 2)+nuls), "show")
	assert.Equal(t, cli.OK, code, stderr)
	assert.Contains(t, stderr, "the last line is incomplete, and left out")
	assert.Contains(t, stdout, "2 messages")
	code, stdout, stderr = runs(strings.NewReader(fmt.Sprintf(line, 1)+nuls+"\n"+fmt.Sprintf(line, 2)), "show")
	assert.Equal(t, cli.Findings, code, stderr)
	assert.Contains(t, stderr, "1 of 3 records was not understood, so much may be missing")
	assert.Contains(t, stdout, "2 messages")
}

// A terminal on the standard input is not waited for.
func TestInput_Terminal(t *testing.T) {
	for _, command := range []string{"show", "check", "count", "compact", "convert -to gemini"} {
		var out, errs bytes.Buffer
		env := cli.NewEnv(&failing{}, &out, &errs)
		env.StdinTerminal = true
		code := runIn(t.Context(), env, strings.Fields(command))
		assert.Equal(t, cli.Usage, code)
		assert.Contains(t, errs.String(), "name a FILE, or send the input through a pipe\n")
	}
}

// Nothing that a conversation or a file name holds reaches the terminal as a control character.
func TestOutput_NoControlCharacters(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	evil := `\u001b]0;owned\u0007\u009b31m\u202e\u200b\r\b\ud83d\ude00\udb40\udc41` + "\x7f\u009b2J\u202e"
	request := `{"model":"m` + evil + `","x` + evil + `":1,"messages":[{"role":"user","content":"` + evil + `"},` +
		`{"role":"assistant","content":"` + evil + `","tool_calls":[{"id":"` + evil + `","type":"function","function":{"name":"` + evil + `","arguments":"{}"}}]},` +
		`{"role":"` + evil + `","content":"x"}],"tools":[{"type":"function","function":{"name":"` + evil + `"}},{"type":"` + evil + `"}]}`
	fine := strings.ReplaceAll(request, `,{"role":"`+evil+`","content":"x"}`, "")
	session := `{"type":"user","uuid":"a","parentUuid":null,"sessionId":"s` + evil + `","message":{"role":"user","content":"` + evil + `"}}`
	name := "a\x1b[2Jb\u202e.json"
	for _, text := range []string{request, fine, session, `{"a":"` + evil, evil, "\x1b[2J"} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		for _, command := range []string{
			"show", "show -window 100", "show -json", "check", "check -json", "count", "count -json", "count -model \x1b[2J",
			"compact -target 1", "compact -to anthropic", "compact -json", "convert -to gemini", "convert -to anthropic -json", "show -\x1b[2J", "\x1b[2J", "store \x1b[2J",
			"store ls -dir \x1b[2J", "convert -to \x1b[2J", "compact -strategy \x1b[2J", "check -format \x1b[2J",
			"replay", "replay -window 100", "replay -window 100 -json", "replay -window 100 -prices", "replay -window 100 -html",
		} {
			var out, errs bytes.Buffer
			env := cli.NewEnv(strings.NewReader(""), &out, &errs)
			env.StdoutTerminal = true
			runIn(t.Context(), env, append(strings.Fields(command), name))
			for what, printed := range map[string]string{"output": out.String(), "error": errs.String()} {
				for _, r := range printed {
					if r != '\n' && (r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x202e || r == 0xfffd) {
						assert.Fail(t, "a control character", "convo %q: %s: %q", command, what, printed)
						break
					}
				}
			}
		}
	}
}

// The values of JSON for a terminal are those of JSON for a pipe.
func TestOutput_JSONForTerminal(t *testing.T) {
	request := `{"messages":[{"role":"user","content":"\u001b[2J` + "\u009b\u202e\U000e0041 é 漢 😀" + `"}]}`
	var all [2]string
	for i := range all {
		var out, errs bytes.Buffer
		env := cli.NewEnv(strings.NewReader(request), &out, &errs)
		env.StdoutTerminal = i == 1
		require.Equal(t, cli.OK, runIn(t.Context(), env, []string{"convert", "-to", "openai-chat"}), errs.String())
		all[i] = out.String()
	}
	assert.NotEqual(t, all[0], all[1])
	assert.Contains(t, all[1], `\u009b\u202e\udb40\udc41 é 漢 😀`)
	assert.JSONEq(t, all[0], all[1])
}

// Lines are no longer than the terminal is wide, as far as words allow.
func TestOutput_Width(t *testing.T) {
	for _, width := range []int{20, 40, 80, 200} {
		for _, args := range []string{"show", "show -window 4000", "show -window 10", "count", "show -h", "store show -h", "compact -h"} {
			var out, errs bytes.Buffer
			env := cli.NewEnv(strings.NewReader(trip), &out, &errs)
			env.Width, env.StdoutTerminal, env.Color = width, true, true
			assert.Equal(t, cli.OK, runIn(t.Context(), env, strings.Fields(args)), errs.String())
			for line := range strings.Lines(out.String()) {
				line = strings.TrimSuffix(line, "\n")
				if width == 20 && !strings.Contains(line, "[") || strings.HasPrefix(line, "usage:") || strings.HasPrefix(line, "  convo ") || strings.HasPrefix(line, "  -") {
					continue
				}
				assert.LessOrEqual(t, cli.Columns(line), max(width, 36), "%s: %q", args, line)
				if width == 200 {
					assert.LessOrEqual(t, cli.Columns(line), 80, "%s: %q", args, line)
				}
			}
		}
	}
}

// A full disk is an error, and a reader that goes away is none.
func TestOutput_Fails(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
		says string
	}{
		{&fs.PathError{Op: "write", Path: "/dev/stdout", Err: errors.New("no space left on device")}, cli.Unreadable, "convo: the output cannot be written: no space left on device\n"},
		{io.ErrClosedPipe, cli.OK, ""},
		{&fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}, cli.OK, ""},
	} {
		var errs bytes.Buffer
		code := run(t.Context(), []string{"show"}, strings.NewReader(trip), failingWriter{c.err}, &errs)
		assert.Equal(t, c.code, code)
		assert.Equal(t, c.says, errs.String())
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// tree returns the files of the current directory, with what they hold.
func tree(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			all[path] = "folder"
			return err
		}
		data, err := os.ReadFile(path)
		info, _ := d.Info()
		all[path] = fmt.Sprintf("%x %s", sha256.Sum256(data), info.ModTime())
		return err
	}))
	return all
}

// A store that may not be written is shown.
func TestStore_ReadOnly(t *testing.T) {
	inTemp(t, nil)
	logs, err := filepath.Glob("logs/*")
	require.NoError(t, err)
	for _, path := range logs {
		require.NoError(t, os.Chmod(path, 0o400))
	}
	require.NoError(t, os.Chmod("logs", 0o500))
	t.Cleanup(func() { _ = os.Chmod("logs", 0o700) })
	for _, command := range []string{"ls", "show whole", "export whole"} {
		args := append([]string{"store"}, strings.Fields(command)...)
		code, stdout, stderr := runs(strings.NewReader(""), append(args, "-dir", "logs")...)
		assert.Equal(t, cli.OK, code, stderr)
		assert.NotEmpty(t, stdout)
	}
}

// The error for a folder says how to name the files in it.
func TestFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.MkdirAll("sessions/2026/03", 0o777))
	require.NoError(t, os.MkdirAll("projects/shop", 0o777))
	for _, name := range []string{"sessions/2026/03/rollout.jsonl", "sessions/2026/index.json", "projects/shop/s1.jsonl"} {
		require.NoError(t, os.WriteFile(name, []byte("{}"), 0o600))
	}
	for dir, want := range map[string]string{
		"sessions": "such as " + filepath.Join("sessions", "*", "*", "*.jsonl"), "sessions/2026/03": "such as " + filepath.Join("sessions", "2026", "03", "*.jsonl"),
		"projects": "such as " + filepath.Join("projects", "*", "*.jsonl"), ".": "such as " + filepath.Join("*", "*", "*.jsonl"),
	} {
		for _, command := range []string{"show", "check", "count", "compact", "convert -to gemini", "replay -window 1000"} {
			code, _, stderr := runs(strings.NewReader(""), append(strings.Fields(command), dir)...)
			assert.Equal(t, cli.Unreadable, code)
			assert.Contains(t, stderr, dir+": this is a folder: name the files in it, "+want+"\n", command)
		}
	}
}

// A log of package filestore, and the folder that it is in, are named as what they are, with
// the subcommands that read them.
func TestLogOfStore(t *testing.T) {
	inTemp(t, nil)
	log, err := filepath.Glob(filepath.Join("logs", "whole-*.convo"))
	require.NoError(t, err)
	require.Len(t, log, 1)
	data, err := os.ReadFile(log[0])
	require.NoError(t, err)
	damaged := filepath.Join("logs", "whole-5d5766cf2d78701614200418ee145068.convo")
	require.NoError(t, os.WriteFile(damaged, append([]byte("x"), data...), 0o600))
	const file, help = `this is a log of package filestore; "convo store ls -dir `, `" lists the conversations there, and "convo store show" shows one`
	for _, command := range []string{"show", "check", "count", "compact", "convert -to gemini", "replay -window 1000"} {
		for name, want := range map[string]string{
			log[0]: file + "logs" + help, damaged: file + "logs" + help, "-": file + "DIR" + help,
			"logs": `logs: this is the directory of a filestore.Store; "convo store ls -dir logs` + help,
		} {
			code, _, stderr := runs(bytes.NewReader(data), append(strings.Fields(command), name)...)
			assert.Equal(t, cli.Unreadable, code)
			assert.Contains(t, stderr, want, "%s %s", command, name)
		}
	}
}

// No line of the help is longer than 80 columns.
func TestHelp_Width(t *testing.T) {
	lines := []string{"help", "store -h"}
	for _, c := range commands {
		if lines = append(lines, c.Name+" -h"); c.Name == "store" {
			for _, c := range storeCommands {
				lines = append(lines, "store "+c.Name+" -h")
			}
		}
	}
	for _, command := range lines {
		_, stdout, _ := runs(strings.NewReader(""), strings.Fields(command)...)
		require.NotEmpty(t, stdout, command)
		for line := range strings.Lines(stdout) {
			assert.LessOrEqual(t, cli.Columns(strings.TrimSuffix(line, "\n")), 80, "%s: %s", command, line)
		}
	}
}

// What export and convert write is recognised as what it is, also without a system text and tools.
func TestCheck_Exported(t *testing.T) {
	h, err := convo.New(nil)
	require.NoError(t, err)
	_, err = h.Append(convo.User("Flights to Rome?"), convo.Assistant("From where?"), convo.User("Berlin."))
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	require.NoError(t, h.Attach(t.Context(), &filestore.Store{Dir: "logs"}, "trip"))
	require.NoError(t, h.Save(t.Context()))
	for _, name := range []string{wire.FormatOpenAIChat, wire.FormatOpenAIResponses, wire.FormatAnthropic, wire.FormatGemini, wire.FormatConverse} {
		code, request, stderr := runs(strings.NewReader(""), "store", "export", "-dir", "logs", "-to", name, "trip")
		require.Zero(t, code, stderr)
		_, _, stderr = runs(strings.NewReader(request), "check")
		assert.Contains(t, stderr, "taken as "+name+", by ", request)
		assert.Contains(t, stderr, "nothing found", request)
	}
}

// A page is one file that needs no other.
func TestShow_Page(t *testing.T) {
	name := filepath.Join(t.TempDir(), "page.html")
	for range 2 { // a page is written over
		code, stdout, stderr := runs(strings.NewReader(`{"messages":[{"role":"user","content":"<script>alert(1)</script>"}]}`), "show", "-html", name)
		assert.Equal(t, cli.OK, code, stderr)
		assert.Contains(t, stdout, "1 message in 1 turn")
	}
	page, err := os.ReadFile(name)
	require.NoError(t, err)
	assert.True(t, isPage(name))
	assert.NotContains(t, string(page), "<script")
	assert.NotContains(t, string(page), "src=\"http")
}

// show and count differ where usage has corrected the estimates, and show says so.
func TestShow_Corrected(t *testing.T) {
	h, err := convo.New(nil)
	require.NoError(t, err)
	_, err = h.Append(convo.User(strings.Repeat("a question ", 50)))
	require.NoError(t, err)
	snapshot := func() *bytes.Reader {
		data, err := h.Snapshot().MarshalJSON()
		require.NoError(t, err)
		return bytes.NewReader(data)
	}
	code, _, stderr := runs(snapshot(), "show")
	assert.Zero(t, code)
	assert.NotContains(t, stderr, "by what the provider has counted")
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 3210}))
	code, stdout, stderr := runs(snapshot(), "show")
	assert.Zero(t, code)
	assert.Contains(t, stdout, "3,210")
	assert.NotContains(t, stdout, "tools", "there are none")
	assert.Contains(t, stdout, "\no  other ")
	assert.Contains(t, stderr, `by what the provider has counted, 3,210 tokens instead of the estimated 101, which "convo count" shows`)
	_, stdout, _ = runs(snapshot(), "count")
	assert.Contains(t, stdout, " 101\n")
}

// Strategies that decline for the same reason are told once.
func TestCompact_ReasonOnce(t *testing.T) {
	code, _, stderr := runs(nil, "compact", "-to", "anthropic", "-target", "100", "internal/session/testdata/claude-code.jsonl")
	assert.Equal(t, cli.Findings, code)
	assert.Equal(t, 1, strings.Count(stderr, "nothing worth removing"), stderr)
}

// An interrupt while a command reads ends it.
func TestRun_Interrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, command := range []string{"show", "check", "count", "compact", "convert -to gemini", "replay -window 1000", "store ls -dir ../../filestore/testdata/logs/format1", "store show -dir ../../filestore/testdata/logs/format1 whole"} {
		var out, errs bytes.Buffer
		code := run(ctx, strings.Fields(command), strings.NewReader(trip), &out, &errs)
		assert.Equal(t, cli.Interrupted, code, command)
		assert.Empty(t, errs.String(), command)
	}
}

func TestVersion(t *testing.T) {
	code, stdout, stderr := runs(strings.NewReader(""), "version")
	assert.Equal(t, cli.OK, code, stderr)
	assert.Contains(t, stdout, runtime.Version())
	platform := ", " + runtime.GOOS + "/" + runtime.GOARCH
	assert.Equal(t, "convo v0.4.0, go1.26.1"+platform, versionOf(&debug.BuildInfo{GoVersion: "go1.26.1", Main: debug.Module{Version: "v0.4.0"}}))
	assert.Equal(t, "convo devel 0123456789ab with changes, go1.26.1"+platform, versionOf(&debug.BuildInfo{
		GoVersion: "go1.26.1", Main: debug.Module{Version: "(devel)"},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"}},
	}))
	assert.Equal(t, "convo, of unknown version, "+runtime.Version(), versionOf(nil))
	code, _, stderr = runs(strings.NewReader(""), "version", "x")
	assert.Equal(t, cli.Usage, code)
	assert.Contains(t, stderr, `there is nothing to read: "x"`)
}

// TestMain is the program itself in the processes that TestProcess starts.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == agentName {
		agent(os.Args[2])
	}
	if os.Getenv(isProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// isProgram is set in the environment of a test binary that is to be the program.
const isProgram = "CONVO_TEST_PROGRAM"

// agentName is the argument of a test binary that is to be a program that the proxy starts.
const agentName = "test-agent"

// The program in its own process: its exit codes, a reader that goes away, and an interrupt.
func TestProcess(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has neither SIGPIPE nor SIGINT")
	}
	command := func(stdin io.Reader, args ...string) (*exec.Cmd, *bytes.Buffer) {
		cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
		cmd.Env = append(os.Environ(), isProgram+"=1")
		var errs bytes.Buffer
		cmd.Stdin, cmd.Stderr = stdin, &errs
		return cmd, &errs
	}
	for _, c := range []struct {
		stdin string
		args  string
		code  int
	}{
		{trip, "show", cli.OK},
		{trip, "check", cli.OK},
		{`{"messages":[]}`, "check -format anthropic", cli.Findings},
		{"", "", cli.Usage},
		{"", "show", cli.Unreadable},
	} {
		cmd, errs := command(strings.NewReader(c.stdin), strings.Fields(c.args)...)
		_ = cmd.Run()
		assert.Equal(t, c.code, cmd.ProcessState.ExitCode(), "%s: %s", c.args, errs)
	}

	// The reader closes before all is written.
	much := `{"messages":[{"role":"user","content":"` + strings.Repeat("long ", 400_000) + `"}]}`
	cmd, errs := command(strings.NewReader(much), "convert", "-to", "anthropic")
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = io.ReadFull(stdout, make([]byte, 10))
	require.NoError(t, err)
	require.NoError(t, stdout.Close())
	_ = cmd.Wait()
	assert.Empty(t, errs.String())
	assert.NotContains(t, []int{cli.Findings, cli.Usage, cli.Unreadable}, cmd.ProcessState.ExitCode())

	// It waits for its input when the interrupt comes. No pipe holds a megabyte, so the program
	// has begun to read when all is written.
	cmd, errs = command(nil, "show")
	w, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = io.WriteString(w, strings.Repeat(" ", 1<<20)+trip[:10])
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	_ = cmd.Wait()
	assert.Equal(t, cli.Interrupted, cmd.ProcessState.ExitCode())
	assert.Empty(t, errs.String())
}

// A keeper is a Store that keeps records that are to be pruned: Prune only writes a full one.
type keeper struct{ convo.Store }

func (keeper) Prune(context.Context, string, uint64) error { return nil }

// store show says how many records it leaves out.
func TestStoreShow_Records(t *testing.T) {
	h, err := convo.New(nil)
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	require.NoError(t, h.Attach(t.Context(), keeper{&filestore.Store{Dir: "logs"}}, "trip"))
	for range 6 {
		_, err := h.Append(convo.User("Flights to Rome?"), convo.Assistant("From where?"))
		require.NoError(t, err)
		require.NoError(t, h.Prune(t.Context(), time.Time{}))
		require.NoError(t, h.SetMeta(fmt.Sprint(h.Snapshot().Len()), ""))
		require.NoError(t, h.Prune(t.Context(), time.Time{}))
	}
	_, stdout, _ := runs(strings.NewReader(""), "store", "show", "-dir", "logs", "trip")
	assert.Contains(t, stdout, "\n12 records; the newest 10 of 12 full: 3, 4, 5, 6, 7, 8, 9, 10, 11, 12\nthe newest 10 records; -all also shows the 2 before\nrecord ")
	assert.NotContains(t, stdout, "\n2       2")
	_, stdout, _ = runs(strings.NewReader(""), "store", "show", "-dir", "logs", "-all", "trip")
	assert.Contains(t, stdout, "\n12 records; full: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12\nrecord ")
}
