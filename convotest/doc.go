// Package convotest helps to test what is plugged into package convo. It holds
// checks for strategies, summarizers and stores against the rules of their
// interfaces, and fake summarizers.
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
// Each broken rule is reported once, with the first case that broke it, and what to
// do:
//
//	strategy "mine": drops part of an exchange (case "tool rounds", goal "tight", entry 7); drop all that Exchange.IDs returns, or none of it
//
// The goals have names. "tight" asks for a quarter of the view, "loose" for three
// quarters, "fit" and "overflow" for half of it, each with another Reason; "target 0"
// asks for all that can be had, as Compact may; "trigger" is that of a [convo.Trigger];
// those with "no model" have NoModel set; "more to free than there is" has a MinFree
// that nothing can reach, and "already reached" has the present size as its Target.
//
// A store is opened twice on one place, as two processes would:
//
//	func TestMine(t *testing.T) {
//		dir := t.TempDir()
//		convotest.TestStore(t, func() convo.Store { return &Mine{Dir: dir} })
//	}
//
// The checks use neither a network nor a model. They call a summarizer dozens
// of times, a strategy hundreds and a store thousands of times, so test a strategy
// with a fake summarizer. The result does not depend on the clock, with one
// exception: a call that takes a minute, or that goes on for ten seconds after its
// context has ended, counts as one that does not return. In a testing/synctest
// bubble these take no time.
//
// # Fakes
//
// [Echo] summarizes as it should, and [Canned] says the same each time. [Slow],
// [Failing], [Flaky], [Panicking], [Empty], [CutOff], [Growing] and [Deaf] each go
// wrong in one way. [Recorder] records the requests to another summarizer. The
// zero value of each is ready to use, each is safe for concurrent use, and each
// works in a testing/synctest bubble. Those with a field With use [Canned] if it
// is nil. [Answer] stands in for the model behind a summarizer of your own.
package convotest
