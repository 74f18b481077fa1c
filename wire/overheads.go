package wire

import "github.com/seed-c1b73e60/convo"

// Overheads returns the tokens that messages and media take with a model, by the
// published rules of its provider, for [convo.Options].Overheads. The result is a plain
// value: change a field whose figure is not right, or wrap Media if requests differ from
// what Encode writes, such as images with detail "low".
//
// The model is the provider's name of it. Additions by hosts before or after the name
// ("openai/", "us.anthropic.", "ft:", a date) are ignored. For an unknown model all
// fields are zero, which means the defaults of package convo.
//
// Images are counted by their width and height, which are read from the first bytes.
// Numbers in brackets refer to the sources below.
//
//	gpt-4, gpt-4o, gpt-4.1, gpt-4.5   85 + 170 per tile [1]
//	gpt-4o-mini                       2,833 + 5,667 per tile
//	gpt-5, gpt-5.1                    70 + 140 per tile
//	o1, o3                            75 + 150 per tile
//	computer-use-preview              65 + 129 per tile
//	gpt-5-mini, gpt-5.2, gpt-5.3,     1.2 per patch, at most 1,536 patches
//	  gpt-5.4-mini and -nano, codex
//	gpt-5-nano                        1.5 per patch, at most 1,536
//	gpt-4.1-mini, -nano, o4-mini      1.62, 2.46, 1.72 per patch, at most 1,536
//	gpt-5.4, 5.5, 5.6 and later       1.2 per patch, at most 2,500, 10,000, 30,000
//	Claude before Opus 4.7            1 per patch of 28 pixels, at most 1,568 [2]
//	Claude since Opus 4.7             1 per patch of 28 pixels, at most 4,784
//	Gemini 1, 2                       258; above 384 pixels 258 per tile [3]
//	Gemini 3                          1,120 [4]
//	Mistral                           1 per patch, 1 per row [5]
//	Qwen-VL                           1 per patch, at most 16,384, and 2 [6]
//	DeepSeek                          384, the most it charges [7]
//	Gemma                             256 [8]
//
// An image whose size cannot be read, or that is only a URL, counts as 2,000 by 1,500
// pixels. Other media:
//
//   - A PDF is counted by its pages, which are found in its bytes. A page counts 3,000
//     tokens with Claude (1,500 to 3,000 for its text, and an image [9]), 258 with Gemini
//     1 and 2, and 560 with Gemini 3. With OpenAI it counts the tokens of an image, and
//     1,000 for its text. If compression hides the pages, each 50 kB count as a page. A
//     PDF that is only a URL counts as 5 pages.
//   - A second of sound has 32 tokens with Gemini [10], 10 with OpenAI [11] and 13 with
//     Mistral [12]. A second of video, including its sound, has 290 with Gemini 1 and 2,
//     and 102 with Gemini 3. The length is read from WAV and MP4 files. In other files 12
//     kB are a second of sound, and 250 kB a second of video. Media that are only a URL
//     count as a minute.
//   - A text document is counted by [convo.Heuristic].
//   - Other media, and media for which the provider has no rule, count 3,000 tokens.
//
// PDFs and text documents are read completely, which takes some milliseconds per
// megabyte. Only a few hundred bytes of other media are read.
//
// A message has 4 tokens in addition to its content with OpenAI [13], and 5 with Llama,
// Qwen and Gemma, 3 with Mistral and 2 with DeepSeek [14]. No provider states the tokens
// of a call or a result in addition to its content, so these have the defaults.
//
// Sources, as of October 2026 unless stated otherwise:
//
//	[1]  OpenAI, "Images and vision" and "File inputs".
//	[2]  Anthropic, "Vision", section "Resolution and token cost".
//	[3]  Google, Gemini API, "Image understanding".
//	[4]  Google, Gemini API, "Media resolution".
//	[5]  Mistral, mistral-common, tokens/tokenizers/image.py, read in November
//	     2026: for Pixtral, patches of 16 pixels and at most 1,024 a side; for
//	     later models, 28 pixels (14, merged by two) and at most 1,540 a side.
//	[6]  Qwen, qwen-vl-utils, vision_process.py, and README of Qwen3-VL, both read
//	     in November 2026: patches of 28 pixels, and of 32 with Qwen3-VL. The two
//	     tokens mark the beginning and the end of an image.
//	[7]  DeepSeek, release notes of V4-Flash-Vision.
//	[8]  Google, model card of Gemma 3: images are "encoded to 256 tokens each".
//	[9]  Anthropic, "PDF support".
//	[10] Google, Gemini API, "Understand and count tokens".
//	[11] OpenAI, Realtime API, "Managing costs".
//	[12] PyTorch, ExecuTorch, README of its Voxtral Realtime example, read in
//	     November 2026: 80 ms make one embedding, or 12.5 a second. It is assumed
//	     for all Voxtral models.
//	[13] OpenAI Cookbook, "How to count tokens with tiktoken".
//	[14] Assumptions, counted by hand from the published chat templates: the
//	     tokens for the role, for line breaks, and for the end of a message; the
//	     most if roles differ. They were not measured against a provider.
func Overheads(model string) convo.Overheads {
	r := rulesOf(model)
	if r == nil {
		return convo.Overheads{}
	}
	return convo.Overheads{Message: r.message, Media: r.media}
}

// OverheadsFor returns the result of Overheads for a model, with the reasoning that a
// format of this package sends back to its own model:
//
//	OpenAIChat                  as its Reasoning says; none without Host and Model, except
//	                            for the dialects DeepSeek, Mistral and Ollama
//	OpenAIResponses             as its Reasoning says
//	Anthropic, Gemini, Converse all
//
// Reasoning that the format cannot send is also counted: for Anthropic and Converse
// reasoning without a signature, for OpenAIResponses reasoning without an encrypted form,
// and reasoning of another format or model. The count may therefore be too high; if the
// reasoning is long, remove it with [convo.Edit].Rewrite.
//
// Some servers ignore the reasoning of earlier turns. It is also counted, because the
// request does not show which servers do; usage reports correct the estimate, see
// [convo.History.RecordUsage].
func OverheadsFor(f Format, model string) convo.Overheads {
	o := Overheads(model)
	own, _ := builtinOf(f)
	if own != nil {
		p, _ := own.begin(new(tally), new(losses))
		o.Reasoning = p.replay
	}
	return o
}
