//go:build race

package bpe_test

const raceDetector = true
