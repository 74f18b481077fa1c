// Package wire translates conversations to and from the JSON of the providers, and
// reports why a provider would refuse a request. It needs no SDK. It uses only the
// exported API of package convo, so a [Format] in another package can do everything
// that the formats here do.
//
//	req, err := wire.Anthropic{}.Encode(snap)
//	body, err := req.With(map[string]any{"model": "claude-opus-5", "max_tokens": 1024})
//
// An [Encoder] returns the same requests for the snapshots of one conversation, but
// writes only what is new since the previous request.
//
// Decode reads the answer, and [Transcript.Reply] converts it for
// [convo.History.Do].
//
// Encode does not change the snapshot, and returns the same bytes each time. In
// every format it writes a request that the provider accepts:
//
//   - each call has one result, and results follow their calls in call order; a
//     call that is still open gets a short result in the request only;
//   - blank text and empty messages are left out;
//   - tool call ids that the provider does not accept, or that occurred earlier in
//     the request, are replaced by unique ones; the conversation keeps its own;
//   - a tool whose name the provider does not accept is sent under another name, both in
//     its definition and in the messages; see [ToolWriter] and [FindTool];
//   - system text goes where the provider wants it;
//   - reasoning and signatures are sent only in the format that they came in and, if Model
//     is set, only to the model that made them. With Chat Completions they are sent only
//     to the host that they came from; see [OpenAIChat]. If a provider does not need
//     reasoning, the field Reasoning selects what is sent. Two names are of the same model
//     if they are equal except for a vendor or region at the start ("us.anthropic.") and a
//     date or revision at the end ("-20260901", "-v1:0"). A name in -latest equals only
//     itself;
//   - for a model that checks the place of signed reasoning, it is sent only if what
//     precedes it is what it was made after; see [SealCheck];
//   - opaque blocks are sent only in their own format. In other formats, a text in
//     brackets replaces those that can be shown: searches and their results, code that
//     ran and its output, documents, refusals, the sources of a text;
//   - code that the provider runs and that waits for a result is sent with the container
//     of its answer, and not after the turn has ended; see [Anthropic];
//   - a reference to a tool is a text if the tools of the request are known and the tool is
//     not among them, as when the MCP server that has it is away;
//   - tool arguments keep their bytes.
//
// The page docs/formats.md of the repository says what each provider wants when history
// is rewritten, and what Encode does.
//
// Request.Lost lists each part of the conversation that the request leaves out or
// changes; see [Omission].
//
// # Tools
//
// A [convo.Tool] is written once for all formats. Encode writes the tools of the snapshot:
//
//	err = h.SetTools(search, book)
//
// Each format is also a [ToolWriter], for tools that are not part of the conversation:
//
//	req.Tools, err = wire.Anthropic{}.Tools(search, book)
//
// Both return a [*ToolError] for a tool that the provider would refuse. [FindTool]
// returns the tool that a call is for.
//
// # Citations and objects
//
// Some fields of a block do not fit into the part that the block becomes. Decode keeps
// them in an opaque part directly after that part. The opaque part is a JSON object, but
// not a block, and Encode writes its fields back in the same format. It holds:
//
//   - the citations of a text, in Anthropic, OpenAIResponses and Converse. Citations that
//     requests do not take, or that no longer fit the text, are left out. In other
//     formats the text is followed by its sources, as in "[Source: Title, https://...]".
//   - the fact that a result came as a JSON object, in Gemini and Converse. The result is
//     sent as an object while its text is one; other formats send the text.
//
// Anthropic splits a text to cite it: each cited passage is a text, and so is the text
// between two passages. The texts of a cited answer are therefore pieces of sentences.
// [convo.Message.Text], [convo.Reply.Text], and formats that join the texts of a message
// put a line break between them; join the texts yourself to show such an answer.
//
// Decode lists in Lost the annotations of OpenAIChat and the grounding of Gemini, because
// requests do not take them back.
//
// # Streams
//
// All formats are a [HistoryChecker]: CheckHistory compares the requests of a conversation,
// and names changes that invalidate signed reasoning or that a prompt cache misses.
//
// All formats are a [Streamer]: a [Stream] reads an answer while it is written, and
// [Read] feeds it from the body of a response. Its [Transcript] is what Decode
// returns for the whole answer, however the provider or the host splits it. If a stream
// breaks off, the Transcript holds what was received, without incomplete calls.
//
//	s := wire.OpenAIChat{}.Stream()
//	for delta, err := range wire.Read(resp.Body, s) {
//
// # Messages of other programs
//
// All formats are a [Patcher]: Patch writes the changes of a compaction into messages that
// another program made, and keeps all other bytes of them.
//
//	t, err := wire.OpenAIChat{}.Decode(raw)
//	// ... t.Messages go into a History, and now is what is left of them
//	messages, err := wire.OpenAIChat{}.Patch([]json.RawMessage{raw}, now...)
//
// # Errors
//
// Also pass the answer of a server that refused a request to Decode. It returns a
// [*DecodeError], in which errors.As finds the [*ProviderError]; the errors of a Stream
// hold it in the same way. [convo.IsOverflow] reports whether the request was too long,
// so return the error to [convo.History.Do], which makes the request shorter and sends
// it again. [Format].Check reports why a provider refuses a request.
//
// # Tokens
//
// [Overheads] and [ToolTokens] hold the rules by which the providers count what
// a request holds in addition to its text: messages, images, documents, sound and tool
// definitions. [OverheadsFor] also states which reasoning a format sends, since other
// reasoning costs no tokens.
//
// # The summary
//
// A summary is sent as a user message. If the field SystemSummary of a format is set, it
// is the last of the system text. That is a separate system message, a developer message
// if Developer is set, or the last block or paragraph where a provider has one place for
// all system text. The tags around it stay as they are, so that no text can forge a
// summary or end one early. Decode reads it as system text.
//
// Many models follow system text more strictly than user messages. A summary is
// made from the words of users, tools and web pages; use SystemSummary only if none of
// them can contain instructions that the model must not obey.
//
// # Notes
//
// A note, a system message after others (see [convo.RolePolicy]), is sent right after the
// user message or the results that it follows, and after the next user messages if it
// follows an answer. It is a system message where the model takes one there, or a developer
// message if Developer is set. Otherwise it is a text of the user between tags that no other
// text can forge. Where nothing precedes it, it is part of the system text.
//
// # Cache marks
//
// Anthropic and Converse cache a request up to its marks. The field Cache of these formats
// sets marks where they help most, CacheTools sets one after the tools, and CacheLifetime
// is how long the cache is kept. [CacheMark] returns a part that marks a place of your
// choice, also in OpenAIResponses. Request.CacheTTL is how long the provider keeps the messages;
// a Send that puts it into its Reply has the History compact after a longer pause.
//
// # Cache stability
//
// Providers cache the beginning of a request. Consider two requests of one conversation as
// sequences of content blocks (text, calls, results, images). If no call was open, no
// ephemeral message was set, and no compaction happened in between, then the second
// request begins with all blocks of the first, byte for byte. Only cache marks may differ,
// which providers do not compare. [PrefixShare] measures this.
//
// There are two exceptions. Some providers want a user message at the end. If the
// conversation ends with an assistant message, or holds only system text, the
// request ends with a marker that the next request does not have. And a note at the end of
// the first request moves after a user message that is appended before any answer.
package wire
