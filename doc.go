// Package convo keeps an LLM conversation inside its context window.
//
// A [History] holds one conversation. A program appends messages to it and asks it to
// prepare each request. When the request would be too long, a strategy decides which old
// parts to remove. Whatever it decides, the conversation stays valid for the provider.
//
//	h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: 200_000, Reserve: 16_000}})
//	err = h.SetSystem(convo.System("You are a travel agent."))
//	id, err := h.Append(convo.User("Window seats only, I am tall. Flights to Rome?"))
//	err = h.Pin(id) // stays word for word
//	reply, err := h.Run(ctx, send, convo.RunOptions{Tools: tools})
//
// # Where to look
//
//   - a conversation: [History], which [New] makes with [Options] and [Limits]
//   - what is said: [Message], made by [System], [User], [Assistant] and [Result]
//   - a request: [Snapshot], its answer [Reply], and [Report] and [Status]
//   - strategies: [Chain] of [ClearToolResults], [Summarize], [Truncate] and others
//   - what is kept: [Open] with a [Store], or [Resume] with your own rows
//   - errors: [FloorError] and [LimitError] say what does not fit, [RoleError] and [PairError]
//     what no provider accepts, [ErrStale] and [ConflictError] what has changed since
//
// # Requests
//
// [History.Run] makes requests and runs the tools that the model calls, until the model
// is done. A tool is a [Handler] in [RunOptions]. [History.Steps] does the same and yields
// each answer. Each request is one [History.Do]: it compacts if needed, calls send with
// the [Snapshot] to send, records the usage, and appends the answer, a [Reply]. If the
// provider says that it was too long, Do compacts further and sends again.
//
// A [Send] is a function that calls the model. The modules in the directory clients make
// one for the SDK of a provider; package wire writes and reads the JSON of the providers.
//
// Your own loop calls the steps of Do while [Status].AwaitsAnswer is set:
//
//	snap, _, err := h.Prepare(ctx) // compacts if needed
//	if err != nil {
//		return err // the request must not be sent
//	}
//	reply, err := send(ctx, snap) // if it was too long: h.Recover(ctx, snap, err)
//	_, err = h.AppendReply(snap, reply) // records the usage
//
// [History.Queue] accepts user messages while the model or its tools are working.
// [History.RewindTo] goes back to ask again, [History.RewindBefore] to edit a message.
//
// # Messages
//
// A [Message] has a role and ordered parts: [Text], [Reasoning], [ToolCall], [ToolResult],
// [Media], [Opaque]. [System], [User], [Assistant], [Result] and [ResultError] make
// messages; a Stream of package wire assembles one. Append checks roles against a
// [RolePolicy] and pairs results with calls. It returns a [*RoleError], a [*PairError] or a
// [*MessageError] for what no provider would accept, and appends nothing.
//
// An assistant message with tool calls and the results that answer them are an exchange:
// they stay or leave together. A user message, or several in a row, begins a turn.
//
// # Compaction
//
// A compaction starts when a request is larger than the mark high, and brings it down to
// the mark low in one step; see [Limits]. Because one compaction frees much, compactions
// are rare, and the provider's prompt cache stays useful in between. No compaction removes
// the floor: system entries, pinned exchanges, the user messages of the newest turn, the
// newest exchange, and results that the model has not answered yet. The rest leaves oldest
// first, in whole exchanges, and what the user said leaves last.
//
// No tool result makes the next request impossible, unless its media do: Append cuts what is
// longer than Options.MaxResult, and a compaction cuts further if the floor alone is too
// large. If nothing helps, the error is a [*FloorError], which names the largest parts.
//
// [History.Compact] compacts at once, [History.CompactInBackground] while the conversation
// goes on. A [Report] says what was removed; [Report.Originals] returns that as it was, and
// [History.Undo] puts it back.
//
// # Strategies
//
// The default is
//
//	ladder := convo.Chain(convo.ClearMedia{}, convo.ClearToolResults{}, convo.Summarize{With: convo.Extract{}}, convo.Truncate{})
//
// [Extract] writes a summary without a model. One by a model is a function:
//
//	byModel := convo.SummarizerFunc(func(ctx context.Context, req convo.SummaryRequest) (convo.Summary, error) {
//		text, err := complete(ctx, req.Prompt) // a call of your model
//		return convo.Summary{Text: text}, err
//	})
//
// A [CompactionStrategy] of your own reads a snapshot and a [Goal], and returns an [Edit]:
// entries to drop, results to clear, entries to rewrite, a summary that replaces what
// was dropped. [StrategyFunc] makes one of a function; its example keeps three turns.
//
// The edit is checked when it is applied, and takes effect as a whole or not at all. What
// is appended or pinned in the meantime stays. convotest.TestStrategy checks a strategy.
//
// # Tokens
//
// A message is counted once, when it is appended, by a [Tokenizer]: [Heuristic] unless you
// choose another, such as that of package tiktoken. These counts are raw tokens, and the
// estimate is made of them. [History.RecordUsage] replaces it with what the provider
// counted, and learns from it:
//
//	h.RecordUsage(snap, convo.Usage{Input: 5210})
//	h.Tokens()
//	// {Tokens:5210 Upper:5210 Measured:5210}
//	h.Append(convo.Assistant("At 09:10 and 13:45."))
//	h.Tokens()
//	// {Tokens:5224 Upper:5232 Measured:5210}
//
// Every limit is compared with Upper.
//
// # Saving
//
// [Open] returns the conversation that a [Store] keeps under a key, and [History.Save]
// writes what is new, in one step. What Save has acknowledged survives a crash. If another
// process has saved first, [History.Reload] appends what is unsaved after it:
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
// A program that keeps the messages in its own rows gives each a Key, and stores the few
// kilobytes of [History.Decisions] with them whenever Status.Decisions has changed. It
// continues with [Resume]. Without either, a Snapshot is JSON, and [Restore] makes a
// History from it.
//
// # Seeing what happens
//
// A [Report], a [Status] and a [Breakdown] print as one line:
//
//	compacted 1,755 → 432 of 1,200 tokens: 5 results cleared, 15 messages summarised in 64 tokens
//	432 of 1,200 tokens (36 %): 26 entries in 10 turns
//	results 105, user 80, assistant 65, summary 64, calls 60, system 10; free 816 and reserve 300 of 1,500
//
// Options.OnCompaction and Options.Logger receive each report. Package inspect shows a
// conversation as a page.
package convo
