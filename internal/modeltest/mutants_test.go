package modeltest_test

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	runMutants  = flag.Bool("convo.mutants", false, "break the code in one place at a time and see a test fail")
	mutantsPart = flag.Int("convo.mutants.part", 0, "of the parts of the mutants, the number of the one to run; 0: all")
	mutantsOf   = flag.String("convo.mutants.of", "", "changed files, separated by spaces; their mutants run in addition to those of the part")
)

// mutantParts is how many parts there are.
const mutantParts = 8

// A mutant breaks one rule: it replaces a text that occurs exactly once in a file of the
// module. A test of the package that the file is in must fail.
type mutant struct {
	name, file, text, with string

	// test is the -run pattern of the test that must fail. If it is empty, it is the
	// model test.
	test string
}

const modelTest = "TestHistory_Model$"

var mutants = []mutant{
	// Decisions and rows.
	{name: "rows that nobody compares", file: "resume.go", text: "if equal {", with: "if true {", test: "TestResume_Faults"},
	{name: "rows that only a part of their content is compared of", file: "resume.go", text: "if equal {", with: "if equal || len(accepted) > 0 {", test: "TestResume_EveryChange"},
	{name: "rows bound to what is not set yet", file: "resume.go", text: "prefix: h.wholeIn(r.rows.frame)}", with: "prefix: h.whole()}", test: "TestResume_Bound"},
	{name: "an answer that forgets what it was sent at a restart", file: "resume.go", text: "				h.answers, sent = *sent, nil\n", with: "				sent = nil\n", test: "TestResume_AnswerUnderWay"},
	{name: "queued messages that come twice", file: "resume.go", text: "if !r.given[q.msg.Key] || left[q.msg.Key] {", with: "if true {", test: "TestResume_Queue"},
	{name: "a queued row that comes between a call and its result", file: "resume.go", text: "case m.Role == RoleUser && r.calls.openCalls() > 0:", with: "case false:", test: "TestResume_QueuedRowsGivenEarly"},
	{name: "a queued row that interrupts", file: "resume.go", text: "(len(early) > 0 || !h.takesQueued(delivered)) {", with: "len(early) > 0 {", test: "TestResume_QueuedRowsGivenEarly"},
	{name: "results before the first row that are taken for its own", file: "resume.go", text: "case m.Role == RoleTool && r.isOfEarlier():", with: "case false:", test: "TestResume_ViewBeginsWithQueuedRow"},
	{name: "rows that are needed from a result on", file: "rows.go", text: "		r.from = i // the row", with: "		break // the row", test: "TestResume_QueuedRowBeforeTheFirstRun"},
	{name: "calls that get another ID with each restart", file: "append.go", text: "	m.nameCalls()\n", with: "", test: "TestResume_CallsWithoutIDs"},
	{name: "a changed row that is guessed", file: "resume.go", text: "if key, ok := r.ids[ID(at)]; ok {", with: "if key, ok := r.ids[ID(at)]; ok && false {", test: "TestResume_EveryChange"},
	{name: "usage that is forgotten at a restart", file: "usage.go", text: "if was.sysSeen && f.sys == was.frame.sys {", with: "if false {", test: "TestResume_Measured"},
	{name: "a cut that is no decision", file: "append.go", text: "return a.msg.Key == \"\" || a.original != nil }", with: "return a.msg.Key == \"\" }", test: "TestResume_Cut"},
	{name: "a message without a key that is no decision", file: "append.go", text: "return a.msg.Key == \"\" || a.original != nil }", with: "return a.original != nil }", test: "TestStatus_Decisions"},
	{name: "results cleared in places of their own", file: "rows.go", text: "if n := len(r.cleared); n > 0 && !uncleared {", with: "if n := len(r.cleared); n < 0 && !uncleared {", test: "TestDecisions_Size"},

	// Appending and pins.
	{
		name: "pairing by id over the whole list", file: "calls.go",
		text: "	return 0, notFound(id != \"\" && answered)\n",
		with: "	if id != \"\" && c.open > 0 {\n\t\treturn c.find(\"\", \"\")\n\t}\n\treturn 0, notFound(id != \"\" && answered)\n",
	},
	{name: "an ID given again", file: "append.go", text: "	j.tools = j.hasList && h.list[len(h.list)-1].tools\n", with: "	if j.hasList {\n		j.last = h.list[len(h.list)-1].id\n	}\n	j.tools = j.hasList && h.list[len(h.list)-1].tools\n"},
	{name: "a refused batch that answers calls", file: "append.go", text: "		h.calls.reopen(j.answered)\n		return joint{}, err\n", with: "		return joint{}, err\n"},
	{name: "a pin of one entry only", file: "pin.go", text: "			heads = append(heads, e.head)", with: "			heads = append(heads, e.id)"},
	{name: "ephemeral messages counted twice", file: "state.go", text: "s.summary.tokens() + s.eph.tokens()\n", with: "s.summary.tokens() + 2*s.eph.tokens()\n"},
	{name: "restored without pairing", file: "restore.go", text: "	h.calls = callsOf(h.list)\n", with: ""},
	{name: "a snapshot that an append writes into", file: "state.go", text: "c.sys, c.list, c.pins = slices.Clip(s.sys), slices.Clip(s.list), slices.Clip(s.pins)", with: "c.pins = slices.Clip(s.pins)"},

	// Edits.
	{name: "an edit that drops what has become floor", file: "edit_apply.go", text: "	case (n.drop || n.rewrites == nil || w.ed.byStrategy) && w.floor.has(i):\n", with: "	case !n.drop && n.rewrites != nil && w.ed.byStrategy && w.floor.has(i):\n"},
	{name: "an edit that drops what was pinned since", file: "edit_apply.go", text: "	case w.floor.pinned(i):\n		done.pinned = append(done.pinned, e.id)\n", with: "	case w.floor.pinned(i) && false:\n"},
	{name: "a second summary", file: "edit_apply.go", text: "	if ed.newSummary != nil && s.summary != ed.oldSummary {\n", with: "	if ed.newSummary != nil && s.summary != ed.oldSummary && false {\n"},
	{name: "SplicePrefix by count", file: "edit.go", text: "	r, err := h.Apply(at, e)\n", with: "	at = h.Snapshot()\n	for i := range e.Drop {\n		e.Drop[i] = at.list[min(i, len(at.list)-1)].id\n	}\n	r, err := h.Apply(at, e)\n"},

	// Rewrites.
	{name: "a report that has what was dropped and forgotten", file: "edit_apply.go", text: "		if r != nil && r.was.was != nil {", with: "		if r != nil && r.was.was != nil && false {", test: "TestChain_ForgetsWhatIsDropped"},
	{name: "a link that reads what another has cleared with a text", file: "chain.go", text: "l.Forget || l.Text != \"\"", with: "l.Forget", test: "TestChain_ClearedIsReadAsItStands"},
	{name: "a text that keeps what it was cut out of in memory", file: "rewrite.go", text: "			msg = msg.cloned()\n", with: "			_ = msg.cloned\n", test: "TestRewrite_ForgetsTheMemory"},
	{name: "Count of reasoning that is not sent", file: "append.go", text: "n > 0 && h.list[n-1].tools", with: "n >= 0", test: "TestCount_Reasoning"},
	{name: "a summary of what was rewritten since", file: "rewrite.go", text: "	to.setReads()\n", with: "	to.final = true\n", test: "TestApply_Stale$"},
	{name: "a summary of what was forgotten since", file: "edit_apply.go", text: "			to.setReads()\n			next.msg,", with: "			to.final = true\n			next.msg,", test: "TestApply_Stale$"},
	{name: "a summary of what was cleared with a text since", file: "edit_apply.go", text: "		to.setReads()\n		next.readTokens", with: "		to.final = true\n		next.readTokens", test: "TestApply_Stale$"},
	{name: "a summary that no cleared result survives", file: "edit_apply.go", text: "own.edit = &edited{reads: e.reads()}\n", with: "own.edit = new(edited)\n	own.edit.reads = own.edit\n", test: "TestApply_SummaryOfWhatWasChanged"},
	{name: "a rewrite of what was changed since", file: "edit_apply.go", text: "		} else if c.from == from { // otherwise perform will return a StaleError\n", with: "		} else if c.from = from; true {\n"},
	{name: "a strategy that rewrites the floor", file: "rewrite.go", text: "		case rule != \"\" && byStrategy:\n", with: "		case rule != \"\" && byStrategy && false:\n", test: "TestRewrite_ByAStrategy"},
	{name: "a strategy that rewrites what has become floor", file: "edit_apply.go", text: "	case (n.drop || n.rewrites == nil || w.ed.byStrategy) && w.floor.has(i):\n", with: "	case (n.drop || n.rewrites == nil) && w.floor.has(i):\n", test: "TestRewrite_FloorMeanwhile"},
	{name: "a hand that may not rewrite the floor", file: "edit_apply.go", text: "	case (n.drop || n.rewrites == nil || w.ed.byStrategy) && w.floor.has(i):\n", with: "	case w.floor.has(i):\n"},
	{name: "a rewrite that keeps its original for summarizers", file: "rewrite.go", text: "	if next.read = to.msg; to.msg.Role == RoleTool {\n", with: "	if to.msg.Role == RoleTool {\n"},
	{name: "a summarizer that reads what was rewritten from the log", file: "rewrite.go", text: "	to.setReads()\n", with: "	to.own().edit.reads = to.own().edit\n", test: "TestOriginals_FromTheArchive"},
	{name: "a summarizer that reads what was forgotten from the log", file: "edit_apply.go", text: "			to.setReads()\n			next.msg", with: "			to.own().edit.reads = to.own().edit\n			next.msg", test: "TestOriginals_FromTheArchive"},
	{name: "a report that does not tell what was forgotten", file: "edit_apply.go", text: "if d.was != e {", with: "if false {", test: "TestReport_Forgotten"},
	{name: "a result beside a rewritten one that loses its original", file: "rewrite.go", text: "		o.read.Parts[i] = old.read.Parts[i]\n", with: "", test: "TestRewrite_OneOfTwoResults"},
	{name: "a rewrite that Rewind cannot take back", file: "edit_apply.go", text: "		done.changed, done.newest = true, e.id\n		e, o = w.put(e, r, r.was)\n", with: "		w.s.touch(e, done)\n		e, o = w.put(e, r, r.was)\n"},
	{name: "a rewrite that the rollback does not know", file: "edit_apply.go", text: "		done.changed, done.newest = true, e.id\n		e, o = w.put(e, r, r.was)\n", with: "		done.changed = true\n		e, o = w.put(e, r, r.was)\n", test: "TestRewrite_RolledBack"},
	{name: "an original that is kept with Forget", file: "rewrite.go", text: "		return replacement{from, to, nil, departed{to, to, nil}}\n", with: "		return replacement{from, to, next, departed{to, to, nil}}\n", test: "TestRewrite_Forget$"},
	{name: "a report that has what was forgotten", file: "rewrite.go", text: "		return replacement{from, to, nil, departed{to, to, nil}}\n", with: "		return replacement{from, to, nil, departed{from, to, o}}\n", test: "TestRewrite_Forget$"},
	{name: "an older report that brings back what was forgotten", file: "undo.go", text: "		case len(rest) > 0 && rest[0] == back.now:\n", with: "		case len(rest) > 0 && rest[0].id == back.was.id:\n", test: "TestRewrite_ForgetOutlivesUndo"},
	{name: "a seal on another text", file: "rewrite.go", text: "		if n < 0 {\n", with: "		if n < -1 {\n", test: "TestRewrite_EditErrors"},
	{name: "other arguments in a rewrite", file: "rewrite.go", text: "text.Valid(c.Arguments) != was.Arguments", with: "text.Valid(c.Arguments) == \"x\"", test: "TestRewrite_EditErrors"},
	{name: "a marker that shows what was rewritten", file: "spill.go", text: "	whole := o.read.Parts[i].(ToolResult)\n	if s == nil", with: "	whole := o.msg.Parts[i].(ToolResult)\n	if s == nil", test: "TestRewrite|TestClear|TestSpill"},
	{name: "a cut that shows what was rewritten", file: "compact_cut.go", text: "return c.original.read.Parts[c.part].(ToolResult)", with: "return c.original.msg.Parts[c.part].(ToolResult)", test: "TestRewrite_ThenCut"},
	{name: "a link that clears what another has forgotten", file: "chain.go", text: "				list[i].Forget = list[i].Forget || x.rewrite.Forget\n", with: "				_ = i\n", test: "TestChain_Rewrites"},
	{name: "a link that rewrites what another has forgotten", file: "chain.go", text: "		r.Forget = r.Forget || x.forgets()\n", with: "", test: "TestChain_Rewrites"},
	{name: "a link that reads what another has rewritten", file: "chain.go", text: "			g.Original = combined.original(original, view)\n", with: "			_ = original\n", test: "TestChain_Rewrites"},

	// Never stuck, originals, Undo.
	{name: "an Undo that joins two turns", file: "append.go", text: " || j.exchangeTurn <= j.h.touched) {\n", with: ") {\n", test: "TestUndo_KeepsTurnsApart"},
	{name: "unanswered results that are no floor", file: "floor.go", text: "s.list[from-1].msg.Role == RoleTool {", with: "false {"},
	{name: "a pinned result is cut", file: "compact_cut.go", text: "		if s.isPinned(e.head) {\n			return nil\n		}\n", with: "", test: "TestCut_Pinned$"},
	{name: "a cut that does not help", file: "compact_cut.go", text: "		if afterCuts(rest, list, 0) > most {\n			return\n		}\n", with: "", test: "TestCut_NotEnough"},
	{name: "a short result cut for a long one", file: "compact_cut.go", text: "		limit := max(size, c.least)\n", with: "		limit := max(c.size/2, c.least)\n", test: "TestCut_FairShare"},
	{name: "MakeRoom cuts", file: "compact_cut.go", text: "	case a.reserve != nil, weight <= a.limit", with: "	case weight <= a.limit", test: "TestCut_NotForFit"},
	{name: "Recover never cuts for a strategy that frees too little", file: "compact_cut.go", text: "	if a.reason != ReasonOverflow || a.cuts != nil {\n", with: "	if a.reason != ReasonOverflow || true {\n", test: "TestCut_Recover"},
	{name: "a floor that was never measured", file: "compact_attempt.go", text: "	a.scale.KeptFresh = a.floor.total() - a.scale.KeptOld\n", with: "	a.scale.KeptOld = 0\n", test: "TestFloor_|TestPrepare|TestCompactIfNeeded"},
	{name: "what was measured of the floor as if it were new", file: "compact_attempt.go", text: "min(a.floor.measured, a.floor.total(), a.scale.Known.Raw)", with: "0", test: "TestFloor_Measured"},
	{name: "an exchange without its pin that counts as measured in it", file: "pin.go", text: "h.pinRaw-raw, h.pinMeasured-measured", with: "h.pinRaw-raw, h.pinMeasured-0*measured", test: "TestFloor_WeightOfRandomHistories"},
	{name: "a pin taken back that counts as measured", file: "rollback.go", text: "h.measured-raw, h.pinMeasured-pinned", with: "h.measured-raw, h.pinMeasured-0*pinned", test: "TestFloor_WeightOfRandomHistories"},
	{name: "a system prompt that each request reads", file: "calibration.go", text: "		return s.sysRaw // the usual case\n", with: "		_ = n\n", test: "TestHistory_ReadsFewEntries"},
	{name: "an Undo of what was changed and has no entry after it", file: "undo.go", text: "		case len(rest) > 0 && rest[0] == back.now:\n", with: "		case rest[0] == back.now:\n", test: "TestUndo_OfWhatRewindTookBack"},
	{name: "a result spilled before it is paired", file: "append.go", text: "cutPaired(batch, h.opts.Spill == nil)", with: "cutPaired(batch, true)", test: "TestAppend_PairsBeforeItSpills"},
	{name: "too few rewinds named", file: "compact_attempt.go", text: "		users = a.at.rewinds(min(first.from, f.tail))\n", with: "		users = 1\n", test: "TestFloor_RemedyInOneTurn"},
	{name: "calls that no error names", file: "compact_attempt.go", text: "		n := min(int64(kinds.Calls), *share)", with: "		n := 0 * min(int64(kinds.Calls), *share)", test: "TestFloor_RemedyInOneTurn"},
	{name: "remedies that overshoot one after the other", file: "errors.go", text: "	*done = max(*done, calls)\n", with: "", test: "TestFloor_RemediesInOrder"},
	{name: "a queue that comes in the place of what was taken back", file: "compact_attempt.go", text: "		Queued:        len(a.at.queue),\n", with: "", test: "TestFloor_RemedyWithAQueue"},
	{name: "a cut at append that nobody is told of", file: "append.go", text: "		h.deliver(*cut)\n", with: "", test: "TestAppend_ReportsCuts"},
	{name: "a summarizer that reads what a compaction cleared", file: "original.go", text: "	if o := s.original(id); o != nil {\n", with: "	if o := s.original(id); o != nil && false {\n", test: "TestOriginals_AreSummarised"},
	{name: "text that nobody has read and nobody counts", file: "summarize.go", text: "		w.unread = addClamped(w.unread, read.Missing)\n", with: "", test: "TestOriginals_NotKept"},
	{name: "what is to be kept goes to reach the target", file: "cut.go", text: "c.collect(min(c.moveToTurn(place, budget/4), keep), left > budget)", with: "c.collect(c.moveToTurn(place, budget/4), left > budget)", test: "TestSummarize_KeepLastAndTurns"},
	{name: "what is to be kept never gives way", file: "summarize.go", text: "c.room(fits) < least {\n", with: "c.room(fits) < least && false {\n", test: "TestSummarize_KeepGivesWay"},
	{name: "what is to be kept gives way where the request fits", file: "summarize.go", text: "keeps && limit > 0 && s.raw() > limit {", with: "keeps {", test: "TestSummarize_KeepGivesWay"},
	{name: "what was not kept and nobody is told of", file: "summarize.go", text: "	w.work.NotKept = notKept\n", with: "", test: "TestSummarize_KeepGivesWay"},
	{name: "a window of turns that counts entries", file: "sliding.go", text: "s.Turns > max(turns, w.TriggerAt-1) ||", with: "n > max(turns, w.TriggerAt-1) ||", test: "TestSlidingWindow_DueByTurns"},
	{name: "a result cut that counts as read", file: "summary_prompt.go", text: "			w.unread = addClamped(w.unread, clampInt(weight-max(left, 0)))\n", with: "			_ = left\n", test: "TestSummarize_MaxResult"},
	{name: "system messages without bound", file: "summary_prompt.go", text: "cutMiddle(render(w.system), mostOfSystem, w.count)", with: "cutMiddle(render(w.system), 1<<30+mostOfSystem, w.count)", test: "TestSummarize_System"},
	{name: "system messages that end their block", file: "tags.go", text: "\"summary\", \"system\", ", with: "\"summary\", ", test: "TestSummarize_System"},
	{name: "a loop around the middle, to the left", file: "internal/repeats/repeats.go", text: "	f.around(f.backward, f.forward, to-middle, ", with: "	f.around(f.backward[:0:0], f.forward[:0:0], 0*to, ", test: "TestOf"},
	{name: "rules taken for loops", file: "internal/repeats/repeats.go", text: " && f.letters[l.from+l.period] > f.letters[l.from] &&", with: " &&", test: "TestOf"},
	{name: "a loop inside taken for one at the end", file: "internal/repeats/repeats.go", text: "	if l.to >= len(f.s)-loopEnd && ", with: "	if ", test: "TestOf"},
	{name: "a list taken for a loop", file: "internal/repeats/repeats.go", text: "length < f.least || length < minLoopTimes*l.period {", with: "length < f.least {", test: "TestOf"},
	{name: "a loop that a strategy brings", file: "strategy.go", text: "work.askedForSummary() {", with: "false {", test: "TestSummary_Repeats"},
	{name: "a summary without a model that is judged", file: "summarize.go", text: "	return summary, summary.fault()\n}\n\n// prepare", with: "	return summary, cmp.Or(summary.fault(), summary.repeats())\n}\n\n// prepare", test: "TestSummary_Repeats"},
	{name: "an edit that does not wait", file: "compact_attempt.go", text: "err == nil && a.mayWait(&e)", with: "false", test: "TestCacheTTL_EditWaits"},
	{name: "an edit that waits on while the cache is cold", file: "compact.go", text: "case total > m.soft && (h.isColdLocked() || h.isReadyLocked()) && !h.mustWaitLocked():", with: "case false:", test: "TestCacheTTL"},
	{name: "an edit that waits beside a new one", file: "compact.go", text: "!h.isReadyLocked() || !h.mustWaitLocked()", with: "true", test: "TestCacheTTL_EditWaits"},
	{name: "an edit that waits is forgotten by Compact", file: "compact.go", text: "waited := f.applyReady()", with: "f.h.ready = nil\n		waited := Report{}", test: "TestCacheTTL_EditWaits"},
	{name: "a stale edit that waits on", file: "compact_background.go", text: "h.ready == nil || h.rewritten > h.ready.a.at.version", with: "h.ready == nil", test: "TestCacheTTL_EditWaits"},
	{name: "an edit that waited too long is a failure", file: "compact_attempt.go", text: "case a.isReady && a.report.Outcome != OutcomeApplied:", with: "case false:", test: "TestCacheTTL_EditWaits"},
	{name: "usage that is reported twice", file: "compact_attempt.go", text: "a.report.Usage = Usage{}", with: "_ = a.report", test: "TestCacheTTL_EditWaits"},
	{name: "a pause of a user", file: "compact_background.go", text: "if e.msg.Role == RoleAssistant {\n			at", with: "if true {\n			at", test: "TestCacheTTL_Pause"},
	{name: "what came up meanwhile is not named", file: "compact_attempt.go", text: "a.nameWhatCameUp(&e)", with: "_ = e", test: "TestBackground_NamesWhatCameUp"},
	{name: "a name that no entry that leaves has", file: "compact_background.go", text: "!used[name] || !left[name]", with: "!used[name]", test: "TestBackground_NamesWhatCameUp"},
	{name: "a name that the summary has", file: "compact_background.go", text: "	remove(e.Summary.Text)\n", with: "", test: "TestBackground_NamesWhatCameUp"},
	{name: "reasoning bound to the view in which the answer arrives", file: "append.go", text: "if !sent.known {", with: "if true {", test: "TestBound"},
	{name: "an answer to an open call is bound", file: "append.go", text: "!batch[i].again && !sent.open &&", with: "!batch[i].again &&", test: "TestBound"},
	{name: "an answer that the next one is bound to", file: "append.go", text: "			h.answers = sentView{}\n", with: "", test: "TestBound"},
	{name: "a summary that no fingerprint shows", file: "bound.go", text: "sum = sum.Uint64(uint64(s.summary.content))", with: "_ = sum", test: "TestBound"},
	{name: "compactions in a round with signed reasoning", file: "compact_background.go", text: " || h.isInSealedRoundLocked()\n", with: "\n", test: "TestCompact_WaitsForTheEndOfARound"},
	{name: "a native summary that ends all bonds", file: "bound.go", text: "func(c coveredView) bool { return made == c.sum() }", with: "func(c coveredView) bool { return false }", test: "TestNative"},
	{name: "ephemeral messages before the notes", file: "snapshot.go", text: "	for to < len(s.list) && s.list[to].note {\n", with: "	for false {\n", test: "TestSetEphemeral_Placement"},
	{name: "ephemeral messages that no fingerprint shows", file: "bound.go", text: "			p.ephemeral = s.eph.at(p.list)\n", with: "", test: "TestBound"},
	{name: "a refusal that is forgotten", file: "bound.go", text: "made != 0 && e.id > s.released &&", with: "made != 0 &&", test: "TestBound"},
	{name: "a refusal that Open forgets", file: "state_json.go", text: "pins: in.pins, released: in.released,", with: "pins: in.pins,", test: "TestBound"},
	{name: "a rewritten entry that stays bound", file: "rewrite.go", text: "	to.msg = c.msg\n	to.setMade(0)\n", with: "	to.msg = c.msg\n", test: "TestBound"},
	{name: "a rewritten entry with its old fingerprint", file: "edit_apply.go", text: "e.msg.clone(), [1]Part{}, 0\n", with: "e.msg.clone(), [1]Part{}, e.content\n", test: "TestBound"},
	{name: "a rollback that keeps the fingerprint", file: "state.go", text: "s.fold = s.fold.Remove(e.content)", with: "_ = e", test: "TestBound"},
	{name: "a report of usage that comes late", file: "bound.go", text: "!slices.ContainsFunc(h.list[from:]", with: "h.list[0] != nil || !slices.ContainsFunc(h.list[from:]", test: "TestBound"},
	{name: "a border that Redact has not seen", file: "summarize.go", text: "		next := redacted(w.next, w.redact)\n", with: "		next := *w.next\n", test: "TestRedact"},
	{name: "an edit that waits is lost with a ctx", file: "compact_background.go", text: "	if f.ctx.Err() == nil {\n		h.ready = nil\n	}", with: "	h.ready = nil", test: "TestCacheTTL"},
	{name: "what left unread is reported early", file: "compact_attempt.go", text: "r.Outcome, r.Unread, r.NotKept = OutcomeReady, 0, 0", with: "r.Outcome = OutcomeReady", test: "TestCacheTTL"},
	{name: "a later link without a limit", file: "chain.go", text: "last = g.Limit <= 0", with: "last = false", test: "TestChain_NoLimit"},
	{name: "results that leave no room for the task", file: "compact_cut.go", text: "		beside = a.beside()\n", with: "", test: "TestCut_WordsBesideResults"},
	{name: "a summary before that Redact has not seen", file: "summarize.go", text: "			*text = m.Text()\n", with: "			_ = m\n", test: "TestRedact"},
	{name: "a refused seal that is sent again", file: "recover.go", text: "			h.releaseLocked()\n", with: "", test: "TestRecover_Seal"},
	{name: "a failed call is not repeated", file: "summarize.go", text: "w.askOnce(ctx, bounded, req)\n	}", with: "summary, err\n	}", test: "TestSummarize_Repeated"},
	{name: "a repeated call with its own time", file: "summarize.go", text: "summary, err = w.askOnce(ctx, bounded, req)", with: "summary, err = w.ask(ctx, req, false)", test: "TestSummarize_Repeated"},
	{name: "what is no summary is used", file: "summarize.go", text: "kind != \"\"", with: "kind == \"x\"", test: "TestSummarize_NoSummary"},
	{name: "media that a prompt names are read", file: "summarize.go", text: "w.unread, media = addClamped(w.unread, media), 0", with: "w.unread, media = addClamped(w.unread, 0), media", test: "TestSummarize_Media"},
	{name: "originals without bound", file: "original.go", text: "	if raw <= keep {\n", with: "	if raw <= keep || true {\n", test: "TestOriginals_Oldest"},
	{name: "Undo of the second newest", file: "undo.go", text: " || d.was.version+1 != h.state.lastEdit() {\n", with: " {\n"},
	{name: "Undo keeps the summary", file: "undo.go", text: "	h.edits, h.summary, h.touched = d.was.edits, d.was.summary, d.was.touched\n", with: "	h.edits, h.touched = d.was.edits, d.was.touched\n"},
	{name: "Undo of an edit that a rollback has undone", file: "rollback.go", text: "	h.edits = at.edits\n", with: ""},
	{name: "compacted again right behind an Undo", file: "undo.go", text: "	h.heldSince, h.heldAt = h.version, h.appendedEver\n", with: "", test: "TestUndo_Holds"},
	{name: "a compaction under way takes back what Undo put back", file: "compact_attempt.go", text: "		return &StaleError{Reason: \"an edit was undone meanwhile, which holds compactions up; see History.Undo\"}\n", with: "", test: "TestUndo_DuringACompaction"},

	// Rollbacks.
	{name: "a snapshot that a rollback writes into", file: "rollback.go", text: "	seen := n < h.seen\n", with: "	seen := false\n", test: "TestRewind_LeavesSnapshotsAlone"},
	{name: "every edit outlives a rollback", file: "rollback.go", text: "	case h.edits[since].newest > at.last:\n		return false\n", with: ""},
	{name: "a later edit hides an earlier one", file: "rollback.go", text: "i].newest <= newest })", with: "i].newest > 0 })", test: "TestRollback_Undone"},
	{name: "a snapshot from after a rollback that it makes stale", file: "rollback.go", text: "		if r.version <= at.version {\n", with: "		if r.version < at.version && false {\n"},
	{name: "a snapshot of an undone edit that is not stale", file: "rollback.go", text: "undone || r.edit <= at.lastEdit()", with: "undone", test: "TestRollback_ToAnUndoneEditIsStale"},
	{name: "a rollback that forgets what it took back", file: "rollback.go", text: "	h.reversedLocked(last, edit)\n", with: ""},
	{name: "pins that outlive their entries", file: "rollback.go", text: "	h.pins = h.pins[:n:n]\n", with: "	_ = n\n"},
	{name: "a rewind past an edit", file: "rollback.go", text: "(turn <= s.touched || newest <= s.touched)", with: "(turn <= 0 || newest <= s.touched)"},
	{name: "a rewind of the exchanges of several turns", file: "rollback.go", text: "(turn <= s.touched || newest <= s.touched)", with: "turn <= s.touched && newest > s.touched", test: "TestRewind_Exchanges"},
	{name: "a rewind of a whole turn that an edit has taken something from", file: "rollback.go", text: "	if turn <= s.touched {\n		from, _", with: "	if turn <= 0 {\n		from, _"},

	// Estimates.
	{name: "usage applied to the present view", file: "usage.go", text: "	next := &calibration{Model: model, at: at.reported()", with: "	at = h.snapshotLocked()\n	next := &calibration{Model: model, at: at.reported()"},
	{name: "usage older than the last applied", file: "usage.go", text: "at.version < h.known().learned.version(at.known().model)", with: "false"},
	{name: "a figure above the window", file: "usage.go", text: "window > 0 && tokens > window {", with: "window > 1<<60 && tokens > window {", test: "TestRecordUsage_AboveTheWindow"},
	{name: "usage left aside in silence", file: "usage.go", text: "		h.warnOfUsage(at, u, doubt)\n", with: "		_ = doubt\n", test: "TestDo_StrangeUsage"},
	{name: "no bound on the overhead", file: "usage.go", text: "	return max(min(int64(l.Tools), maxTotal), l.most()/2)\n", with: "	return maxTotal\n"},

	// Compactions.
	{name: "an edit that leaves the request too long", file: "compact_attempt.go", text: "	case weight > limit && (a.reserve != nil || a.total > a.limit):\n", with: "	case weight > 1<<60 && (a.reserve != nil || a.total > a.limit):\n"},
	{name: "compacting twice", file: "compact.go", text: "	case h.compacted == h.version && total <= m.limit:\n", with: "	case h.compacted == h.version && total < 0:\n"},
	{name: "a strategy that runs when the floor is too large", file: "compact_attempt.go", text: "	if floor <= a.limit {\n", with: "	if floor >= 0 {\n"},
	{name: "half a turn without its user messages", file: "cut.go", text: "a.user && inside && a.turn == list[place].turn", with: "a.user && inside && a.turn < 0", test: "TestTruncate"},
	{name: "a snapshot that a strategy can change", file: "compact_attempt.go", text: "h.opts.Strategy, h.direct, &own, a.goal)", with: "h.opts.Strategy, h.direct, a.at, a.goal)\n	_ = own", test: "TestHostile_KeepsAndChanges"},
	{name: "no second attempt after a stale edit", file: "compact_attempt.go", text: "r.Outcome == OutcomeStale && !f.unattended", with: "false", test: "TestFlight_Stale"},
	{name: "a second attempt in the background", file: "compact_attempt.go", text: "r.Outcome == OutcomeStale && !f.unattended", with: "r.Outcome == OutcomeStale", test: "TestFlight_Stale"},
	{name: "one round, though more was appended meanwhile", file: "compact.go", text: "r.Outcome != OutcomeApplied || r.Fits {\n", with: "true {\n", test: "TestFlight_LooksAgain"},
	{name: "a waiter that frees the slot of another", file: "compact_background.go", text: "	case <-ctx.Done():\n		return errorf(\"%s: %w\", stopped", with: "	case <-ctx.Done():\n		s.release()\n		return errorf(\"%s: %w\", stopped", test: "TestFlight_WaitsUnderItsOwnContext"},
	{name: "a late edit is applied", file: "compact_attempt.go", text: "	if a.f.ctx.Err() != nil {\n		return endOf(a.f.ctx) //", with: "	if a.f.ctx.Err() != nil && false {\n		return endOf(a.f.ctx) //", test: "TestEndedContext_JustBeforeTheEdit"},
	{name: "a strategy that ignores its ctx holds its caller", file: "strategy.go", text: "	if direct {\n", with: "	if direct || true {\n", test: "TestFlight_DeafStrategy"},
	{name: "a summarizer that ignores its ctx holds its caller", file: "summarize.go", text: "	summary, err = await(bounded, \"Summarizer\", func() (Summary, error) { return w.with.Summarize(bounded, req) })\n", with: "	summary, err = w.with.Summarize(bounded, req)\n", test: "TestTimeout_NextLinksRun"},
	{name: "a model call without a bound", file: "summarize.go", text: "	case w.timeout > 0 && (", with: "	case w.timeout > 1<<62 && (", test: "TestTimeout_NextLinksRun"},
	{name: "a model call that leaves no time", file: "summarize.go", text: "deadline.Add(-left / 4)", with: "deadline.Add(-left / 400)", test: "TestTimeout_NextLinksRun"},
	{name: "a link runs though ctx has ended", file: "strategy.go", text: "	if ctx.Err() != nil {\n		return \"\", Edit{Effort: &Effort{}}, causeOf(ctx)\n	}\n", with: "", test: "TestBreaker_NotOpenedWithoutACall"},

	// What providers say.
	{name: "a limit of another request", file: "recover.go", text: "theirs < ours/2 || theirs/2 > ours", with: "theirs < 0", test: "TestRecover_Learns"},
	{name: "the limit of a small model", file: "recover.go", text: "int64(f.Limit) < cmp.Or(h.limits.most(), ours)/2", with: "int64(f.Limit) < cmp.Or(0, ours)/2", test: "TestRecover_Learns"},
	{name: "the answer counted as prompt", file: "recover.go", text: "	if f.Prompt > 0 && at.version", with: "	if f.Prompt = f.Refused(); at.version", test: "TestRecover_Learns"},
	{name: "a named limit for good", file: "model.go", text: "	h.limits, h.named, h.declineTold = limits, 0, 0\n", with: "	h.limits, h.declineTold = limits, 0\n", test: "TestRecover_Learns"},
	{name: "an answer as long as the window", file: "internal/overflow/overflow.go", text: "f.Output < f.Limit-f.Limit/answerShare", with: "f.Output > 0", test: "TestIs"},
	{name: "a rate of tokens", file: "internal/overflow/overflow.go", text: "containsAny(e.text, throttleTexts[:]) || ", with: "", test: "TestIs"},
	{name: "a rate beside a plain overflow", file: "internal/overflow/overflow.go", text: "!slices.ContainsFunc(plainTexts[:], func(t string) bool { return e.says(t, \"\") }) &&", with: "true &&", test: "TestIs"},
	{name: "an answer named with the prompt", file: "internal/overflow/overflow.go", text: "ok && !others && ", with: "ok && ", test: "TestIs"},
	{name: "no way is taken back", file: "internal/overflow/pattern.go", text: "if r.try(pc+i.to, at) {\n\t\t\t\treturn true\n\t\t\t}\n\t\t\tpc += i.or", with: "pc += i.to", test: "TestPatterns"},
	{name: "joined errors read as one", file: "internal/overflow/overflow.go", text: "append(said, alone)", with: "said", test: "TestIs"},
	{name: "phrases far apart", file: "internal/overflow/overflow.go", text: "rest[:min(len(rest), maxGap+len(then))]", with: "rest", test: "TestIs"},
	{name: "a body that the text does not hold", file: "internal/overflow/overflow.go", text: "			guarded(func() { add(e.RawJSON()) })\n", with: "			_ = e\n", test: "TestIs"},

	// Calls and results.
	{name: "a result for the first of several calls", file: "calls.go", text: "inOrder && (few || ", with: "inOrder && (few && false || "},
	{name: "results without an ID, whatever their names", file: "calls.go", text: "r.Name != c.list[k].name) {", with: "false) {"},
	{name: "results with a name before those without", file: "calls.go", text: "name == \"\" || c.hasOpen(name, n+1)", with: "name == \"\" || n < 0", test: "TestAppend_ResultsInOrderAnswerTheirCalls"},
	{name: "results by name before those by ID", file: "append.go", text: "	if !all && j.run < 0 {\n", with: "	if !all {\n"},
	{name: "Nova takes all keywords at the root", file: "wire/tool.go", text: "r.only != nil && !r.only[key] && !r.drop[key]", with: "false", test: "TestTools_SchemasByProvider"},
	{name: "OpenAI gets objects without properties", file: "wire/tool.go", text: "(depth == 0 || strict && object)", with: "(strict && object)", test: "TestTools_SchemasByProvider"},
	{name: "arrays in a list of types without items", file: "wire/tool.go", text: "	if kindOf(raw) == '[' {\n		list, _ := strictjson.SplitArray(raw)\n		return slices", with: "	if false {\n		list, _ := strictjson.SplitArray(raw)\n		return slices", test: "TestTools_SchemasByProvider"},
	{name: "notes that follow an answer at once", file: "wire/project.go", text: "case p.newest == convo.RoleAssistant || p.notesLast:", with: "case p.notesLast:", test: "TestNotes"},
	{name: "notes between messages of the user", file: "wire/project.go", text: "case p.newest == convo.RoleAssistant || p.notesLast:", with: "case p.newest == convo.RoleAssistant:", test: "TestNotes_BetweenUsers"},
	{name: "what is in beta without Betas", file: "wire/anthropic.go", text: "len(betas) > 0 && !w.f.Betas", with: "false", test: "TestNotes_Anthropic"},
	{name: "With takes a field twice", file: "wire/wire.go", text: "; twice {", with: "; twice && false {", test: "TestRequest_WithRefuses"},
	{name: "With takes tools that are no JSON", file: "wire/wire.go", text: "len(r.Tools) > 0 && !strictjson.Valid(r.Tools)", with: "len(r.Tools) > 0 && false && !strictjson.Valid(r.Tools)", test: "TestRequest_WithRefuses"},
	{name: "a text that ends as the key begins", file: "tags.go", text: "	if opensKey(key, text) {\n", with: "	if false {\n", test: "TestMessages_EndsThatBeginAKey"},
	{name: "a key in letters that look alike", file: "tags.go", text: "		if letterOf(r) == c {\n", with: "		if r == rune(c) {\n", test: "TestMessages_NoTextForgesTags"},
	{name: "an escaped quote ends a string", file: "internal/strictjson/valid.go", text: "(end-slashes)%2 == 0", with: "(end-slashes)%2 >= 0", test: "TestPassString"},
	{name: "a prefix that is not told as lost", file: "wire/openai_chat_decode.go", text: "string(all[\"prefix\"]) == \"false\"", with: "string(all[\"prefix\"]) != \"x\"", test: "TestOpenAIChat_DecodePrefix"},
	{name: "arguments that imitate what Encode sends", file: "wire/json.go", text: "!wrapped && call.Valid()", with: "(!wrapped || true) && call.Valid()", test: "TestArguments"},
	{name: "IDs for who has none", file: "wire/project.go", text: "	bare := p.noIDs || p.bare && ", with: "	bare := p.noIDs || false && ", test: "TestDecode_CallsWithoutIDs"},
	{name: "some calls without IDs", file: "wire/project.go", text: "return isCall(p) && !p.(convo.ToolCall).Minted })", with: "return isCall(p) && false })", test: "TestEncode_SendsMintedIDsBesideOthers"},
	{name: "losses of what was taken back", file: "wire/project.go", text: "	p.lost.back(to.lost, to.projection.number)\n", with: "", test: "TestEncoder_Encodes"},
	{name: "a mark that was a call's", file: "wire/project.go", text: "	if !calls {\n		return\n	}\n	after := false", with: "	after := true", test: "TestLost_Tells|TestFormats_RandomConversations"},
	{name: "a name that looks escaped as it is", file: "wire/names.go", text: "		if _, ok := unescapedName(name); !ok {\n			return name", with: "		if true {\n			return name", test: "TestNames"},
	{name: "reasoning for another host", file: "wire/openai_chat.go", text: "from: f.origin(), ", with: "", test: "Host|Reasoning"},
	{name: "a long mark behind a short one", file: "wire/cache.go", text: "		long = (long || marks[i].long) &&", with: "		long = marks[i].long &&", test: "TestCacheMark"},
	{name: "five cache marks", file: "wire/cache.go", text: "const maxMarks = 4", with: "const maxMarks = 5", test: "TestCacheMark"},
	{name: "a citation of text that is gone", file: "wire/attach.go", text: " && n <= length", with: " && n <= length+1<<20", test: "Citations|Annotations"},
	{name: "a tag in what a search found", file: "wire/foreign.go", text: "p.lost.s.Mask(text)", with: "text", test: "Foreign|Tags"},
	{name: "usage of a compaction as that of the request", file: "tokens.go", text: "return u.Input - u.Extra }", with: "return u.Input }", test: "RecordUsage|Usage"},
	{name: "an exchange that grew, as it was", file: "wire/encoder.go", text: " || isResult(s, e.points[n-1].at)", with: "", test: "TestEncoder_Encodes"},
	{name: "names of what was taken back", file: "wire/project.go", text: "	p.seen.back(to.seen)\n", with: "", test: "TestEncoder_Encodes"},
	{name: "a request that is written into", file: "wire/gemini.go", text: "		w.contents[n-1].raw = slices.Clip(w.last.raw)\n", with: "", test: "TestEncoder_Encodes"},
	{name: "a mark where a text was", file: "wire/converse.go", text: "		w.list[n-1] = w.last\n", with: "", test: "TestEncoder_TakesBack"},
	{name: "pairs of two messages settled in one", file: "wire/openai_responses.go", text: "	case paired:\n		w.unsettled++\n", with: "", test: "TestOpenAIResponses_PairsItems"},
	{name: "rows that do not get the TagKey", file: "restore.go", text: "	if s.imported && opts != nil && opts.TagKey != \"\" {\n", with: "	if false {\n", test: "TestOptions_TagKey"},
	{name: "ephemeral messages that moved", file: "snapshot.go", text: " || s.eph != nil && a != b", with: "", test: "TestSnapshot_Same"},

	{name: "a tool's description taken for the conversation", file: "internal/overflow/overflow.go", text: "!fieldBefore.pattern().in(", with: "!compile(`^-`).in(", test: "TestIs_OtherErrors"},
	{name: "characters taken for tokens", file: "internal/overflow/overflow.go", text: "(!ok || strings.Contains(after[:length.to], \"token\"))", with: "(!ok || length.to > 0)", test: "TestIs_OtherErrors"},

	// One request.
	{name: "a queued message between a request and its answer", file: "queue.go", text: " || h.isAnswerDueLocked()", with: "", test: "TestDo_ViewChanges|TestDo_QueueWhileAppending"},
	{name: "a queued message inside a batch", file: "queue.go", text: "h.calls.openCalls() > 0 || ", with: ""},
	{name: "queued while an answer is due", file: "queue.go", text: "	if !h.awaitsAnswer() {\n", with: "	if true {\n"},
	{name: "a run of users that Restore refuses", file: "append.go", text: "		j.last++ // with a gap between their IDs, Restore accepts them\n", with: "", test: "TestQueue_WaitsForTheBatch"},
	{name: "the same system messages with other IDs", file: "system.go", text: "func(e *entry, a pendingEntry) bool { return e.msg.sameAs(&a.msg) }", with: "func(e *entry, a pendingEntry) bool { return false && e.msg.sameAs(&a.msg) }"},
	{name: "a fork without its title", file: "restore.go", text: "s.appended, s.meta, s.released\n", with: "s.appended, meta{}, s.released\n"},
	{name: "a figure of a record in a snapshot", file: "state_json.go", text: "		case keys != nil && !slices.Contains(keys, string(key)):\n", with: "		case false:\n", test: "TestSnapshotJSON_Refuses"},
	{name: "a time of the year 1600", file: "state_json.go", text: "	if _, ok := nanoseconds(t); !ok {\n", with: "	if _, ok := nanoseconds(t); false && !ok {\n", test: "TestSnapshotJSON_Refuses"},
	{name: "an error without its entry", file: "state_json.go", text: "			in.index, in.failed = first+i, e.id\n", with: "			in.index, in.failed = i, e.id\n", test: "TestSnapshotJSON_NamesTheEntry"},
	{name: "more behind a message", file: "message_json.go", text: "	if r.End(); r.Err() != nil {\n", with: "	if r.Err() != nil {\n", test: "TestMessageJSON_TrailingBytes"},
	{name: "a key that comes twice", file: "internal/strictjson/read.go", text: "				r.Fail(fmt.Errorf(\"duplicate key %.40q\", key))\n", with: "", test: "TestReader_Errors"},
	{name: "a quote that is not seen", file: "internal/strictjson/read.go", text: "(x-' '*ones)&^x | (quote-ones)&^quote |", with: "(x-' '*ones)&^x | (quote-ones)&^quote&1 |", test: "TestPlain"},
	{name: "a queue that is not saved", file: "state_json.go", text: "	if queue := s.queue; len(queue) > 0 {\n", with: "	if queue := s.queue; false {\n", test: "TestQueue_Delivers"},
	{name: "a queue that waits behind an answer without messages", file: "do.go", text: "		h.sending = nil\n		a.reply.Queued = h.deliverLocked()\n		return false, nil\n	case", with: "		return false, nil\n	case"},
	{name: "an answer of the user's", file: "reply.go", text: "		if m.Role == RoleUser || m.Role == RoleSystem {\n", with: "		if m.Role == RoleSystem {\n"},
	{name: "a cut answer that the reply does not tell of", file: "do.go", text: "		a.report(cut.clone())\n", with: "", test: "TestDo_ReportsCuts"},
	{name: "an answer behind other messages", file: "do.go", text: "	case !h.isAnswerDueLocked():\n", with: "	case false:\n", test: "TestDo_ViewChanges"},
	{name: "a summary for an answer that would be refused", file: "do.go", text: "	return a.h.answerFaultLocked()\n}", with: "	return nil\n}", test: "TestDo_RefusesBeforeItSends"},
	{name: "a panic that is sent again", file: "do.go", text: "		case panicked, spent, retries == maxRetries:\n", with: "		case spent, retries == maxRetries:\n			_ = panicked\n", test: "TestDo_SendFails"},
	{name: "sent again without end", file: "do.go", text: "const maxRetries = 2\n", with: "const maxRetries = 5\n", test: "TestDo_Recovers"},
	{name: "a send that Close does not end", file: "history.go", text: "		s.cancel(ErrClosed)\n", with: "", test: "TestDo_Close"},
	{name: "a model without its limits", file: "model.go", text: "		h.setLimitsLocked(limits)\n		h.toolsSet = h.toolsSet ||", with: "		_ = limits\n		h.toolsSet = h.toolsSet ||", test: "TestHistory_SetModel"},
	{name: "parallel calls that become one", file: "builder.go", text: "pb == nil || pb.isOtherCall(delta) {", with: "pb == nil {", test: "TestBuilder$"},
	{name: "a cut call that is run", file: "builder.go", text: "	if b.ended && (b.stop", with: "	if true || (b.stop", test: "TestBuilder_Cut"},
	{name: "a request for a model that was replaced", file: "do.go", text: " || a.h.known().model != at.Model() || !a.h.fitsLocked() {", with: " || !a.h.fitsLocked() {", test: "TestDo_ModelSetMeanwhile"},
	{name: "a request for limits that were replaced", file: "do.go", text: " || !a.h.fitsLocked() {", with: " {", test: "TestDo_ModelSetMeanwhile"},
	{name: "a stream that broke off looks finished", file: "builder.go", text: "	if b.ended && (b.stop", with: "	if (b.stop", test: "TestBuilder_Cut"},
	{name: "an answer without a reason looks finished", file: "wire/stop.go", text: "d.finished = reason != \"\" && ", with: "d.finished = ", test: "TestDecode_Cut"},
	{name: "a cut call that is decoded", file: "wire/stop.go", text: "k < 0 || !d.unclear() {", with: "k >= 0 || !d.unclear() {", test: "TestDecode_Cut"},
	{name: "a whole call that is put aside", file: "wire/stop.go", text: "d.open && (d.text ||", with: "(d.text ||", test: "TestDecode_EndedCall"},

	// Errors.
	{name: "CompactIfNeeded fails while the request fits", file: "compact.go", text: "	case r.Fits:\n		return r, nil\n	case h.isClosed():", with: "	case r.Fits && err == nil:\n		return r, nil\n	case h.isClosed():"},
	{name: "Compact succeeds when it declined", file: "compact.go", text: "		return r, cmp.Or(err, r.Cause)\n", with: "		_ = cmp.Or(err, r.Cause)\n		return r, nil\n"},
	{name: "Apply succeeds when nothing changed", file: "edit.go", text: "		return r, r.Cause\n", with: "		return r, nil\n"},
	{name: "Recover succeeds without a retry", file: "recover.go", text: "	return false, report, errorf(\"%w; the provider said: %w\", err, cause)\n", with: "	return false, report, nil\n"},
	{name: "Wait returns how the compaction went", file: "compact_background.go", text: "		return b.report.clone(), nil\n	case <-ctx.Done():\n", with: "		return b.report.clone(), b.report.Cause\n	case <-ctx.Done():\n"},
	{name: "a closed History says that the request fits", file: "report.go", text: "total <= limit && !h.endedLocked(), ", with: "total <= limit, "},
	{name: "OnCompaction closes the History, and the request fits", file: "compact_background.go", text: "	defer func() { r.Fits = r.Fits && !h.isClosed() }() ", with: "	", test: "TestClosed_NeverFits"},
	{name: "imported notes begin no turn", file: "import.go", text: "own.load(sys, list, nil, setTurns(list))", with: "own.load(sys, list, nil, s.turn)", test: "TestRestore_ResultsWithoutCalls"},
	{name: "a turn is dropped that the summary tells of", file: "restore.go", text: " || !l.isWhole():", with: " || !l.isWhole() && false:", test: "TestRestore_OnLoadDropTurn"},
	{name: "a finished turn is dropped", file: "restore.go", text: "(open || h.newestRole() != RoleAssistant)", with: "(open || true)", test: "TestRestore_OnLoadDropTurn"},
	{name: "copies of parts have spare capacity", file: "message.go", text: "own := r.free[:n:n]", with: "own := r.free[:n]", test: "TestSnapshot_AllAllocations"},
	{name: "a declined Trigger is asked again", file: "compact.go", text: "askTrigger = h.declined != h.version+1", with: "askTrigger = true", test: "TestTrigger_DeclinesAreToldOnce"},
	{name: "a declined Trigger is told again", file: "compact_attempt.go", text: "a.told = h.declineTold > h.rewritten", with: "a.told = false", test: "TestTrigger_DeclinesAreToldOnce"},
	{name: "the Trigger closes the History, and the request fits", file: "compact.go", text: "			r.Fits, due, err = false, false, ErrClosed\n", with: "", test: "TestClosed_NeverFits"},
	{name: "a wasted call declines", file: "strategy.go", text: "	return calls == 0 && ", with: "	return calls >= 0 && ", test: "TestCompactionStrategy_DeclinesWithoutACall"},
	{name: "an error's own panic escapes", file: "strategy.go", text: "		if recover() != nil {\n			declined = false\n		}\n", with: "", test: "TestErrors_WhoseMethodsPanic"},
	{name: "a failed link in a quiet line", file: "report.go", text: " || r.Outcome == OutcomeApplied && r.trouble() != nil {\n", with: " {\n", test: "TestReport_LogsAFailedLink"},
	{name: "a MakeRoom that blames the window for the pool", file: "compact_attempt.go", text: "	return a.reserve != nil && a.f.h.opts.Budget != nil && limit < a.marks.limit\n", with: "	return false\n", test: "TestMakeRoom_ErrorTexts"},
	{name: "Recover inside a compaction", file: "recover.go", text: "	if _, err := h.compacting.enter(ctx); err != nil {\n", with: "	if false {\n", test: "TestRecover_Refuses"},
	{name: "Recover without a cause", file: "recover.go", text: "	if cause == nil {\n", with: "	if false {\n", test: "TestRecover_Refuses"},
	{name: "%+v without call ids", file: "print.go", text: "	if !ids || id == \"\" {\n", with: "	if ids || id == \"\" {\n", test: "TestPrinting_ShowsIDsAndNoEssays"},
	{name: "reasoning that goes on being sent in the next turn", file: "append.go", text: "j.tools = j.tools && j.turn == j.exchangeTurn || a.calls != nil", with: "j.tools = j.tools || a.calls != nil"},
	{name: "reasoning before the first call that counts", file: "identity.go", text: "	if !e.tools {\n		tokens -= idle", with: "	if false {\n		tokens -= idle"},
	{name: "reasoning that goes on counting in a turn without calls", file: "state.go", text: "		e.tokens -= int64(e.idle)\n", with: "", test: "TestReload_ReasoningInAnotherTurn"},
	{name: "reasoning that does not count in a turn with calls", file: "state.go", text: "		e.tokens += int64(e.idle)\n", with: "", test: "TestReload_ReasoningInAnotherTurn"},
	{name: "reasoning that counts when its entry is rewritten", file: "rewrite.go", text: "	id.weigh(to)\n", with: "	to.tokens = id.message(&to.msg)\n"},
	{name: "reasoning that counts after a load", file: "restore.go", text: "	l.h.ident.weigh(e)\n", with: "	e.tokens = l.h.ident.message(&e.msg)\n", test: "TestTokens_ReasoningThatIsNotSent"},
	{name: "reasoning in a breakdown that is not sent", file: "breakdown.go", text: "				parts.Reasoning = 0 // it is not sent\n", with: "", test: "TestTokens_ReasoningThatIsNotSent"},
	{name: "a tool that a later message of its turn does not know after a load", file: "restore.go", text: "		e.tools = e.tools || l.list[n-1].tools\n", with: "", test: "TestTokens_ReasoningOfAnImport"},
	{name: "a breakdown that does not add up", file: "breakdown.go", text: "		shared = share\n", with: "		shared = share + 1\n", test: "TestBreakdown"},
	{name: "a kit that lets a strategy fail for a reason", file: "convotest/useful.go", text: "where != nil && !c.worked[name]", with: "where != nil && false", test: "TestCheckStrategy_FailsUselessStrategies"},
	{name: "a kit that judges an order by one edit", file: "convotest/useful.go", text: "newest[r] && !other[r] {", with: "newest[r] {", test: "TestCheckStrategy_AcceptsStrategiesThatFollowTheRules"},
	{name: "a kit that takes one kind for another", file: "convotest/useful.go", text: "of := like{first.Message.Role, x.First != x.Last, x.Tokens > mixedLarge}", with: "of := like{large: first.ID > 0}", test: "TestCheckStrategy_FailsUselessStrategies"},
	{name: "a kit that fails one step too far", file: "convotest/useful.go", text: "len(c.far) > c.loose/2 ", with: "len(c.far) > 0 ", test: "TestCheckStrategy_AcceptsStrategiesThatFollowTheRules"},
	{name: "a kit that lets a summary be forgotten", file: "convotest/summarizer.go", text: "	if is, where := lost(updates, earlierName, earlierNumber); is {\n", with: "	if is, where := lost(updates, earlierName, earlierNumber); is && false {\n", test: "TestCheckSummarizer_FailsUselessSummarizers"},
	{name: "a kit that is deaf to numbers", file: "convotest/summarizer.go", text: "	case numbers:\n", with: "	case numbers && names:\n", test: "TestCheckSummarizer_FailsUselessSummarizers"},
	{name: "a kit that gives up on a flaky model", file: "convotest/summarizer.go", text: "slices.Repeat(reqs, 4)", with: "slices.Repeat(reqs, 0)", test: "TestCheckSummarizer_AcceptsSummarizersThatFollowTheRules"},
	{name: "a kit that lets a strategy stop short", file: "convotest/useful.go", text: "	case more <= first/4:\n", with: "	case more <= first*4:\n", test: "TestCheckStrategy_FailsUselessStrategies"},

	// Saving.
	{name: "a record in doubt that is forgotten", file: "save.go", text: "		l.drafts = append(l.drafts[max(len(l.drafts)-maxDrafts+1, 0):], d)\n", with: "", test: "TestSave_InDoubt|TestReload_InDoubt"},
	{name: "many records in doubt, and nobody looks", file: "save.go", text: "	if len(l.drafts) >= doubtful {\n", with: "	if false {\n", test: "TestSave_ManyDraftsForgotten"},
	{name: "Rollback to a copy", file: "rollback.go", text: "case !l.isOwn(at) || !h.state.sharesEntries(&t.state):", with: "case false:", test: "TestRollback_LoadedFromACopy"},
	{name: "usage that was heard for no calibration", file: "record.go", text: "	if p.heard && p.view.known().cal == nil {\n", with: "	if false {\n", test: "TestOpen_Damage"},
	{name: "in doubt, and nothing to save", file: "log.go", text: "	if n == 0 && len(l.drafts) > 0 {\n", with: "	if false {\n", test: "TestSave_InDoubtAndTakenBack"},
	{name: "a record behind another than it names", file: "store.go", text: "	case prev.ID != \"\" && rec.Prev != prev.ID:\n", with: "	case false:\n", test: "TestOpen_Damage"},
	{name: "never a full record", file: "log.go", text: "	l.perToken = ", with: "	l.perToken = 1e9 * ", test: "TestSave_FullRecords"},
	{name: "a Save that looks for changes where there are none", file: "save.go", text: "	if n == 0 {\n		return nil\n	}\n", with: "	_ = n\n", test: "TestSave_NothingNewDoesNothing"},
	{name: "an estimate of another view", file: "record.go", text: " && from.seenRaw() == to.seenRaw()", with: "", test: "TestSave_ComesBack"},
	{name: "a title that is not saved", file: "log.go", text: "		if h.meta != p.view.meta {\n", with: "		if false {\n", test: "TestSetMeta_Saved"},
	{name: "a title that is in no list", file: "save.go", text: "Title: d.picture.view.meta.title, ", with: "", test: "TestSetMeta_Saved"},
	{name: "a title that another one has set", file: "reload.go", text: "	if h.meta == l.saved.view.meta {\n", with: "	if true {\n", test: "TestSetMeta_Reload"},
	{name: "what is measured is forgotten", file: "record.go", text: "		k.cal.at = r.seen.reported(s)\n", with: "		k.cal.at = &reported{}\n"},
	{name: "what was appended again is not measured", file: "reload.go", text: "		m.recogniseLocked()\n		h.sumMeasured(true)\n", with: "		h.sumMeasured(false)\n", test: "TestKnowledge"},
	{name: "figures in another unit than the log says", file: "record.go", text: "	same := !from.recounted && ", with: "	same := ", test: "TestKnowledge"},
	{name: "a bound that is not saved", file: "save.go", text: "	h.adoptBoundLocked(p.named)\n", with: "", test: "TestRecover_LearnedIsSaved"},
	{name: "a report without cached tokens", file: "usage.go", text: "tokens < least {", with: "tokens < 0 {", test: "TestRecordUsage_TooSmall"},
	{name: "tokens of another counter", file: "save.go", text: " && r.state.counter == h.ident.name()\n", with: "\n", test: "TestOpen_CountsOnlyWhatItMust"},
	{name: "tokens of several counters", file: "record.go", text: "	case r.counter != next.counter:\n", with: "	case false:\n", test: "TestOpen_CountsOnlyWhatItMust"},
	{name: "tokens of other entries", file: "state_json.go", text: "	if in.counter == \"\" || len(tokens) != len(in.entries) {\n", with: "	if in.counter == \"\" || len(tokens) > len(in.entries) {\n		tokens = append(tokens, make([]int64, len(in.entries))...)\n", test: "TestOpen_Damage"},
	{name: "a repaired log that lost its entries", file: "save.go", text: "own: h.opts.Repair == nil}", with: "own: true}", test: "TestOpen_Repair|TestOpen_CountsOnlyWhatItMust"},
	{name: "limits that do not come back", file: "save.go", text: "	if p.chosen {\n", with: "	if false {\n"},
	{name: "an archive of what is left", file: "archive.go", text: "merge(r.past, merge(orNil(r.system), r.entries))", with: "merge(merge(orNil(r.system), r.entries), r.past)", test: "TestArchive_EachOnce"},
	{name: "a copy whose archive does not know what is gone", file: "archive.go", text: "rec.Seq > 1 ||", with: "rec.Prev != \"\" ||", test: "TestArchive_CopyOfAPrunedLog"},
	{name: "an archive that repeats itself", file: "archive.go", text: "return e.id > a.last || ", with: "return e.id > 0 || ", test: "TestArchive_EachOnce"},
	{name: "what left before a Save is not saved", file: "edit_apply.go", text: "		h.leftLocked(d, forgotten)\n", with: "		_ = forgotten\n", test: "TestArchive$"},
	{name: "what was rolled back before a Save is saved", file: "log.go", text: "bool { return id > last && ", with: "bool { return id < 0 && ", test: "TestArchive$"},
	{name: "a rollback that the archive does not know", file: "log.go", text: "	if last < l.kept {\n", with: "	if false {\n", test: "TestArchive$"},
	{name: "what was to be forgotten is saved", file: "log.go", text: "; !ok || forgotten {\n", with: "; !ok {\n		_ = forgotten\n", test: "TestArchive_Forget"},
	{name: "a note that is saved again and again", file: "log.go", text: "slices.Clone(l.notes[len(d.notes):])", with: "slices.Clone(l.notes)", test: "TestArchive$"},
	{name: "a snapshot from before a Reload", file: "history.go", text: "	case at.version < h.reloaded:\n		return errReloaded\n", with: "", test: "TestReload_OldSnapshots"},
	{name: "an edit from before a Reload", file: "edit_apply.go", text: "	case ed.at.version < h.reloaded:\n		return false, errReloaded\n", with: "", test: "TestReload_Epoch"},
	{name: "an answer to the message of another", file: "reload.go", text: "	if h.sending != nil {\n", with: "	if false {\n", test: "TestReload_AnswerToAnotherMessage"},
	{name: "an answered turn that a policy refuses", file: "append.go", text: "(a.goesOn || a.again)", with: "a.goesOn", test: "TestReload_KeepsAnsweredTurns"},
	{name: "a delivered message that is still queued", file: "reload.go", text: "				m.taken[theirs] = true\n", with: "", test: "TestReload_StoredQueue"},
	{name: "a message that both have delivered", file: "reload.go", text: "			m.elsewhere[id] = true\n", with: "", test: "TestReload_StoredQueue"},
	{name: "a queue that a Reload leaves", file: "reload.go", text: " || len(m.queued) > 0 && !h.awaitsAnswer()", with: "", test: "TestReload_DeliversTheQueue"},
	{name: "the queue of an old backup", file: "reload.go", text: "m.base, m.isBackup = h.common(&theirs.state, m.base), true", with: "m.base = h.common(&theirs.state, m.base)", test: "TestReload_BackupOfAQueue"},
	{name: "what a backup lacks, where others have saved", file: "reload.go", text: "	if !isStored || r.state.log == l.name", with: "	if r.state.log == l.name", test: "TestReload_BackupAndOthers"},
	{name: "entries with the IDs of others", file: "reload.go", text: "(t.at != e.at || t.msg.Role != e.msg.Role) {", with: "false {", test: "TestReload_BackupAndOthers"},
	{name: "a log that was begun anew", file: "reload.go", text: "	if l.id != \"\" && r.state.log != l.name {", with: "	if l.id != \"\" && r.state.log != l.name && false {", test: "TestReload_AnotherLog"},
	{name: "the user's words leave with the rest", file: "cut.go", text: "		if a.floor || c.words.has(a.from) || a.user", with: "		if a.floor || a.user", test: "TestTruncate_UsersWords"},
	{name: "a document among the user's words", file: "cut.go", text: "|| a.tokens < r.large()) {", with: "|| true) {", test: "TestTruncate_UsersWords"},
	{name: "the user's words above the limit", file: "cut.go", text: "		budget = min(budget, r.limit-kept)\n", with: "		_ = kept\n", test: "TestTruncate_UsersWords"},
	{name: "nothing besides a heavy floor", file: "cut.go", text: "	return max(r.target-kept, min(least, r.most-kept), 0)", with: "	return max(r.target-kept, 0)", test: "TestTruncate_HeavyFloor"},
	{name: "a link drops what a healthy summarizer left", file: "chain.go", text: "			g.Target = max(g.Target, g.Limit) //", with: "			_ = 0 //", test: "TestChain_HealthySummarizer"},
	{name: "nothing stands in for a summarizer", file: "chain.go", text: "	if z == nil || !callsModel(z.With) {", with: "	if z != nil || link != nil {", test: "TestChain_StandIn"},
	{name: "MinFree of the first link alone", file: "chain.go", text: "				g.MinFree = 0\n", with: "				g.MinFree = clampInt(minFree)\n", test: "TestChain_MinFreeOfTheWhole"},
	{name: "media are not counted where they leave", file: "state.go", text: "		s.media -= e.msg.media()\n", with: "", test: "TestClearMedia_IsDue"},
	{name: "superseded results are left", file: "clear.go", text: "			if newer[key] {\n", with: "				if false {\n", test: "TestClearToolResults_Same"},
	{name: "a page without what damage put off", file: "archive.go", text: "			if over && !isOlder && !a.gap && len(a.missing) == 0 {", with: "			if over {", test: "TestArchive_DamagedPages"},
	{name: "lost IDs are named again", file: "archive.go", text: "		gone := minus(a.missing, a.told)\n", with: "		gone := a.missing\n", test: "TestArchive_GoneOnce"},
	{name: "a delivered message that a second Reload takes for another", file: "reload.go", text: "			h.log.delivered[batch[i].id] = q\n", with: "", test: "TestReload_DeliveredAfterAReload"},
	{name: "what an unsaved edit took is lost", file: "reload.go", text: "		if h.find(id) == nil && ", with: "		if id < 0 && ", test: "TestReload_EditsAndRollbacks"},
	{name: "own pins are lost", file: "reload.go", text: "pin: m.pinned[d.was.head], ", with: "", test: "TestReload_OwnMessagesGoBehind"},
	{name: "a Reload that forgets what was measured", file: "rollback.go", text: "				if own == nil || !own.sameAs(e) {\n", with: "				if own == nil || own.id > 0 {\n", test: "TestReload_KeepsTheCalibration"},
	{name: "a Reload that appends what was repaired", file: "reload.go", text: "max(l.last(), l.loaded)", with: "l.last()", test: "TestReload_Repaired$"},
	{name: "unread notes leave", file: "floor.go", text: "return i >= f.newest || i >= f.tail", with: "return i >= f.newest"},
	{name: "a note that ends a run of user messages", file: "append.go", text: "return // what follows it is as if it were not there", with: ""},
	{name: "a window that keeps the summary", file: "sliding.go", text: "e.Summary = &Summary{}", with: "_ = e", test: "TestSlidingWindow_Summary"},
	{name: "Spill gets what was cut", file: "spill.go", text: "if o.missing > 0 {", with: "if o.missing < 0 {", test: "TestSpill_NeverGetsWhatWasCut"},
	{name: "a Reload that appends what was repaired and has left", file: "reload.go", text: "id > m.base && !d.was", with: "!d.was", test: "TestReload_Repaired$"},
	{name: "a queue that grows with each Reload", file: "save.go", text: "	p.view.queue = l.queued ", with: "	_ = p.view.queue ", test: "TestReload_RepairedQueue"},
	{name: "a made result that stands in the way", file: "reload.go", text: "if idle && slices.Contains(m.made, e.id) {", with: "if false {", test: "TestReload_MadeResults"},
	{name: "a made result that is gone too early", file: "reload.go", text: " && !m.isOpenLocked(e)", with: "", test: "TestReload_MadeResults"},
	{name: "a made result that a second Reload takes for a given one", file: "reload.go", text: "			h.log.made = append(h.log.made, batch[i].id)\n", with: "", test: "TestReload_MadeResults"},
	{name: "a made result that answers a later call", file: "reload.go", text: "own.at == theirs.at", with: "theirs.at != 0", test: "TestReload_MadeResults"},
	{name: "a made result whose call was repaired", file: "reload.go", text: " || own != nil && own.at == theirs.at", with: " || own == theirs", test: "TestReload_MadeResults"},
	{name: "damage that the archive does not tell", file: "archive.go", text: "		a.untold = true\n", with: "", test: "TestDamage_HidesNothingElse"},
	{name: "what is salvaged after damage counts as whole", file: "copy.go", text: "s.read != nil && rec.Prev == s.prev", with: "s.read != nil", test: "TestDamage_HidesNothingElse"},
	{name: "short records without an end", file: "save.go", text: "	d.full = float64(l.count) >= max(maxCount, likely/perRecord)\n", with: "", test: "TestSave_FullRecordsByCount"},
	{name: "Load reads behind the record", file: "save.go", text: "		if rec.Seq == to && to > 0 {\n", with: "		if false {\n", test: "TestOpen_Damage"},
	{name: "a pause that Open forgets", file: "restore.go", text: ", marks: old.marks", with: "", test: "TestDo_PauseIsKept"},
	{name: "a pause that is not saved", file: "state_json.go", text: "			e.marks.set(paused, r.Bool())\n", with: "			r.Bool()\n", test: "TestDo_PauseIsKept"},
	{name: "a queue that is delivered in the middle of an answer", file: "do.go", text: "	next.last, next.first = h.newestID(), 0\n	h.sending = &next // so that the queue waits\n", with: "	h.sending = nil\n	h.deliverLocked()\n	_ = next\n", test: "TestDo_PauseAndOthers"},
	{name: "a conversation that cannot go on after a pause", file: "do.go", text: "!h.isPaused() && !h.opts", with: "!h.opts", test: "TestDo_"},
	{name: "a search without its result stays", file: "wire/anthropic.go", text: "func (w *anthropicWriter) ask() *anthropicMessage {\n	w.endTurn()\n", with: "func (w *anthropicWriter) ask() *anthropicMessage {\n", test: "TestAnthropic_ServedCalls"},
	{name: "an Encoder forgets a search that waits", file: "wire/anthropic.go", text: "	w.msgs, w.waiting = s.msgs, s.waiting\n", with: "	w.msgs, w.waiting = s.msgs, nil\n", test: "TestAnthropic_ServedCalls"},
	{name: "a search is removed from a saved state", file: "wire/anthropic_served.go", text: "	w.msgs = slices.Clone(w.msgs) // a saved state has the messages as they are\n", with: "", test: "TestAnthropic_ServedCalls|TestEncoder"},
	{name: "a comma stays behind a search that leaves", file: "wire/anthropic_served.go", text: "		to++ // the comma\n", with: "", test: "TestAnthropic_ServedCalls"},
	{name: "an answer whose results could not be spilled", file: "reply.go", text: "	if err := h.cutLong(batch); err != nil {\n		return nil, err\n	}\n", with: "	_ = h.cutLong(batch)\n", test: "TestDo_SpillFails"},
	{name: "a record that cannot be written and is reported as saved", file: "save.go", text: "		rec, err := l.record(d, doubts)\n		if err != nil {\n			return err\n		}\n", with: "		rec, _ := l.record(d, doubts)\n		var err error\n", test: "TestSave_CannotBeWritten"},
	{name: "a draft sent although the log cannot be read", file: "save.go", text: "		if _, err := h.findDraft(ctx, l, nil); err != nil {\n			return err\n		}\n", with: "		_, _ = h.findDraft(ctx, l, nil)\n", test: "TestSave_CannotFindOut"},
	{name: "a conflict in a log that cannot be read", file: "save.go", text: "			case findErr != nil:\n				return findErr\n", with: "			case findErr != nil && false:\n", test: "TestSave_CannotFindOut"},
	{name: "a nil ctx given to a Store", file: "store.go", text: "	if ctx == nil {\n		ctx = context.Background()\n	}\n	return func(yield func(Record, error) bool) {\n", with: "	return func(yield func(Record, error) bool) {\n", test: "TestStore_NilContext"},
	{name: "an Undo that ends what the archive is given", file: "record.go", text: "			continue // an edit was undone\n", with: "			break // an edit was undone\n", test: "TestArchive_NextToAnUndo"},
	{name: "a refused result that comes back cut", file: "reload.go", text: "				msg = d.original.msg\n", with: "				_ = msg\n", test: "TestReload_RefusedWhole"},
	{name: "a result made at Open for a call that another has answered", file: "reload.go", text: "		if _, err := c.find(p.(ToolResult).CallID, \"\"); err != nil {\n			return false\n		}\n", with: "		_ = p\n", test: "TestReload_ResultsMadeAtOpen"},
	{name: "a limit named for another model", file: "save.go", text: "	h.named = 0\n", with: "", test: "TestReload_AnotherModelThanTheOneWithALimit"},
	{name: "an unknown field of a record", file: "state_json.go", text: "		in.queue = new(readList(r, readQueued))\n	default:\n		r.Unknown(key)\n", with: "		in.queue = new(readList(r, readQueued))\n", test: "TestOpen_UnknownFields"},
	{name: "an unknown field of the limits in a record", file: "internal/strictjson/field.go", text: "			r.Unknown(key)\n", with: "			r.Skip()\n", test: "TestFields_Refuses"},
	{name: "an unknown field of what was measured in a record", file: "state_json.go", text: "		case !r.Field(key, fields):\n			r.Unknown(key)\n", with: "		case !r.Field(key, fields):\n			r.Skip()\n", test: "TestOpen_UnknownFields"},
	{name: "a last ID that falls", file: "record.go", text: "	if next.last < r.last || next.last > maxID {\n", with: "	if false {\n", test: "TestOpen_LastDescends"},
	{name: "figures of an earlier record", file: "record.go", text: "	r.scalars = next.scalars\n", with: "	r.last = next.last\n", test: "TestSave_ComesBack"},
	{name: "the calibration of another model", file: "record.go", text: "	if next.model != r.model || next.learned", with: "	if next.learned", test: "TestSave_ComesBack"},
	{name: "a change of figures alone", file: "save.go", text: "	changed = patch.scalars != l.saved.scalars || ", with: "	changed = ", test: "TestSave_ComesBack"},

	// Summaries.
	{name: "no breaker", file: "breaker.go", text: "	if b.failures == 0 {\n", with: "	if b.failures >= 0 {\n", test: "TestBreaker$|TestAttempts"},
	{name: "a breaker that hides the failure", file: "breaker.go", text: "func (e *breakerError) Unwrap() error { return e.cause }", with: "func (e *breakerError) Unwrap() error { return nil }", test: "TestBreaker_ShowsTheFailure"},
	{name: "the end of another caller's ctx", file: "compact_attempt.go", text: "		err = errors.New(fmt.Sprint(err))\n", with: "		_ = errors.New\n", test: "TestBreaker_ShowsTheFailure"},
	{name: "a breaker that stays open", file: "compact_attempt.go", text: "		h.breaker = breaker{}\n", with: "", test: "TestBreaker_Resets"},
	{name: "a summary that frees too little", file: "compact_attempt.go", text: "a.summary.checkUsable(freed-(a.at.raw()-a.view.raw()), int64(a.goal.MinFree))", with: "a.summary.checkUsable(freed, 0)", test: "TestSummarize_FreesTooLittle"},
	{name: "a summarizer that reads markers", file: "summarize.go", text: "source{id, read.Message}", with: "source{id, s.find(id).msg}", test: "TestChain"},
	{name: "tags in a conversation stay tags", file: "tags.go", text: "		if s[i] != '<' || !beginsTag(s[i+1:]) {\n", with: "		if s[i] != '<' || !beginsTag(s[i+1:]) || true {\n", test: "TestSummarize_Injection"},

	// Files of records.
	{name: "Append without a sync", file: "filestore/store.go", text: "	l.date(updated)\n	return s.sync(l.file)\n", with: "	l.date(updated)\n	return nil\n", test: "TestStore_Crashes"},
	{name: "a file whose name is not synced", file: "filestore/store.go", text: "	if err := l.dir.sync(); err != nil {\n		return err\n	}\n	if !l.made", with: "	if !l.made", test: "TestStore_Crashes"},
	{name: "a newest record that may not last", file: "filestore/store.go", text: "	if !l.made || t.ID != \"\" {\n", with: "	if false {\n", test: "TestStore_Crashes"},
	{name: "a torn tail that may come back", file: "filestore/store.go", text: "		s.forget(l.name) // so", with: "		// so", test: "TestStore_CutLasts"},
	{name: "a failed write that is forgotten", file: "filestore/store.go", text: "		s.forget(l.name)\n		if l.file", with: "		if l.file", test: "TestStore_CutLasts"},
	{name: "a failed write that stays", file: "filestore/store.go", text: "		if l.file.Truncate(tail.end) == nil {\n			_ = s.sync(l.file)\n		}\n", with: "", test: "TestStore_FailedWrite"},
	{name: "a cut that is not synced", file: "filestore/store.go", text: "			_ = s.sync(l.file)\n", with: "", test: "TestStore_FailedWrite"},
	{name: "a Delete of what may come back", file: "filestore/remove.go", text: "		return s.syncNames(dir)\n", with: "		return nil\n", test: "TestStore_Crashes"},
	{name: "readers without a lock", file: "filestore/open.go", text: "	if err = lock(ctx, file, false); err == nil {", with: "	if err == nil {", test: "TestStore_WaitsForTheLock"},
	{name: "a log that another has replaced", file: "filestore/open.go", text: "	if !s.files().same(named, l.info) {\n		return nil, errMoved\n	}\n", with: "	_ = named\n", test: "TestStore_Interleaved"},
	{name: "what a killed Prune left comes back", file: "filestore/remove.go", text: "	if err == nil {\n		return s.syncNames(l.dir)\n	}\n	return unlessNotExist(err)\n", with: "	return unlessNotExist(err)\n", test: "TestStore_DeleteTakesCopies"},
	{name: "no lock", file: "filestore/open.go", text: "		ok, err := f.lock(exclusive)\n", with: "		ok, err := true, error(nil)\n", test: "TestStore_Interleaved"},
	{name: "no look at Prev", file: "filestore/store.go", text: "	case tail.ID != r.Prev:\n", with: "	case tail.ID != r.Prev && false:\n", test: "TestStore_Interleaved"},
	{name: "a record that names another than the one before it", file: "filestore/log.go", text: "	case l.Prev != s.id:\n", with: "	case false:\n", test: "TestStore_Refuses"},
	{name: "a directory whose name is not synced", file: "filestore/open.go", text: "	return s.keep(parent)\n", with: "	return nil\n", test: "TestStore_Crashes"},
	{name: "a parent whose name is not synced", file: "filestore/open.go", text: "		if err := s.keep(filepath.Dir(parent)); err != nil {\n			return err\n		}\n", with: "", test: "TestStore_Crashes"},
	{name: "a line that a failed sync has lost", file: "filestore/store.go", text: "		if _, err := l.file.WriteAt(t.text, t.at); err != nil {\n			return err\n		}\n", with: "", test: "TestStore_Crashes"},
	{name: "a pruned log that is not synced", file: "filestore/remove.go", text: "	to.date(updated)\n	return s.sync(to.file)\n", with: "	to.date(updated)\n	return nil\n", test: "TestStore_Crashes"},
	{name: "a Prune whose name is not synced", file: "filestore/remove.go", text: "	return s.syncNames(l.dir) // a writer", with: "	return nil // a writer", test: "TestStore_Crashes"},
	{name: "a Delete that is not synced", file: "filestore/remove.go", text: "	return s.syncNames(l.dir)\n}\n\n// tmp", with: "	return nil\n}\n\n// tmp", test: "TestStore_Crashes"},
	{name: "a NUL that is damage", file: "filestore/log.go", text: "bytes.IndexByte(whole[i:], 0) >= 0", with: "false", test: "TestStore_TornTail"},
	{name: "a line that leads to no full record", file: "filestore/log.go", text: "	case s.full >= 0 && l.back != l.at-s.full:\n", with: "	case false:\n", test: "TestStore_Refuses"},
	{name: "a seal without the record before", file: "sealed.go", text: "f.Name, f.Key, f.ID, f.Prev}", with: "f.Name, f.Key, f.ID}", test: "TestSealed_Attacks"},
	{name: "a seal without the key", file: "sealed.go", text: "f.Name, f.Key, f.ID, f.Prev}", with: "f.Name, f.ID, f.Prev}", test: "TestSealed_Attacks"},
	{name: "sealed records that do not follow each other", file: "sealed.go", text: "				usable, fault = follows(key, &prev, &r, from <= 1 || r.Seq != from)\n", with: "				usable, fault = follows(key, new(Record), &r, from <= 1 || r.Seq != from)\n", test: "TestSealed_Attacks"},
	{name: "a list by the times of files", file: "filestore/list.go", text: "held[0].head.Updated.After(latest(files[i]))", with: "true", test: "TestStore_ListOfCopiedFiles"},
	{name: "a Prune that comes too late", file: "convotest/memstore.go", text: "before < log[0].Seq", with: "false", test: "TestMemStore_PruneThatComesTooLate"},
	{name: "a gap", file: "filestore/log.go", text: "	case l.Seq != s.seq+1:\n", with: "	case false:\n", test: "TestStore_Refuses"},

	// Run.
	{name: "a step that runs the calls of a Run under way again", file: "run.go", text: "\tdefer h.running.release()\n\tctx := h.running.mark(r.ctx)\n", with: "\th.running.release()\n\tctx := h.running.mark(r.ctx)\n", test: "TestRun_OneStepAtATime"},
	{name: "results of calls that were taken back", file: "run.go", text: "\tcase h.calls == nil || h.calls.head != head:\n", with: "\tcase h.calls == nil:\n", test: "TestRun_TakenBackMeanwhile"},
	{name: "a call that is run although it was answered", file: "run.go", text: "\t\tcase !r.h.isOpen(head, call.ID):\n", with: "\t\tcase false:\n", test: "TestRun_AnsweredMeanwhile"},
	{name: "a call that is run although ctx has ended", file: "run.go", text: "\t\tcase ctx.Err() != nil:\n", with: "\t\tcase false:\n", test: "TestRun_CtxEnds"},
	{name: "calls beside one that is alone", file: "run.go", text: "\t\tif tool.Alone {\n\t\t\trunning.Wait()\n\t\t}\n\t\tfree <- struct{}{}\n", with: "\t\tfree <- struct{}{}\n", test: "TestRun_Alone"},
	{name: "calls without a bound", file: "run.go", text: "\tfree := make(chan struct{}, r.parallel)\n", with: "\tfree := make(chan struct{}, len(calls))\n", test: "TestRun_Parallel"},
	{name: "arguments that are not checked", file: "run.go", text: "\tcase tool.Opaque == (Opaque{}) && !call.Valid():\n", with: "\tcase false:\n", test: "TestRun_ToolFails"},
	{name: "results that no result can hold", file: "run.go", text: "; reason != \"\" {\n\t\treturn ResultError(", with: "; reason == \"?\" {\n\t\treturn ResultError(", test: "TestRun_ToolFails"},
	{name: "results lost with an error", file: "run.go", text: "\t\treply.Messages = append(reply.Messages, results...)\n", with: "", test: "TestRun_SpillFails"},
	{name: "reasoning that counts as an answer", file: "reply.go", text: "\t\t\tcase Reasoning:\n\t\t\tcase Text:\n", with: "\t\t\tcase Text:\n", test: "TestRun_AnswerIsNone"},
	{name: "requests that are not counted inside Do", file: "run.go", text: "\t\tif r.made >= r.max {\n\t\t\treturn Reply{}, spent\n\t\t}\n\t\tr.made++\n", with: "\t\tr.made++\n", test: "TestRun_MaxRequestsCountsAll"},
	{name: "a Run whose requests are refused as too long", file: "do.go", text: "\t\tcase panicked, spent, retries == maxRetries:\n", with: "\t\tcase panicked, retries == maxRetries:\n\t\t\t_ = spent\n", test: "TestRun_MaxRequestsCountsAll"},
	{name: "tools that outlive Close", file: "run.go", text: "\t\t\tend(ErrClosed)\n", with: "", test: "TestRun_Close"},
	{name: "a paused answer that nothing may follow", file: "reply.go", text: "batch[0].goesOn = at.isPaused() && at.newestID() == h.newestID()", with: "_ = batch[0]", test: "TestAppendReply_Pauses"},
	{name: "a paused answer that goes on twice", file: "reply.go", text: "at.isPaused() && at.newestID() == h.newestID()", with: "h.isPaused()", test: "TestAppendReply_Pauses"},
	{name: "an answer to what was taken back", file: "reply.go", text: "	if id, _ := h.reversedSinceLocked(at); id != 0 {\n", with: "	if id, _ := h.reversedSinceLocked(at); id != 0 && false {\n", test: "TestAppendReply_TakenBack"},
	{name: "a note that ends a paused answer", file: "state.go", text: "	for n > 0 && s.list[n-1].note {\n		n--\n	}\n	return n > 0 && s.list[n-1].marks", with: "	return n > 0 && s.list[n-1].marks", test: "TestAppendReply_Pauses"},
	{name: "an empty answer in silence", file: "reply.go", text: "	return r, h.faultOf(&r)\n", with: "	return r, nil\n", test: "TestAppendReply_AnswerErrors"},
	{name: "a queued message inside a paused answer", file: "queue.go", text: " || h.isPaused()", with: "", test: "TestAppendReply_Pauses"},
	{name: "an answer that is due while calls are open", file: "status.go", text: "h.calls.openCalls() == 0 && (h.awaitsAnswer()", with: "(h.awaitsAnswer()", test: "TestStatus_AwaitsAnswer"},
	{name: "a RewindTo below the summary", file: "rollback.go", text: "newest > id {\n", with: "newest > maxID {\n", test: "TestRewindTo_AfterACompactionInTheTurn"},
}

// root is where the module is.
const root = "../.."

func allMutants() []mutant { return slices.Concat(mutants, bpeMutants) }

// choose returns the mutants of a part, and the mutants of other parts that a change of
// files concerns: a mutant belongs to the file that it changes and to the tests of that
// file. Part 0 means all parts. If there are more than most mutants of other parts, each
// part chooses at most that many, evenly spread.
func choose(all []mutant, part int, files []string, most int) (chosen []mutant) {
	var touched []mutant
	for i, m := range all {
		tests := strings.TrimSuffix(m.file, ".go") + "_test.go"
		switch {
		case part == 0 || i%mutantParts == part-1:
			chosen = append(chosen, m)
		case slices.Contains(files, m.file) || slices.Contains(files, tests):
			touched = append(touched, m)
		}
	}
	step := max((len(touched)+most-1)/most, 1)
	for i := (part + step) % step; i < len(touched); i += step {
		chosen = append(chosen, touched[i])
	}
	return chosen
}

// mostTouched is the maximum number of mutants of a change that run in addition to those
// of the part: with more, CI would take too long.
const mostTouched = 60

func TestMutants_Chosen(t *testing.T) {
	var all []mutant
	for i := range 2 * mutantParts {
		all = append(all, mutant{name: string(rune('a' + i)), file: []string{"append.go", "wire/cache.go"}[i%2]})
	}
	names := func(chosen []mutant) (s string) {
		for _, m := range chosen {
			s += m.name
		}
		return s
	}
	assert.Equal(t, "abcdefghijklmnop", names(choose(all, 0, nil, 9)))
	assert.Equal(t, "ck", names(choose(all, 3, nil, 9)))
	assert.Equal(t, "ckbdfhjlnp", names(choose(all, 3, []string{"wire/cache.go", "cache.go"}, 9)))
	assert.Equal(t, "aicegkmo", names(choose(all, 1, []string{"append_test.go"}, 9)))
	assert.Equal(t, "ckdhlp", names(choose(all, 3, []string{"wire/cache.go"}, 4)))
}

// The text of each mutant occurs once in its file. If this fails, the code has been
// rewritten, and the mutant must be adapted.
func TestMutants_FindTheirText(t *testing.T) {
	for _, m := range allMutants() {
		source, err := os.ReadFile(filepath.Join(root, m.file))
		if assert.NoError(t, err, m.name) {
			assert.Equal(t, 1, strings.Count(string(source), m.text), "%s: how often %s holds %q", m.name, m.file, m.text)
		}
	}
}

// A test fails for each mutant, and passes without.
func TestMutants(t *testing.T) {
	if !*runMutants {
		t.Skip("builds and runs tests once for each mutant; run with -convo.mutants, as ci/test.sh does")
	}
	patterns := map[string][]string{} // by package
	if *mutantsPart < 0 || *mutantsPart > mutantParts {
		t.Fatalf("-convo.mutants.part is %d, want 0 to %d", *mutantsPart, mutantParts)
	}
	chosen := choose(allMutants(), *mutantsPart, strings.Fields(*mutantsOf), mostTouched)
	for _, m := range chosen {
		pkg := m.pkg()
		patterns[pkg] = append(patterns[pkg], m.pattern())
	}
	t.Run("none", func(t *testing.T) {
		for pkg, all := range patterns {
			slices.Sort(all)
			out, _, err := goTest(t, pkg, strings.Join(slices.Compact(all), "|"))
			require.NoError(t, err, "without a mutant: %s", out)
		}
	})
	failed := regexp.MustCompile(`seed \d+|--- FAIL: \S+|panic: .*`)
	for _, m := range chosen {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			out, took, err := goTest(t, m.pkg(), m.pattern(), "-overlay="+m.overlay(t))
			require.Error(t, err, "no test failed")
			require.NotContains(t, out, "panic: test timed out", "a mutant that hangs takes too long to be tried; choose one that fails")
			by := failed.FindString(out)
			require.NotEmpty(t, by, "no test ran: %s", out)
			t.Logf("seen: %s, after %.1f s on a processor", by, took.Seconds())
		})
	}
}

// pkg returns the folder of the package that the mutant is in.
func (m mutant) pkg() string { return "./" + filepath.ToSlash(filepath.Dir(m.file)) }

func (m mutant) pattern() string {
	if m.test == "" {
		return modelTest
	}
	return m.test
}

// overlay writes the changed file, and returns the name of a file for the
// -overlay flag, which lets go test read it instead of the original.
func (m mutant) overlay(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, m.file))
	require.NoError(t, err)
	source, err := os.ReadFile(path)
	require.NoError(t, err)
	dir := t.TempDir()
	changed := filepath.Join(dir, "changed.go")
	require.NoError(t, os.WriteFile(changed, []byte(strings.Replace(string(source), m.text, m.with, 1)), 0o600))
	replace := map[string]string{path: changed}
	for file, text := range pruned(t, filepath.Dir(path), m.pattern()) {
		replace[file] = filepath.Join(dir, filepath.Base(file))
		require.NoError(t, os.WriteFile(replace[file], []byte(text), 0o600))
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	require.NoError(t, err)
	name := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(name, overlay, 0o600))
	return name
}

// goTest runs the tests of a package that match a pattern. It returns their output, and
// the CPU time of the build and the tests.
func goTest(t *testing.T, pkg, pattern string, flags ...string) (string, time.Duration, error) {
	t.Helper()
	args := []string{"test", "-vet=off", "-ldflags=-w", "-count=1", "-timeout=5m", "-failfast", "-run", pattern}
	args = append(append(args, flags...), pkg)
	switch pkg {
	case "./.":
		args = append(args, "-convo.ops=60000")
	case "./filestore": // a short run has too few crashes
	default:
		args = append(args, "-short")
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	require.NotNil(t, cmd.ProcessState, "go did not start: %v", err)
	return string(out), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), err
}
