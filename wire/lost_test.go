package wire_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/wire"
)

// An output is a request and what Decode finds in it.
type output struct {
	ollama   bool
	gemma    bool // calls are texts, without ids
	unsigned bool // a signature of reasoning is only the id of the item after it
	body     string
	texts    string // of messages and results
	thoughts string
	proofs   map[string]bool // ids, signatures and encrypted forms of reasoning
	media    map[string]convo.Media
	calls    []convo.ToolCall
}

func outputOf(t testing.TB, f wire.Format, r wire.Request) *output {
	t.Helper()
	in := mustDecode(t, f, r.Body())
	_, unsigned := f.(wire.OpenAIResponses)
	chat, _ := f.(wire.OpenAIChat)
	o := &output{unsigned: unsigned, ollama: chat.Dialect == wire.Ollama, gemma: chat.Dialect == wire.Gemma, body: string(r.Body()), proofs: map[string]bool{}, media: map[string]convo.Media{}}
	var texts, thoughts strings.Builder
	var add func(parts []convo.Part)
	add = func(parts []convo.Part) {
		for _, p := range parts {
			switch p := p.(type) {
			case convo.Text:
				texts.WriteString(string(p))
				var call struct {
					Call *struct{ Name string } `json:"tool_call"`
				}
				if o.gemma && json.Unmarshal([]byte(p), &call) == nil && call.Call != nil {
					o.calls = append(o.calls, convo.ToolCall{Name: call.Call.Name})
				}
			case convo.Reasoning:
				thoughts.WriteString(p.Text)
				o.proofs[p.ID], o.proofs[p.Signature], o.proofs[p.Encrypted] = true, true, true
			case convo.Media:
				o.media[p.Data+p.URL] = p
			case convo.ToolCall:
				if p.ID != "ct_1" { // a block holds this call
					o.calls = append(o.calls, p)
				}
			case convo.ToolResult:
				add(p.Parts)
			case convo.Opaque:
				if strings.HasPrefix(p.JSON, `{"citationsContent`) { // a text with citations
					texts.WriteString(p.JSON)
				}
			}
		}
	}
	for _, m := range in.Messages {
		add(m.Parts)
	}
	o.texts, o.thoughts = texts.String(), thoughts.String()
	return o
}

func hasMark(s string) string {
	if i := strings.Index(s, "<0"); i >= 0 && len(s) >= i+9 {
		return s[i : i+9]
	}
	return ""
}

// missing returns what the output lacks of a part, in the words of Omission.What, and
// whether the output has any of the part.
func (o *output) missing(p convo.Part) (missing []string, any bool) {
	look := func(value string, found bool, what string) {
		switch {
		case value == "":
		case found:
			any = true
		default:
			missing = append(missing, what)
		}
	}
	switch p := p.(type) {
	case convo.Text:
		look(hasMark(string(p)), strings.Contains(o.texts, hasMark(string(p))), "text")
	case convo.Reasoning:
		const proof = "id, signature or encrypted form of reasoning"
		look(hasMark(p.Text), strings.Contains(o.thoughts, hasMark(p.Text)), "text of reasoning")
		look(p.ID, o.proofs[p.ID], proof)
		look(p.Encrypted, o.proofs[p.Encrypted], proof)
		if !o.unsigned || !any {
			look(p.Signature, o.proofs[p.Signature], proof)
		}
		if !any && missing != nil {
			missing = []string{"reasoning"}
		}
	case convo.Media:
		got, ok := o.media[p.Data+p.URL]
		look("x", ok || strings.Contains(o.body, p.Data+p.URL+"\""), "media")                                                                                    // Decode leaves it out of system messages
		if mime := strings.Replace(p.MIME, "audio/mpeg", "audio/mp3", 1); ok && p.Data != "" && mime != "" && !(o.ollama && strings.HasPrefix(mime, "image/")) { // Ollama looks at the data
			look("x", got.MIME == mime, "type of media")
		}
	case convo.Opaque:
		if strings.Contains(p.JSON, "convo_fields") || isBeside(p) && hasMark(p.JSON) == "" { // the text or call next to it has the same content, or TestLost_CacheMarks checks it
			return nil, false
		}
		if isBeside(p) {
			look("x", strings.Contains(o.body, hasMark(p.JSON)), "block")
			return missing, any
		}
		mark := hasMark(p.JSON[max(strings.LastIndex(p.JSON, `"mark"`), 0):]) // a copy has two marks
		look(mark, strings.Contains(o.body, mark), "block")
	}
	return slices.Compact(missing), any
}

// checkLost compares what a request has lost with what Decode finds in it.
func checkLost(t testing.TB, name string, s *convo.Snapshot, ephemeral []convo.Message, count map[string]int) {
	t.Helper()
	f := encoderFormats[name]
	r, err := f.Encode(s)
	if err != nil {
		require.ErrorIs(t, err, wire.ErrEmpty)
		return
	}
	out := outputOf(t, f, r)
	type place struct {
		entry        convo.ID
		part, inside int
	}
	told := map[place]map[string]wire.Omission{}
	tools := r.Lost[:0:0]
	for i, l := range r.Lost {
		count[name+": "+l.What]++
		if l.What == "tool of another provider" {
			tools = append(tools, l)
			continue
		}
		at := place{l.Entry, l.Part, l.Inside}
		if told[at] == nil {
			told[at] = map[string]wire.Omission{}
		}
		require.NotContains(t, told[at], l.What, "%s: told twice: %v", name, l)
		told[at][l.What] = l
		if i > 0 && l.Entry != 0 && r.Lost[i-1].Entry == l.Entry {
			before := r.Lost[i-1]
			require.False(t, before.Part > l.Part || before.Part == l.Part && before.Inside > l.Inside, "%s: order of %v, %v", name, before, l)
		}
	}
	where := func(at place, p convo.Part) string {
		return fmt.Sprintf("%s: %+v %T %#v\nlost %v\n%.3000s", name, at, p, p, r.Lost, out.body)
	}
	gone := []string{"part that has no place here", "result without a call", "second result of a call"}
	check := func(at place, p convo.Part) {
		words := told[at]
		delete(told, at)
		missing, any := out.missing(p)
		for _, g := range gone {
			if _, ok := words[g]; ok {
				if any {
					t.Fatalf("told as lost, and there: %s", where(at, p))
				}
				return
			}
		}
		for _, m := range missing {
			if _, ok := words[m]; !ok {
				t.Fatalf("not there and not told: %s: %s", m, where(at, p))
			}
			delete(words, m)
		}
		if o, ok := p.(convo.Opaque); ok && (strings.Contains(o.JSON, "convo_fields") || isBeside(o) && hasMark(o.JSON) == "") {
			return
		}
		for w, l := range words {
			switch w {
			case "reasoning", "text of reasoning", "block", "media", "type of media", "id, signature or encrypted form of reasoning":
				t.Fatalf("told as lost, and there: %s: %s", w, where(at, p))
			case "name of a tool", "id of a call":
				require.IsType(t, convo.ToolCall{}, p)
				require.NotEmpty(t, l.Sent)
				require.Contains(t, out.body, l.Sent)
			}
		}
	}
	messages := func(id convo.ID, m convo.Message) {
		for k, p := range m.Parts {
			at := place{id, k, -1}
			must := func(ok bool, what string) {
				if !ok {
					t.Fatalf("%s: %s", what, where(at, p))
				}
			}
			words := told[at]
			check(at, p)
			if c, ok := p.(convo.ToolCall); ok && m.Role == convo.RoleAssistant {
				must(len(out.calls) > 0, "no call")
				got := out.calls[0]
				out.calls = out.calls[1:]
				_, otherName := words["name of a tool"]
				_, otherID := words["id of a call"]
				must(otherName || c.Name == got.Name, "another name")
				if out.gemma {
					must(!otherID, "an id")
					got.ID = c.ID
				}
				must(otherID == (got.ID != c.ID && !c.Minted && c.ID != ""), "the id")
			}
			res, ok := p.(convo.ToolResult)
			if !ok {
				continue
			}
			lost := slices.ContainsFunc(gone, func(g string) bool { _, is := words[g]; return is })
			for n, p := range res.Parts {
				if !lost {
					check(place{id, k, n}, p)
					continue
				}
				_, any := out.missing(p)
				must(!any, "part of a lost result")
			}
		}
	}
	for i, tool := range s.Tools() {
		gone := !strings.Contains(string(r.Tools), cmp.Or(tool.Name, hasMark(tool.Opaque.JSON)))
		require.Equal(t, gone, slices.ContainsFunc(tools, func(l wire.Omission) bool { return l.Part == i }), "%s: tool %d: %v", name, i, r.Lost)
	}
	for _, e := range s.All() {
		messages(e.ID, e.Message)
	}
	first := true
	for _, m := range ephemeral {
		require.True(t, first, "places of several ephemeral messages are the same")
		messages(0, m)
		first = false
	}
	require.Empty(t, told, "%s: told of nothing: %s", name, out.body)
	require.Empty(t, out.calls, name)
}

// hostile changes a list of messages in ways that a History does not allow.
func (g *generator) hostile(msgs []convo.Message) {
	for i := range msgs {
		m := &msgs[i]
		m.Parts = slices.Clone(m.Parts)
		switch g.n(12) {
		case 0:
			m.Role = convo.Role(g.pick("system", "user", "assistant", "tool", "other", ""))
		case 1:
			extra := []convo.Part{convo.Text("odd"), convo.Reasoning{Text: "odd", Signature: "c2ln"}, convo.ToolCall{ID: "odd", Name: "f"},
				convo.ToolResult{CallID: "c1", Parts: []convo.Part{convo.Text("odd")}}, g.media(), blocks[g.n(len(blocks))]}[g.n(6)]
			if call, ok := extra.(convo.ToolCall); ok && m.Role == convo.RoleAssistant {
				call.Minted = g.n(2) == 0
				extra = call
			}
			m.Parts = slices.Insert(m.Parts, g.n(len(m.Parts)+1), g.markPart(extra))
		case 2:
			for k, p := range m.Parts {
				if r, ok := p.(convo.ToolResult); ok {
					r.Parts = append(slices.Clone(r.Parts), g.markPart(g.media()), g.markPart(convo.Reasoning{Text: "odd"}), g.markPart(blocks[g.n(len(blocks))]))
					m.Parts[k] = r
				}
			}
		case 3:
			if len(m.Parts) > 0 {
				m.Parts = append(m.Parts, g.markPart(m.Parts[g.n(len(m.Parts))]))
			}
		}
	}
	g.rng.Shuffle(len(msgs), func(i, j int) {
		if g.n(8) == 0 {
			msgs[i], msgs[j] = msgs[j], msgs[i]
		}
	})
}

// Lost lists exactly the parts of the snapshot that the request leaves out.
func TestLost_TellsAllThatIsNotInTheRequest(t *testing.T) {
	names := slices.Sorted(maps.Keys(encoderFormats))
	count := map[string]int{}
	for seed := range long.Or[uint64](100, 250) {
		h := relaxedOf(t)
		g := &generator{rng: rand.New(rand.NewPCG(seed, 5)), h: h, origins: origins, marked: true}
		if seed%4 == 1 {
			g.origins = origins[7:10] // makers that sign
		}
		if seed%4 == 0 {
			own := origins[1+g.n(len(origins)-1)].Format
			require.NoError(t, h.SetTools(convo.Tool{Name: "search"}, convo.Tool{Opaque: convo.Opaque{Format: own, JSON: fmt.Sprintf(`{"type":"<09%05d>"}`, seed)}}))
		}
		for range g.n(3) {
			g.append(convo.System(g.text()))
		}
		for range 2 + g.n(20) {
			if g.n(4) == 0 {
				g.extra()
			} else {
				g.step()
			}
		}
		var ephemeral []convo.Message
		if g.n(3) == 0 {
			m := g.withMarks(g.user())
			if h.SetEphemeral(m) == nil {
				ephemeral = []convo.Message{m}
			}
		}
		if s := h.Snapshot(); g.n(3) == 0 && s.Len() > 6 {
			var e convo.Edit
			e.Summary = &convo.Summary{Text: "what went before"}
			for x := range s.Exchanges() {
				if !x.Floor && g.n(3) == 0 {
					e.Drop = append(e.Drop, x.IDs()...)
				}
			}
			_, _ = h.Apply(s, e)
		}
		s := h.Snapshot()
		msgs := []convo.Message{}
		for _, e := range s.All() {
			msgs = append(msgs, e.Message)
		}
		g.hostile(msgs)
		hostile := asSent(msgs)
		for _, name := range some(names, int(seed)) {
			checkLost(t, name, s, ephemeral, count)
			checkLost(t, name, hostile, nil, count)
		}
	}
	t.Log(count)
	for _, word := range omissionWords(t) { // each word occurs in Lost
		if word == "container" || word == "reference to a tool" {
			continue // see TestCode_Container and TestReferences
		}
		assert.True(t, slices.ContainsFunc(slices.Collect(maps.Keys(count)), func(key string) bool { return strings.HasSuffix(key, ": "+word) }), word)
	}
}

// omissionWords returns the words that the documentation of Omission lists.
func omissionWords(t *testing.T) (words []string) {
	t.Helper()
	source, err := os.ReadFile("lost.go")
	require.NoError(t, err)
	doc, code, ok := strings.Cut(string(source), "\ntype Omission struct")
	require.True(t, ok)
	for line := range strings.Lines(doc) {
		if word, ok := strings.CutPrefix(line, "//\t"); ok {
			words = append(words, strings.TrimSpace(word))
		}
	}
	require.Len(t, regexp.MustCompile(`(?m)^\tlost[A-Z]\w+ += "`).FindAllString(code, -1), len(words), "each is documented")
	for _, word := range words {
		require.Contains(t, code, `"`+word+`"`)
	}
	return words
}

// Each format lists what it leaves out, in the order of the entries and their parts.
func TestLost(t *testing.T) {
	call := convo.ToolCall{ID: "call_0001", Name: "f", Arguments: "{}"}
	result := func(id string, isError bool, parts ...convo.Part) convo.Message {
		return convo.Message{Role: convo.RoleTool, Parts: []convo.Part{convo.ToolResult{CallID: id, Name: "f", IsError: isError, Parts: parts}}}
	}
	png, wav := convo.Media{MIME: "image/png", Data: "aGk="}, convo.Media{MIME: "audio/wav", Data: "aGk="}
	md := convo.Media{MIME: "text/markdown", Data: "aGVsbG8="}
	signed, sealed := convo.Reasoning{Text: "hm", Signature: "c2ln"}, convo.Reasoning{ID: "rs_1", Text: "hm", Signature: "msg_1", Encrypted: "ZW5j"}
	for _, tt := range []struct {
		name   string
		format wire.Format
		msgs   []convo.Message
		want   string // one line for each loss
	}{
		{"nothing", wire.OpenAIChat{}, []convo.Message{convo.System("s"), users(convo.Text("q"), convo.Text(" "), png), says("openai-chat", convo.Reasoning{}, convo.Text("a"), call), result(call.ID, true, convo.Text("r"), png)}, ""},
		{"arguments that are no object, and ids that convo made", wire.Gemini{}, []convo.Message{convo.User("q"), says("gemini", convo.ToolCall{ID: "made", Minted: true, Name: "f", Arguments: "oops"}), result("made", true, convo.Text("r"))}, ""},
		{"another one's", wire.Anthropic{}, []convo.Message{convo.User("q"), says("gemini", signed, convo.Text("a"), opaque("gemini", `{"executableCode":{}}`)), users(convo.Text("q"), opaque("openai-chat", `{"type":"x"}`))},
			"entry 2, part 0: reasoning\nentry 2, part 2: block\nentry 3, part 1: block"},
		{"another model's", wire.Anthropic{Model: "claude"}, []convo.Message{convo.User("q"), says("anthropic", signed, convo.Text("a")), convo.User("q")}, "entry 2, part 0: reasoning"},
		{"by the rule of replay", wire.OpenAIChat{Dialect: wire.DeepSeek}, []convo.Message{convo.User("q"), says("deepseek", convo.Reasoning{Text: "hm"}, convo.Text("a")), convo.User("q")}, "entry 2, part 0: reasoning"},
		{"a place in the text", wire.Anthropic{}, []convo.Message{convo.System("s"), {Role: convo.RoleUser, Author: "Eve", Parts: []convo.Part{convo.Text("q"), wav}}}, "entry 2, part 1: media"},
		{"no call", wire.Converse{}, []convo.Message{convo.User("q"), result("c9", false, convo.Text("r")), says("", call, convo.ToolCall{ID: "c2", Name: "f"}), result(call.ID, false, convo.Text("1")), result(call.ID, false, convo.Text("2")), result("c9", false, convo.Text("3"))},
			"entry 2, part 0: result without a call\nentry 5, part 0: second result of a call\nentry 6, part 0: result without a call"},
		{"ids and names", wire.OpenAIChat{Dialect: wire.Mistral}, []convo.Message{convo.User("q"), says("", call, convo.ToolCall{Name: "a.b"}, convo.ToolCall{ID: call.ID, Name: "f"}), convo.User("q")},
			"entry 2, part 0: id of a call, sent as \"dJJMQeZAj\"\nentry 2, part 1: name of a tool, sent as \"a_2eb_x2e7336dc\"\nentry 2, part 2: id of a call, sent as \"8f0E8EqCA\""},
		{"no such place", wire.Gemini{}, []convo.Message{users(convo.Text("q"), call, convo.Reasoning{Text: "hm"}), {Role: "other", Parts: []convo.Part{convo.Text("x")}}, {Role: convo.RoleTool, Parts: []convo.Part{convo.Text("x"), convo.Text(" ")}}, says("", call), result(call.ID, false, convo.Text(""), call, opaque("x", "{}"), convo.Text("r"))},
			"entry 1, part 1: part that has no place here\nentry 1, part 2: reasoning\nentry 2, part 0: part that has no place here\nentry 3, part 0: part that has no place here\nentry 5, part 0, part 1 of the result: part that has no place here\nentry 5, part 0, part 2 of the result: block"},

		{"chat: media and blocks", wire.OpenAIChat{}, []convo.Message{users(convo.Text("q"), wav), says("openai-chat", convo.Text("a"), png, call), result(call.ID, false, wav, opaque("openai-chat", `{"type":"x"}`), png)},
			"entry 1, part 1: media\nentry 2, part 1: media\nentry 3, part 0, part 0 of the result: media\nentry 3, part 0, part 1 of the result: block"},
		{"chat: a custom call", wire.OpenAIChat{}, []convo.Message{convo.User("q"), says("openai-chat", opaque("openai-chat", `{"type":"convo_fields","call":"custom"}`), call, opaque("openai-chat", `{"type":"convo_fields","call":"custom"}`)), result(call.ID, false, convo.Text("r"))}, "entry 2, part 2: block"},
		{"chat: a custom call elsewhere", wire.OpenAIChat{Dialect: wire.StrictAlternation}, []convo.Message{convo.User("q"), says("openai-chat", opaque("openai-chat", `{"type":"convo_fields","call":"custom"}`), call), result(call.ID, false, convo.Text("r"))}, "entry 2, part 0: block\nentry 2, part 1: id of a call, sent as \"dJJMQeZAj\""},
		{"responses: a custom call", wire.OpenAIResponses{}, []convo.Message{convo.User("q"), says("openai-responses", opaque("openai-responses", `{"type":"convo_fields","call":"custom"}`), call, opaque("openai-responses", `{"type":"convo_fields","call":"custom"}`), convo.Text("a")), result(call.ID, false, convo.Text("r"))}, "entry 2, part 2: block"},
		{"chat: an author in a field", wire.OpenAIChat{Names: true}, []convo.Message{{Role: convo.RoleUser, Author: "Eve", Parts: []convo.Part{convo.Text("q"), wav}}}, "entry 1, part 1: media"},
		{"chat: audio", wire.OpenAIChat{Audio: true}, []convo.Message{users(convo.Text("q"), wav)}, ""},
		{"chat: one text", wire.OpenAIChat{Dialect: wire.DeepSeek}, []convo.Message{users(convo.Text("q"), png, opaque("deepseek", `{"type":"x"}`))}, "entry 1, part 1: media\nentry 1, part 2: block"},
		{"chat: one system message", wire.OpenAIChat{Dialect: wire.StrictAlternation}, []convo.Message{{Role: convo.RoleSystem, Parts: []convo.Part{convo.Text("s"), opaque("openai-chat", `{"type":"x"}`), png}}, convo.User("q")}, "entry 1, part 1: block\nentry 1, part 2: media"},
		{"chat: thoughts alone", wire.OpenAIChat{Dialect: wire.Ollama}, []convo.Message{convo.User("q"), says("ollama", convo.Reasoning{Text: "hm"}), says("ollama", signed, convo.Text("a")), users(png, wav)},
			"entry 2, part 0: reasoning\nentry 3, part 0: id, signature or encrypted form of reasoning\nentry 4, part 1: media"},
		{"chat: messages that become one", wire.OpenAIChat{Dialect: wire.StrictAlternation}, []convo.Message{convo.User("q"), users(wav), says("", call, convo.Text("b")), result("c", false, wav), says("", convo.Text("c"), png)},
			"entry 2, part 0: media\nentry 3, part 0: id of a call, sent as \"dJJMQeZAj\"\nentry 4, part 0: result without a call\nentry 5, part 1: media"},

		{"responses: reasoning", wire.OpenAIResponses{}, []convo.Message{convo.User("q"), says("openai-responses", sealed, convo.Text("a"), signed, call, sealed), says("openai-responses", convo.Reasoning{ID: "?", Text: "hm", Encrypted: "ZW5j"}, convo.Text("b"))},
			"entry 2, part 2: reasoning\nentry 2, part 4: reasoning\nentry 3, part 0: id, signature or encrypted form of reasoning"},
		{"responses: plain", wire.OpenAIResponses{Plain: true}, []convo.Message{convo.User("q"), says("openai-responses", sealed, convo.Text("a")), says("openai-responses", convo.Reasoning{ID: "rs_2", Text: "hm", Signature: "msg_2"}, convo.Text("b"))}, "entry 2, part 0: reasoning"},
		{"responses: blocks", wire.OpenAIResponses{}, []convo.Message{users(convo.Text("q"), opaque("openai-responses", `{"type":"function_call"}`)), says("openai-responses", opaque("openai-responses", `{"type":"convo_fields","phase":"final_answer"}`), convo.Text("a"), opaque("openai-responses", `{"type":"convo_fields","phase":"final_answer"}`)),
			says("openai-responses", opaque("openai-responses", `{"type":"custom_tool_call","call_id":"ct","name":"f","input":"x"}`)), convo.User("q")}, "entry 1, part 1: block\nentry 2, part 2: block\nentry 3, part 0: block"},
		{"responses: blocks in a result", wire.OpenAIResponses{}, []convo.Message{convo.User("q"), says("", call), result(call.ID, false, convo.Text("see"), opaque("openai-responses", `{"type":"input_image","file_id":"file-1"}`), opaque("openai-responses", `{"type":"thing"}`))},
			"entry 3, part 0, part 2 of the result: block"},
		{"responses: media", wire.OpenAIResponses{}, []convo.Message{{Role: convo.RoleSystem, Parts: []convo.Part{convo.Text("s"), opaque("openai-responses", `{"type":"input_text","text":"x"}`)}}, users(wav, png), says("", png, call), result(call.ID, false, wav, png)},
			"entry 1, part 1: block\nentry 2, part 0: media\nentry 3, part 0: media\nentry 4, part 0, part 0 of the result: media"},

		{"anthropic: reasoning", wire.Anthropic{}, []convo.Message{convo.User("q"), says("anthropic", convo.Reasoning{Text: "hm"}, convo.Reasoning{Text: "hm", Encrypted: "ZW5j"}, convo.Reasoning{ID: "r", Text: "hm", Signature: "c2ln"}, convo.Text("a"), signed), convo.User("q")},
			"entry 2, part 0: reasoning\nentry 2, part 1: text of reasoning\nentry 2, part 2: id, signature or encrypted form of reasoning\nentry 2, part 4: reasoning"},
		{"anthropic: two things of one part", wire.Anthropic{}, []convo.Message{convo.User("q"), says("anthropic", convo.Reasoning{ID: "r", Text: "hm", Encrypted: "ZW5j"}, convo.Text("a")), convo.User("q")},
			"entry 2, part 0: text of reasoning\nentry 2, part 0: id, signature or encrypted form of reasoning"},
		{"anthropic: media behind a blank text", wire.Anthropic{}, []convo.Message{convo.User("q"), says("anthropic", call), result(call.ID, false, convo.Text(" "), wav, convo.Text("r"))}, "entry 3, part 0, part 1 of the result: media"},
		{"anthropic: blocks and media", wire.Anthropic{}, []convo.Message{users(md, opaque("anthropic", `{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}`), opaque("anthropic", `{"type":"tool_use"}`)), says("anthropic", png, call), result(call.ID, true, png, opaque("anthropic", `{"type":"search_result"}`))},
			"entry 1, part 0: type of media\nentry 1, part 1: cache mark\nentry 1, part 2: block\nentry 2, part 0: media\nentry 3, part 0, part 0 of the result: media\nentry 3, part 0, part 1 of the result: block"},

		{"gemini: reasoning", wire.Gemini{}, []convo.Message{convo.User("q"), says("gemini", convo.Reasoning{Signature: "c2ln"}, convo.Text("a"), convo.Reasoning{Signature: "c2ln", ID: call.ID}, call), says("gemini", convo.Reasoning{Signature: "c2ln", ID: "other"}, call, convo.Reasoning{Signature: "c2ln"}), says("gemini", convo.Reasoning{Text: "hm"})},
			"entry 3, part 0: reasoning\nentry 3, part 1: id of a call, sent as \"call_dJJMQeZAj245gnvBvttIROAx\"\nentry 3, part 2: reasoning\nentry 4, part 0: reasoning"},
		{"gemini: blocks and media", wire.Gemini{}, []convo.Message{users(convo.Media{Data: "aGk="}, opaque("gemini", `{"functionCall":{"name":"f"}}`), opaque("gemini", `{"executableCode":{"language":"PYTHON","code":"1"},"thoughtSignature":"c2ln"}`))}, "entry 1, part 0: media\nentry 1, part 1: block\nentry 1, part 2: signature of a block"},

		{"converse: reasoning", wire.Converse{Seals: wire.SealsUnchecked}, []convo.Message{convo.User("q"), says("converse", convo.Reasoning{Text: "hm"}, convo.Text("a"), signed), says("converse", convo.Reasoning{Text: "hm", Encrypted: "ZW5j"}, convo.Reasoning{ID: "r", Text: "hm", Signature: "c2ln"}, convo.Text("b")), convo.User("q")},
			"entry 2, part 0: reasoning\nentry 2, part 2: reasoning\nentry 3, part 0: text of reasoning\nentry 3, part 1: id, signature or encrypted form of reasoning"},
		{"converse: media", wire.Converse{}, []convo.Message{users(convo.Text("q"), convo.Media{MIME: "text/x-go", Data: "aGk="}, md, convo.Media{MIME: "image/png", URL: "https://example.com/a"}, opaque("converse", `{"document":{"format":"pdf","name":"a_b","source":{"bytes":"aGk="}}}`)), says("", png, call), result(call.ID, false, wav)},
			"entry 1, part 1: type of media\nentry 1, part 3: media\nentry 1, part 4: name of a document, sent as \"document-zly9bdlF\"\nentry 2, part 0: media\nentry 3, part 0, part 0 of the result: media"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := asSent(tt.msgs)
			r := mustEncode(t, tt.format, s)
			got := listed(r.Lost)
			assert.Equal(t, tt.want, strings.Join(got, "\n"), "%s", r.Body())
			if tt.want == "" {
				assert.Nil(t, r.Lost)
			}
			assert.Empty(t, faults(tt.format, r.Body()))
			e := wire.Encoder{Format: tt.format}
			for n := range len(tt.msgs) {
				_, _ = e.Encode(asSent(tt.msgs[:n]))
			}
			same := mustEncode(t, &e, s)
			assert.Equal(t, r.Lost, same.Lost)
		})
	}
}

// Losses of a summary and of ephemeral messages have no entry, and do not shift the
// entries of later losses.
func TestLost_EphemeralMessages(t *testing.T) {
	wav := convo.Media{MIME: "audio/wav", Data: "aGk="}
	h := historyOf(t, convo.System("s"), convo.User("q", wav), convo.Assistant("a"), convo.User("r", wav), convo.Assistant("b"), convo.User("t", wav), convo.Message{Role: convo.RoleAssistant, Parts: []convo.Part{convo.Text("c"), wav}})
	mustApply(t, h, convo.Edit{Drop: []convo.ID{2, 3}, Summary: &convo.Summary{Text: "short"}})
	require.NoError(t, h.SetEphemeral(convo.User("now", wav), convo.User("here", convo.Text("x"), wav)))
	e := wire.Encoder{Format: wire.Anthropic{}}
	for range 2 {
		r := mustEncode(t, &e, h.Snapshot())
		assert.Equal(t, []wire.Omission{{Entry: 4, Part: 1, Inside: -1, What: "media"}, {Entry: 6, Part: 1, Inside: -1, What: "media"}, {Part: 1, Inside: -1, What: "media"}, {Part: 2, Inside: -1, What: "media"}, {Entry: 7, Part: 1, Inside: -1, What: "media"}}, r.Lost)
		assert.Equal(t, "an ephemeral message, part 1: media", r.Lost[2].String())
		r.Lost[0] = wire.Omission{} // the caller owns the slice
	}
}

// A text that convo made, such as the tag of an author, cannot have the citations of a
// message.
func TestCitations_NotOfATag(t *testing.T) {
	for format, raw := range map[string]string{
		"anthropic":        `{"citations":[{"type":"char_location","cited_text":"c","document_index":0,"document_title":null,"start_char_index":0,"end_char_index":1}]}`,
		"openai-responses": `{"annotations":[{"type":"file_citation","file_id":"f","filename":"n","index":0}]}`,
		"converse":         `{"citationsContent":{"citations":[{"title":"A"}]}}`,
	} {
		m := convo.Message{Role: convo.RoleAssistant, Author: "Eve", Origin: convo.Origin{Format: format}, Parts: []convo.Part{convo.Opaque{Format: format, JSON: raw}, convo.Text("hi")}}
		s := asSent([]convo.Message{convo.User("q"), m, convo.User("z")})
		for name, f := range encoderFormats {
			r := mustEncode(t, f, s)
			assert.NotRegexp(t, `"(citations|annotations|citationsContent)":[^[]*\[\{|Source: `, string(r.Body()), name)
			assert.Len(t, r.Lost, 1, name)
		}
	}
}

// isCacheMark reports whether a part is a cache mark.
func isCacheMark(p convo.Part) bool {
	o, _ := p.(convo.Opaque)
	return o.Format == "cache" || strings.HasPrefix(o.JSON, `{"cachePoint":{`)
}

// onlyMarks returns messages that have only the cache marks for whose number keep returns
// true.
func onlyMarks(msgs []convo.Message, keep func(n int, at [3]int) bool) []convo.Message {
	n := 0
	var only func(parts []convo.Part, place func(i int) [3]int) []convo.Part
	only = func(parts []convo.Part, place func(i int) [3]int) []convo.Part {
		list := make([]convo.Part, 0, len(parts))
		for i, p := range parts {
			if r, ok := p.(convo.ToolResult); ok {
				r.Parts = only(r.Parts, func(k int) [3]int { at := place(i); at[2] = k; return at })
				p = r
			} else if isCacheMark(p) {
				n++
				if !keep(n-1, place(i)) {
					continue
				}
			}
			list = append(list, p)
		}
		return list
	}
	msgs = slices.Clone(msgs)
	for m := range msgs {
		msgs[m].Parts = only(msgs[m].Parts, func(i int) [3]int { return [3]int{m + 1, i, -1} })
	}
	return msgs
}

// A cache mark is listed as lost if the request is the same without it. All other marks
// are in the request: it has as many marks as there are places for those that are not
// listed.
func TestLost_CacheMarks(t *testing.T) {
	sent := regexp.MustCompile(`"cache_control":|\{"cachePoint":|"prompt_cache_breakpoint":`)
	key := regexp.MustCompile(`key=\\"@[a-z]{7}`) // the key of the tags differs between snapshots
	formats := map[string]wire.Format{
		"anthropic": wire.Anthropic{}, "anthropic, tools": wire.Anthropic{CacheTools: true, CacheLifetime: time.Hour},
		"converse": wire.Converse{}, "converse, alone": wire.Converse{ResultsAlone: true},
		"responses": wire.OpenAIResponses{Cache: true}, "responses, developer": wire.OpenAIResponses{Cache: true, Developer: true},
	}
	told, kept := 0, 0
	for seed := range long.Or[uint64](40, 400) {
		h := relaxedOf(t)
		g := &generator{rng: rand.New(rand.NewPCG(seed, 9)), h: h, origins: origins}
		for range g.n(3) {
			g.append(g.system())
		}
		for range 1 + g.n(6) {
			if g.n(3) == 0 {
				g.extra()
			} else {
				g.step()
			}
		}
		var msgs []convo.Message
		for _, e := range h.Snapshot().All() {
			msgs = append(msgs, e.Message)
		}
		if g.n(2) == 0 {
			g.hostile(msgs)
		}
		for name, f := range formats {
			encode := func(keep func(n int, at [3]int) bool) (string, []wire.Omission) {
				r, err := f.Encode(asSent(onlyMarks(msgs, keep)))
				if err != nil {
					require.ErrorIs(t, err, wire.ErrEmpty)
				}
				body := strings.ReplaceAll(string(r.Body()), `,"ttl":"1h"`, "")
				return key.ReplaceAllString(body, "key"), r.Lost
			}
			lost := map[[3]int]bool{}
			body, list := encode(func(int, [3]int) bool { return true })
			if body == `{"messages":[]}` || body == `{"input":[]}` {
				continue // ErrEmpty: nothing is sent
			}
			for _, l := range list {
				lost[[3]int{int(l.Entry), l.Part, l.Inside}] = true
			}
			isLost := func(at [3]int) bool { return lost[at] || at[2] >= 0 && lost[[3]int{at[0], at[1], -1}] }
			var there []int // numbers of the marks that are not listed
			without, _ := encode(func(n int, at [3]int) bool {
				if isLost(at) {
					told++
					return false
				}
				there, kept = append(there, n), kept+1
				return true
			})
			if strings.HasPrefix(name, "responses") { // a text with a mark is in a list, even if the mark is dropped
				require.Len(t, sent.FindAllString(without, -1), len(sent.FindAllString(body, -1)), "%s: seed %d: %v", name, seed, list)
			} else {
				require.Equal(t, without, body, "%s: seed %d: %v", name, seed, list)
			}
			alone := map[string]bool{}
			for _, n := range there {
				one, _ := encode(func(k int, _ [3]int) bool { return k == n })
				require.Len(t, sent.FindAllString(one, -1), 1, "%s: seed %d: mark %d: %v: %s", name, seed, n, list, one)
				alone[one] = true
			}
			require.Len(t, sent.FindAllString(body, -1), len(alone), "%s: seed %d: %v: %s", name, seed, list, body)
		}
	}
	assert.NotZero(t, told)
	assert.NotZero(t, kept)
	t.Log(told, kept)
}

// Citations that are not sent are each listed, and marks that are dropped or have no
// place are listed as marks.
func TestLost_CitationsAndMarks(t *testing.T) {
	mark := wire.CacheMark(0)
	two := opaque("anthropic", `{"citations":[{"type":"new"},{"type":"char_location","cited_text":"c","document_index":0,"document_title":null,"start_char_index":0,"end_char_index":1}]}`)
	long := opaque("openai-responses", `{"annotations":[{"type":"url_citation","start_index":5,"end_index":6,"url":"https://b","title":"B"}]}`)
	six := users(convo.Text("a"), mark, convo.Text("b"), mark, convo.Text("c"), mark, convo.Text("d"), mark, convo.Text("e"), mark, convo.Text("f"), mark)
	pdf := convo.Media{MIME: "application/pdf", Data: "aGVsbG8="}
	const first = "entry 2, part 1: cache mark\nentry 2, part 3: cache mark"
	for _, tt := range []struct {
		name   string
		format wire.Format
		msg    convo.Message
		want   string
	}{
		{"one of two", wire.Anthropic{}, says("anthropic", convo.Text("a"), two), "entry 2, part 1: citation of a text"},
		{"a second list", wire.Anthropic{}, says("anthropic", convo.Text("a"), two, two), "entry 2, part 1: citation of a text\nentry 2, part 2: block"},
		{"they do not fit", wire.OpenAIResponses{}, says("openai-responses", convo.Text("a"), long), "entry 2, part 1: block"},
		{"they fit", wire.OpenAIResponses{}, says("openai-responses", convo.Text("abcdef"), long), ""},
		{"six marks", wire.Anthropic{}, six, first},
		{"six marks", wire.Converse{}, six, first},
		{"six marks", wire.OpenAIResponses{Cache: true}, six, first},
		{"six marks and the tools", wire.Anthropic{CacheTools: true}, six, first + "\nentry 2, part 5: cache mark"},
		{"two at one place give way", wire.Converse{}, users(append([]convo.Part{convo.Text("0"), mark, mark}, six.Parts[:8]...)...), "entry 2, part 1: cache mark\nentry 2, part 2: cache mark"},
		{"behind thinking", wire.Anthropic{}, says("anthropic", convo.Reasoning{Text: "hm", Signature: "c2ln"}, mark, convo.Text("a")), "entry 2, part 1: cache mark"},
		{"behind a system message", wire.Anthropic{}, users(opaque("anthropic", `{"role":"system","content":"be brief"}`), mark), "entry 2, part 1: cache mark"},
		{"in an answer", wire.OpenAIResponses{Cache: true}, says("", convo.Text("a"), mark), "entry 2, part 1: cache mark"},
		{"in instructions", wire.OpenAIResponses{Cache: true}, convo.Message{Role: convo.RoleSystem, Parts: []convo.Part{convo.Text("s"), mark}}, "entry 1, part 1: cache mark"},
		{"in a note", wire.OpenAIResponses{Cache: true}, convo.Message{Role: convo.RoleSystem, Parts: []convo.Part{convo.Text("s"), mark}}, ""},
		{"in a note that is a user message", wire.Anthropic{}, convo.Message{Role: convo.RoleSystem, Parts: []convo.Part{convo.Text("s"), mark}}, ""},
		{"in a developer message", wire.OpenAIResponses{Cache: true, Developer: true}, convo.Message{Role: convo.RoleSystem, Parts: []convo.Part{convo.Text("s"), mark}}, ""},
	} {
		msgs := []convo.Message{convo.User("q"), tt.msg, convo.User("z")}
		if tt.name == "in instructions" {
			msgs[0], msgs[1] = msgs[1], msgs[0]
		}
		s := asSent(msgs)
		e := wire.Encoder{Format: tt.format}
		for range 3 { // losses do not accumulate
			r := mustEncode(t, &e, s)
			got := listed(r.Lost)
			assert.Equal(t, tt.want, strings.Join(got, "\n"), "%s: %T: %s", tt.name, tt.format, r.Body())
		}
	}
	r := mustEncode(t, wire.Converse{}, asSent([]convo.Message{convo.Assistant("a"), users(pdf, mark, convo.Text("z"))}))
	require.Len(t, r.Lost, 1, "nothing stands before the document")
	assert.Equal(t, "cache mark", r.Lost[0].What)
}
