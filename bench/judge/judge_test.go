package judge

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

func TestSame(t *testing.T) {
	for _, tt := range []struct {
		sent, kept string
		text       bool
		want       string
	}{
		{`{"a":1,"b":null}`, `{"a":1.0}`, false, ""},
		{`{"a":1,"b":2}`, `{"b":2,"a":1}`, false, ""},
		{`{"a":100000000000000000000}`, `{"a":1e20}`, false, ""},
		{`{"a":9007199254740993}`, `{"a":9007199254740992}`, false, "a: a number became another"},
		{`{"a":[{"b":"x"}]}`, `{"a":[{}]}`, false, "a[].b: gone, it was a string"},
		{`{"a":{}}`, `{}`, false, "a: gone, it was an object and empty"},
		{`{}`, `{"a":""}`, false, "a: missing"},
		{`{"a":[1]}`, `{"a":[1,2]}`, false, "a: a list became another"},
		{`{"a":"x"}`, `{"a":[{"type":"text","text":"x"}]}`, true, ""},
		{`{"a":"x"}`, `{"a":[{"type":"text","text":"x"}]}`, false, "a: a string became another, or a list"},
		{`{"a":true}`, `{"a":false}`, false, "a: a bool became another, or a bool"},
		{`{"a":{"b":1}}`, `{"a":1}`, false, "a: an object became a number"},
		{`{`, `{}`, false, "not JSON"},
	} {
		got := ""
		for _, o := range Same([]byte(tt.sent), []byte(tt.kept), tt.text) {
			got += o.String()
		}
		assert.Equal(t, tt.want, got, "%s and %s", tt.sent, tt.kept)
	}
}

// A word is not seen by constants, for it stands in a test.
type word string

const yes word = "yes"

type union struct {
	OfA *leaf `json:",omitzero,inline"`
	OfB *leaf `json:",omitzero,inline"`
}

type leaf struct {
	Word convo.Role `json:"word,omitzero"`
	List []leaf     `json:"list,omitzero" api:"required"`
}

func TestUnread(t *testing.T) {
	assert.Equal(t, "the SDK cannot hold a number", Unread([]byte(`{"a":[{"b":1e400}]}`))[0].Why)
	assert.Equal(t, "the SDK cannot read it", Unread([]byte(`{"a":[{"b":1e300}]}`))[0].Why)
	assert.Equal(t, "the SDK cannot read it", Unread([]byte(`{`))[0].Why)
}

func TestStrict(t *testing.T) {
	whole := leaf{Word: convo.RoleUser, List: []leaf{}}
	for _, tt := range []struct {
		v    any
		want []Objection
	}{
		{whole, nil},
		{union{OfA: &whole}, nil},
		{[]union{{}}, []Objection{{"[]", "0 variants of union"}}},
		{&union{OfA: &whole, OfB: &whole}, []Objection{{"", "2 variants of union"}}},
		{leaf{Word: convo.RoleTool}, []Objection{{"list", "required, and not there"}}},
		{leaf{Word: "maybe", List: []leaf{{Word: "tool", List: []leaf{}}}}, []Objection{{"word", "not a Role"}}},
		{yes, nil},
		{map[string]any{"x": leaf{}}, []Objection{{"[].list", "required, and not there"}}},
	} {
		s := Strict(tt.v)
		assert.Equal(t, tt.want, s, "%+v", tt.v)
	}
}

// The constants of a package come from its source, without those of its tests.
func TestConstants(t *testing.T) {
	roles := constants("github.com/seed-c1b73e60/convo")["Role"]
	assert.True(t, roles["user"] && roles["assistant"] && roles["system"] && roles["tool"], "%v", roles)
	assert.Nil(t, constants("github.com/seed-c1b73e60/convo/bench/judge")["word"])
	assert.Panics(t, func() { constants("example.com/not/there") })
}

// A judge that objects to a field is counted with the shortest request, and explained
// where it is known.
func TestCount(t *testing.T) {
	j := &Judge{
		Name: "j", Formats: map[string]wire.Format{"a": wire.Anthropic{}, "b": wire.OpenAIChat{}},
		Read: func(body []byte) []Objection {
			if len(List(body, "system")) > 0 {
				return []Objection{{"system", "not liked"}, {"system", "not liked"}}
			}
			return nil
		},
	}
	counts, err := j.Count(100, 1, nil)
	require.NoError(t, err)
	require.Len(t, counts, 2)
	assert.GreaterOrEqual(t, counts[0].Requests+counts[1].Requests, 100)
	assert.Positive(t, counts[0].Refused)
	assert.Equal(t, counts[0].Refused, counts[0].Unexplained)
	assert.Equal(t, counts[0].Refused, counts[0].Reasons[0].Requests)
	assert.True(t, json.Valid([]byte(counts[0].Reasons[0].Shortest)))
	assert.Zero(t, counts[1].Refused, "OpenAI has no field system")

	j.Known = []Known{{Path: "system", Why: "not", Format: "a", Wrong: "judge", Because: "so"}}
	again, err := j.Count(100, 1, nil)
	require.NoError(t, err)
	assert.Equal(t, counts[0].Refused, again[0].Refused, "the same seed")
	assert.Zero(t, again[0].Unexplained)
	assert.Equal(t, "so", again[0].Reasons[0].Because)
}

// The random conversations hold all that a request can hold.
func TestRandom(t *testing.T) {
	seen := map[string]int{}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 150 {
		require.NoError(t, Random(rng, func(s Snapshot) (bool, error) {
			if _, ok := s.Summary(); ok {
				seen["summary"]++
			}
			if len(s.Tools) == len(tools) {
				seen["tools"]++
			}
			for _, d := range s.Tools {
				if strings.Contains(d.Name, "/") {
					seen["hard tools"]++
				}
			}
			for _, e := range s.All() {
				if e.Pinned {
					seen["pinned"]++
				}
				if e.Message.Author != "" {
					seen["author"]++
				}
				for _, p := range e.Message.Parts {
					switch p := p.(type) {
					case convo.Text:
						seen["text"]++
					case convo.Reasoning:
						seen["reasoning"]++
						if strings.Contains(p.Signature, "{") || strings.HasPrefix(p.ID, "reasoning") {
							seen["reasoning of a host"]++
						}
					case convo.Opaque:
						seen["opaque"]++
						for _, key := range []string{"convo_fields", `"citations"`, `"annotations"`, "citationsContent", "cachePoint"} {
							if strings.Contains(p.JSON, key) {
								seen[key]++
							}
						}
						if p.Format == "cache" {
							seen["mark of "+string(e.Message.Role)]++
						}
					case convo.Media:
						seen["media"]++
					case convo.ToolCall:
						seen["call"]++
					case convo.ToolResult:
						seen["result"]++
						if p.IsError {
							seen["error"]++
						}
						for _, inside := range p.Parts {
							switch o, _ := inside.(convo.Opaque); {
							case o.Format == "cache":
								seen["mark of tool"]++
							case o.JSON == `{"json":{}}`, o.JSON == `{"response":{}}`:
								seen["object"]++
							}
						}
					}
				}
				if len(e.Message.ToolCalls()) > 1 {
					seen["parallel"]++
				}
			}
			return true, nil
		}))
	}
	for _, kind := range []string{"summary", "tools", "pinned", "author", "text", "reasoning", "opaque", "media", "call", "result", "error", "parallel",
		"hard tools", "reasoning of a host", "convo_fields", `"citations"`, `"annotations"`, "citationsContent", "cachePoint",
		"mark of system", "mark of user", "mark of assistant", "mark of tool", "object"} {
		assert.Greater(t, seen[kind], 20, kind)
	}
	stop := errors.New("stop")
	assert.ErrorIs(t, Random(rng, func(Snapshot) (bool, error) { return true, stop }), stop)
}

// Recorded reads conversations, and requests in the format that the name of their file
// tells, if the provider has taken them.
func TestRecorded(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("talks.jsonl", `{"messages":[{"role":"user","content":"one"}]}`+"\n")
	write("gemini.jsonl", `{"Status":200,"Request":{"contents":[{"role":"user","parts":[{"text":"two"}]}]}}
{"Status":400,"Request":{"contents":[{"role":"user","parts":[{"text":"three"}]}]}}
{"Status":200,"Request":{"input":"four"}}`+"\n")
	var got []string
	require.NoError(t, Recorded(dir)(func(s Snapshot) (bool, error) {
		got = append(got, s.Messages()[0].Text())
		return true, nil
	}))
	assert.Equal(t, []string{"two", "two", "one", "one"}, got)

	write("talks.jsonl", "no JSON\n")
	assert.Error(t, Recorded(dir)(func(Snapshot) (bool, error) { return true, nil }))
	assert.Error(t, Recorded(t.TempDir())(nil))
}
