package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/cmd/convo/internal/cli"
	"github.com/seed-c1b73e60/convo/wire"
)

// A converted is what convert -json writes for each conversation, in one line.
type converted struct {
	At      string          `json:"at"`
	From    string          `json:"from"`
	To      string          `json:"to"`
	Lost    []loss          `json:"lost"`
	Request json.RawMessage `json:"request"`
}

func convert(ctx context.Context, env *cli.Env, args []string) int {
	flags := cli.NewFlags("convert", "-to FORMAT [FILE...]", `Writes a conversation as the request of another provider, one a line, and says on the standard error what was lost on the way. The model and the other parameters of the request are left out, since they mean nothing to the other provider.

Calls without a result get one, and other faults are repaired, so that the provider takes the request.`)
	flags.More = `Examples:
  convo convert -from openai-chat -to anthropic request.json > other.json
  convo convert -to gemini -json request.json`
	var o reader
	o.addFlags(flags, "from", readable())
	to := flags.String("to", "", "the `FORMAT` to write, one of those of -from")
	asJSON := flags.Bool("json", false, "write an object with the request and with what was lost")
	names, code, ok := flags.Parse(env, args)
	if !ok {
		return code
	}
	if err := o.check(); err != nil {
		return flags.Misused(env, "%w", err)
	}
	if *to == "" {
		return flags.Misused(env, "say with -to in which format to write: %s", strings.Join(formatNames, ", "))
	}
	if _, err := newFormat(*to, ""); err != nil {
		return flags.Misused(env, "%w", err)
	}
	worst := cli.OK
	for c, err := range o.read(ctx, env, names) {
		if err != nil {
			worst = max(worst, fail(env, "convert", err))
			continue
		}
		worst = max(worst, c.tell(env))
		h, faults, err := c.history(convo.Options{Overheads: c.overheads()})
		if err != nil {
			worst = max(worst, fail(env, "convert", err))
			continue
		}
		e, code := c.encode(env, "convert", *to, h.Snapshot())
		if e == nil {
			worst = max(worst, code)
			continue
		}
		tellFaults(env, c, faults)
		if !*asJSON {
			e.tellLost(env, c)
		}
		var wrap func() any
		if *asJSON {
			wrap = func() any {
				return converted{At: c.at, From: c.format, To: *to, Lost: append([]loss{}, e.lost...), Request: e.body}
			}
		}
		worst = max(worst, e.write(env, c, *to, wrap))
	}
	return worst
}

// encode is the function encode, with its errors printed.
func (c *conversation) encode(env *cli.Env, name, to string, s *convo.Snapshot) (*encoded, int) {
	e, err := encode(c, to, s, name == "compact")
	if err == nil {
		return e, cli.OK
	}
	if errors.Is(err, wire.ErrEmpty) {
		return nil, env.Fail(cli.Findings, "%s: there is no message with content in it", c.at)
	}
	return nil, env.Fail(cli.Findings, "%s: this cannot be written as %s: %s", c.at, to, strings.TrimPrefix(err.Error(), "wire: "))
}
