// Package convotest provides tests for implementations of the interfaces of package
// convo. It checks strategies, summarizers and stores against the rules of their
// interfaces, and contains fake summarizers.
//
// # Checks
//
// [TestStrategy], [TestSummarizer] and [TestStore] are called from a test.
// [CheckStrategy], [CheckSummarizer] and [CheckStore] do the same and return an
// error:
//
//	func TestMine(t *testing.T) {
//		convotest.TestStrategy(t, Mine{With: convotest.Echo{}})
//	}
//
// Each broken rule is reported once, with the first case that broke it and a remedy:
//
//	strategy "mine": drops part of an exchange (case "tool rounds", goal "tight", entry 7); drop all that Exchange.IDs returns, or none of it
//
// The goals have names. "tight" has a quarter of the view as its Target, "loose" three
// quarters, and "fit" and "overflow" half of it, each with a different Reason; "target 0"
// asks to free as much as possible, as Compact may; "trigger" is the goal of a
// [convo.Trigger]; goals with "no model" have NoModel set; "more to free than there is"
// has a MinFree that cannot be reached, and "already reached" has the current size as its
// Target.
//
// A store is opened twice on the same place, as two processes would:
//
//	func TestMine(t *testing.T) {
//		dir := t.TempDir()
//		convotest.TestStore(t, func() convo.Store { return &Mine{Dir: dir} })
//	}
//
// The checks use neither a network nor a model. They call a summarizer dozens
// of times, a strategy hundreds and a store thousands of times, so test a strategy
// with a fake summarizer. The result does not depend on the clock, with one
// exception: a call that takes a minute, or that continues for ten seconds after its
// context has ended, is treated as if it did not return. In a testing/synctest
// bubble these waits take no time.
//
// # Fakes
//
// [Echo] summarizes correctly, and [Canned] returns the same summary each time. [Slow],
// [Failing], [Flaky], [Panicking], [Empty], [CutOff], [Growing] and [Deaf] each fail
// in one way. [Recorder] records the requests to another summarizer. The zero value
// of each fake is ready to use. All fakes are safe for concurrent use, and work in a
// testing/synctest bubble. Fakes with a field With use [Canned] if it is nil. [Answer]
// replaces the model of your own summarizer.
//
// # A model
//
// [Model] is a scripted model for the tests of an agent: its Send answers the requests of
// [convo.History.Do] and [convo.History.Run], and fails the test where they are not as
// expected.
//
// Package [github.com/seed-c1b73e60/convo/convotest/provider] is a fake provider: an HTTP
// server that judges requests by the rules of the providers and answers them.
package convotest
