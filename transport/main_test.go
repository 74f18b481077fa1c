package transport_test

import (
	"log/slog"
	"testing"
)

// logger returns a logger that writes to the log of a test.
func logger(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}
