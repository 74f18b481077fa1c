// Package modeltest tests [convo.History] against a reference model.
//
// The model is a second implementation of the same rules. It shares no code
// with package convo, and it is slow and simple: every change copies plain
// slices. model.go has entries, appending, pins and rollbacks, edit.go has
// edits, and usage.go has estimates.
//
// A driver performs the same operations on a History and on the model, and
// compares the two after each operation. The operations are chosen by random
// numbers ([Run]) or by the bytes that a fuzz target is given ([Replay]).
// operations.go has the operations, compact.go the compactions, compare.go the
// comparison.
//
// To add an operation, write a method of driver that changes both d.h and d.m,
// and call it from driver.act. If it must not run while a strategy is working,
// call it from driver.step instead.
//
// The package uses only the exported API of convo. The tests of convo import
// it, so it imports no other module.
package modeltest
