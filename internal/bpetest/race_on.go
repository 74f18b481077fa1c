//go:build race

package bpetest

// RaceDetector is whether the program was built with -race.
const RaceDetector = true
