package wire

import (
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// Overheads returns what messages and media weigh with a model, by the rules
// that its provider has published, for [convo.Options]. They are plain values:
// set a field to change it, or wrap Media where requests differ from what
// Encode sends, such as images with detail "low". The model is named as the
// provider names it; what hosts put before or behind that ("openai/",
// "us.anthropic.", "ft:", a date) is passed over. Of a model that is not known
// everything is 0, the stated defaults.
//
// Images, by their pixels, which are read from the first bytes:
//
//	gpt-4, gpt-4o, gpt-4.1, gpt-4.5   85 + 170 a tile [1]
//	gpt-4o-mini                       2,833 + 5,667 a tile
//	gpt-5, gpt-5.1                    70 + 140 a tile
//	o1, o3                            75 + 150 a tile
//	computer-use-preview              65 + 129 a tile
//	gpt-5-mini, gpt-5.2, gpt-5.3,     1.2 a patch, at most 1,536 patches
//	  gpt-5.4-mini and -nano, codex
//	gpt-5-nano                        1.5 a patch, at most 1,536
//	gpt-4.1-mini, -nano, o4-mini      1.62, 2.46, 1.72 a patch, at most 1,536
//	gpt-5.4, 5.5, 5.6 and later       1.2 a patch, at most 2,500, 10,000, 30,000
//	Claude before Opus 4.7            1 a patch of 28 pixels, at most 1,568 [2]
//	Claude since                      the same, at most 4,784
//	Gemini 1, 2                       258, above 384 pixels 258 a tile [3]
//	Gemini 3                          1,120 [4]
//	Mistral, Qwen-VL                  1 a patch [5], [6]
//	DeepSeek                          384, the most it charges [7]
//	Gemma                             256 [8]
//
// An image that says no size, or is only an address, weighs as one of 2,000 by
// 1,500 pixels. Other media:
//
//   - A PDF by its pages, which are counted in its bytes: Claude 3,000 each
//     (text 1,500 to 3,000 and an image [9]), Gemini 258, Gemini 3 560, OpenAI
//     an image and 1,000 for the text. Where compression hides them, 50 kB are a
//     page; at an address, it has 5.
//   - Sound by the second: Gemini 32 [10], OpenAI 10 [11], Mistral 13 [12].
//     Video, with its sound: Gemini 290, Gemini 3 102. WAV and MP4 say how long
//     they are; otherwise a second of sound is 12 kB and one of video 250 kB; at
//     an address, it is a minute.
//   - Text documents by their text, as [convo.Heuristic] counts it.
//   - Anything else, and what a model's provider has no rule for, 3,000.
//
// PDFs and text documents are read through for that, at some milliseconds for
// a megabyte; of all others only some hundred bytes are.
//
// A message weighs 4 with OpenAI [13] and what their templates put around it
// with open models: 5 with Llama, Qwen and Gemma, 3 with Mistral, 2 with
// DeepSeek. Of calls and results no provider says anything: the defaults.
//
// Sources, as they stood in October 2026: [1] OpenAI, Images and vision, and
// File inputs. [2] Anthropic, Vision: Resolution and token cost. [3] Google,
// Image understanding. [4] Google, Media resolution. [5] mistral-common,
// Images. [6] Qwen2-VL and Qwen3-VL, model cards. [7] DeepSeek, release notes
// of V4-Flash-Vision. [8] Google, Gemma 3 Technical Report. [9] Anthropic, PDF
// support. [10] Google, Understand and count tokens. [11] OpenAI, Managing
// costs (Realtime). [12] Mistral, Voxtral. [13] OpenAI Cookbook, How to count
// tokens with tiktoken. Of [5], [6], [8], [12] and the templates of the open
// models no document was at hand: the figures are as they are remembered.
func Overheads(model string) convo.Overheads {
	r := rulesOf(model)
	if r == nil {
		return convo.Overheads{}
	}
	return convo.Overheads{Message: r.message, Media: r.media}
}

// modelRules are the rules for a family of models. Where one is zero, the
// defaults of package convo hold.
type modelRules struct {
	message  int
	image    imageRule
	page     int64       // of a PDF
	sound    int64       // a second
	video    int64       // a second
	function int64       // what a function of the tools has around it, with OpenAI
	prompt   toolsPrompt // what comes with any tools, with Anthropic
}

// Families of rules. A page of a PDF goes to OpenAI's models with its image at
// low detail, from GPT-5.6 on at high detail.
func openAITiles(base, tile int64) modelRules {
	return modelRules{message: 4, image: tiles(base, tile), page: 1000 + base, sound: 10, function: 7}
}

func openAIPatches(edge, budget, hundredths int64) modelRules {
	page := ceilDiv(256*hundredths, 100)
	if budget > 10_000 {
		page = ceilDiv(1536*hundredths, 100)
	}
	return modelRules{message: 4, image: patches(edge, budget, hundredths), page: 1000 + page, sound: 10, function: 7}
}

func claudeStandard(auto, forced int64) modelRules {
	return modelRules{image: claudePatches(1568, 1568), page: 3000, prompt: toolsPrompt{auto, forced}}
}

func claudeHigh(auto, forced int64) modelRules {
	return modelRules{image: claudePatches(2576, 4784), page: 3000, prompt: toolsPrompt{auto, forced}}
}

// modelTable holds the rules by the beginnings of names, in lower case and with
// "-" for ".". The longest that fits counts.
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

	{"claude", claudeHigh(354, 474)},
	{"claude-3", claudeStandard(346, 313)},
	{"claude-3-opus", claudeStandard(530, 281)},
	{"claude-3-sonnet", claudeStandard(159, 235)},
	{"claude-3-haiku", claudeStandard(264, 340)},
	{"claude-3-5-haiku", claudeStandard(264, 355)},
	{"claude-haiku-4", claudeStandard(496, 588)},
	{"claude-sonnet-4", claudeStandard(313, 315)},
	{"claude-sonnet-4-5", claudeStandard(496, 588)},
	{"claude-sonnet-4-6", claudeStandard(497, 589)},
	{"claude-sonnet-5", claudeHigh(354, 474)},
	{"claude-opus-4", claudeStandard(313, 315)},
	{"claude-opus-4-5", claudeStandard(496, 588)},
	{"claude-opus-4-6", claudeStandard(497, 589)},
	{"claude-opus-4-7", claudeHigh(675, 804)},
	{"claude-opus-4-8", claudeHigh(290, 410)},
	{"claude-opus-5", claudeHigh(286, 406)},

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

// rulesOf returns the rules for a model, nil where there are none.
func rulesOf(model string) *modelRules {
	model = model[:min(len(model), 200)]
	name := strings.ReplaceAll(strings.ToLower(model), ".", "-")
	if r := findRules(name[strings.LastIndexByte(name, '/')+1:]); r != nil {
		return r
	}
	return findRules(name)
}

// findRules looks where a part of a name begins, from the left.
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

// begins reports whether name begins with start, and not with a longer number.
func begins(name, start string) bool {
	rest, ok := strings.CutPrefix(name, start)
	return ok && (rest == "" || !isDigit(rest[0]) || !isDigit(start[len(start)-1]))
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
