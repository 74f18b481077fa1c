// Package convotest helps to test what is plugged into package convo: kits
// that check a strategy or a summarizer against the rules of its interface,
// and fake summarizers.
//
// # Kits
//
// [TestStrategy] and [TestSummarizer] go into a test; [CheckStrategy] and
// [CheckSummarizer] return the same as an error:
//
//	func TestMine(t *testing.T) {
//		convotest.TestStrategy(t, Mine{With: convotest.Echo{}})
//	}
//
// A rule that is broken is named once, with the first case that showed it:
//
//	strategy "mine": drops half an exchange (case "tool rounds", goal "tight", entry 7)
//
// The kits use no network and no model of their own. What they are given is
// called many times, a strategy some hundreds of times, so a strategy should
// be tested with a fake summarizer. No clock decides a verdict, with one
// exception: a call that goes on for a minute, or for a minute after its
// context has ended, counts as one that does not return. Inside a
// testing/synctest bubble that minute takes no time.
//
// # Fakes
//
// [Canned] and [Echo] do what is asked for; [Slow], [Failing], [Flaky],
// [Panicking], [Empty], [CutOff], [Growing] and [Deaf] each go wrong in one
// way; [Recorder] keeps what another one was asked. All zero values work, all
// are safe for concurrent use, and all can be used inside a testing/synctest
// bubble. Those with a field With use [Canned] when it is nil.
package convotest
