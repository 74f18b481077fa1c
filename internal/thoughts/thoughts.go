// Package thoughts makes messages with reasoning, and refuses it, for tests.
package thoughts

import (
	"context"
	"errors"

	"github.com/seed-c1b73e60/convo"
)

// In returns a copy of m that begins with a piece of reasoning.
func In(m convo.Message, r convo.Reasoning) convo.Message {
	m.Parts = append([]convo.Part{r}, m.Parts...)
	return m
}

// Refuse tells h that a provider has refused the signature of reasoning in the view. It
// returns the error of Recover.
func Refuse(ctx context.Context, h *convo.History) error {
	_, _, err := h.Recover(ctx, h.Snapshot(), errors.New("400 Bad Request: Invalid `signature` in `thinking` block"))
	return err
}
