package main

import (
	"testing"

	"github.com/seed-c1b73e60/convo/bench/judge/judgetest"
)

func Test(t *testing.T) {
	judgetest.Test(t, judges...)
}
