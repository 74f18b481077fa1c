package adaptertest

import (
	"cmp"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/mirror"
)

// An API is what the client of a framework talks to.
type API struct {
	Key, Base string // the variables of the environment with its key and its address
	Address   string // without Base
	Path      string // that the client adds none of, such as "/v1"
	Model     string
	Other     string // another model, of the same provider
}

// The APIs of the frameworks' clients.
var (
	Anthropic = API{Key: "ANTHROPIC_API_KEY", Base: "ANTHROPIC_BASE_URL", Address: "https://api.anthropic.com", Model: "claude-opus-5-5", Other: "claude-haiku-5-5"}
	OpenAI    = API{Key: "OPENAI_API_KEY", Base: "OPENAI_BASE_URL", Address: "https://api.openai.com/v1", Path: "/v1", Model: "gpt-5.6", Other: "gpt-5.6-mini"}
	Gemini    = API{Key: "GEMINI_API_KEY", Base: "GOOGLE_GEMINI_BASE_URL", Address: "https://generativelanguage.googleapis.com", Model: "gemini-3.8-flash", Other: "gemini-3.8-flash-lite"}
)

// A Service is where a client finds an API.
type Service struct{ URL, Key, Model string }

// Real has a short conversation with the service whose key is in the environment, and is
// skipped without one. The variable CONVO_MODEL names another model. Then it does the same with
// a server of package provider.
func Real[M any](t *testing.T, framework func(*testing.T) Framework[M]) {
	t.Run("service", func(t *testing.T) {
		f := framework(t)
		key := os.Getenv(f.API.Key)
		if key == "" {
			t.Skipf("no %s in the environment; set it, and %s for another address, to talk to the real service", f.API.Key, f.API.Base)
		}
		talk(t, f, Service{cmp.Or(os.Getenv(f.API.Base), f.API.Address), key, cmp.Or(os.Getenv("CONVO_MODEL"), f.API.Model)})
	})
	t.Run("stand-in", func(t *testing.T) {
		asked := 0
		p := provider.New(provider.Options{Answer: func(provider.Request) provider.Answer {
			if asked++; asked%2 == 1 {
				return provider.Answer{Blocks: []provider.Block{provider.Call{Name: "read", Arguments: `{"page":7}`}}}
			}
			return provider.Answer{Blocks: []provider.Block{provider.Text("Page 7 says nothing.")}}
		}})
		server := httptest.NewServer(p)
		defer server.Close()
		f := framework(t)
		talk(t, f, Service{server.URL + f.API.Path, "none", f.API.Model})
		for _, r := range p.Refused() {
			t.Errorf("refused: %s: %s", r.Error, r.Body)
		}
	})
}

// talk asks for a page a few times, with a compaction in the middle.
func talk[M any](t *testing.T, f Framework[M], s Service) {
	h, m := f.start(t, convo.Limits{Window: 100_000})
	defer h.Close()
	var list []M
	for i, question := range []string{"Read page 7 with the tool, and say in one sentence what page 7 says.", "Once more, please: read page 7 again.", "And again: read page 7.", "Read page 7 a last time."} {
		if i == 3 {
			if r, err := h.Compact(t.Context(), ""); err != nil || r.Outcome != convo.OutcomeApplied {
				t.Error(r, err)
			}
		}
		answered, err := f.Turn(t, s, m, append(list[:len(list):len(list)], f.User(question)))
		if err != nil {
			t.Fatalf("%s: %v", question, err)
		}
		list = answered
		said := textOf(t, f.Codec, list[len(list)-1])
		t.Log(question, said)
		if !strings.Contains(said, "7") {
			t.Errorf("%s: the answer is %q, which does not name the page", question, said)
		}
	}
}

func textOf[M any](t *testing.T, codec mirror.Codec[M], v M) string {
	msgs, err := codec.Decode(v)
	if err != nil || len(msgs) == 0 {
		t.Fatalf("the newest message is %v: %v", v, err)
	}
	return msgs[len(msgs)-1].Text()
}
