// Package formats lists the formats of package wire by name.
package formats

import (
	"slices"

	"github.com/seed-c1b73e60/convo/wire"
)

// A Format is what all formats of package wire can do.
type Format interface {
	wire.Format
	wire.Streamer
	wire.ToolWriter
	wire.HistoryChecker
	wire.Patcher
}

var all = []struct {
	name string
	make func(model string) Format
}{
	{wire.FormatOpenAIChat, func(model string) Format { return wire.OpenAIChat{Model: model} }},
	{wire.FormatOpenAIResponses, func(model string) Format { return wire.OpenAIResponses{Model: model} }},
	{wire.FormatAnthropic, func(model string) Format { return wire.Anthropic{Model: model} }},
	{wire.FormatGemini, func(model string) Format { return wire.Gemini{Model: model} }},
	{wire.FormatConverse, func(model string) Format { return wire.Converse{Model: model} }},
	{wire.FormatDeepSeek, func(model string) Format { return wire.OpenAIChat{Dialect: wire.DeepSeek, Model: model} }},
	{wire.FormatMistral, func(model string) Format { return wire.OpenAIChat{Dialect: wire.Mistral, Model: model} }},
	{wire.FormatOllama, func(model string) Format { return wire.OpenAIChat{Dialect: wire.Ollama, Model: model} }},
}

// Names returns the names of the formats. The dialects of Chat Completions come last.
func Names() []string {
	names := make([]string, len(all))
	for i, f := range all {
		names[i] = f.name
	}
	return names
}

// Main returns the names of the formats, without the dialects of Chat Completions.
func Main() []string {
	return slices.DeleteFunc(Names(), func(name string) bool {
		chat, ok := New(name, "").(wire.OpenAIChat)
		return ok && chat.Dialect != 0
	})
}

// New returns the format with a name, for a model. It returns nil if there is no such
// format.
func New(name, model string) Format {
	for _, f := range all {
		if f.name == name {
			return f.make(model)
		}
	}
	return nil
}
