package transport

import (
	"strings"

	"github.com/seed-c1b73e60/convo/internal/models"
)

// Window returns the context window of a model that is known by its name, or 0. Of models that have
// a larger window on request, it is the usual one.
func Window(model string) int {
	name := strings.ToLower(models.Plain(model))
	for _, w := range windows {
		if strings.HasPrefix(name, w.name) {
			return w.tokens
		}
	}
	return 0
}

// windows are the context windows of models, by the beginning of their names.
var windows = []struct {
	name   string
	tokens int
}{
	{"claude-", 200_000},
	{"gpt-4o", 128_000},
	{"gpt-4.1", 1_047_576},
	{"gpt-4-turbo", 128_000},
	{"gpt-5", 400_000},
	{"o1", 200_000},
	{"o3", 200_000},
	{"o4-mini", 200_000},
	{"gemini-2", 1_048_576},
	{"gemini-3", 1_048_576},
	{"deepseek-", 128_000},
}
