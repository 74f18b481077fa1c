// Package transport keeps the conversations of a program inside their windows without a change of
// the program: it stands between the program and its provider, as the transport of an HTTP client.
//
//	client := anthropic.NewClient(option.WithHTTPClient(&http.Client{Transport: transport.New(transport.Options{})}))
//
// A request of an agent holds its whole conversation. A [Transport] knows it by its messages, follows
// it in a [convo.History], and compacts it before it would be refused. The command "convo proxy"
// does the same for programs in any language.
//
// # What it changes
//
// A request passes byte for byte as the program wrote it, until something had to be removed from its
// conversation. From then on the messages differ, and nothing else in the body does, but for thinking
// that has to be disabled for a turn (see [Transport]): a message that
// was not touched keeps its bytes, a result that was cleared is changed in its own JSON, and the
// summary is one new message. So the provider's prompt cache and what is signed stay valid. The
// headers are those of the program, but Content-Length, and Accept-Encoding, of which gzip and
// identity are left. Answers pass as they come. A stream is held back until its first event has
// come, since that may be an error.
//
// If the provider still finds a request too long, or refuses a part of it for good, such as an image
// that it can't read, the conversation is made smaller, or the part is left out, and the request is
// sent again, at most twice, before the program sees anything.
//
// # What it follows
//
// Requests by POST in four formats, known by the end of the path: Anthropic Messages (/messages, and
// :rawPredict and :streamRawPredict of Vertex), Chat Completions (/chat/completions), Responses
// (/responses) and Gemini (:generateContent and :streamGenerateContent). Requests that count tokens
// get the messages that would be sent. All else passes as it came: other paths, upgrades, batches,
// requests that go on with what the provider has stored, bodies that are signed (AWS) or in an
// encoding other than gzip and deflate, and whatever is not understood. Options.Logger hears of each
// cause once.
//
// # Which conversation it is
//
// A request belongs to the conversation with which it has the longest beginning in common, by what
// the model reads: cache marks, IDs of calls, white space in JSON, and texts of the user in one tag
// <system-reminder> do not count, and neither does the system text. If it leaves that conversation
// near its end, as where a question is asked in other words, the conversation goes back. If it leaves
// it before the first answer or in its first half, while a request is under way, or where a summary stands for what would go, another
// conversation begins with what was decided about the common beginning, so that its requests begin
// with the same bytes. A question or two without tools, such as for a title, begins none.
//
// Conversations that begin alike are also told apart by the signatures of their reasoning, and by a
// name, if the program sends one: by Options.Key, the headers Session_id, Session-Id, X-Session-Id or
// X-Session-Affinity, or the fields prompt_cache_key, session_id or, for Anthropic, metadata.user_id.
//
// # Pauses
//
// A request is compacted already above Limits.Soft if it comes after a pause longer than the provider
// keeps its cache, since it is paid for anew anyway. The time is that which the provider documents, or
// that of the cache marks or parameters in the newest body; see [convo.Usage]. Options.Idle should be
// longer.
//
// # What it costs
//
// A conversation takes about twice the memory of its newest request and a kilobyte for each message,
// until it has not been used for Options.Idle. Only messages that are new, or whose bytes have changed, are decoded.
package transport
