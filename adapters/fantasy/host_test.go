package convofantasy_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/anthropic"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	convofantasy "github.com/seed-c1b73e60/convo/adapters/fantasy"
	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/mirror"
)

// A row is a message in the database of a host of the kind of crush. A result is a row of its
// own, an answer has its text before its reasoning, and texts are trimmed.
type row struct {
	Role                fantasy.MessageRole
	Text                string
	Thinking, Signature string
	Calls               []fantasy.ToolCallPart
	CallID              string // of a result
	Failed              bool
	Image               []byte
}

func (r row) message() fantasy.Message {
	m := fantasy.Message{Role: r.Role}
	if r.Role == fantasy.MessageRoleTool {
		var out fantasy.ToolResultOutputContent = fantasy.ToolResultOutputContentText{Text: r.Text}
		switch {
		case r.Failed:
			out = fantasy.ToolResultOutputContentError{Error: errors.New(r.Text)}
		case r.Image != nil: // without the text beside it
			out = fantasy.ToolResultOutputContentMedia{Data: base64.StdEncoding.EncodeToString(r.Image), MediaType: "image/png"}
		}
		m.Content = append(m.Content, fantasy.ToolResultPart{ToolCallID: r.CallID, Output: out})
		return m
	}
	if text := strings.TrimSpace(r.Text); text != "" {
		m.Content = append(m.Content, fantasy.TextPart{Text: text})
	}
	if r.Thinking != "" {
		m.Content = append(m.Content, fantasy.ReasoningPart{Text: r.Thinking, ProviderOptions: fantasy.ProviderOptions{
			anthropic.Name: &anthropic.ReasoningOptionMetadata{Signature: r.Signature},
		}})
	}
	for _, c := range r.Calls {
		m.Content = append(m.Content, c)
	}
	return m
}

// A host has one session. What is in its database survives the process.
type host struct {
	*testing.T
	url       string
	decisions []byte

	mu       sync.Mutex
	database []byte // the rows, as JSON
	rows     []row
	killed   bool

	keeper    *mirror.Keeper[fantasy.Message] // of the process
	dies      bool                            // before the decisions are stored
	compacted int
	followed  []string
	anew      int
	oldest    convo.ID // that the summary stands for
}

var errKilled = errors.New("killed")

const (
	rule    = "never change the exported API"
	summary = "The agent has read several pages, none of which says anything."
	wide    = 12_000
)

func (h *host) options() *convo.Options {
	return &convo.Options{
		Limits: convo.Limits{Window: wide, Reserve: 1_000},
		Roles:  convo.Relaxed(),
		Strategy: convo.Chain(convo.ClearToolResults{}, convo.Summarize{With: convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
			return convo.Summary{Text: summary}, nil
		})}),
		OnCompaction: func(r convo.Report) {
			if r.Outcome == convo.OutcomeApplied {
				h.compacted++
			}
		},
	}
}

// start begins a process.
func (h *host) start() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rows, h.killed = nil, false
	if h.database != nil {
		require.NoError(h, json.Unmarshal(h.database, &h.rows))
	}
	h.dies = false
	h.keeper = &mirror.Keeper[fantasy.Message]{
		Load: func(context.Context, string) (*mirror.Mirror[fantasy.Message], error) {
			if h.decisions == nil {
				history, err := convo.New(h.options())
				if err != nil {
					return nil, err
				}
				return mirror.New(history, convofantasy.Codec()), nil
			}
			m, done, err := mirror.Resume(h.decisions, images(h.list()), convofantasy.Codec(), h.options())
			h.follow(done)
			return m, err
		},
		Store: func(_ context.Context, _ string, decisions []byte) error {
			if h.dies {
				return errKilled
			}
			h.decisions = decisions
			return nil
		},
	}
}

func (h *host) follow(done mirror.Followed) {
	if done.Past != nil {
		h.followed = append(h.followed, done.String())
	}
	if done.Anew {
		h.anew++
	}
}

// write adds a row to the database.
func (h *host) write(r row) (at int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.killed {
		h.rows = append(h.rows, r)
		h.save()
	}
	return len(h.rows) - 1
}

func (h *host) save() {
	var err error
	h.database, err = json.Marshal(h.rows)
	require.NoError(h, err)
}

// list returns the rows as messages, as they are read before a run. Calls that the process did
// not live to answer get a result.
func (h *host) list() (list []fantasy.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	open := map[string]bool{}
	var rows []row
	flush := func() {
		for _, r := range slices.Clone(rows) {
			for _, c := range r.Calls {
				if open[c.ToolCallID] {
					rows = append(rows, row{Role: fantasy.MessageRoleTool, CallID: c.ToolCallID, Failed: true, Text: "The tool was interrupted."})
					delete(open, c.ToolCallID)
				}
			}
		}
	}
	for _, r := range h.rows {
		if r.Role != fantasy.MessageRoleTool {
			flush()
		}
		for _, c := range r.Calls {
			open[c.ToolCallID] = true
		}
		delete(open, r.CallID)
		rows = append(rows, r)
	}
	flush()
	if len(rows) != len(h.rows) {
		h.rows = rows
		h.save()
	}
	for _, r := range h.rows {
		if m := r.message(); len(m.Content) > 0 {
			list = append(list, m)
		}
	}
	return list
}

// pngOf returns an image that is not that of another page.
func pngOf(page int) []byte {
	img := image.NewGray(image.Rect(0, 0, 32, 32))
	for i := range img.Pix {
		img.Pix[i] = byte(i * (page + 3))
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// images puts the image of a result beside it, as crush does for most providers.
func images(list []fantasy.Message) (out []fantasy.Message) {
	var files []fantasy.MessagePart
	flush := func() {
		if len(files) > 0 {
			text := fantasy.TextPart{Text: "Here is the media content from the tool result:"}
			out = append(out, fantasy.Message{Role: fantasy.MessageRoleUser, Content: append([]fantasy.MessagePart{text}, files...)})
		}
		files = nil
	}
	for _, m := range list {
		if m.Role != fantasy.MessageRoleTool {
			flush()
		}
		content := slices.Clone(m.Content)
		for i, p := range content {
			r, isResult := fantasy.AsMessagePart[fantasy.ToolResultPart](p)
			if media, ok := fantasy.AsToolResultOutputType[fantasy.ToolResultOutputContentMedia](r.Output); ok && isResult {
				data, _ := base64.StdEncoding.DecodeString(media.Data)
				files = append(files, fantasy.FilePart{Data: data, MediaType: media.MediaType})
				r.Output = fantasy.ToolResultOutputContentText{Text: "[Image/media content loaded - see attached file]"}
				content[i] = r
			}
		}
		m.Content = content
		out = append(out, m)
	}
	flush()
	return out
}

// pages returns the tools. The first one fails if interrupt returns true.
func pages(interrupt func() bool) []fantasy.AgentTool {
	read := fantasy.NewParallelAgentTool("read", "Reads a page.", func(_ context.Context, in page, _ fantasy.ToolCall) (fantasy.ToolResponse, error) {
		if interrupt() {
			return fantasy.ToolResponse{}, context.Canceled
		}
		line := fmt.Sprintf("Page %d says that nothing was found here. ", in.Page)
		return fantasy.NewTextResponse(strings.Repeat(line, 30)), nil
	})
	look := fantasy.NewAgentTool("look", "Shows a page.", func(_ context.Context, in page, _ fantasy.ToolCall) (fantasy.ToolResponse, error) {
		r := fantasy.NewImageResponse(pngOf(in.Page), "image/png")
		r.Content = "A page."
		return r, nil
	})
	return []fantasy.AgentTool{read, look}
}

// A plan says what happens in a turn. Steps are counted from 1; 0 is none.
type plan struct {
	stopAt int // the user stops it in a tool of this step
	killAt int // the process is killed in a tool of this step
	dies   bool
	typed  string // at the second step
}

// turn runs the agent once, and writes what it says into rows.
func (h *host) turn(prompt string, p plan) {
	ctx, cancel := context.WithCancel(h.Context())
	defer cancel()
	steps := 0
	err := h.keeper.Use(ctx, "session", func(m *mirror.Mirror[fantasy.Message]) error {
		api, err := anthropic.New(anthropic.WithBaseURL(h.url), anthropic.WithAPIKey("none"))
		require.NoError(h, err)
		model, err := api.LanguageModel(ctx, "claude-opus-5-5")
		require.NoError(h, err)
		a := convofantasy.New(m)
		a.OnFollow = h.follow
		a.Next = func(ctx context.Context, o fantasy.PrepareStepFunctionOptions) (context.Context, fantasy.PrepareStepResult, error) {
			r := fantasy.PrepareStepResult{Messages: slices.Clone(o.Messages)}
			if steps++; steps == 2 && p.typed != "" {
				r.Messages = append(r.Messages, h.rows[h.write(row{Role: fantasy.MessageRoleUser, Text: p.typed})].message())
			}
			r.Messages = images(r.Messages)
			return ctx, r, nil
		}
		interrupt := func() bool {
			h.mu.Lock()
			defer h.mu.Unlock()
			if h.killed = h.killed || steps == p.killAt; h.killed || steps == p.stopAt {
				cancel()
			}
			return ctx.Err() != nil
		}
		agent := fantasy.NewAgent(model, fantasy.WithSystemPrompt("You read."), fantasy.WithTools(pages(interrupt)...), fantasy.WithMaxRetries(0))
		list := h.list()
		h.write(row{Role: fantasy.MessageRoleUser, Text: prompt})
		at := 0 // of the row of the answer
		change := func(f func(*row)) error {
			h.mu.Lock()
			defer h.mu.Unlock()
			f(&h.rows[at])
			h.save()
			return nil
		}
		_, err = agent.Stream(ctx, fantasy.AgentStreamCall{
			Messages: list, Prompt: prompt,
			PrepareStep: func(ctx context.Context, o fantasy.PrepareStepFunctionOptions) (context.Context, fantasy.PrepareStepResult, error) {
				ctx, r, err := a.PrepareStep(ctx, o)
				r.Model = a.Model(model) // as a ModelProvider of later versions does
				return ctx, r, err
			},
			OnStepStart: func(int) error {
				at = h.write(row{Role: fantasy.MessageRoleAssistant})
				return nil
			},
			OnTextDelta: func(_, text string) error { return change(func(r *row) { r.Text += text }) },
			OnReasoningEnd: func(_ string, thought fantasy.ReasoningContent) error {
				return change(func(r *row) {
					r.Thinking = strings.TrimSpace(thought.Text)
					if data, ok := thought.ProviderMetadata[anthropic.Name].(*anthropic.ReasoningOptionMetadata); ok {
						r.Signature = data.Signature
					}
				})
			},
			OnToolCall: func(c fantasy.ToolCallContent) error {
				return change(func(r *row) {
					r.Calls = append(r.Calls, fantasy.ToolCallPart{ToolCallID: c.ToolCallID, ToolName: c.ToolName, Input: c.Input})
				})
			},
			OnToolResult: func(r fantasy.ToolResultContent) error {
				is := row{Role: fantasy.MessageRoleTool, CallID: r.ToolCallID}
				switch out := r.Result.(type) {
				case fantasy.ToolResultOutputContentText:
					is.Text = out.Text
				case fantasy.ToolResultOutputContentError:
					is.Text, is.Failed = out.Error.Error(), true
				case fantasy.ToolResultOutputContentMedia:
					is.Image, _ = base64.StdEncoding.DecodeString(out.Data)
				}
				h.write(is)
				return nil
			},
		})
		if p.killAt > 0 {
			h.dies = true
			return errKilled
		}
		if p.stopAt == 0 {
			require.NoError(h, err)
		}
		h.dies = p.dies
		done, err := m.Follow(images(h.list())) // what counts are the rows
		h.follow(done)
		if sum, ok := m.History().Snapshot().Summary(); ok && !h.dies {
			h.oldest = sum.Covers[0].First
		}
		return err
	})
	if p.dies || p.killAt > 0 {
		require.ErrorIs(h, err, errKilled, "steps: %d", steps)
		h.start()
		return
	}
	require.NoError(h, err)
}

// reader returns a provider whose model thinks, reads two pages at once or looks at one, and
// is done after so many requests of a turn.
func reader(t *testing.T, steps int) (*provider.Server, *host) {
	asked := 0
	p := provider.New(provider.Options{Window: wide, Answer: func(provider.Request) provider.Answer {
		asked++
		a := provider.Answer{Blocks: []provider.Block{provider.Thinking(fmt.Sprint("thought ", asked, "\n")), provider.Text(fmt.Sprint(" Step ", asked, ".\n"))}}
		call := func(name string, page int) {
			a.Blocks = append(a.Blocks, provider.Call{Name: name, Arguments: fmt.Sprintf(`{"page":%d}`, page)})
		}
		switch {
		case asked%steps == 0:
		case asked%7 == 3:
			call("look", asked)
		case asked%7 == 5:
			call("look", 10*asked)
			call("read", 10*asked+1)
		default:
			call("read", 10*asked)
			call("read", 10*asked+1)
		}
		return a
	}})
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	h := &host{T: t, url: server.URL}
	h.start()
	return p, h
}

// check checks all requests so far.
func check(t *testing.T, p *provider.Server) {
	t.Helper()
	for i, r := range p.Requests() {
		if r.Error != "" {
			t.Errorf("request %d was refused: %s", i, r.Error)
		}
		if !bytes.Contains(r.Body, []byte(rule)) {
			t.Errorf("request %d has lost the rule", i)
		}
	}
}

// A host of the kind of crush: its rows differ from what fantasy held, it puts images in the
// middle of the list, and has the model from elsewhere. The user stops every second turn, and types
// while the agent works. The process starts again, or is killed before the decisions are
// stored or in the middle of a run.
func TestHost(t *testing.T) {
	p, h := reader(t, 7)
	kills, restarts := 0, 0
	for turn := range 20 {
		var w plan
		prompt := fmt.Sprintf("Question %d. Read on.", turn)
		if turn == 0 {
			prompt = "Read all pages, and " + rule + "."
		}
		switch {
		case turn%5 == 4:
			w.dies = true // all rows are written
		case turn%7 == 6:
			w.killAt = 2
		case turn%2 == 1:
			w.stopAt = 3
		}
		if turn%3 == 1 {
			w.typed = fmt.Sprintf("Typed in turn %d.", turn)
		}
		was, before := h.oldest, len(p.Requests())
		h.turn(prompt, w)
		if w.dies || w.killAt > 0 {
			kills++
		} else if turn%4 == 3 {
			require.NoError(t, h.keeper.Close(t.Context()))
			h.start()
			restarts++
		}
		if was != 0 {
			assert.Equal(t, was, h.oldest, "turn %d: the summary is another one", turn)
			for _, r := range p.Requests()[before:] {
				assert.True(t, bytes.Contains(r.Body, []byte(summary)), "turn %d: a request has lost the summary", turn)
			}
		}
		if w.typed != "" {
			all := p.Requests()[before:]
			assert.Contains(t, string(all[len(all)-1].Body), w.typed)
		}
	}
	check(t, p)
	assert.Zero(t, h.anew, "%q", h.followed)
	assert.Positive(t, h.compacted)
	assert.NotZero(t, h.oldest)
	t.Logf("%d requests, %d compactions, %d restarts, %d kills, %d times back with the list: %q", len(p.Requests()), h.compacted, restarts, kills, len(h.followed), h.followed)
}

// Next inserts, replaces and removes in the middle of the list, and the user types. From one
// step on, it also inserts where it has not before: after the eighth exchange, which the Mirror
// follows, or after the eleventh, where the list was about to grow.
func TestAgent_NextChangesTheList(t *testing.T) {
	for _, where := range []int{0, 8, 11} {
		t.Run(fmt.Sprint("late ", where), func(t *testing.T) {
			p, h := reader(t, 20)
			history := newHistory(t, h.options())
			a := convofantasy.New(mirror.New(history, convofantasy.Codec()))
			var followed []mirror.Followed
			a.OnFollow = func(f mirror.Followed) { followed = append(followed, f) }
			steps := 0
			a.Next = func(ctx context.Context, o fantasy.PrepareStepFunctionOptions) (context.Context, fantasy.PrepareStepResult, error) {
				steps++
				var list []fantasy.Message
				if steps == 10 {
					o.Messages = append(slices.Clone(o.Messages), fantasy.NewUserMessage("Skip the appendix."))
				}
				exchanges := 0
				for _, m := range images(o.Messages) {
					switch {
					case m.Role == fantasy.MessageRoleAssistant:
						exchanges++
					case m.Role == fantasy.MessageRoleUser && said(m.Content[0]) == "Read all.":
						m = fantasy.NewUserMessage("Read all pages, and " + rule + ".")
					}
					if exchanges == 2 && m.Role != fantasy.MessageRoleUser { // an answer, and what follows
						continue
					}
					list = append(list, m)
					if m.Role == fantasy.MessageRoleTool && exchanges == 3 {
						list = append(list, fantasy.NewUserMessage("Mind the third page."))
					}
					if where > 0 && steps > 12 && m.Role == fantasy.MessageRoleTool && exchanges == where {
						list = append(list, fantasy.NewUserMessage("Mind another page."))
					}
				}
				return ctx, fantasy.PrepareStepResult{Messages: list}, nil
			}
			api, err := anthropic.New(anthropic.WithBaseURL(h.url), anthropic.WithAPIKey("none"))
			require.NoError(t, err)
			model, err := api.LanguageModel(t.Context(), "claude-opus-5-5")
			require.NoError(t, err)
			agent := fantasy.NewAgent(model, fantasy.WithSystemPrompt("You read."), fantasy.WithTools(pages(func() bool { return false })...), fantasy.WithMaxRetries(0), fantasy.WithPrepareStep(a.PrepareStep))
			_, err = agent.Stream(t.Context(), fantasy.AgentStreamCall{Prompt: "Read all."})
			require.NoError(t, err)
			check(t, p)
			require.Len(t, p.Requests(), 20)
			for i, r := range p.Requests() {
				shows := func(text string) int { return bytes.Count(r.Body, []byte(text)) }
				step := i + 1
				assert.Zero(t, shows("Step 2."), "removed, request %d", step)
				assert.Equal(t, step >= 4, shows("Mind the third") == 1, "inserted, request %d", step)
				assert.Equal(t, step >= 10, shows("Skip the appendix.") == 1, "typed, request %d", step)
				assert.Equal(t, where > 0 && step >= 13, shows("Mind another") == 1, "inserted late, request %d", step)
			}
			if where == 8 {
				require.Len(t, followed, 1)
				assert.False(t, followed[0].Anew)
				return
			}
			assert.Empty(t, followed)
		})
	}
}

// Next marks the last two messages for the provider's cache, as crush does, and the user types
// several times. Anthropic accepts four marks.
func TestAgent_NextMarksTheCache(t *testing.T) {
	p, h := reader(t, 12)
	a := convofantasy.New(mirror.New(newHistory(t, h.options()), convofantasy.Codec()))
	mark := fantasy.ProviderOptions{anthropic.Name: &anthropic.ProviderCacheControlOptions{CacheControl: anthropic.CacheControl{Type: "ephemeral"}}}
	a.Next = func(ctx context.Context, o fantasy.PrepareStepFunctionOptions) (context.Context, fantasy.PrepareStepResult, error) {
		list := slices.Clone(o.Messages)
		for i := range list {
			list[i].ProviderOptions = nil
		}
		if o.StepNumber%2 == 1 {
			list = append(list, fantasy.NewUserMessage(fmt.Sprintf("Typed at step %d.", o.StepNumber)))
		}
		list[0].ProviderOptions, list[len(list)-2].ProviderOptions, list[len(list)-1].ProviderOptions = mark, mark, mark
		return ctx, fantasy.PrepareStepResult{Messages: list}, nil
	}
	api, err := anthropic.New(anthropic.WithBaseURL(h.url), anthropic.WithAPIKey("none"))
	require.NoError(t, err)
	model, err := api.LanguageModel(t.Context(), "claude-opus-5-5")
	require.NoError(t, err)
	agent := fantasy.NewAgent(model, fantasy.WithSystemPrompt("You read."), fantasy.WithTools(pages(func() bool { return false })...), fantasy.WithMaxRetries(0), fantasy.WithPrepareStep(a.PrepareStep))
	_, err = agent.Stream(t.Context(), fantasy.AgentStreamCall{Prompt: "Read all pages, and " + rule + "."})
	require.NoError(t, err)
	check(t, p)
	for i, r := range p.Requests() {
		marks := 3
		if i == 0 { // it has two messages
			marks = 2
		}
		assert.Equal(t, marks, bytes.Count(r.Body, []byte(`"cache_control"`)), "request %d", i)
		if i%2 == 1 {
			assert.Contains(t, string(r.Body), fmt.Sprintf(`Typed at step %d.","cache_control"`, i))
		}
	}
	require.Len(t, p.Requests(), 12)
}
