// Package provider is a model of the providers of language models, for tests of programs
// that send conversations to one. A [Server] is the HTTP handler of five APIs: Messages of
// Anthropic, Chat Completions and Responses of OpenAI, generateContent of Gemini, and
// Converse of Amazon Bedrock, each with whole answers and with streams.
//
//	s := provider.New(provider.Options{Window: 8000})
//	server := httptest.NewServer(s)
//	defer server.Close()
//	s.Script(
//		provider.Answer{Blocks: []provider.Block{provider.Call{Name: "read", Arguments: `{"path":"a"}`}}},
//		provider.Answer{Blocks: []provider.Block{provider.Text("done")}},
//	)
//
// Send requests to server.URL and the path of the API, such as /v1/messages; the path alone
// decides on the API. At the end, [Server.Refused] has what the provider would have refused.
//
// # Rules
//
// The package imports neither convo nor wire, so that its judgement is independent. Its
// rules come from the documents of the providers and from errors that they are known to
// send, and a refused request gets an error of the provider's form and text. Where no text
// is known, the text says what the matter is. The rules are of order and pairs: roles,
// calls and results, tools that the provider runs, the container of code that waits,
// references to tools, reasoning and its signatures, empty contents, required fields, names
// and ids; and of what is refused for good where it stands: images that are too large, of
// another type than stated or no images, in requests to Claude also too many of them and PDFs
// that are encrypted or no PDFs, and arguments of calls that are too long for OpenAI. Values
// of other parameters, such as a temperature, other files and schemas are not checked, and
// neither are keys and versions in headers.
//
// Signed reasoning is checked as [Seals] describes, in requests of Anthropic's API and of
// Converse to models that do so; see [Options]. In the Responses API encrypted reasoning, and in the API of
// Gemini signatures, must have been made by a Server of this package. No API keeps answers:
// each request holds the whole conversation.
//
// # Faults
//
// Answer.Fault has a provider fail: with a status such as 429 or 529, a stream that is cut, a
// first byte that comes late, an event that no client knows, or a key that can no longer
// read what was encrypted before.
//
// # Tokens
//
// A request that has more tokens than Options.Window is refused as too long, and a request that
// has more than Options.Quota with the error for an exceeded rate. Answers report
// usage with the beginning of the request that an earlier request to the same model had: in
// Anthropic's API what is up to a cache mark, and in the others all of it. There is no
// minimum, and nothing expires.
package provider
