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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	runMutants  = flag.Bool("convo.mutants", false, "break the code in one place at a time and see a test fail")
	mutantsPart = flag.Int("convo.mutants.part", 0, "of four parts of the mutants, the number of the one to run; 0: all")
)

// A mutant breaks one rule: it replaces a text that stands exactly once in a
// file of the module. A test of the package that the file is in must fail.
type mutant struct {
	name, file, text, with string

	// test is the -run pattern of the test that must fail. Empty: the model
	// test alone.
	test string
}

const modelTest = "TestHistory_Model$"

var mutants = []mutant{
	// Appending and pins.
	{
		name: "pairing by id over the whole list", file: "calls.go",
		text: "	return 0, notFound(id != \"\" && answered)\n",
		with: "	if id != \"\" && c.open > 0 {\n\t\treturn c.find(\"\", \"\")\n\t}\n\treturn 0, notFound(id != \"\" && answered)\n",
	},
	{name: "an ID given again", file: "append.go", text: "	open, id, turn := h.calls, h.last, h.turn\n", with: "	open, id, turn := h.calls, h.last, h.turn\n	if n := len(h.list); n > 0 {\n		id = h.list[n-1].id\n	}\n"},
	{name: "a refused batch that answers calls", file: "append.go", text: "			h.calls.reopen(answered)\n", with: ""},
	{name: "a pin of one entry only", file: "pin.go", text: "			heads = append(heads, e.head)", with: "			heads = append(heads, e.id)"},
	{name: "ephemeral messages counted twice", file: "state.go", text: "s.summary.tokens() + s.eph.tokens()\n", with: "s.summary.tokens() + 2*s.eph.tokens()\n"},
	{name: "restored without pairing", file: "restore.go", text: "	h.calls = callsOf(h.list)\n", with: ""},
	{name: "a snapshot that an append writes into", file: "state.go", text: "c.sys, c.list, c.pins = slices.Clip(s.sys), slices.Clip(s.list), slices.Clip(s.pins)", with: "c.pins = slices.Clip(s.pins)"},

	// Edits.
	{name: "an edit that drops what has become floor", file: "edit_apply.go", text: "			case floor.has(i):\n				return &StaleError{", with: "			case floor.has(i) && false:\n				return &StaleError{"},
	{name: "an edit that drops what was pinned since", file: "edit_apply.go", text: "			case floor.pinned(i):\n				done.pinned = append(done.pinned, e.id)\n", with: "			case floor.pinned(i) && false:\n"},
	{name: "a second summary", file: "edit_apply.go", text: "	if ed.newSummary != nil && s.summary != ed.oldSummary {\n", with: "	if ed.newSummary != nil && s.summary != ed.oldSummary && false {\n"},
	{name: "SplicePrefix by count", file: "edit.go", text: "	r, err := h.Apply(at, e)\n", with: "	at = h.Snapshot()\n	for i := range e.Drop {\n		e.Drop[i] = at.list[min(i, len(at.list)-1)].id\n	}\n	r, err := h.Apply(at, e)\n"},

	// Never stuck, originals, Undo.
	{name: "unanswered results that are no floor", file: "floor.go", text: "s.list[from-1].msg.Role == RoleTool {", with: "false {"},
	{name: "a pinned result is cut", file: "compact_cut.go", text: "		if s.isPinned(e.head) {\n			return nil\n		}\n", with: "", test: "TestCut_Pinned$"},
	{name: "a cut that does not help", file: "compact_cut.go", text: "		if over(all, most) {\n			return\n		}\n", with: "", test: "TestCut_NotEnough"},
	{name: "a short result cut for a long one", file: "compact_cut.go", text: "		limit := max(size, c.least)\n", with: "		limit := max(c.size/2, c.least)\n", test: "TestCut_FairShare"},
	{name: "Fit cuts", file: "compact_cut.go", text: "	case a.reserve != nil, weight <= a.limit", with: "	case weight <= a.limit", test: "TestCut_NotForFit"},
	{name: "Recover never cuts for a strategy that frees too little", file: "compact_cut.go", text: "	if a.reason != ReasonOverflow || a.cuts != nil {\n", with: "	if a.reason != ReasonOverflow || true {\n", test: "TestCut_Recover"},
	{name: "a cut at append that nobody is told of", file: "append.go", text: "		h.deliver(*cut)\n", with: "", test: "TestAppend_ReportsCuts"},
	{name: "a summarizer that reads what a compaction cleared", file: "original.go", text: "	if o := s.original(id); o != nil {\n", with: "	if o := s.original(id); o != nil && false {\n", test: "TestOriginals_AreSummarised"},
	{name: "text that nobody has read and nobody counts", file: "summarize.go", text: "		w.unread = addClamped(w.unread, read.Missing)\n", with: "", test: "TestOriginals_NotKept"},
	{name: "originals without bound", file: "original.go", text: "	if raw <= keep {\n", with: "	if raw <= keep || true {\n", test: "TestOriginals_Oldest"},
	{name: "Undo of the second newest", file: "undo.go", text: " || d.version != h.applied[len(h.applied)-1] {\n", with: " {\n"},
	{name: "Undo keeps the summary", file: "undo.go", text: "	h.edits, h.summary, h.touched = d.edits, d.summary, d.touched\n", with: "	h.edits, h.touched = d.edits, d.touched\n"},
	{name: "Undo of an edit that a rollback has undone", file: "rollback.go", text: "	for len(h.applied) > 0 && h.applied[len(h.applied)-1] > at.version {\n", with: "	for false {\n"},
	{name: "compacted again right behind an Undo", file: "undo.go", text: "	h.heldSince, h.heldAt = h.version, h.appendedEver\n", with: "", test: "TestUndo_Holds"},
	{name: "a compaction under way takes back what Undo put back", file: "compact_attempt.go", text: "		return &StaleError{Reason: \"an edit was undone meanwhile, which holds compactions up; see History.Undo\"}\n", with: "", test: "TestUndo_DuringACompaction"},

	// Rollbacks.
	{name: "a snapshot that a rollback writes into", file: "rollback.go", text: "	seen := n < h.seen\n", with: "	seen := false\n", test: "TestRewind_LeavesSnapshotsAlone"},
	{name: "every edit outlives a rollback", file: "rollback.go", text: "	case h.edits[since].newest > at.last:\n		return false\n", with: ""},
	{name: "a later edit hides an earlier one", file: "rollback.go", text: "i].newest <= newest })", with: "i].newest > 0 })"},
	{name: "a rollback that still shows what it undid", file: "rollback.go", text: "	h.edits = at.edits\n", with: "", test: "TestRollback_ToAnUndoneEditIsStale"},
	{name: "a rollback that forgets what it took back", file: "rollback.go", text: "	h.rollbacks = append(h.rollbacks, rollbackRecord{h.version, last})\n", with: ""},
	{name: "pins that outlive their entries", file: "rollback.go", text: "	h.pins = h.pins[:n:n]\n", with: "	_ = n\n"},
	{name: "a rewind past an edit", file: "rollback.go", text: "h.list[n-1].turn > h.touched {", with: "h.list[n-1].turn > 0 {"},

	// Estimates.
	{name: "usage applied to the present view", file: "usage.go", text: "	next := &calibration{Model: model, at: at.reported()", with: "	at = h.snapshotLocked()\n	next := &calibration{Model: model, at: at.reported()"},
	{name: "usage older than the last applied", file: "usage.go", text: "at.version < h.known().learned.version(at.known().model)", with: "false"},
	{name: "no bound on the overhead", file: "usage.go", text: "	return max(min(int64(l.Tools), maxTotal), l.most()/2)\n", with: "	return maxTotal\n"},

	// Compactions.
	{name: "an edit that leaves the request too long", file: "compact_attempt.go", text: "	case weight > limit && (a.reserve != nil || a.total > a.limit):\n", with: "	case weight > 1<<60 && (a.reserve != nil || a.total > a.limit):\n"},
	{name: "compacting twice", file: "compact.go", text: "	case h.compacted == h.version && total <= m.limit:\n", with: "	case h.compacted == h.version && total < 0:\n"},
	{name: "a strategy that runs when the floor is too large", file: "compact_attempt.go", text: "	if a.scale.Weigh(w.total()) <= a.limit {\n", with: "	if a.scale.Weigh(w.total()) >= 0 {\n"},
	{name: "half a turn without its user messages", file: "cut.go", text: "a.user && inside && a.turn == list[place].turn", with: "a.user && inside && a.turn < 0", test: "TestTruncate"},
	{name: "a snapshot that a strategy can change", file: "compact_attempt.go", text: "h.opts.Strategy, h.direct, &own, a.goal)", with: "h.opts.Strategy, h.direct, a.at, a.goal)\n	_ = own", test: "TestHostile_KeepsAndChanges"},
	{name: "no second attempt after a stale edit", file: "compact_attempt.go", text: "r.Outcome == OutcomeStale && !f.unattended", with: "false", test: "TestFlight_Stale"},
	{name: "a second attempt in the background", file: "compact_attempt.go", text: "r.Outcome == OutcomeStale && !f.unattended", with: "r.Outcome == OutcomeStale", test: "TestFlight_Stale"},
	{name: "one round, though more was appended meanwhile", file: "compact.go", text: "r.Outcome != OutcomeApplied || r.Fits {\n", with: "true {\n", test: "TestFlight_LooksAgain"},
	{name: "a waiter that frees the slot of another", file: "compact_flight.go", text: "		case <-ctx.Done():\n", with: "		case <-ctx.Done():\n			<-h.slot\n", test: "TestFlight_WaitsUnderItsOwnContext"},
	{name: "a late edit is applied", file: "compact_attempt.go", text: "	if a.f.ctx.Err() != nil {\n		return endOf(a.f.ctx) //", with: "	if a.f.ctx.Err() != nil && false {\n		return endOf(a.f.ctx) //", test: "TestEndedContext_JustBeforeTheEdit"},
	{name: "a strategy that ignores its ctx holds its caller", file: "strategy.go", text: "	if direct {\n", with: "	if direct || true {\n", test: "TestFlight_DeafStrategy"},
	{name: "a summarizer that ignores its ctx holds its caller", file: "summarize.go", text: "	summary, err = await(bounded, in, func() (Summary, error) { return w.with.Summarize(bounded, req) })\n", with: "	summary, err = w.with.Summarize(bounded, req)\n	_ = in\n", test: "TestTimeout_NextLinksRun"},
	{name: "a model call without a bound", file: "summarize.go", text: "	case w.timeout > 0 && (", with: "	case w.timeout > 1<<62 && (", test: "TestTimeout_NextLinksRun"},
	{name: "a model call that leaves no time", file: "summarize.go", text: "deadline.Add(-left / 4)", with: "deadline.Add(-left / 400)", test: "TestTimeout_NextLinksRun"},
	{name: "a link runs though ctx has ended", file: "strategy.go", text: "	if ctx.Err() != nil {\n		return \"\", Edit{Work: &Work{}}, causeOf(ctx)\n	}\n", with: "", test: "TestBreaker_NotOpenedWithoutACall"},

	// What providers say.
	{name: "a limit of another request", file: "recover_learn.go", text: "theirs < ours/2 || theirs/2 > ours", with: "theirs < 0", test: "TestRecover_Learns"},
	{name: "the limit of a small model", file: "recover_learn.go", text: "int64(f.limit) < cmp.Or(h.limits.most(), ours)/2", with: "int64(f.limit) < cmp.Or(0, ours)/2", test: "TestRecover_Learns"},
	{name: "the answer counted as prompt", file: "recover_learn.go", text: "	if f.prompt > 0 && at.version", with: "	if f.prompt = f.refused(); at.version", test: "TestRecover_Learns"},
	{name: "a named limit for good", file: "history.go", text: "	h.limits, h.named = limits, 0\n", with: "	h.limits = limits\n", test: "TestRecover_Learns"},
	{name: "an answer as long as the window", file: "overflow.go", text: "f.output < f.limit-f.limit/answerShare", with: "f.output > 0", test: "TestIsOverflow"},
	{name: "a rate of tokens", file: "overflow.go", text: "containsAny(e.text, throttleTexts[:]) || ", with: "", test: "TestIsOverflow"},
	{name: "a rate beside a plain overflow", file: "overflow.go", text: "!containsAny(e.text, plainTexts[:]) && (", with: "(", test: "TestIsOverflow"},
	{name: "an answer named with the prompt", file: "overflow.go", text: "!otherSubject.MatchString(before) && ", with: "before != after && ", test: "TestIsOverflow"},
	{name: "joined errors read as one", file: "overflow.go", text: "append(said, alone)", with: "said", test: "TestIsOverflow"},
	{name: "phrases far apart", file: "overflow.go", text: "rest[:min(len(rest), maxGap+len(then))]", with: "rest", test: "TestIsOverflow"},
	{name: "a body that the text does not hold", file: "overflow.go", text: "			guarded(func() { add(e.RawJSON()) })\n", with: "			_ = e\n", test: "TestIsOverflow"},

	// Calls and results.
	{name: "a result for the first of several calls", file: "calls.go", text: "inOrder && (few || ", with: "inOrder && (few && false || "},
	{name: "results without an ID, whatever their names", file: "calls.go", text: "r.Name != c.list[k].name) {", with: "false) {"},
	{name: "results with a name before those without", file: "calls.go", text: "name == \"\" || c.hasOpen(name, n+1)", with: "name == \"\" || n < 0", test: "TestAppend_ResultsInOrderAnswerTheirCalls"},
	{name: "results by name before those by ID", file: "append.go", text: "			if all, err = open.pairByID(a.entry, paired); !all && run < 0 {\n", with: "			if all, err = open.pairByID(a.entry, paired); !all {\n"},
	{name: "arguments that imitate what Encode sends", file: "wire/json.go", text: "!wrapped && call.Valid()", with: "(!wrapped || true) && call.Valid()", test: "TestArguments"},
	{name: "IDs for who has none", file: "wire/project.go", text: "	bare := p.bare && ", with: "	bare := false && ", test: "TestDecode_CallsWithoutIDs"},
	{name: "some calls without IDs", file: "wire/project.go", text: "func(p convo.Part) bool { return !p.(convo.ToolCall).Minted })", with: "func(p convo.Part) bool { return false })", test: "TestEncode_SendsMintedIDsBesideOthers"},

	// One request.
	{name: "a queued message between a request and its answer", file: "queue.go", text: " || h.isAnswerDueLocked()", with: "", test: "TestDo_ViewChanges|TestDo_QueueWhileAppending"},
	{name: "a queued message inside a batch", file: "queue.go", text: "h.calls.openCalls() > 0 || ", with: ""},
	{name: "queued while an answer is due", file: "queue.go", text: "	if newest := h.newestRoleLocked(); newest != RoleUser && newest != RoleTool {\n", with: "	if true {\n"},
	{name: "a run of users that Restore refuses", file: "append.go", text: "			id++ // with a gap between their IDs, Restore accepts them\n", with: "", test: "TestQueue_WaitsForTheBatch"},
	{name: "a queue that is not saved", file: "snapshot_json.go", text: "		out.Queued = append(out.Queued, queuedJSON{q.msg})\n", with: "		_ = q\n", test: "TestQueue_Delivers"},
	{name: "an answer behind other messages", file: "do.go", text: "	case !h.isAnswerDueLocked():\n", with: "	case false:\n", test: "TestDo_ViewChanges"},
	{name: "a summary for an answer that would be refused", file: "do.go", text: "	return a.h.answerFaultLocked()\n}", with: "	return nil\n}", test: "TestDo_RefusesBeforeItSends"},
	{name: "a panic that is sent again", file: "do.go", text: "		case panicked, retries == maxRetries:\n", with: "		case retries == maxRetries:\n			_ = panicked\n", test: "TestDo_SendFails"},
	{name: "sent again without end", file: "do.go", text: "const maxRetries = 2\n", with: "const maxRetries = 5\n", test: "TestDo_Recovers"},
	{name: "a send that Close does not end", file: "history.go", text: "		s.cancel(ErrClosed)\n", with: "", test: "TestDo_Close"},
	{name: "a model without its limits", file: "history.go", text: "		h.setLimitsLocked(limits)\n	}\n	if name", with: "		_ = limits\n	}\n	if name", test: "TestHistory_SetModel"},
	{name: "parallel calls that become one", file: "builder.go", text: "pb == nil || pb.isOtherCall(delta.ID) {", with: "pb == nil {", test: "TestBuilder$"},
	{name: "a cut call that is run", file: "builder.go", text: "	if b.stop != StopLength {\n", with: "	if true {\n", test: "TestBuilder_Cut"},
	{name: "a cut call that is decoded", file: "wire/stop.go", text: "k < 0 || !d.unclear {", with: "k >= 0 || !d.unclear {", test: "TestDecode_Cut"},
	{name: "a whole call that is put aside", file: "wire/stop.go", text: "!whole && (isBlank(arguments) || !valid)", with: "isBlank(arguments) || !valid", test: "TestDecode_EndedCall"},

	// Errors.
	{name: "CompactIfNeeded fails while the request fits", file: "compact.go", text: "	case r.Fits:\n		return r, nil\n	case h.isClosed():", with: "	case r.Fits && err == nil:\n		return r, nil\n	case h.isClosed():"},
	{name: "Compact succeeds when it declined", file: "compact.go", text: "		return r, cmp.Or(err, r.Cause)\n", with: "		_ = cmp.Or(err, r.Cause)\n		return r, nil\n"},
	{name: "Apply succeeds when nothing changed", file: "edit.go", text: "		return r, r.Cause\n", with: "		return r, nil\n"},
	{name: "Recover succeeds without a retry", file: "recover.go", text: "	return false, report, fmt.Errorf(\"%w; the provider said: %w\", err, cause)\n", with: "	return false, report, nil\n"},
	{name: "Wait returns how the compaction went", file: "compact_background.go", text: "		return b.report.clone(), nil\n	case <-ctx.Done():\n", with: "		return b.report.clone(), b.report.Cause\n	case <-ctx.Done():\n"},
	{name: "a closed History says that the request fits", file: "report.go", text: "total <= limit && !h.endedLocked(), ", with: "total <= limit, "},
	{name: "OnCompaction closes the History, and the request fits", file: "compact_flight.go", text: "	defer func() { r.Fits = r.Fits && !h.isClosed() }() ", with: "	", test: "TestClosed_NeverFits"},
	{name: "the Trigger closes the History, and the request fits", file: "compact.go", text: "			r.Fits, due, err = false, false, ErrClosed\n", with: "", test: "TestClosed_NeverFits"},
	{name: "a wasted call declines", file: "strategy.go", text: "	return calls == 0 && ", with: "	return calls >= 0 && ", test: "TestCompactionStrategy_DeclinesWithoutACall"},
	{name: "an error's own panic escapes", file: "strategy.go", text: "		if recover() != nil {\n			declined = false\n		}\n", with: "", test: "TestErrors_WhoseMethodsPanic"},
	{name: "a failed link in a quiet line", file: "report.go", text: " || r.Outcome == OutcomeApplied && r.trouble() != nil {\n", with: " {\n", test: "TestReport_LogsAFailedLink"},
	{name: "a Fit that blames the window for the pool", file: "compact_attempt.go", text: "	return a.reserve != nil && a.f.h.opts.Budget != nil && limit < a.marks.limit\n", with: "	return false\n", test: "TestFit_ErrorTexts"},
	{name: "Recover inside a compaction", file: "recover.go", text: "	if ctx != nil && h.isInside(ctx) {\n", with: "	if false {\n", test: "TestRecover_Refuses"},
	{name: "Recover without a cause", file: "recover.go", text: "	if cause == nil {\n", with: "	if false {\n", test: "TestRecover_Refuses"},
	{name: "%+v without call ids", file: "print.go", text: "	if !ids || id == \"\" {\n", with: "	if ids || id == \"\" {\n", test: "TestPrinting_ShowsIDsAndNoEssays"},
	{name: "a breakdown that does not add up", file: "breakdown.go", text: "		shared = share\n", with: "		shared = share + 1\n", test: "TestBreakdown"},
	{name: "a kit that lets a strategy fail for a reason", file: "convotest/useful.go", text: "where != nil && !c.worked[name]", with: "where != nil && false", test: "TestCheckStrategy_FailsUselessStrategies"},
	{name: "a kit that lets a strategy stop short", file: "convotest/useful.go", text: "	case more <= first/4:\n", with: "	case more <= first*4:\n", test: "TestCheckStrategy_FailsUselessStrategies"},

	// Summaries.
	{name: "no breaker", file: "breaker.go", text: "	if b.failures == 0 {\n", with: "	if b.failures >= 0 {\n", test: "TestBreaker$|TestAttempts"},
	{name: "a breaker that hides the failure", file: "breaker.go", text: "func (e *breakerError) Unwrap() error { return e.cause }", with: "func (e *breakerError) Unwrap() error { return nil }", test: "TestBreaker_ShowsTheFailure"},
	{name: "the end of another caller's ctx", file: "compact_attempt.go", text: "		err = errors.New(fmt.Sprint(err))\n", with: "		_ = errors.New\n", test: "TestBreaker_ShowsTheFailure"},
	{name: "a breaker that stays open", file: "compact_attempt.go", text: "		h.breaker = breaker{}\n", with: "", test: "TestBreaker_Resets"},
	{name: "a summary that frees too little", file: "compact_attempt.go", text: "a.summary.checkUsable(freed-(a.at.raw()-a.view.raw()), int64(a.goal.MinFree))", with: "a.summary.checkUsable(freed, 0)", test: "TestSummarize_FreesTooLittle"},
	{name: "a summarizer that reads markers", file: "summarize.go", text: "source{id, read.Message}", with: "source{id, s.find(id).msg}", test: "TestChain"},
	{name: "tags in a conversation stay tags", file: "tags.go", text: "		if s[i] != '<' || !beginsTag(s[i+1:]) {\n", with: "		if s[i] != '<' || !beginsTag(s[i+1:]) || true {\n", test: "TestSummarize_Injection"},
}

// root is where the module is.
const root = "../.."

func allMutants() []mutant { return slices.Concat(mutants, bpeMutants) }

// The text of each mutant stands once in its file. Where this fails, the code
// has been rewritten, and the mutant must be too.
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
	var chosen []mutant
	for i, m := range allMutants() {
		if *mutantsPart == 0 || i%4 == *mutantsPart%4 {
			chosen = append(chosen, m)
		}
	}
	for _, m := range chosen {
		pkg := m.pkg()
		patterns[pkg] = append(patterns[pkg], m.pattern())
	}
	for pkg, all := range patterns {
		slices.Sort(all)
		out, err := goTest(t, pkg, strings.Join(slices.Compact(all), "|"))
		require.NoError(t, err, "without a mutant: %s", out)
	}
	failed := regexp.MustCompile(`seed \d+|--- FAIL: \S+|panic: .*`)
	for _, m := range chosen {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			out, err := goTest(t, m.pkg(), m.pattern(), "-overlay="+m.overlay(t))
			require.Error(t, err, "no test failed")
			require.NotContains(t, out, "panic: test timed out", "a mutant that hangs takes too long to be tried; choose one that fails")
			by := failed.FindString(out)
			require.NotEmpty(t, by, "no test ran: %s", out)
			t.Logf("seen: %s", by)
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
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	require.NoError(t, err)
	name := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(name, overlay, 0o600))
	return name
}

// goTest runs the tests of a package that match a pattern.
func goTest(t *testing.T, pkg, pattern string, flags ...string) (string, error) {
	t.Helper()
	args := []string{"test", "-vet=off", "-count=1", "-timeout=5m", "-run", pattern}
	args = append(append(args, flags...), pkg)
	if pkg == "./." {
		args = append(args, "-convo.ops=20000")
	} else {
		args = append(args, "-short", "-failfast")
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	return string(out), err
}
