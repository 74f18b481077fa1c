package convo

import "github.com/seed-c1b73e60/convo/internal/calibrate"

// A meter knows what the next request may weigh, from its raw tokens and from what providers
// have reported, and what it must not be above.
type meter struct {
	limits Limits // with defaults
	marks  marks  // limits less what MakeRoom has reserved
	fitted sum128 // what MakeRoom has reserved in the window
	named  int    // the limit that a provider's error named; 0: none
	chosen bool   // SetLimits or SetModel has set the limits, so they are saved
	charge int64  // what Options.Budget is charged

	heard       bool            // usage was reported for the current model
	sent        *Snapshot       // of the last report; nil: none, or an entry of it has left the view
	prior       calibrate.Prior // of the current model
	implausible *implausible    // the last report, if it was implausible and ignored
	lowTold     bool            // a usage report that was too low was logged
	toolsSet    bool            // Limits.Tools was set after the last usage report
	rising      int             // usage reports in a row above the estimate
	risingTold  bool            // many such reports were logged
	guessTold   bool            // it was logged that the window is a guess
	overQuota   refusedSize     // of the last request that exceeded a quota alone
	resumed     *rowList        // of the Decisions that it was made from, until usage is reported; nil: none

	weight  int64  // upper bound of the next request
	weighed uint64 // the version that weight is of
}
