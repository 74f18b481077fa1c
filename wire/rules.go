package wire

import "strings"

// A rule is a reason for which a provider refuses a request.
//
// Its texts hold placeholders in braces. {path} is Finding.Path, {dotted} is
// the path as Anthropic and Bedrock write it (messages.0.content), and {id} is
// Finding.ID. The Check that applies the rule supplies the others.
type rule struct {
	problem string            // what is wrong
	fix     string            // how to fix it
	errors  map[string]string // what the provider answers, by format; "" means all others
	fixes   map[string]string // for formats in which fix would not help
}

// rules are all the rules that the Check methods apply. A format can have
// several error texts for one rule: "anthropic/empty" is one of the format
// "anthropic".
//
// The error texts were taken from answers of the providers, from their
// documentation and from public bug reports. Where none is known, the text
// begins with "(none".
var rules = map[string]rule{

	// The JSON itself.

	"json": {
		problem: "the request is not a JSON object: {reason}",
		fix:     "send one JSON object and nothing after it",
		errors: map[string]string{
			"":           "We could not parse the JSON body of your request.",
			FormatGemini: "Invalid JSON payload received.",
		},
	},
	"shape": {
		problem: "the value is not {want}",
		fix:     "send {want}",
		errors:  map[string]string{"": "Invalid type for '{path}'"},
	},
	"messages-empty": {
		problem: "the request has no message",
		fix:     "send at least one message",
		errors: map[string]string{
			FormatOpenAIChat: "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
			FormatAnthropic:  "messages: at least one message is required",
			FormatConverse:   "A conversation must start with a user message. Try again with a conversation that starts with a user message.",
		},
	},
	"input-empty": {
		problem: "the request has no input",
		fix:     "send at least one item",
		errors: map[string]string{
			FormatOpenAIResponses: `One of "input" or "previous_response_id" or 'prompt' or 'conversation_id' must be provided.`,
		},
	},
	"contents-empty": {
		problem: "the request has no content",
		fix:     "send at least one content",
		errors: map[string]string{
			FormatGemini: "* GenerateContentRequest.contents: contents is not specified",
		},
	},

	// Roles and the order of messages.

	"role": {
		problem: `the provider does not know the role "{role}"`,
		fix:     "use one of the roles that the provider knows",
		errors: map[string]string{
			FormatOpenAIChat:      "Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', 'tool', and 'developer'.",
			FormatOpenAIResponses: "Invalid value: '{role}'. Supported values are: 'assistant', 'system', 'developer', and 'user'.",
			FormatAnthropic:       "{dotted}: Input should be 'user' or 'assistant'",
			FormatGemini:          "Please use a valid role: user, model.",
			FormatConverse:        "Value '{role}' at '{dotted}' failed to satisfy constraint: Member must satisfy enum value set: [user, assistant]",
		},
		fixes: map[string]string{
			FormatOpenAIChat:      "use system, user, assistant or tool",
			FormatOpenAIResponses: "use user, assistant, system or developer; send a result as an item of type function_call_output",
			FormatAnthropic:       "use user or assistant, and system for system text",
			FormatGemini:          "use user or model, and user for results",
			FormatConverse:        "use user or assistant; system text goes into the field system",
		},
	},
	"user-first": {
		problem: "the conversation begins with an assistant message",
		fix:     "begin with a user message",
		errors: map[string]string{
			FormatOpenAIChat: "Conversation roles must alternate user/assistant/user/assistant/...",
			FormatConverse:   "A conversation must start with a user message. Try again with a conversation that starts with a user message.",
		},
	},
	"call-first": {
		problem: "the conversation begins with a function call of the model",
		fix:     "begin with a user content",
		errors: map[string]string{
			FormatGemini: "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
		},
	},
	"alternation": {
		problem: "two messages of one role follow each other",
		fix:     "merge neighbours of one role into one message",
		errors: map[string]string{
			FormatOpenAIChat: "After the optional system message, conversation roles must alternate user and assistant roles except for tool calls and results.",
			FormatConverse:   "A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and assistant roles and try again.",
		},
	},
	"order": {
		problem: "a message with the role {role} follows one with the role {previous}",
		fix:     "put an assistant message between a result and a user message, and system messages first",
		errors: map[string]string{
			FormatOpenAIChat: "Unexpected role '{role}' after role '{previous}'",
		},
	},
	"last-role": {
		problem: "the conversation ends with an assistant message",
		fix:     "end with a user message or a result",
		errors: map[string]string{
			FormatOpenAIChat: "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant",
			FormatAnthropic:  "This model does not support assistant message prefill. The conversation must end with a user message.",
			FormatGemini:     "Please ensure that multiturn requests ends with a user role or a function response",
			FormatConverse:   "This model does not support assistant message prefill. The conversation must end with a user message.",
		},
	},
	"trailing-space": {
		problem: "the last assistant message ends with white space",
		fix:     "remove the white space at the end",
		errors: map[string]string{
			FormatAnthropic: "messages: final assistant content cannot end with trailing whitespace",
		},
	},

	// System text.

	"split-calls": {
		problem: "the message holds both content and calls",
		fix:     "send the content in an assistant message before it, with a user message between them, and the calls without the field content",
		errors: map[string]string{
			FormatOpenAIChat: "Assistant message cannot have both content and tool calls.",
		},
	},
	"text-calls": {
		problem: "the chat template knows no calls",
		fix:     "send the calls as text in the content, and their results as text of a user message",
		errors: map[string]string{
			FormatOpenAIChat: "Conversation roles must alternate user/assistant/user/assistant/...",
		},
	},
	"system-first": {
		problem: "a system message follows other messages",
		fix:     "send one system message, as the first message",
		errors: map[string]string{
			FormatOpenAIChat: "System message must be at the beginning.",
		},
	},
	"system-model": {
		problem: "the model takes no messages with the role {role}",
		fix:     "send the text in a user message",
		errors: map[string]string{
			FormatOpenAIChat: "Unsupported value: '{path}' does not support '{role}' with this model.",
		},
	},
	"system-type": {
		problem: "the system field holds a block that is not text",
		fix:     "send system text as blocks of type text",
		errors: map[string]string{
			FormatAnthropic: "{dotted}: Input should be 'text'",
		},
	},
	"system-place": {
		problem: "a system message does not stand between a user message and an assistant message",
		fix:     "put it after a user message and before an assistant message or at the end, or send the text in the field system",
		errors: map[string]string{
			FormatAnthropic: "messages: a system message must directly follow a user turn and directly precede an assistant turn",
		},
	},

	// The content of a message.

	"content-missing": {
		problem: "the message has no content",
		fix:     "give the message content, or leave it out",
		errors: map[string]string{
			FormatOpenAIChat:              "Invalid value for 'content': expected a string, got null.",
			FormatOpenAIChat + "/mistral": "Assistant message must have either content or tool_calls, but not both.",
			FormatOpenAIResponses:         "Invalid type for '{path}': expected one of an array of objects or string, but got null instead.",
		},
	},
	"content-empty": {
		problem: "the message has no content blocks",
		fix:     "leave the message out",
		errors: map[string]string{
			FormatAnthropic: "messages.{index}: all messages must have non-empty content except for the optional final assistant message",
			FormatConverse:  "The content field in the Message object at {message} is empty. Add a ContentBlock object to the content field and try again.",
		},
	},
	"content-type": {
		problem: `a message of this role cannot hold a part of type "{type}"`,
		fix:     "use output_text or refusal in assistant messages, and input_text, input_image or input_file elsewhere",
		errors: map[string]string{
			FormatOpenAIResponses:       "Invalid value: '{type}'. Supported values are: {supported}.",
			FormatOpenAIChat:            "Invalid value: '{type}'. Supported values are: {supported}.",
			FormatOpenAIChat + "/image": "Invalid '{message}'. Image URLs are only allowed for messages with role 'user', but this message with role '{role}' contains an image URL.",
		},
		fixes: map[string]string{
			FormatOpenAIChat: "send images, sound and files in user messages, a refusal in an assistant message, and text elsewhere",
		},
	},
	"blank-text": {
		problem: "the text is blank",
		fix:     "leave the block out",
		errors: map[string]string{
			FormatAnthropic:            "messages: text content blocks must contain non-whitespace text",
			FormatAnthropic + "/empty": "messages: text content blocks must be non-empty",
			FormatConverse:             "The text field in the {owner} object at {block} is blank. Add text to the text field, and try again.",
		},
	},
	"parts-empty": {
		problem: "the content has no parts",
		fix:     "leave the content out",
		errors: map[string]string{
			FormatGemini: "* GenerateContentRequest.{path}: contents.parts must not be empty.",
		},
	},
	"part-empty": {
		problem: "the part holds no data",
		fix:     "leave the part out",
		errors: map[string]string{
			FormatGemini: "* GenerateContentRequest.{path}.data: required oneof field 'data' must have one initialized field",
		},
	},
	"part-data": {
		problem: "the part holds {field} and other data",
		fix:     "split it into two parts",
		errors: map[string]string{
			FormatGemini: "Invalid value at '{path}' (oneof), oneof field 'data' is already set. Cannot set '{field}'",
		},
	},
	"part-role": {
		problem: "a content with the role {role} cannot hold a {kind}",
		fix:     "put function calls into contents of the model, and results into contents of the user",
		errors: map[string]string{
			FormatGemini: "Content with role '{role}' can't contain '{kind}' part",
		},
	},
	"block-place": {
		problem: "a {type} block is in a message of the wrong role",
		fix:     "put the block into a message with the role {role}",
		errors: map[string]string{
			FormatAnthropic: "{dotted}: `{type}` blocks can only be in `{role}` messages",
		},
	},
	"block-role": {
		problem: "a {kind} block is in a message of the wrong role",
		fix:     "put calls and reasoning into assistant messages, and results into user messages",
		errors: map[string]string{
			FormatConverse: "{role} messages cannot contain {kind} content.",
		},
	},
	"author-pattern": {
		problem: "the provider does not take this name of an author",
		fix:     "use 1 to 64 letters, digits, _ and - in the name",
		errors: map[string]string{
			FormatOpenAIChat + "/length": "Invalid '{path}': string too long. Expected a string with maximum length 64, but got a string with length {length} instead.",
			FormatOpenAIChat:             `Invalid '{path}': string does not match pattern. Expected a string that matches the pattern '^[^\s<|\\/>]+$'.`,
		},
	},

	// Media and documents.

	"media-type": {
		problem: "the provider does not read media of this type",
		fix:     "convert it to a type that the provider reads, or describe it in text",
		errors: map[string]string{
			FormatOpenAIResponses + "/image": "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', 'jpeg', 'gif', 'webp'].",
			FormatOpenAIResponses + "/file":  "Invalid file data: '{path}'. Expected a base64-encoded data URL with a valid file MIME type (e.g. 'data:text/plain;base64,SGVsbG8sIFdvcmxkIQ=='), but got unsupported MIME type '{mime}'.",
			FormatAnthropic:                  "{block}.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'",
		},
	},
	"audio-model": {
		problem: "the model does not take audio",
		fix:     "send audio to a model that takes it, or send a transcript",
		errors: map[string]string{
			FormatOpenAIChat: "Invalid '{message}'. Content blocks are expected to be either text or image_url type.",
		},
	},
	"document-name": {
		problem: "the name of the document holds characters that Bedrock refuses",
		fix:     "use letters, digits, single spaces, hyphens, parentheses and square brackets, without a file extension",
		errors: map[string]string{
			FormatConverse: "The document file name can only contain alphanumeric characters, whitespace characters, hyphens, parentheses, and square brackets. The name can't contain more than one consecutive whitespace character.",
		},
	},
	"document-duplicate": {
		problem: "another document of the request has the same name",
		fix:     "give each document of the request its own name",
		errors: map[string]string{
			FormatConverse: "Messages can't contain duplicate document names. Rename the document and retry your request.",
		},
	},
	"document-text": {
		problem: "the message holds a document but no text",
		fix:     "add a text block to the message",
		errors: map[string]string{
			FormatConverse: "A text block must be included when using documents.",
		},
	},

	// One tool call, or one result.

	"calls-empty": {
		problem: "tool_calls is an empty array",
		fix:     "leave tool_calls out",
		errors: map[string]string{
			FormatOpenAIChat: "Invalid '{path}': empty array. Expected an array with minimum length 1, but got an empty array instead.",
		},
	},
	"id-missing": {
		problem: "a call or a result has no id",
		fix:     "give the call an id, and its result the same",
		errors: map[string]string{
			FormatOpenAIChat:      "Missing required parameter: '{path}'.",
			FormatOpenAIResponses: "Missing required parameter: '{path}'.",
			FormatAnthropic:       "{field}: Field required",
		},
	},
	"id-length": {
		problem: "the id is longer than {limit} characters",
		fix:     "use an id of at most {limit} characters, and the same in its result",
		errors: map[string]string{
			FormatOpenAIChat:      "Invalid '{path}': string too long. Expected a string with maximum length {limit}, but got a string with length {length} instead.",
			FormatOpenAIResponses: "Invalid '{path}': string too long. Expected a string with maximum length {limit}, but got a string with length {length} instead.",
		},
	},
	"id-pattern": {
		problem: "the provider does not take this id",
		fix:     "use letters, digits, _ and - in the id, and the same id in its result",
		errors: map[string]string{
			FormatOpenAIChat: "Tool call id was {id} but must be a-z, A-Z, 0-9, with a length of 9.",
			FormatAnthropic:  "{field}: String should match pattern '^[a-zA-Z0-9_-]+$'",
			FormatConverse:   "Value '{id}' at '{dotted}' failed to satisfy constraint: Member must have length less than or equal to 64 and satisfy regular expression pattern: [a-zA-Z0-9_.:-]+",
		},
		fixes: map[string]string{
			FormatOpenAIChat: "use nine letters and digits as the id, and the same id in its result",
			FormatConverse:   "use at most 64 letters, digits and _ . : - in the id, and the same id in its result",
		},
	},
	"item-id": {
		problem: "the provider does not give such ids to items of this type",
		fix:     "leave the id of the item out; calls and results are paired by call_id",
		errors: map[string]string{
			FormatOpenAIResponses:             "Invalid '{path}': '{id}'. Expected an ID that begins with '{prefix}'.",
			FormatOpenAIResponses + "/length": "Invalid '{path}': string too long. Expected a string with maximum length 64, but got a string with length {length} instead.",
		},
	},
	"duplicate-item": {
		problem: "two items have the same id",
		fix:     "send the item once",
		errors: map[string]string{
			FormatOpenAIResponses: "Duplicate item found with id {id}. Remove duplicate items from your input and try again.",
		},
	},
	"not-stored": {
		problem: "the item refers to one that the provider was told not to store",
		fix:     `ask for reasoning with include: ["reasoning.encrypted_content"] and send that back, or leave the item out`,
		errors: map[string]string{
			FormatOpenAIResponses: "Item with id '{id}' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.",
		},
	},
	"name-missing": {
		problem: "a call or a result has no function name",
		fix:     "name the function",
		errors: map[string]string{
			FormatGemini: "* GenerateContentRequest.{path}: Name cannot be empty.",
		},
	},
	"name-pattern": {
		problem: "the provider does not take this tool name",
		fix:     "use 1 to 64 letters, digits, _ and - in the name of the tool",
		errors: map[string]string{
			FormatOpenAIChat:            "Invalid '{path}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
			FormatOpenAIChat + "/empty": "Invalid '{path}': empty string. Expected a string with minimum length 1, but got an empty string instead.",
			FormatOpenAIResponses:       "Invalid '{path}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
			FormatAnthropic:             "{block}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
			FormatConverse:              "Value '{name}' at '{dotted}' failed to satisfy constraint: Member must have length less than or equal to 64 and satisfy regular expression pattern: [a-zA-Z0-9_-]+",
		},
	},
	"arguments": {
		problem: "the arguments are not {want}",
		fix:     "send the arguments as {want}",
		errors: map[string]string{
			FormatOpenAIChat:      "Invalid type for '{path}': expected {want}.",
			FormatOpenAIResponses: "Invalid type for '{path}': expected {want}.",
		},
	},
	"input": {
		problem: "the arguments are not an object",
		fix:     "send the arguments as an object, {} if there are none",
		errors: map[string]string{
			FormatAnthropic: "{block}.tool_use.input: Input should be a valid dictionary",
			FormatConverse:  "The format of the value at {dotted} is invalid. Provide a json object for the field and try again.",
		},
	},
	"args": {
		problem: "the arguments are not an object",
		fix:     "send the arguments as an object",
		errors: map[string]string{
			FormatGemini: "Invalid value at '{path}' (type.googleapis.com/google.protobuf.Struct)",
		},
	},
	"response": {
		problem: "the result is not an object",
		fix:     `send the result as an object, such as {"output": "..."}`,
		errors: map[string]string{
			FormatGemini: "Invalid value at '{path}' (type.googleapis.com/google.protobuf.Struct)",
		},
	},
	"result-content": {
		problem: "the result holds something other than text",
		fix:     "send text in results, and media in a user message after them",
		errors: map[string]string{
			FormatOpenAIChat: "Invalid '{content}'. Content blocks are expected to be either text or image_url type.",
		},
	},
	"result-json": {
		problem: "the json block of the result is not an object",
		fix:     "send an object, or send a text block",
		errors: map[string]string{
			FormatConverse: "The format of the value at {dotted} is invalid. Provide a json object for the field and try again.",
		},
	},
	"error-result": {
		problem: "the error result is empty or holds something other than text",
		fix:     "describe the error in text, and send nothing else in the result",
		errors: map[string]string{
			FormatAnthropic:            "{block}.tool_result: all content must be type `text` if `is_error` is true",
			FormatAnthropic + "/empty": "{block}.tool_result: content cannot be empty if `is_error` is true",
		},
	},
	"error-empty": {
		problem: "the error result is empty",
		fix:     "describe the error in a few words",
		errors: map[string]string{
			FormatConverse: "The content field at {block}.toolResult cannot be empty when status value is error.",
		},
	},
	"status": {
		problem: "Bedrock does not know the status {status}",
		fix:     "use success or error",
		errors: map[string]string{
			FormatConverse: "Value '{status}' at '{dotted}' failed to satisfy constraint: Member must satisfy enum value set: [success, error]",
		},
	},
	"tool-config": {
		problem: "the messages hold tool calls or results, and the request has no toolConfig",
		fix:     "send the definitions of the tools in toolConfig, even if the model is not meant to call any",
		errors: map[string]string{
			FormatConverse: "The toolConfig field must be defined when using toolUse and toolResult content blocks.",
		},
	},

	// Calls together with their results.

	"unanswered-call": {
		problem: "the call has no result",
		fix:     "send a result for the call directly after the message that holds it",
		errors: map[string]string{
			FormatOpenAIChat:      "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: {id}",
			FormatOpenAIResponses: "No tool output found for {kind} {id}.",
			FormatAnthropic:       "{message}: `tool_use` ids were found without `tool_result` blocks immediately after: {id}. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
			FormatGemini:          "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.",
			FormatConverse:        "Expected toolResult blocks at {next} for the following Ids: {id}",
		},
		fixes: map[string]string{
			FormatOpenAIResponses: "send an output item with the call_id of the call",
			FormatAnthropic:       "send a result for the call at the start of the next user message",
			FormatGemini:          "send a functionResponse for the call in the next content",
			FormatConverse:        "send a result for the call in the next message, a user message",
		},
	},
	"orphan-result": {
		problem: "the result answers no call",
		fix:     "leave the result out, or send the message with its call directly before it",
		errors: map[string]string{
			FormatOpenAIChat:        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
			FormatOpenAIResponses:   "No tool call found for {kind} output with call_id {id}.",
			FormatAnthropic:         "{dotted}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.",
			FormatGemini:            "Please ensure that function response turn comes immediately after a function call turn.",
			FormatGemini + "/count": "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.",
			FormatConverse:          "The number of toolResult blocks at {content} exceeds the number of toolUse blocks of previous turn.",
		},
	},
	"duplicate-call": {
		problem: "another call has the same id",
		fix:     "give each call its own id, and its result the same",
		errors: map[string]string{
			FormatOpenAIChat:      "Duplicate tool call id {id}",
			FormatOpenAIResponses: "Duplicate call_id {id}",
			FormatAnthropic:       "{block}: `tool_use` ids must be unique",
			FormatConverse:        "The toolUse blocks at {content} contain duplicate Ids: {id}",
		},
	},
	"duplicate-result": {
		problem: "the call has another result",
		fix:     "send one result for each call",
		errors: map[string]string{
			FormatOpenAIChat:      "Duplicate tool call id {id} in tool results",
			FormatOpenAIResponses: "Duplicate output for call_id {id}",
			FormatAnthropic:       "{dotted}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {id}",
			FormatGemini:          "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.",
			FormatConverse:        "The toolResult blocks at {content} contain duplicate Ids: {id}",
		},
	},
	"between-calls": {
		problem: "a message stands between a call and its result",
		fix:     "send results directly after the calls, and messages before the calls or after the results",
		errors: map[string]string{
			FormatOpenAIResponses: "No tool output found for tool call {id}.",
		},
	},
	"text-after-call": {
		problem: "text follows a call",
		fix:     "put the text before the calls",
		errors: map[string]string{
			FormatAnthropic: "{message}: `tool_use` ids were found without `tool_result` blocks immediately after: {id}. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
		},
	},
	"result-order": {
		problem: "the result of the call follows other content",
		fix:     "put all results before the other content of the user message",
		errors: map[string]string{
			FormatAnthropic: "{message}: `tool_use` ids were found without `tool_result` blocks immediately after: {id}. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
		},
	},
	"results-first": {
		problem: "a result follows other content",
		fix:     "put all results before the other content of the user message",
		errors: map[string]string{
			FormatConverse: "Did not find the toolResult blocks at the beginning of this message. Messages following toolUse blocks must begin with a matching number of toolResult blocks.",
		},
	},
	"results-alone": {
		problem: "the message holds results and other content, which the model does not take together",
		fix:     "send the other content in a user message of its own, after an assistant message",
		errors: map[string]string{
			FormatConverse: "Conversation blocks and tool use blocks cannot be provided in the same turn.",
		},
	},
	"mixed-results": {
		problem: "the content holds function responses and other parts",
		fix:     "send the other parts in a content of their own, after it",
		errors: map[string]string{
			FormatGemini: "Requests ending with a model turn are not supported.",
		},
	},
	"split-results": {
		problem: "the results of one turn are spread over several contents",
		fix:     "send all results of one turn in one content",
		errors: map[string]string{
			FormatGemini: "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.",
		},
	},
	"late-result": {
		problem: "another content stands between the calls and their results",
		fix:     "send the results directly after the content with their calls",
		errors: map[string]string{
			FormatGemini: "Please ensure that function response turn comes immediately after a function call turn.",
		},
	},
	"result-id": {
		problem: "the id of the result is not that of a call",
		fix:     "give the result the id of its call",
		errors: map[string]string{
			FormatGemini: "(none: the model answers nothing, with finishReason STOP)",
		},
	},
	"unanswered-server-call": {
		problem: "the call of a tool that the provider runs has no result in its turn",
		fix:     "leave the call out, or send the block with its result after it, before the user says something else",
		errors: map[string]string{
			FormatAnthropic: "{message}: `{name}` tool use with id `{id}` was found without a corresponding `{result}` block",
			FormatConverse:  "(none is published: the message is not what the model wrote)",
		},
		fixes: map[string]string{
			FormatConverse: "leave the call out, or send the block with its result after it in the same message",
		},
	},
	"container-missing": {
		problem: "code that the provider runs has called a tool and waits, and the request does not name its container",
		fix:     "send the id of the container that came with the answer as container, or leave the code out",
		errors: map[string]string{
			FormatAnthropic: "container_id is required when there are pending tool uses generated by code execution with tools.",
		},
	},
	"tool-reference": {
		problem: "a block refers to the tool {name}, which the request does not have",
		fix:     "send the definition of the tool, or name the tool in a text instead",
		errors: map[string]string{
			FormatAnthropic:             "Tool reference '{name}' not found in available tools",
			FormatAnthropic + "/change": "(none known; the error_code in the details of the error is tool_reference_unresolved)",
		},
	},
	"orphan-server-result": {
		problem: "the result of a tool that the provider runs has no call in its turn",
		fix:     "leave the result out, or send the block with its call before it",
		errors: map[string]string{
			FormatAnthropic: "{dotted}: unexpected `tool_use_id` found in `{type}` blocks: {id}. Each `{type}` block must have a corresponding `server_tool_use` block before it.",
		},
	},

	// Reasoning.

	"reasoning-missing": {
		problem: "the assistant message has calls but no reasoning_content",
		fix:     "send the reasoning back in reasoning_content, or an empty string",
		errors: map[string]string{
			FormatOpenAIChat: "The `reasoning_content` in the thinking mode must be passed back to the API.",
		},
	},
	"reasoning-alone": {
		problem: "nothing that the reasoning led to follows it",
		fix:     "send the message or call that the reasoning led to directly after it, or leave the reasoning out",
		errors: map[string]string{
			FormatOpenAIResponses: "Item '{id}' of type 'reasoning' was provided without its required following item.",
		},
	},
	"reasoning-item": {
		problem: "the item that the reasoning led to has lost its id",
		fix:     "send that item with its own id, or the reasoning without an id",
		errors: map[string]string{
			FormatOpenAIResponses: "Item '{id}' of type 'reasoning' was provided without its required following item.",
		},
	},
	"reasoning-unsigned": {
		problem: "the reasoning has no signature",
		fix:     "leave out reasoning that came without a signature",
		errors: map[string]string{
			FormatConverse: "User messages cannot contain reasoning content. Please remove the reasoning content and try again.",
		},
	},
	"reasoning-last": {
		problem: "the message ends with reasoning",
		fix:     "leave out reasoning that nothing follows",
		errors: map[string]string{
			FormatConverse: "{message}: The final block in an assistant message cannot be `thinking`.",
		},
	},
	"thinking-signature": {
		problem: "the thinking block has no {key}",
		fix:     "send the block as it was received, or leave it out",
		errors: map[string]string{
			FormatAnthropic: "{block}.{type}.{key}: Field required",
		},
	},
	"thinking-last": {
		problem: "the request ends with thinking",
		fix:     "leave out thinking that nothing follows",
		errors: map[string]string{
			FormatAnthropic: "messages.{index}: The final block in an assistant message cannot be `thinking`.",
		},
	},
	"thinking-first": {
		problem: "thinking is on, and the current assistant turn does not begin with a thinking block",
		fix:     "send the thinking block back, or turn thinking off for this request",
		errors: map[string]string{
			FormatAnthropic: "{dotted}.type: Expected `thinking` or `redacted_thinking`, but found `{type}`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks).",
		},
	},
	"signature-missing": {
		problem: "the first function call of a step has no thought signature",
		fix:     "send the thoughtSignature that came with the call, or " + skipSignature,
		errors: map[string]string{
			FormatGemini: "Function call is missing a thought_signature in functionCall parts. Additional data, function call `default_api:{name}`, position {position}.",
		},
	},

	// Cache marks.

	"cache-place": {
		problem: "the block cannot have a cache mark",
		fix:     "set the mark on a block that is neither thinking nor an empty text",
		errors: map[string]string{
			FormatAnthropic:            "{block}.{type}.cache_control: Extra inputs are not permitted",
			FormatAnthropic + "/empty": "{block}.text: cache_control cannot be set for empty text blocks",
		},
	},
	"cached-content": {
		problem: "the request has cached content, and also system text, tools or a tool choice",
		fix:     "put them into the cached content, or leave that out",
		errors: map[string]string{
			FormatGemini: "CachedContent can not be used with GenerateContent request setting system_instruction, tools or tool_config.\n\nProposed fix: move those values to CachedContent from GenerateContent request.",
		},
	},
	"cache-order": {
		problem: "the cache mark has a longer lifetime than one before it",
		fix:     "let marks for an hour come before those for 5 minutes, in the order tools, system, messages",
		errors: map[string]string{
			FormatAnthropic: "{dotted}.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`.",
			FormatConverse:  "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block",
		},
	},
	"cache-count": {
		problem: "the request has {count} cache marks",
		fix:     "mark at most four blocks of system, tools and messages together",
		errors: map[string]string{
			FormatAnthropic: "A maximum of 4 blocks with cache_control may be provided. Found {count}.",
			FormatConverse:  "A maximum of 4 blocks with cache_control may be provided. Found {count}.",
		},
	},

	// Sizes.

	"request-bytes": {
		problem: "the request has {count} bytes, and the provider takes {most}",
		fix:     "send fewer images and documents; convo.ClearMedia replaces older ones by a line",
		errors: map[string]string{
			FormatAnthropic:       "Request exceeds the maximum size",
			FormatOpenAIChat:      "(none is published)",
			FormatOpenAIResponses: "(none is published)",
			FormatGemini:          "Request payload size exceeds the limit: {most} bytes.",
		},
	},
	"media-count": {
		problem: "the request has {images} images and {documents} documents, and the provider takes {most}",
		fix:     "send fewer; convo.ClearMedia replaces older ones by a line",
		errors: map[string]string{
			FormatAnthropic:       "too many images and documents: {images} + {documents} > {most}",
			FormatOpenAIChat:      "(none is published)",
			FormatOpenAIResponses: "(none is published)",
			FormatGemini:          "(none is published)",
			FormatConverse:        "The model returned the following errors: too many images and documents: {images} + {documents} > {most}",
		},
	},
	"document-count": {
		problem: "the request has {count} documents, and the provider takes {most}",
		fix:     "send fewer; convo.ClearMedia replaces older ones by a line",
		errors:  map[string]string{FormatConverse: "(none is published)"},
	},
	"media-bytes": {
		problem: "the data of the image has {count} bytes in base64, and the provider takes {most}",
		fix:     "make it smaller, or send its address if the provider takes one",
		errors: map[string]string{
			FormatAnthropic: "{block}.source.base64: image exceeds {megabytes} MB maximum: {count} bytes > {most} bytes",
			FormatConverse:  "The model returned the following errors: {block}.source.base64: image exceeds {megabytes} MB maximum: {count} bytes > {most} bytes",
		},
	},
	"image-pixels": {
		problem: "a side of the image has {count} pixels, and the provider takes {most}; with up to {few} images in the request, it takes larger ones",
		fix:     "make it smaller, or replace older images by text; convo.ClearMedia replaces what the model of its History does not take",
		errors: map[string]string{
			FormatAnthropic:            "{block}.source.base64.data: At least one of the image dimensions exceed max allowed size: {most} pixels",
			FormatAnthropic + "/many":  "{block}.source.base64.data: At least one of the image dimensions exceed max allowed size for many-image requests: {most} pixels",
			FormatConverse:             "The model returned the following errors: {block}.source.base64.data: At least one of the image dimensions exceed max allowed size: {most} pixels",
			FormatConverse + "/many":   "The model returned the following errors: {block}.source.base64.data: At least one of the image dimensions exceed max allowed size for many-image requests: {most} pixels",
			FormatOpenAIChat:           "(none is published; a host of Claude passes on the error of Anthropic)",
			FormatOpenAIChat + "/many": "(none is published; a host of Claude passes on the error of Anthropic)",
		},
	},
	"image-type": {
		problem: "the image is {is}, not {stated} as the request says",
		fix:     "state the type that the image has",
		errors: map[string]string{
			FormatAnthropic: "{block}.source.base64: The image was specified using the {stated} media type, but the image appears to be a {is} image",
			FormatConverse:  "The model returned the following errors: {block}.source.base64: The image was specified using the {stated} media type, but the image appears to be a {is} image",
		},
	},
	"image-unreadable": {
		problem: "the data is no image that the provider can read",
		fix:     "leave it out, or put a text in its place",
		errors: map[string]string{
			FormatAnthropic:       "Could not process image",
			FormatConverse:        "The model returned the following errors: Could not process image",
			FormatOpenAIChat:      "You uploaded an unsupported image. Please make sure your image is valid.",
			FormatOpenAIResponses: "The image data you provided does not represent a valid image. Please check your input and try again with one of the supported image formats: ['image/jpeg', 'image/png', 'image/gif', 'image/webp'].",
			FormatGemini:          "Provided image is not valid.",
		},
	},
	"pdf-encrypted": {
		problem: "the PDF is encrypted",
		fix:     "send it without a password, or its text",
		errors:  map[string]string{FormatAnthropic: "{block}.source.base64.data: The PDF specified is password protected."},
	},
	"pdf-unreadable": {
		problem: "the data is no PDF",
		fix:     "leave it out, or put a text in its place",
		errors:  map[string]string{FormatAnthropic: "{block}.source.base64.data: The PDF specified was not valid."},
	},
	"arguments-length": {
		problem: "the arguments have {length} characters, and the provider takes {limit}, though its models write more",
		fix:     "shorten the arguments, or replace the call and its result by text",
		errors: map[string]string{
			FormatOpenAIChat:      "Invalid '{path}': string too long. Expected a string with maximum length {limit}, but got a string with length {length} instead.",
			FormatOpenAIResponses: "Invalid '{path}': string too long. Expected a string with maximum length {limit}, but got a string with length {length} instead.",
		},
	},
}

// historyRules are the rules of CheckHistory.
var historyRules = map[string]rule{
	"seal-prefix": {
		problem: "signed reasoning (blocks from here on: {count}) is sent after other content than it was made after; the first change: {change}",
		fix:     "leave out signed reasoning after a change; keep text and calls",
		errors: map[string]string{
			"": "{dotted}: Invalid `signature` in `thinking` block. The block is bound to a different conversation.",
		},
	},
	"seal-order": {
		problem: "the signed reasoning right before this block was left out, but older reasoning was not",
		fix:     "leave out all reasoning up to some point of the history, and none after it",
		errors: map[string]string{
			"": "{dotted}: Invalid `signature` in `thinking` block. The block is bound to a different conversation.",
		},
	},
	"cache-prefix": {
		problem: "{percent} % of the request before, in bytes, precede this difference; a cache misses the rest",
		fix:     "append to the conversation, or compact rarely and much at a time",
		errors:  map[string]string{"": "(none: the request is answered, at the price of uncached input)"},
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
	name, which, _ := strings.Cut(name, "/")
	f := Finding{Rule: name, Path: path, ID: id, Problem: r.problem, Fix: r.fix}
	if fix, ok := r.fixes[format]; ok {
		f.Fix = fix
	}
	key := format
	if which != "" {
		key += "/" + which
	}
	text, ok := r.errors[key]
	if !ok {
		text = r.errors[""]
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
