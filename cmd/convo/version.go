package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/seed-c1b73e60/convo/cmd/convo/internal/cli"
)

func version(_ context.Context, env *cli.Env, args []string) int {
	flags := cli.NewFlags("version", "", "Prints the version of the program, as the go command has recorded it, and of Go.")
	rest, code, ok := flags.Parse(env, args)
	if !ok {
		return code
	}
	if len(rest) > 0 {
		return flags.Misused(env, "there is nothing to read: %q", rest[0])
	}
	info, _ := debug.ReadBuildInfo()
	fmt.Fprintln(env.Stdout, versionOf(info))
	return cli.OK
}

// versionOf returns the line that version prints.
func versionOf(info *debug.BuildInfo) string {
	if info == nil {
		return "convo, of unknown version, " + runtime.Version()
	}
	v := info.Main.Version
	if v == "" || v == "(devel)" {
		v = "devel"
	}
	var revision, modified string
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = " " + s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			if s.Value == "true" {
				modified = " with changes"
			}
		}
	}
	return "convo " + v + revision + modified + ", " + info.GoVersion + ", " + runtime.GOOS + "/" + runtime.GOARCH
}
