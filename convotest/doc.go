// Package convotest helps to test what is plugged into package convo. It holds
// checks for strategies and summarizers against the rules of their interfaces,
// and fake summarizers.
//
// # Checks
//
// [TestStrategy] and [TestSummarizer] are called from a test. [CheckStrategy]
// and [CheckSummarizer] do the same and return an error:
//
//	func TestMine(t *testing.T) {
//		convotest.TestStrategy(t, Mine{With: convotest.Echo{}})
//	}
//
// Each broken rule is reported once, with the first case that broke it:
//
//	strategy "mine": drops part of an exchange (case "tool rounds", goal "tight", entry 7)
//
// The checks use neither a network nor a model. They call a summarizer dozens
// of times and a strategy hundreds of times, so test a strategy with a fake
// summarizer. The result does not depend on the clock, with one exception: a
// call that takes a minute, or that goes on for a minute after its context has
// ended, counts as one that does not return. In a testing/synctest bubble that
// minute takes no time.
//
// # Fakes
//
// [Echo] summarizes as it should, and [Canned] says the same each time. [Slow], [Failing], [Flaky],
// [Panicking], [Empty], [CutOff], [Growing] and [Deaf] each go wrong in one
// way. [Recorder] records the requests to another summarizer. The zero value of
// each is ready to use, each is safe for concurrent use, and each works in a
// testing/synctest bubble. Those with a field With use [Canned] if it is nil.
package convotest
