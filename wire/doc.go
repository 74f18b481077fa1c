// Package wire writes conversations in the formats of the providers, reads
// them back, and says why a provider would refuse a request. It needs no SDK,
// and stands on the exported API of package convo alone: a [Format] of your own
// can do all that these do.
//
//	req, err := wire.Anthropic{}.Encode(snap)
//
// Encode is a projection: the same snapshot gives the same bytes, and nothing
// is written back. What it does to a conversation, in every format:
//
//   - results stand directly after their calls, in call order, one for each; a
//     call that is open is answered in the copy;
//   - blank text and empty messages are left out;
//   - tool call ids that the provider does not take, or that came before in the
//     request, are replaced, no two by the same; the conversation keeps its own;
//   - system text goes where the provider wants it;
//   - reasoning and signatures go only to the format that made them, and, where
//     Model is set, to that model; opaque blocks go to their format; for others
//     they are left out;
//   - arguments keep their bytes.
//
// # Tokens
//
// [Overheads] and [ToolTokens] have the providers' rules for what a request
// weighs beside its text: messages, images, documents, sound and tool schemas.
//
// # Cache stability
//
// Providers cache the beginning of a request. Split two requests of one
// conversation into content blocks (text, call, result, image): when no call
// was open and no ephemeral message was set, and nothing was compacted in
// between, the blocks of the earlier one are the first blocks of the later one,
// byte for byte. [PrefixShare] measures it. The one exception: where a provider
// wants a user turn last and the conversation has none there, because it ends
// with an assistant message or is system text alone, a marker stands at the
// end.
package wire
