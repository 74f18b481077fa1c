package repotest_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

func TestMain(m *testing.M) {
	if err := enterRoot(); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// enterRoot makes the nearest folder with a go.mod the current directory.
func enterRoot() error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return os.Chdir(dir)
		}
		if dir == filepath.Dir(dir) {
			return errors.New("no go.mod here or in a folder above")
		}
		dir = filepath.Dir(dir)
	}
}

// historyOf makes a History that holds msgs.
func historyOf(t testing.TB, opts *convo.Options, msgs ...convo.Message) *convo.History {
	t.Helper()
	h, err := convo.New(opts)
	require.NoError(t, err)
	mustAppend(t, h, msgs...)
	return h
}

func mustAppend(t testing.TB, h *convo.History, msgs ...convo.Message) convo.ID {
	t.Helper()
	id, err := h.Append(msgs...)
	require.NoError(t, err)
	return id
}
