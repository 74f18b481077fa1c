package main

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/bench/judge"
	"github.com/seed-c1b73e60/convo/bench/judge/judgetest"
)

func Test(t *testing.T) {
	list, end, err := judges(".")
	if errors.Is(err, judge.ErrAbsent) {
		t.Skip(err)
	}
	require.NoError(t, err)
	defer func() { require.NoError(t, end()) }()
	judgetest.Test(t, list...)
}
