package wire_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/wire"
)

// Patch with what Decode returns keeps all bytes, and Decode of what it returns for changed
// messages says what they say.
func TestPatch_Random(t *testing.T) {
	changes := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(formats)) {
		f := formats[name].(wire.Patcher)
		for seed := range long.Or[uint64](30, 200) {
			rng := rand.New(rand.NewPCG(seed, 21))
			g := &generator{rng: rng, h: relaxedOf(t), origins: origins}
			for range 12 {
				g.step()
			}
			req, err := f.Encode(g.h.Snapshot())
			if err != nil {
				continue
			}
			was := slices.Clone(req.Messages)
			if seed%2 == 0 { // as another program may write it
				for i, raw := range was {
					var b bytes.Buffer
					require.NoError(t, json.Indent(&b, raw, " ", "\t"))
					was[i] = b.Bytes()
				}
			}
			list := func(msgs []json.RawMessage) []byte { return []byte("[" + strings.Join(asTexts(msgs), ",") + "]") }
			before, err := f.Decode(list(was))
			require.NoError(t, err)
			at := fmt.Sprintf("%s, seed %d\n", name, seed)

			out, err := f.Patch(was, before.Messages...)
			require.NoError(t, err, at)
			require.Equal(t, strings.Join(asTexts(was), "\n"), strings.Join(asTexts(out), "\n"), at)
			for i, raw := range was {
				if one, err := f.Decode(list(was[i : i+1])); err == nil {
					out, err := f.Patch(was[i:i+1], one.Messages...)
					require.NoError(t, err, at)
					require.Equal(t, []string{string(raw)}, asTexts(out), at)
				}
			}

			now := disturbed(rng, before.Messages, changes)
			out, err = f.Patch(was, now...)
			require.NoError(t, err, at)
			after, err := f.Decode(list(out))
			require.NoError(t, err, at+string(list(out)))
			require.Equal(t, saying(now), saying(after.Messages), at+strings.Join(asTexts(was), "\n")+"\n"+strings.Join(asTexts(out), "\n"))

			rules := map[string]bool{}
			for _, finding := range f.Check(req.Body()) {
				rules[finding.Rule] = true
			}
			rules["alternation"], rules["order"], rules["last-role"] = true, true, true // the messages around those that are missing
			req.Messages = out
			for _, finding := range f.Check(req.Body()) {
				assert.True(t, rules[finding.Rule], "%s%s\n%s", at, finding, strings.Join(asTexts(out), "\n"))
			}
		}
	}
	for _, what := range []string{"cleared", "cut", "unreasoned", "no media", "arguments", "text", "less", "fewer", "unmarked"} {
		assert.Positive(t, changes[what], what)
	}
}

func asTexts(list []json.RawMessage) []string {
	texts := make([]string, len(list))
	for i, raw := range list {
		texts[i] = string(raw)
	}
	return texts
}

// disturbed returns messages after a compaction.
func disturbed(rng *rand.Rand, msgs []convo.Message, did map[string]int) (out []convo.Message) {
	one := func(n int, what string) bool {
		if rng.IntN(n) > 0 {
			return false
		}
		did[what]++
		return true
	}
	unmarked := one(2, "unmarked")
	for i := 0; i < len(msgs); i++ {
		m := msgs[i]
		if i > 0 && m.Role == convo.RoleUser && i+1 < len(msgs) && msgs[i+1].Role == convo.RoleAssistant && one(6, "fewer") { // with its answers
			for i+1 < len(msgs) && msgs[i+1].Role != convo.RoleUser {
				i++
			}
			continue
		}
		unreasoned := one(3, "unreasoned")
		var parts []convo.Part
		for k, p := range m.Parts {
			switch x := p.(type) {
			case convo.Reasoning:
				if unreasoned {
					continue
				}
			case convo.Opaque:
				if unmarked && (x.Format == "cache" || strings.Contains(x.JSON, "cachePoint")) {
					continue
				}
			case convo.Media:
				if one(2, "no media") {
					p = convo.Text("[image]")
				}
			case convo.Text:
				if rest := m.Parts[k+1:]; m.Role != convo.RoleSystem && one(4, "text") {
					p = convo.Text("changed")
				} else if m.Role == convo.RoleUser && len(parts) > 0 && len(rest) == 0 && one(2, "less") {
					continue
				}
			case convo.ToolCall:
				if one(4, "arguments") {
					x.Arguments = `{"a":"[cut]"}`
					p = x
				}
			case convo.ToolResult:
				if one(3, "cleared") {
					x.Parts, x.Cleared = []convo.Part{convo.Text("[cleared]")}, true
				} else if len(x.Parts) > 0 && one(3, "cut") {
					x.Parts = slices.Clone(x.Parts)
					for i, in := range x.Parts {
						switch in.(type) {
						case convo.Text:
							x.Parts[i] = convo.Text("short")
						case convo.Media:
							x.Parts[i] = convo.Text("[media]")
						}
					}
				}
				p = x
			}
			parts = append(parts, p)
		}
		m.Parts = parts
		out = append(out, m)
	}
	return out
}

// saying returns what messages say to the model: roles, and the parts without cache marks, blank texts and IDs.
func saying(msgs []convo.Message) (lines []string) {
	var text string
	var role convo.Role
	flush := func() {
		if text != "" {
			lines = append(lines, string(role)+": "+text)
		}
		text = ""
	}
	for _, m := range msgs {
		for _, p := range m.Parts {
			if m.Role != role {
				flush()
				role = m.Role
			}
			switch p := p.(type) {
			case convo.Text:
				if strings.TrimSpace(string(p)) != "" {
					text = strings.TrimPrefix(text+"\n"+string(p), "\n")
				}
				continue
			case convo.Opaque:
				if isBeside(p) || strings.Contains(p.JSON, "convo_fields") {
					continue
				}
				flush()
				lines = append(lines, p.JSON)
			case convo.ToolCall:
				flush()
				lines = append(lines, "call "+p.Name+" "+p.Arguments)
			case convo.ToolResult:
				flush()
				lines = append(lines, fmt.Sprint("result ", p.IsError, saying([]convo.Message{{Parts: p.Parts}})))
			case convo.Reasoning:
				flush()
				lines = append(lines, fmt.Sprintf("reasoning %q %q", p.Text, p.Encrypted))
			default:
				flush()
				lines = append(lines, fmt.Sprint(p))
			}
		}
	}
	flush()
	return lines
}
