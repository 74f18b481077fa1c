package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/bench/judge/judgetest"
)

func Test(t *testing.T) {
	list, err := judges()
	require.NoError(t, err)
	judgetest.Test(t, list...)
}
