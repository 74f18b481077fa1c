// Package convo keeps an LLM conversation inside its context window.
//
// A [History] holds one conversation. [New] makes an empty one, and [Open] reads
// one from a [Store]. Agent code appends messages to it and asks it to prepare
// each request. When the request would be too long, a strategy decides which old
// parts to remove; whatever it decides, the conversation stays valid for the
// provider.
//
//	h, err := convo.New(&convo.Options{
//		Limits:   convo.Limits{Window: 128_000, Reserve: 16_000},
//		Strategy: convo.Chain(convo.ClearToolResults{}, convo.Summarize{With: s}, convo.Truncate{}),
//	})
//	_, err = h.Append(convo.System("You are a travel agent."))
//	id, err := h.Append(convo.User("Window seats only, I am tall."))
//	err = h.Pin(id) // stays word for word
//
//	// send calls the model, with the SDK you already use
//	reply, err := h.Run(ctx, send, convo.RunOptions{Tools: tools})
//
// # Requests
//
// There are two ways to use a History. [History.Run] makes requests, and runs the tools
// that the model calls, until the model is done; [History.Steps] yields each answer on the
// way. A program with a loop of its own calls [History.Append], [History.Prepare] and
// [History.RecordUsage]; see below. Both keep the same promises.
//
// [History.Do] makes one request: it compacts if needed, calls send with the
// [Snapshot] to send, compacts further and sends again if the provider says that
// the request was too long, records the usage and appends the answer, a [Reply].
// Its steps can also be called one by one:
//
//	snap, report, err := h.Prepare(ctx) // compacts if needed
//	if err != nil {
//		return err // the request must not be sent
//	}
//	reply, err := send(ctx, snap) // if it was too long: h.Recover(ctx, snap, err)
//	err = h.RecordUsage(snap, reply.Usage)
//	_, err = h.Append(reply.Messages...)
//
// [History.Queue] takes user messages that arrive while the model or its tools are
// at work, and appends them as soon as a user message is allowed. [History.SetModel]
// changes the model and its limits in one step.
//
// # Messages
//
// A [Message] has a role and ordered parts: [Text], [Reasoning], [ToolCall],
// [ToolResult], [Media], [Opaque]. [System], [User], [Assistant], [Result] and
// [ResultError] make the usual ones, [Message.WithReasoning] puts reasoning first;
// [Builder] assembles one from the deltas of a stream. [History.Append] copies a
// message, replaces invalid UTF-8, and refuses what no provider would take. Tool
// arguments and opaque blocks keep their bytes.
//
// Calls that come without an id get one from the Builder, from Decode of package
// wire, or else from Append, and are marked as Minted; [History.Find] shows what
// Append stored. Arguments that are not a JSON object are kept unchanged:
// [ToolCall.Valid] reports them, and package wire sends each provider what it
// accepts.
//
// # Order
//
// Append checks roles against a [RolePolicy]: [Strict], [Relaxed] or your own
// table. It pairs results with calls by occurrence: a result answers the first
// unanswered call with its id in the newest exchange. Ids may repeat in later
// exchanges, and results may be empty. A result without an id answers the only call
// that it could belong to. Results of one batch that answer all calls of their
// tool, or all open calls, are taken in the order of the calls. Append refuses a
// message with a [*RoleError], a [*PairError] or a [*MessageError]; then nothing is
// appended.
//
// An assistant message with tool calls and the results that answer them are an
// exchange: they stay or go together. A user message, or several in a row, begins
// a turn.
//
// # Reading
//
// [History.Snapshot] returns a picture of the view, the content of the next
// request. A [Snapshot] never changes. It costs one small allocation after a
// change and nothing otherwise. [Snapshot.Messages] returns the messages for the
// model.
//
// # Compaction
//
// The floor is what no compaction removes: system entries, pinned exchanges, the
// user messages of the newest turn, the newest exchange, a round of tool calls
// that no assistant message has followed yet, with the user messages of its turn,
// and ephemeral messages. The rest is removed oldest first, in whole exchanges. A
// compaction starts when the request weighs more than the mark high, and brings it
// down to the mark low in one step. Because one compaction frees much, compactions
// are rare, and the provider's prompt cache stays useful in between. See [Limits];
// [Ratios] computes them from shares of the window.
//
// A long tool result does not make the next request impossible. Append cuts the
// middle out of a result that is longer than Options.MaxResult. If the floor alone is
// still over the limit, a compaction first cuts results that no assistant message has
// followed yet, the longest first and none of a pinned exchange, until the floor is
// at most three quarters of the limit; [History.MakeRoom] does not. If the floor
// still does not fit, the error is a [*FloorError], which names its largest parts.
//
// The original of a result that was cut or cleared goes to Options.Spill, and stays in
// memory for summarizers within Options.KeepOriginals; what is not there is read from the
// log, if there is one. Rewritten entries are summarised
// as they stand. [Report.Originals] returns the original of what left the view, and
// [History.Undo] puts it back.
//
// [History.Prepare] and [History.CompactIfNeeded] check before each request, which
// takes nanoseconds. [History.Compact] compacts at once; a focus tells the
// summarizer what matters. [History.CompactInBackground] starts at the mark soft and
// lets the conversation go on; [History.Wait] returns its report. [History.MakeRoom]
// makes room and reserves it. [History.Recover] handles a provider's error that the
// request is too long, and learns from the numbers in it. All return a [Report] that
// says what was removed.
//
// A [CompactionStrategy] reads a snapshot and returns an [Edit]: entries to drop,
// results to clear, entries to [Rewrite], a summary that stands for entries that
// were dropped. There are [Truncate], [SlidingWindow], [ClearToolResults],
// [ClearMedia], [ClearThinking], [Summarize] and [Chain]; [When] lets any of them start a compaction;
// [StrategyFunc] makes a strategy from a function. The edit is checked against the
// conversation when it is applied, and takes effect as a whole or not at all:
// messages appended in the meantime stay, and exchanges pinned in the meantime are
// kept. [History.Apply] and [History.SplicePrefix] take an edit made by hand. Such
// an edit may also rewrite the floor: redact a secret, for good with
// Rewrite.Forget, or take an image out.
//
// [Summarize] calls a [Summarizer] to write the summary: a function that calls a
// model, or [Extract], which needs none. A summary that is empty, cut off, far too
// long or repetitive is refused. The summary is not an entry. There is at most one, and
// the next one updates it.
//
// [History.Pin] keeps an exchange word for word. [History.Rollback] goes back to a
// snapshot, [History.RewindTo] to an entry, such as to answer a question again,
// [History.Rewind] takes the newest turns back, [History.AnswerOpenCalls] answers open
// calls that will not be run.
//
// Package wire writes a snapshot in the formats of the providers.
//
// # Errors
//
// A method returns an error exactly if it did not do what it was asked to. Prepare
// and CompactIfNeeded return one exactly if the request must not be sent: it does
// not fit, the History is closed, or the call came from inside a compaction. Do
// also returns one when send failed, or when the answer could not be appended. Any
// other failure while the request fits, such as a failed summarizer, is in
// [Report].Outcome and Report.Cause, logged as a warning, and passed to
// Options.OnCompaction.
//
// # Seeing what happens
//
// A [Report], a [Status] and a [Breakdown] print as one readable line:
//
//	compacted 41,200 → 19,800 of 112,000 tokens: 12 results cleared, 30 messages summarised in 1,950 tokens (claude-haiku, 2.1 s); 3 pinned kept
//	41,200 of 112,000 tokens (36 %): 92 entries in 15 turns, 2 open calls; compacts above 98,000
//	results 20,100, user 9,300, tools 4,000, system 1,200 (pinned 2,000); free 77,400 and reserve 16,000 of 128,000
//
// Messages, and values that hold messages, print the beginning of each text, and
// with %+v the IDs of calls. Options.Logger gets a line for each compaction,
// always with the same keys. One of each level, shortened:
//
//	level=INFO msg="convo: compaction applied" reason=high strategy=chain cause=<nil> fits=true tokens_before=41200 tokens_after=19800
//	level=WARN msg="convo: compaction failed" reason=high strategy=summarize cause="convo: summarizer: 503" fits=true
//	level=DEBUG msg="convo: compaction declined" reason=soft strategy=truncate cause="convo: nothing worth removing"
//
// # Tokens
//
// A message is counted once, when it is appended, by a [Tokenizer]: [Heuristic],
// the default, which needs no vocabulary; [Tiktoken], exact for OpenAI's models,
// offline; or your own [TokenizerFunc]. [History.Count] counts one beforehand.
// [Overheads] says how many tokens everything else takes, and which reasoning is sent
// at all; OverheadsFor in package wire has the rules of the providers.
//
// [History.RecordUsage] corrects the estimate by what the provider reported for
// the snapshot that was sent:
//
//	snap, _, err := h.Prepare(ctx)
//	...                                          // send it
//	h.RecordUsage(snap, convo.Usage{Input: 5210})
//	h.Tokens()                                   // {Tokens:5210 Upper:5210 Measured:5210}
//	h.Append(convo.Assistant("At 09:10 and 13:45."))
//	h.Tokens()                                   // {Tokens:5224 Upper:5232 Measured:5210}
//
// From then on only new content is estimated, with a ratio learned from the
// reports. Upper is a bound for the estimate, learned from the errors of earlier
// ones. Every limit is compared with Upper. A [Prior] says what to assume about
// a model before its first report. A [Budget] is a pool of tokens that several
// histories share.
//
// # Saving
//
// A [Store] keeps conversations, each under a key: package filestore in files, module
// sqlstore in SQLite or PostgreSQL, and convotest.MemStore in memory, for tests.
// [Sealed] encrypts the data of another Store; convotest.TestStore checks your own.
// [Open] returns the History that is saved under a key, or an empty one, and
// [History.Save] writes the changes in one record and one step. After Save returns nil,
// they survive a crash. List of a Store yields a description of each conversation, the
// most recently updated first: in pages, or only those that are due to expire
// ([ListOptions]).
//
//	h, err := convo.Open(ctx, store, "42", opts)
//	...                                    // append, compact, pin
//	err = h.Save(ctx)                      // costs what is new; nothing, if nothing is
//
// The records of a key are its log: each holds the changes since the previous one, and
// now and then one holds everything, so that Open reads at most about three times the
// size of the view. Records are never changed. [Load] returns the state at an earlier
// record; [History.Rollback] goes back to it, and Restore forks it.
//
// Any number of processes may have the same conversation open. If another process has
// saved first, Save returns a [*ConflictError] and writes nothing. [History.Reload]
// then takes over what was saved, and appends the unsaved messages after it:
//
//	err = h.Save(ctx)
//	for errors.As(err, new(*convo.ConflictError)) {
//		var refused []convo.Message
//		if _, refused, err = h.Reload(ctx); len(refused) > 0 {
//			return errors.New("please say that again")
//		}
//		if err == nil {
//			err = h.Save(ctx)
//		}
//	}
//
// After any other error of Save, the record may have been stored or not. Call
// Save again: it checks, and neither loses nor repeats anything.
//
// The log is also an archive: [History.Archive] yields every message that was ever saved,
// as it was appended, with the summaries, what rollbacks took back, and the lines of
// [History.Note]; [History.ArchiveBefore] returns it in pages, from the end.
// [History.Prune] removes old records, Delete of the Store removes all records of a key;
// with Options.NoArchive, Save removes old records itself. None of these erases data from
// the disk: free blocks, journals, dead rows and backups may still hold what was removed.
// Content that Rewrite.Forget removed from a saved message stays in older records until
// they are pruned.
//
// Damage in a log is a [*DamageError], which names the newest state that is whole.
// [Salvage] copies what can be read to a new log, and reports what is lost.
//
// [History.Attach] saves a History that was made with New or Restore. [Copy] copies a
// log to another key or Store, to fork or to move a conversation. A History holds
// nothing open between calls, so a server may open one for each request, or keep one
// until Status.Unsaved is 0.
//
// # JSON
//
// A Snapshot encodes to and decodes from JSON, with IDs, pins, summary, what usage
// reports have shown, the queued messages, and the title and meta given to
// [History.SetMeta]:
//
//	{"version": 1, "key": "@bcdefgh", "last": 2, "turn": 1, "touched": 0, "appended": 0,
//	 "model": "", "title": "", "meta": "",
//	 "learned": [
//	   {"model": "", "ratio": 1, "weight": 0, "spread": 0, "seen": 0, "tokens": 0, "raw": 0,
//	    "doubt": 0, "small_tokens": 0, "small_raw": 0}],
//	 "tools": {"key": "", "list": [{"name": "", "description": "", "schema": "", "format": "", "json": ""}]},
//	 "summary": {"text": "", "names": "", "covers": [{"first": 1, "last": 1}], "updates": 0, "time": "",
//	   "usage": {"input": 0, "cache_read": 0, "cache_write": 0, "cache_write_long": 0,
//	     "input_audio": 0, "extra": 0, "output": 0, "reasoning": 0, "output_audio": 0}, "model": ""},
//	 "pins": [2], "system": [], "entries": [{"id": 2, "turn": 1, "time": "", "message": {}}], "queue": []}
//
// A message is
//
//	{"role": "assistant", "author": "", "origin": {"format": "", "model": ""}, "meta": "", "key": "", "parts": [
//	  {"type": "text", "text": ""},
//	  {"type": "reasoning", "id": "", "text": "", "signature": "", "encrypted": ""},
//	  {"type": "tool_call", "id": "", "name": "", "arguments": "{}", "minted": false},
//	  {"type": "tool_result", "call_id": "", "name": "", "is_error": false, "cleared": false, "parts": []},
//	  {"type": "media", "mime": "", "data": "", "url": ""},
//	  {"type": "opaque", "format": "", "json": "{}"}]}
//
// Each entry may have a field "missing", the tokens that were cut or cleared out of
// its results, whose originals are not in the snapshot; a field "final", true where the
// message was rewritten, or a result was forgotten or cleared with a text; a field "bare",
// true where only its reasoning was taken out and none that is signed stands before it; a
// field "paused", true for an answer that its provider paused; a field "made",
// a fingerprint of what signed reasoning was made after; and a field "tools", true for a
// message without calls or results whose turn had called a tool before. Empty fields are left
// out. Unknown fields and types, a key that occurs twice in one object, and a time
// outside the years 1678 to 2261 are errors. Arguments and opaque blocks are strings,
// so that their bytes are kept. The field learned may be left out or ignored: it only
// makes estimates better. [Restore] makes a History from a snapshot, checks it, and
// repairs it if Options.Repair is set. Use it also to fork and, with [NewSnapshot],
// to import; Options.OnImport says where the system messages and summaries of other
// systems go.
//
// # Costs
//
// Append takes amortised constant time; the first one after a rollback or an edit
// copies the pointers of the view. Snapshot, Len, Status, Tokens, pinning the
// newest exchange, and Prepare with nothing to do take constant time; any other
// pin takes time linear in the number of pins. Rollback and Rewind take time
// linear in what they take back, or in the view if a snapshot shares it. An edit,
// Undo and a compaction take time linear in the view. Removed entries are freed,
// unless a snapshot or a report that you keep shares memory with them.
//
// # Concurrency
//
// All methods of History, Snapshot, Budget and Reservation may be called by
// several goroutines at once. One Do of a History runs at a time, and one
// compaction. Other callers wait until it ends or their own ctx does, and then
// check again.
//
// Your own strategy and each call of a summarizer run on a goroutine of their
// own, so that a strategy that ignores its ctx delays no caller: when ctx ends,
// or the History is closed, the caller returns, another compaction can start, and
// a late result is discarded. A call of a model also ends after
// Summarize.Timeout, a minute by default, and after three quarters of the time
// until the deadline of ctx; then the next strategy in a [Chain] runs. When ctx
// itself ends, nothing is removed.
//
// No lock is held while your code runs (strategy, summarizer, send, tokenizer,
// Store, Pin, Spill, Repair, OnImport, OnCompaction, Logger), so it may call back;
// [Options] says what it must not call. A panic in OnCompaction or Logger is
// ignored; any other becomes the operation's [*PanicError]. There are no globals
// and no network. No goroutine outlives the call that started it, except that of
// CompactInBackground, which Close cancels and Wait waits for, and your code that
// ignores its ctx.
package convo
