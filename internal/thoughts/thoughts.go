// Package thoughts makes messages with reasoning, for tests.
package thoughts

import "github.com/seed-c1b73e60/convo"

// In returns a copy of m that begins with a piece of reasoning.
func In(m convo.Message, r convo.Reasoning) convo.Message {
	m.Parts = append([]convo.Part{r}, m.Parts...)
	return m
}
