package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"
)

// Context is context.Context.
type Context = context.Context

// Flags are the flags of one subcommand. They may stand before, between and after the other
// arguments, with one or two dashes. All arguments after "--" are no flags.
type Flags struct {
	*flag.FlagSet

	// Args is what stands after the flags in the usage line, such as "FILE...".
	Args string

	// Help is the text for a person, between the usage line and the flags.
	Help string

	// More is printed after the flags, such as examples.
	More string
}

// NewFlags returns the flags of a subcommand, such as "show" or "store ls".
func NewFlags(name, args, help string) *Flags {
	f := &Flags{FlagSet: flag.NewFlagSet(name, flag.ContinueOnError), Args: args, Help: help}
	f.SetOutput(io.Discard)
	f.Usage = func() {}
	return f
}

// Parse reads the arguments and returns those that are no flags. If ok is false, the
// subcommand ends with the code: the help was asked for and printed, or the arguments are
// wrong and the error was printed.
func (f *Flags) Parse(env *Env, args []string) (rest []string, code int, ok bool) {
	for len(args) > 0 {
		arg := args[0]
		if arg == "--" {
			return append(rest, args[1:]...), OK, true
		}
		if len(arg) < 2 || arg[0] != '-' {
			rest, args = append(rest, arg), args[1:]
			continue
		}
		n := min(f.length(arg), len(args))
		if err := f.FlagSet.Parse(args[:n]); errors.Is(err, flag.ErrHelp) {
			f.Print(env)
			return nil, OK, false
		} else if err != nil {
			return nil, f.Misused(env, "%s", f.say(err)), false
		}
		args = args[n:]
	}
	return rest, OK, true
}

// length returns how many arguments a flag takes, itself included.
func (f *Flags) length(arg string) int {
	name := strings.TrimPrefix(arg[1:], "-")
	if fl := f.Lookup(name); fl != nil {
		if b, ok := fl.Value.(interface{ IsBoolFlag() bool }); !ok || !b.IsBoolFlag() {
			return 2
		}
	}
	return 1
}

// say returns what package flag says, in our words.
func (f *Flags) say(err error) string {
	text := err.Error()
	if quoted, rest, ok := strings.Cut(strings.TrimPrefix(text, "invalid value "), " for flag -"); ok {
		name, reason, _ := strings.Cut(rest, ": ")
		want := reason
		switch f.Lookup(name).Value.(flag.Getter).Get().(type) {
		case int, uint64:
			if want = "want a number in digits, such as 200000"; strings.Contains(reason, "range") {
				want = "the number is too large"
			}
		case time.Duration:
			want = "want a time such as 90s, 5m or 1h"
		}
		return "-" + name + " " + quoted + ": " + want
	}
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: "); ok {
		return "there is no flag " + name
	}
	return text
}

// Misused prints what is wrong with the command line, and returns Usage.
func (f *Flags) Misused(env *Env, format string, args ...any) int {
	return env.Fail(Usage, "%s: %w\nconvo %s -h prints the help", f.Name(), fmt.Errorf(format, args...), f.Name())
}

// Print prints the help.
func (f *Flags) Print(env *Env) {
	width := min(env.Width, 80)
	fmt.Fprintln(env.Stdout, strings.TrimSpace("usage: convo "+f.Name()+" [flags] "+f.Args))
	fmt.Fprintf(env.Stdout, "\n%s", Wrap(f.Help, width, ""))
	first := true
	f.VisitAll(func(fl *flag.Flag) {
		if first {
			fmt.Fprint(env.Stdout, "\nFlags:\n")
			first = false
		}
		value, usage := flag.UnquoteUsage(fl)
		if fl.DefValue != "" && fl.DefValue != "0" && fl.DefValue != "false" {
			usage += " (default " + fl.DefValue + ")"
		}
		fmt.Fprintf(env.Stdout, "  %s\n%s", strings.TrimSpace("-"+fl.Name+" "+value), Wrap(usage, width, "        "))
	})
	if f.More != "" {
		fmt.Fprintf(env.Stdout, "\n%s\n", strings.TrimSuffix(f.More, "\n"))
	}
}
