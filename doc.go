// Package convo keeps an LLM conversation inside its context window.
//
// Everything turns around one type, [History]. Agent code appends messages to
// it, takes a [Snapshot] to send, and gives up old messages by edits that
// cannot break the conversation.
//
//	h, err := convo.New(&convo.Options{
//		Limits: convo.Limits{Window: 128_000, Reserve: 16_000},
//	})
//	_, err = h.Append(convo.System("You are a travel agent."))
//	id, err := h.Append(convo.User("Window seats only, I am tall."))
//	err = h.Pin(id)
//
// # Messages
//
// A [Message] has a role and ordered parts: [Text], [Reasoning], [ToolCall],
// [ToolResult], [Media], [Opaque]. [System], [User], [Assistant], [Result] and
// [ResultError] make the usual ones, [Builder] assembles one from the deltas
// of a stream. At the door, which is [History.Append], text is made valid
// UTF-8, calls without an id are given one, and what no provider would take is
// refused. Tool arguments and opaque blocks keep their bytes.
//
// # Order
//
// Append checks roles against a [RolePolicy], [Strict] or [Relaxed] or a table
// of yours, and pairs results with calls by occurrence: a result answers the
// first unanswered call with its id in the newest exchange. Ids may be used
// again in later exchanges, and results may be empty. What does not fit is a
// [*RoleError], a [*PairError] or a [*MessageError], and nothing is appended.
//
// An assistant message with tool calls and the results that answer them are an
// exchange: they stay or go together. A user message, or several in a row,
// begins a turn.
//
// # Reading
//
// [History.Snapshot] returns a picture of the view that never changes, whatever
// happens to the History; it costs one small allocation after a change and
// nothing otherwise. [Snapshot.Messages] is what the model is to see.
//
// # Giving up
//
// An [Edit] names entries to drop, results to clear, and the summary that
// stands for what went. [History.Apply] applies it, all or nothing;
// [History.SplicePrefix] is the short form. An edit made of a snapshot may be
// applied later, while messages were appended: they stay. What must not go is
// the floor: system entries, pinned exchanges, the user messages of the newest
// turn, the newest exchange, ephemeral messages. A [Report] says what went.
//
// [History.Pin] keeps an exchange word for word. [History.Rollback] goes back
// to a snapshot, [History.Rewind] takes whole turns back,
// [History.AnswerOpenCalls] ends a tool round that was given up.
//
// # Tokens
//
// A message is counted once, when it arrives, by a [Tokenizer]; [Heuristic] is
// the default. [History.RecordUsage] corrects the estimate by what the
// provider reported, bound to the snapshot that was sent. [History.Tokens] and
// [History.Status] cost the same at any length. A [Budget] is a pool that
// several histories draw on.
//
// # Saving
//
// A Snapshot is JSON both ways, with IDs, pins, summary and calibration:
//
//	{"version": 1, "key": "abcdefgh", "last_id": 2, "turn": 1,
//	 "touched_turn": 0, "appended": 0, "model": "", "calibration": [],
//	 "summary": {"text": "", "covers": [{"first": 1, "last": 1}], "updates": 0, "time": ""},
//	 "pins": [2], "system": [], "entries": [{"id": 2, "turn": 1, "time": "", "message": {}}]}
//
// A message is
//
//	{"role": "assistant", "author": "", "origin": {"format": "", "model": ""}, "meta": "", "parts": [
//	  {"type": "text", "text": ""},
//	  {"type": "reasoning", "id": "", "text": "", "signature": "", "encrypted": ""},
//	  {"type": "tool_call", "id": "", "name": "", "arguments": "{}", "minted": false},
//	  {"type": "tool_result", "call_id": "", "name": "", "is_error": false, "cleared": false, "parts": []},
//	  {"type": "media", "mime": "", "data": "", "url": ""},
//	  {"type": "opaque", "format": "", "json": "{}"}]}
//
// Empty fields are left out; unknown fields and types are errors. Arguments
// and opaque blocks are strings, so that their bytes stay. [Restore] makes a
// History of a snapshot, checks it, and mends it when Options.Repair is set;
// it is also the way to fork, and, with [NewSnapshot], to import.
//
// # Costs
//
// Append is amortised constant; the first one after a rollback or an edit
// copies the pointers of the view. Snapshot, Len, Status, Tokens and pinning
// the newest exchange are constant; any other pin costs as much as there are
// pins. Rollback and Rewind cost what they take back, an edit costs the view.
//
// # Concurrency
//
// All methods of History, Snapshot, Budget and Reservation may be called by
// several goroutines at once. No lock is held while code of yours runs
// (tokenizer, Pin, Spill, Repair, OnCompaction, Logger), so it may call back;
// a panic in it becomes the operation's [*PanicError]. There are no globals,
// no goroutines and no network.
package convo
