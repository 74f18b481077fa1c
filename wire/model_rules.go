package wire

import (
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo/internal/models"
)

// modelRules are the rules for a family of models, with figures in tokens. A figure of
// zero means the default of package convo.
type modelRules struct {
	message  int
	image    imageRule
	page     int64       // per page of a PDF
	sound    int64       // per second
	video    int64       // per second
	function int64       // per function among the tools, in addition to its text; OpenAI only
	prompt   toolsPrompt // for having tools; Anthropic only

	cached time.Duration // how long the provider keeps a request without marks, as it documents; OpenAI only

	userLast bool // the model refuses a request that ends with an assistant message; Anthropic only
}

// OpenAI's models get each page of a PDF as text, for which 1,000 tokens are
// assumed, and as an image, at low detail before GPT-5.6 and at high detail
// since.
func openAITiles(base, tile int64) modelRules {
	return modelRules{message: 4, image: tiles(base, tile), page: 1000 + base, sound: 10, function: 7, cached: oldOpenAILife}
}

func openAIPatches(edge, budget, hundredths int64) modelRules {
	page, cached := ceilDiv(256*hundredths, 100), oldOpenAILife
	if budget > 10_000 { // since GPT-5.6
		page, cached = ceilDiv(1536*hundredths, 100), openAILife
	}
	return modelRules{message: 4, image: patches(edge, budget, hundredths), page: 1000 + page, sound: 10, function: 7, cached: cached}
}

func claudeStandard(auto, forced int64) modelRules {
	return modelRules{image: claudePatches(1568, 1568), page: 3000, prompt: toolsPrompt{auto, forced}}
}

func claudeHigh(auto, forced int64) modelRules {
	return modelRules{image: claudePatches(2576, 4784), page: 3000, prompt: toolsPrompt{auto, forced}}
}

// wantsUser returns r for models that refuse a request which ends with an assistant
// message, as Claude does since 4.6.
func wantsUser(r modelRules) modelRules {
	r.userLast = true
	return r
}

// modelTable holds the rules by the beginning of a model's name, in lower case
// and with "-" in place of ".". The longest name that fits is used.
var modelTable = []struct {
	name  string
	rules modelRules
}{
	{"gpt", openAIPatches(65_535, 30_000, 120)},
	{"gpt-3-5", modelRules{message: 4, function: 10}},
	{"gpt-4", modelRules{message: 4, image: tiles(85, 170), page: 1085, function: 10}},
	{"gpt-4o", openAITiles(85, 170)},
	{"gpt-4-1", openAITiles(85, 170)},
	{"gpt-4-5", openAITiles(85, 170)},
	{"gpt-4o-mini", openAITiles(2833, 5667)},
	{"chatgpt-4o", openAITiles(85, 170)},
	{"gpt-4-1-mini", openAIPatches(2048, 1536, 162)},
	{"gpt-4-1-nano", openAIPatches(2048, 1536, 246)},
	{"gpt-5", openAITiles(70, 140)},
	{"gpt-5-mini", openAIPatches(2048, 1536, 120)},
	{"gpt-5-nano", openAIPatches(2048, 1536, 150)},
	{"gpt-5-codex", openAIPatches(2048, 1536, 120)},
	{"gpt-5-1", openAITiles(70, 140)},
	{"gpt-5-1-codex", openAIPatches(2048, 1536, 120)},
	{"gpt-5-2", openAIPatches(2048, 1536, 120)},
	{"gpt-5-3", openAIPatches(2048, 1536, 120)},
	{"gpt-5-4", openAIPatches(2048, 2500, 120)},
	{"gpt-5-4-mini", openAIPatches(2048, 1536, 120)},
	{"gpt-5-4-nano", openAIPatches(2048, 1536, 120)},
	{"gpt-5-5", openAIPatches(6000, 10_000, 120)},
	{"gpt-5-6", openAIPatches(65_535, 30_000, 120)},
	{"gpt-oss", modelRules{message: 4, function: 7}},
	{"o1", openAITiles(75, 150)},
	{"o3", openAITiles(75, 150)},
	{"o4-mini", openAIPatches(2048, 1536, 172)},
	{"codex-mini", openAIPatches(2048, 1536, 172)},
	{"computer-use-preview", openAITiles(65, 129)},

	{"claude", wantsUser(claudeHigh(354, 474))},
	{"claude-2", claudeHigh(354, 474)},
	{"claude-instant", claudeHigh(354, 474)},
	{"claude-3", claudeStandard(346, 313)},
	{"claude-3-opus", claudeStandard(530, 281)},
	{"claude-3-sonnet", claudeStandard(159, 235)},
	{"claude-3-haiku", claudeStandard(264, 340)},
	{"claude-3-5-haiku", claudeStandard(264, 355)},
	{"claude-haiku-4", claudeStandard(496, 588)},
	{"claude-sonnet-4", claudeStandard(313, 315)},
	{"claude-sonnet-4-5", claudeStandard(496, 588)},
	{"claude-sonnet-4-6", wantsUser(claudeStandard(497, 589))},
	{"claude-sonnet-5", wantsUser(claudeHigh(354, 474))},
	{"claude-opus-4", claudeStandard(313, 315)},
	{"claude-opus-4-5", claudeStandard(496, 588)},
	{"claude-opus-4-6", wantsUser(claudeStandard(497, 589))},
	{"claude-opus-4-7", wantsUser(claudeHigh(675, 804))},
	{"claude-opus-4-8", wantsUser(claudeHigh(290, 410))},
	{"claude-opus-5", wantsUser(claudeHigh(286, 406))},

	{"gemini", modelRules{image: flat(1120), page: 560, sound: 32, video: 70 + 32}},
	{"gemini-1", modelRules{image: geminiTiles, page: 258, sound: 32, video: 258 + 32}},
	{"gemini-2", modelRules{image: geminiTiles, page: 258, sound: 32, video: 258 + 32}},
	{"gemma", modelRules{message: 5, image: flat(256)}},

	{"mistral", modelRules{message: 3, image: mistralPatches(1540, 28)}},
	{"ministral", modelRules{message: 3, image: mistralPatches(1540, 28)}},
	{"magistral", modelRules{message: 3, image: mistralPatches(1540, 28)}},
	{"voxtral", modelRules{message: 3, sound: 13}},
	{"pixtral", modelRules{message: 3, image: mistralPatches(1024, 16)}},
	{"deepseek", modelRules{message: 2, image: flat(384)}},
	{"llama", modelRules{message: 5}},
	{"qwen", modelRules{message: 5, image: qwenPatches(32)}},
	{"qwen2", modelRules{message: 5, image: qwenPatches(28)}},
	{"qwen-vl", modelRules{message: 5, image: qwenPatches(28)}},
}

// rulesOf returns the rules for a model, or nil if there are none.
func rulesOf(model string) *modelRules {
	model = model[:min(len(model), 200)] // longer than any real name, to bound the search
	name := strings.ReplaceAll(strings.ToLower(model), ".", "-")
	if r := findRules(name[strings.LastIndexByte(name, '/')+1:]); r != nil {
		return r
	}
	return findRules(name)
}

// refusesAssistantLast reports whether a model is known to refuse a request that ends
// with an assistant message.
func refusesAssistantLast(model string) bool {
	r := rulesOf(model)
	return r != nil && r.userLast
}

// lifetimeOf returns how long the provider of a model keeps a request without marks, or 0 if it
// is not known.
func lifetimeOf(model string) time.Duration {
	if r := rulesOf(model); r != nil {
		return r.cached
	}
	return 0
}

// findRules returns the rules for the first part of a name that is in the
// table. Parts begin after "-", "/", ":", "@" or a space.
func findRules(name string) *modelRules {
	for i := range name {
		if i > 0 && !strings.ContainsRune("-/:@ ", rune(name[i-1])) {
			continue
		}
		best := -1
		for k := range modelTable {
			if begins(name[i:], modelTable[k].name) && (best < 0 || len(modelTable[k].name) > len(modelTable[best].name)) {
				best = k
			}
		}
		if best >= 0 {
			return &modelTable[best].rules
		}
	}
	return nil
}

// begins reports whether name begins with start. If start ends with a digit,
// the number must also end there: "gpt-4" is not a beginning of "gpt-41".
func begins(name, start string) bool {
	rest, ok := strings.CutPrefix(name, start)
	return ok && (rest == "" || !isDigit(rest[0]) || !isDigit(start[len(start)-1]))
}

// A toolsPrompt is the size of the system prompt that Anthropic adds to a
// request with tools: auto if the model may call a tool, forced if it must.
type toolsPrompt struct{ auto, forced int64 }

// takesNotes reports whether a model is known to take messages with the role system among
// the others in the Messages API.
func takesNotes(model string) bool {
	family, major, minor := models.Claude(model)
	switch {
	case major == 0:
		return false
	case family == "fable" || family == "mythos" || major > 5:
		return true
	case family == "opus":
		return major == 5 || major == 4 && minor >= 8
	case family == "sonnet":
		return major == 5
	}
	return major == 5 && minor >= 5
}
