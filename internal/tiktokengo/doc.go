// Package tiktokengo holds tests that compare package bpe, on which
// tiktoken.New is built, with github.com/pkoukk/tiktoken-go, and an example
// that uses an encoder of tiktoken-go as a convo.Tokenizer. They need a build
// tag:
//
//	go test -tags tiktoken ./internal/tiktokengo
//
// The tests have a package of their own so that nothing else needs tiktoken-go.
// No package imports this one. A build, a test run without the tag, and a
// program that imports convo do not download tiktoken-go. The tests of package
// bpe check its counts without this comparison.
package tiktokengo
