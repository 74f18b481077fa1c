package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/cmd/convo/internal/cli"
)

var update = flag.Bool("update", false, "write what the commands print into the files of testdata")

// A golden file begins with the files that its commands read, each after a line
//
//	-- NAME --
//
// and ends with the commands, after a line "-- commands --". A command is
//
//	$ [WIDTH=N] [COLOR=1] convo ARGUMENTS [< FILE] [> FILE]
//
// and what it prints: the standard output, the standard error with "2> " before each line,
// and "=> CODE" unless the exit code is 0. A quoted argument may have spaces.
type golden struct {
	files    []goldenFile
	commands []goldenCommand
}

type goldenFile struct{ name, text string }

type goldenCommand struct{ line, printed string }

func readGolden(t *testing.T, path string) (g golden) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	inCommands := false
	for line := range strings.Lines(string(data)) {
		name, isFile := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "-- ")
		name, ends := strings.CutSuffix(name, " --")
		switch {
		case inCommands && strings.HasPrefix(line, "$ "):
			g.commands = append(g.commands, goldenCommand{line: strings.TrimSuffix(line, "\n")})
		case inCommands:
			require.NotEmpty(t, g.commands, "%s: %q stands before the first command", path, line)
			g.commands[len(g.commands)-1].printed += line
		case isFile && ends && name == "commands":
			inCommands = true
		case isFile && ends:
			g.files = append(g.files, goldenFile{name: name})
		default:
			require.NotEmpty(t, g.files, "%s: %q stands before the first file", path, line)
			g.files[len(g.files)-1].text += line
		}
	}
	require.NotEmpty(t, g.commands, path)
	return g
}

func (g golden) String() string {
	var b strings.Builder
	for _, f := range g.files {
		fmt.Fprintf(&b, "-- %s --\n%s", f.name, f.text)
	}
	b.WriteString("-- commands --\n")
	for _, c := range g.commands {
		b.WriteString(c.line + "\n" + c.printed)
	}
	return b.String()
}

// words splits a line at spaces outside of quotes.
func words(line string) (all []string) {
	var word strings.Builder
	quoted, some := false, false
	for _, r := range line {
		switch {
		case r == '"':
			quoted, some = !quoted, true
		case r == ' ' && !quoted:
			if some {
				all = append(all, word.String())
			}
			word.Reset()
			some = false
		default:
			word.WriteRune(r)
			some = true
		}
	}
	if some {
		all = append(all, word.String())
	}
	return all
}

// do runs a command in the current directory, and returns what it prints.
func (c goldenCommand) do(t *testing.T) string {
	t.Helper()
	var stdin, stdout, stderr bytes.Buffer
	env := cli.NewEnv(&stdin, &stdout, &stderr)
	args := words(strings.TrimPrefix(c.line, "$ "))
	for len(args) > 0 && args[0] != "convo" {
		name, value, ok := strings.Cut(args[0], "=")
		require.True(t, ok, c.line)
		n, err := strconv.Atoi(value)
		require.NoError(t, err, c.line)
		switch name {
		case "WIDTH":
			env.Width = n
		case "COLOR":
			env.Color = n == 1
		default:
			require.Fail(t, "no such setting", c.line)
		}
		args = args[1:]
	}
	require.NotEmpty(t, args, c.line)
	args = args[1:]
	to := ""
	for _, sign := range []string{"<", ">"} {
		if i := slices.Index(args, sign); i >= 0 {
			require.Less(t, i+1, len(args), c.line)
			if name := args[i+1]; sign == ">" {
				to = name
			} else {
				data, err := os.ReadFile(name)
				require.NoError(t, err)
				stdin.Write(data)
			}
			args = slices.Delete(args, i, i+2)
		}
	}
	code := runIn(context.Background(), env, args)
	printed := stdout.String()
	if to != "" {
		require.NoError(t, os.WriteFile(to, stdout.Bytes(), 0o600))
		printed = ""
	}
	if printed != "" && !strings.HasSuffix(printed, "\n") {
		printed += "\n(no line break)\n"
	}
	for line := range strings.Lines(stderr.String()) {
		printed += "2> " + strings.TrimSuffix(line, "\n") + "\n"
	}
	printed = random.ReplaceAllString(printed, "${1}${2}RANDOM")
	if code != cli.OK {
		printed += fmt.Sprintf("=> %d\n", code)
	}
	return printed
}

// random are IDs of calls that had none, and the keys of summaries.
var random = regexp.MustCompile(`(call_)[A-Z2-7]{16}|(@)[a-z]{7}\b`)

// inTemp changes to a new directory with files, and with the stores "logs", which is that of
// the tests of filestore, and "damaged", in which the log "whole" has a wrong byte.
func inTemp(t *testing.T, files []goldenFile) {
	t.Helper()
	dir := t.TempDir()
	for store, damaged := range map[string]bool{"logs": false, "damaged": true} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, store), 0o700))
		logs, err := filepath.Glob("../../filestore/testdata/logs/format1/*.convo")
		require.NoError(t, err)
		require.NotEmpty(t, logs)
		for _, path := range logs {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			if damaged && strings.HasPrefix(filepath.Base(path), "whole-") {
				data[len(data)/2] ^= 1
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, store, filepath.Base(path)), data, 0o600))
		}
	}
	for _, f := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, f.name), []byte(f.text), 0o600))
	}
	t.Chdir(dir)
}

// What each subcommand prints. Only store salvage and store prune change files, -html writes its
// page, and the shell writes what stands after a >.
func TestGolden(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			path, err := filepath.Abs(path)
			require.NoError(t, err)
			g := readGolden(t, path)
			inTemp(t, g.files)
			g.check(t, path, func(c goldenCommand) string {
				before := tree(t)
				got := c.do(t)
				if !strings.Contains(c.line, " store salvage ") && !strings.Contains(c.line, " store prune ") {
					after := tree(t)
					if _, page, ok := strings.Cut(c.line, "-html "); ok {
						delete(after, strings.Fields(page)[0])
						delete(before, strings.Fields(page)[0])
					}
					if _, to, ok := strings.Cut(c.line, " > "); ok {
						delete(after, to)
						delete(before, to)
					}
					assert.Equal(t, before, after, "files after %s", c.line)
				}
				return got
			})
		})
	}
}

// check runs the commands of a golden file, and compares what they print, or writes it.
func (g *golden) check(t *testing.T, path string, run func(c goldenCommand) string) {
	for i, c := range g.commands {
		if got := run(c); *update {
			g.commands[i].printed = got
		} else {
			assert.Equal(t, c.printed, got, c.line)
		}
	}
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(g.String()), 0o600))
	}
}

// Each block of the page is a command of a golden file with what it prints.
func TestPage_Command(t *testing.T) {
	const page = "../../docs/command.md"
	data, err := os.ReadFile(page)
	require.NoError(t, err)
	shown := map[string]string{}
	paths, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	for _, path := range paths {
		for _, c := range readGolden(t, path).commands {
			var text strings.Builder
			text.WriteString(c.line + "\n")
			for line := range strings.Lines(c.printed) {
				if !strings.HasPrefix(line, "=> ") {
					text.WriteString(strings.TrimPrefix(line, "2> "))
				}
			}
			shown[c.line] = text.String()
		}
	}
	rest := string(data)
	n := 0
	for {
		_, after, ok := strings.Cut(rest, "```console\n")
		if !ok {
			break
		}
		block, after, ok := strings.Cut(after, "```\n")
		require.True(t, ok)
		rest = after
		line, _, _ := strings.Cut(block, "\n")
		assert.Equal(t, shown[line], block, "%s: run go test -update, and copy the block from testdata", page)
		n++
	}
	assert.GreaterOrEqual(t, n, 8)
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	n = 0
	for line := range strings.Lines(string(data) + string(readme)) { // shown without what they print
		name := strings.Split(line, " ")
		if strings.HasPrefix(line, "convo proxy ") { // which ends with the program that it starts, as the tests of package proxy do
			n++
			continue
		}
		if name[0] == "convo" && slices.ContainsFunc(commands, func(c cli.Command) bool { return c.Name == name[1] }) {
			_, ok := shown["$ "+strings.TrimSpace(line)]
			assert.True(t, ok, "no golden file has this command: %s", line)
			n++
		}
	}
	assert.Equal(t, 2, n)
	for _, c := range commands {
		assert.Contains(t, string(data), "convo "+c.Name, "the page does not name a subcommand")
	}
}
