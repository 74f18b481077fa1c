package wire

import "strings"

// A rule is a reason for which a provider refuses a request.
//
// Its texts hold placeholders in braces. {path} is Finding.Path, {dotted} is
// the path as Anthropic and Bedrock write it (messages.0.content), and {id} is
// Finding.ID. The Check that applies the rule supplies the others.
type rule struct {
	problem string // what is wrong
	fix     string // how to fix it
	error   string // what a provider answers whose format has no text of its own
}

// ruleTexts are the texts of one format for rules, by their names.
type ruleTexts struct {
	// errors are what the provider answers. A format can have several texts for one rule:
	// "blank-text/empty" is one of the rule "blank-text".
	errors map[string]string

	fixes map[string]string // where the fix of the rule would not help
}

// textsOf are the texts of each format. The files of the formats set them.
var textsOf = map[string]ruleTexts{}

// rules are all the rules that the Check methods apply.
//
// The error texts were taken from answers of the providers, from their
// documentation and from public bug reports. Where none is known, the text
// begins with "(none".
var rules = map[string]rule{

	// The JSON itself.

	"json": {
		problem: "the request is not a JSON object: {reason}",
		fix:     "send one JSON object and nothing after it",
		error:   "We could not parse the JSON body of your request.",
	},
	"shape": {
		problem: "the value is not {want}",
		fix:     "send {want}",
		error:   "Invalid type for '{path}'",
	},
	"messages-empty": {
		problem: "the request has no message",
		fix:     "send at least one message",
	},
	"input-empty": {
		problem: "the request has no input",
		fix:     "send at least one item",
	},
	"contents-empty": {
		problem: "the request has no content",
		fix:     "send at least one content",
	},

	// Roles and the order of messages.

	"role": {
		problem: `the provider does not know the role "{role}"`,
		fix:     "use one of the roles that the provider knows",
	},
	"user-first": {
		problem: "the conversation begins with an assistant message",
		fix:     "begin with a user message",
	},
	"call-first": {
		problem: "the conversation begins with a function call of the model",
		fix:     "begin with a user content",
	},
	"alternation": {
		problem: "two messages of one role follow each other",
		fix:     "merge neighbours of one role into one message",
	},
	"order": {
		problem: "a message with the role {role} follows one with the role {previous}",
		fix:     "put an assistant message between a result and a user message, and system messages first",
	},
	"last-role": {
		problem: "the conversation ends with an assistant message",
		fix:     "end with a user message or a result",
	},
	"trailing-space": {
		problem: "the last assistant message ends with white space",
		fix:     "remove the white space at the end",
	},

	// System text.

	"split-calls": {
		problem: "the message holds both content and calls",
		fix:     "send the content in an assistant message before it, with a user message between them, and the calls without the field content",
	},
	"text-calls": {
		problem: "the chat template knows no calls",
		fix:     "send the calls as text in the content, and their results as text of a user message",
	},
	"system-first": {
		problem: "a system message follows other messages",
		fix:     "send one system message, as the first message",
	},
	"system-model": {
		problem: "the model takes no messages with the role {role}",
		fix:     "send the text in a user message",
	},
	"system-type": {
		problem: "the system field holds a block that is not text",
		fix:     "send system text as blocks of type text",
	},
	"system-place": {
		problem: "a system message does not stand between a user message and an assistant message",
		fix:     "put it after a user message and before an assistant message or at the end, or send the text in the field system",
	},

	// The content of a message.

	"content-missing": {
		problem: "the message has no content",
		fix:     "give the message content, or leave it out",
	},
	"content-empty": {
		problem: "the message has no content blocks",
		fix:     "leave the message out",
	},
	"content-type": {
		problem: `a message of this role cannot hold a part of type "{type}"`,
		fix:     "use output_text or refusal in assistant messages, and input_text, input_image or input_file elsewhere",
	},
	"blank-text": {
		problem: "the text is blank",
		fix:     "leave the block out",
	},
	"parts-empty": {
		problem: "the content has no parts",
		fix:     "leave the content out",
	},
	"part-empty": {
		problem: "the part holds no data",
		fix:     "leave the part out",
	},
	"part-data": {
		problem: "the part holds {field} and other data",
		fix:     "split it into two parts",
	},
	"part-role": {
		problem: "a content with the role {role} cannot hold a {kind}",
		fix:     "put function calls into contents of the model, and results into contents of the user",
	},
	"block-place": {
		problem: "a {type} block is in a message of the wrong role",
		fix:     "put the block into a message with the role {role}",
	},
	"block-role": {
		problem: "a {kind} block is in a message of the wrong role",
		fix:     "put calls and reasoning into assistant messages, and results into user messages",
	},
	"author-pattern": {
		problem: "the provider does not take this name of an author",
		fix:     "use 1 to 64 letters, digits, _ and - in the name",
	},

	// Media and documents.

	"media-type": {
		problem: "the provider does not read media of this type",
		fix:     "convert it to a type that the provider reads, or describe it in text",
	},
	"audio-model": {
		problem: "the model does not take audio",
		fix:     "send audio to a model that takes it, or send a transcript",
	},
	"document-name": {
		problem: "the name of the document holds characters that Bedrock refuses",
		fix:     "use letters, digits, single spaces, hyphens, parentheses and square brackets, without a file extension",
	},
	"document-duplicate": {
		problem: "another document of the request has the same name",
		fix:     "give each document of the request its own name",
	},
	"document-text": {
		problem: "the message holds a document but no text",
		fix:     "add a text block to the message",
	},

	// One tool call, or one result.

	"calls-empty": {
		problem: "tool_calls is an empty array",
		fix:     "leave tool_calls out",
	},
	"id-missing": {
		problem: "a call or a result has no id",
		fix:     "give the call an id, and its result the same",
	},
	"id-length": {
		problem: "the id is longer than {limit} characters",
		fix:     "use an id of at most {limit} characters, and the same in its result",
	},
	"id-pattern": {
		problem: "the provider does not take this id",
		fix:     "use letters, digits, _ and - in the id, and the same id in its result",
	},
	"item-id": {
		problem: "the provider does not give such ids to items of this type",
		fix:     "leave the id of the item out; calls and results are paired by call_id",
	},
	"duplicate-item": {
		problem: "two items have the same id",
		fix:     "send the item once",
	},
	"not-stored": {
		problem: "the item refers to one that the provider was told not to store",
		fix:     `ask for reasoning with include: ["reasoning.encrypted_content"] and send that back, or leave the item out`,
	},
	"name-missing": {
		problem: "a call or a result has no function name",
		fix:     "name the function",
	},
	"name-pattern": {
		problem: "the provider does not take this tool name",
		fix:     "use 1 to 64 letters, digits, _ and - in the name of the tool",
	},
	"arguments": {
		problem: "the arguments are not {want}",
		fix:     "send the arguments as {want}",
	},
	"input": {
		problem: "the arguments are not an object",
		fix:     "send the arguments as an object, {} if there are none",
	},
	"args": {
		problem: "the arguments are not an object",
		fix:     "send the arguments as an object",
	},
	"response": {
		problem: "the result is not an object",
		fix:     `send the result as an object, such as {"output": "..."}`,
	},
	"result-content": {
		problem: "the result holds something other than text",
		fix:     "send text in results, and media in a user message after them",
	},
	"result-json": {
		problem: "the json block of the result is not an object",
		fix:     "send an object, or send a text block",
	},
	"error-result": {
		problem: "the error result is empty or holds something other than text",
		fix:     "describe the error in text, and send nothing else in the result",
	},
	"error-empty": {
		problem: "the error result is empty",
		fix:     "describe the error in a few words",
	},
	"status": {
		problem: "Bedrock does not know the status {status}",
		fix:     "use success or error",
	},
	"tool-config": {
		problem: "the messages hold tool calls or results, and the request has no toolConfig",
		fix:     "send the definitions of the tools in toolConfig, even if the model is not meant to call any",
	},

	// Calls together with their results.

	"unanswered-call": {
		problem: "the call has no result",
		fix:     "send a result for the call directly after the message that holds it",
	},
	"orphan-result": {
		problem: "the result answers no call",
		fix:     "leave the result out, or send the message with its call directly before it",
	},
	"duplicate-call": {
		problem: "another call has the same id",
		fix:     "give each call its own id, and its result the same",
	},
	"duplicate-result": {
		problem: "the call has another result",
		fix:     "send one result for each call",
	},
	"between-calls": {
		problem: "a message stands between a call and its result",
		fix:     "send results directly after the calls, and messages before the calls or after the results",
	},
	"text-after-call": {
		problem: "text follows a call",
		fix:     "put the text before the calls",
	},
	"result-order": {
		problem: "the result of the call follows other content",
		fix:     "put all results before the other content of the user message",
	},
	"results-first": {
		problem: "a result follows other content",
		fix:     "put all results before the other content of the user message",
	},
	"results-alone": {
		problem: "the message holds results and other content, which the model does not take together",
		fix:     "send the other content in a user message of its own, after an assistant message",
	},
	"mixed-results": {
		problem: "the content holds function responses and other parts",
		fix:     "send the other parts in a content of their own, after it",
	},
	"split-results": {
		problem: "the results of one turn are spread over several contents",
		fix:     "send all results of one turn in one content",
	},
	"late-result": {
		problem: "another content stands between the calls and their results",
		fix:     "send the results directly after the content with their calls",
	},
	"result-id": {
		problem: "the id of the result is not that of a call",
		fix:     "give the result the id of its call",
	},
	"unanswered-server-call": {
		problem: "the call of a tool that the provider runs has no result in its turn",
		fix:     "leave the call out, or send the block with its result after it, before the user says something else",
	},
	"container-missing": {
		problem: "code that the provider runs has called a tool and waits, and the request does not name its container",
		fix:     "send the id of the container that came with the answer as container, or leave the code out",
	},
	"tool-reference": {
		problem: "a block refers to the tool {name}, which the request does not have",
		fix:     "send the definition of the tool, or name the tool in a text instead",
	},
	"orphan-server-result": {
		problem: "the result of a tool that the provider runs has no call in its turn",
		fix:     "leave the result out, or send the block with its call before it",
	},

	// Reasoning.

	"reasoning-missing": {
		problem: "the assistant message has calls but no reasoning_content",
		fix:     "send the reasoning back in reasoning_content, or an empty string",
	},
	"reasoning-alone": {
		problem: "nothing that the reasoning led to follows it",
		fix:     "send the message or call that the reasoning led to directly after it, or leave the reasoning out",
	},
	"reasoning-item": {
		problem: "the item that the reasoning led to has lost its id",
		fix:     "send that item with its own id, or the reasoning without an id",
	},
	"reasoning-unsigned": {
		problem: "the reasoning has no signature",
		fix:     "leave out reasoning that came without a signature",
	},
	"reasoning-last": {
		problem: "the message ends with reasoning",
		fix:     "leave out reasoning that nothing follows",
	},
	"thinking-signature": {
		problem: "the thinking block has no {key}",
		fix:     "send the block as it was received, or leave it out",
	},
	"thinking-last": {
		problem: "the request ends with thinking",
		fix:     "leave out thinking that nothing follows",
	},
	"thinking-first": {
		problem: "thinking is on, and the current assistant turn does not begin with a thinking block",
		fix:     "send the thinking block back, or turn thinking off for this request",
	},
	"signature-missing": {
		problem: "the first function call of a step has no thought signature",
		fix:     "send the thoughtSignature that came with the call, or " + skipSignature,
	},

	// Cache marks.

	"cache-place": {
		problem: "the block cannot have a cache mark",
		fix:     "set the mark on a block that is neither thinking nor an empty text",
	},
	"cached-content": {
		problem: "the request has cached content, and also system text, tools or a tool choice",
		fix:     "put them into the cached content, or leave that out",
	},
	"cache-order": {
		problem: "the cache mark has a longer lifetime than one before it",
		fix:     "let marks for an hour come before those for 5 minutes, in the order tools, system, messages",
	},
	"cache-count": {
		problem: "the request has {count} cache marks",
		fix:     "mark at most four blocks of system, tools and messages together",
	},

	// Sizes.

	"request-bytes": {
		problem: "the request has {count} bytes, and the provider takes {most}",
		fix:     "send fewer images and documents; convo.ClearMedia replaces older ones by a line",
	},
	"media-count": {
		problem: "the request has {images} images and {documents} documents, and the provider takes {most}",
		fix:     "send fewer; convo.ClearMedia replaces older ones by a line",
	},
	"document-count": {
		problem: "the request has {count} documents, and the provider takes {most}",
		fix:     "send fewer; convo.ClearMedia replaces older ones by a line",
	},
	"media-bytes": {
		problem: "the data of the image has {count} bytes in base64, and the provider takes {most}",
		fix:     "make it smaller, or send its address if the provider takes one",
	},
	"image-pixels": {
		problem: "a side of the image has {count} pixels, and the provider takes {most}; with up to {few} images in the request, it takes larger ones",
		fix:     "make it smaller, or replace older images by text; convo.ClearMedia replaces what the model of its History does not take",
	},
	"image-type": {
		problem: "the image is {is}, not {stated} as the request says",
		fix:     "state the type that the image has",
	},
	"image-unreadable": {
		problem: "the data is no image that the provider can read",
		fix:     "leave it out, or put a text in its place",
	},
	"pdf-encrypted": {
		problem: "the PDF is encrypted",
		fix:     "send it without a password, or its text",
	},
	"pdf-unreadable": {
		problem: "the data is no PDF",
		fix:     "leave it out, or put a text in its place",
	},
	"arguments-length": {
		problem: "the arguments have {length} characters, and the provider takes {limit}, though its models write more",
		fix:     "shorten the arguments, or replace the call and its result by text",
	},
}

// historyRules are the rules of CheckHistory.
var historyRules = map[string]rule{
	"seal-prefix": {
		problem: "signed reasoning (blocks from here on: {count}) is sent after other content than it was made after; the first change: {change}",
		fix:     "leave out signed reasoning after a change; keep text and calls",
		error:   "{dotted}: Invalid `signature` in `thinking` block. The block is bound to a different conversation.",
	},
	"seal-order": {
		problem: "the signed reasoning right before this block was left out, but older reasoning was not",
		fix:     "leave out all reasoning up to some point of the history, and none after it",
		error:   "{dotted}: Invalid `signature` in `thinking` block. The block is bound to a different conversation.",
	},
	"cache-prefix": {
		problem: "{percent} % of the request before, in bytes, precede this difference; a cache misses the rest",
		fix:     "append to the conversation, or compact rarely and much at a time",
		error:   "(none: the request is answered, at the price of uncached input)",
	},
}

// finding makes a finding from the table. The name is that of the rule, with a
// case after a slash if the format has several error texts for it. The details
// are pairs of a placeholder and its value.
func finding(format, name, path, id string, details ...string) Finding {
	base, _, _ := strings.Cut(name, "/")
	return rules[base].finding(format, name, path, id, details...)
}

// finding makes a finding of the rule; see the function finding.
func (r rule) finding(format, name, path, id string, details ...string) Finding {
	base, _, _ := strings.Cut(name, "/")
	f := Finding{Rule: base, Path: path, ID: id, Problem: r.problem, Fix: r.fix}
	texts := textsOf[format]
	if fix, ok := texts.fixes[base]; ok {
		f.Fix = fix
	}
	text, ok := texts.errors[name]
	if !ok {
		text = r.error
	}
	pairs := []string{"{path}", path, "{dotted}", dotted(path), "{id}", id}
	for i := 0; i+1 < len(details); i += 2 {
		pairs = append(pairs, "{"+details[i]+"}", details[i+1])
	}
	fill := strings.NewReplacer(pairs...).Replace
	f.Error, f.Problem, f.Fix = fill(text), fill(f.Problem), fill(f.Fix)
	return f
}

// dotted writes a path as Anthropic and Bedrock do: messages.0.content.
func dotted(path string) string { return dots.Replace(path) }

var dots = strings.NewReplacer("[", ".", "]", "")
