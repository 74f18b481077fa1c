// Package wire translates conversations into the JSON of the providers and
// back, and says why a provider would refuse a request. It needs no SDK, and
// uses only the exported API of package convo, so a [Format] written elsewhere
// can do everything that the formats of this package do.
//
//	req, err := wire.Anthropic{}.Encode(snap)
//	body, err := req.With(map[string]any{"model": "claude-opus-5", "max_tokens": 1024})
//
// An [Encoder] gives the same requests for the snapshots of one conversation, and
// writes only what is new since the one before.
//
// Decode reads the answer, and [Transcript.Reply] turns it into what
// [convo.History.Do] appends.
//
// Encode does not change the snapshot, and gives the same bytes each time. In
// every format it writes a request that the provider accepts:
//
//   - each call has one result, and results follow their calls in call order; a
//     call that is still open gets a short result in the request only;
//   - blank text and empty messages are left out;
//   - tool call ids that the provider does not accept, or that occurred before in
//     the request, are replaced by unique ones; the conversation keeps its own;
//   - a tool whose name the provider does not accept is sent under another one, in its
//     definition as in the messages; see [ToolWriter] and [FindTool];
//   - system text goes where the provider wants it;
//   - reasoning and signatures are sent only in the format that they came in, and,
//     if Model is set, only to the model that made them; those of a host of Chat
//     Completions, only to that host, see [OpenAIChat]; where a provider can do
//     without them, a field Reasoning chooses which. Two names are of one model if they
//     are equal but for a vendor or region in front ("us.anthropic.") and a date or
//     revision at the end ("-20260901", "-v1:0"); a name in -latest equals only itself;
//   - opaque blocks are sent only in their own format; in another one, a text in brackets
//     takes the place of those that can be shown: searches and what they found, code that
//     ran and its output, documents, refusals, the sources of a text;
//   - tool arguments keep their bytes.
//
// Request.Lost names each part of the conversation that the request does not hold, or
// not as it is; see [Omission].
//
// # Tools
//
// A [convo.Tool] is written once for all formats, each of which is a [ToolWriter]:
//
//	req.Tools, err = wire.Anthropic{}.Tools(search, book)
//
// Tools returns a [*ToolError] for what the provider would refuse. [FindTool] finds the
// tool that a call is for.
//
// # Citations and objects
//
// Some fields of a block have no place in the part that it becomes. Decode keeps them in
// an opaque part directly after that, which is an object and no block of its own, and
// Encode writes them back in the same format:
//
//   - the citations of a text, in Anthropic, OpenAIResponses and Converse. Those that
//     requests do not take, or that do not fit the text any more, are left out. In other
//     formats the text is followed by its sources, as in "[Source: Title, https://...]".
//   - that a result came as a JSON object, in Gemini and Converse. While its text is one,
//     it goes back as one; to other formats the text is sent.
//
// Anthropic cites by cutting its text: what is cited is a text of its own, and so is what
// stands between, so the texts of a cited answer are pieces of sentences. [convo.Message.Text]
// and [convo.Reply.Text], and formats that join the texts of a message, put a line break
// between them; join the texts themselves to show such an answer.
//
// Decode names in Lost the annotations of OpenAIChat and the grounding of Gemini, which
// no request takes back.
//
// # Streams
//
// All formats are a [Streamer]: a [Stream] reads an answer while it is written, and
// [Read] feeds it from the body of a response. Its [Transcript] is what Decode
// returns of the whole answer, whatever pieces the provider or the host cuts it
// into. Of a stream that broke off, it holds what came, without calls that were not
// whole.
//
//	s := wire.OpenAIChat{}.Stream()
//	for delta, err := range wire.Read(resp.Body, s) {
//
// # Errors
//
// The answer of a server that has refused a request goes to Decode as well: it returns a
// [*DecodeError], in which errors.As finds the [*ProviderError], as it does in the errors
// of a Stream. [convo.IsOverflow] knows those that say that the request is too long; so
// return the error to [convo.History.Do], which makes the request shorter and sends it
// again. [Format].Check says why a provider refuses a request.
//
// # Tokens
//
// [Overheads] and [ToolTokens] hold the rules by which the providers count what
// a request holds in addition to its text: messages, images, documents, sound and tool
// definitions. [OverheadsFor] adds which reasoning a format sends, since the rest
// weighs nothing.
//
// # The summary
//
// A summary is sent as a user message. With the field SystemSummary of a format, it
// is the last of the system text: a system message of its own, a developer message
// if Developer is set, or the last block or paragraph where a provider has one place
// for all system text. The tags around it stay as they are, so that no text can
// forge a summary or end one early. Decode reads it as the system text that it is.
//
// Many models follow system text more strictly than what a user says. A summary is
// made of what users, tools and web pages said; choose SystemSummary only if none of
// them may write what the model must not obey.
//
// # Cache marks
//
// Anthropic and Converse cache up to marks in a request. The field Cache of these formats
// sets marks where they help most, and CacheTools one after the tools; CacheLifetime
// says for how long. [CacheMark] is a part that marks a place that you choose, in
// OpenAIResponses too.
//
// # Cache stability
//
// Providers cache the beginning of a request. Consider two requests of one
// conversation as sequences of content blocks (text, calls, results, images).
// If no call was open, no ephemeral message was set, and no compaction happened
// in between, then the second request begins with all blocks of the first, byte
// for byte but for cache marks, which providers do not compare. [PrefixShare] measures
// this.
//
// There is one exception. Some providers want a user message at the end. If the
// conversation ends with an assistant message, or holds only system text, the
// request ends with a marker that the next request does not have.
package wire
