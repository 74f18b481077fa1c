package wire

func init() {
	textsOf[FormatOpenAIResponses] = ruleTexts{
		fixes: map[string]string{
			"role":            "use user, assistant, system or developer; send a result as an item of type function_call_output",
			"unanswered-call": "send an output item with the call_id of the call",
		},
		errors: map[string]string{
			"input-empty":      `One of "input" or "previous_response_id" or 'prompt' or 'conversation_id' must be provided.`,
			"role":             "Invalid value: '{role}'. Supported values are: 'assistant', 'system', 'developer', and 'user'.",
			"content-missing":  "Invalid type for '{path}': expected one of an array of objects or string, but got null instead.",
			"content-type":     "Invalid value: '{type}'. Supported values are: {supported}.",
			"media-type/image": "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', 'jpeg', 'gif', 'webp'].",
			"media-type/file":  "Invalid file data: '{path}'. Expected a base64-encoded data URL with a valid file MIME type (e.g. 'data:text/plain;base64,SGVsbG8sIFdvcmxkIQ=='), but got unsupported MIME type '{mime}'.",
			"id-missing":       "Missing required parameter: '{path}'.",
			"id-length":        "Invalid '{path}': string too long. Expected a string with maximum length {limit}, but got a string with length {length} instead.",
			"item-id":          "Invalid '{path}': '{id}'. Expected an ID that begins with '{prefix}'.",
			"item-id/length":   "Invalid '{path}': string too long. Expected a string with maximum length 64, but got a string with length {length} instead.",
			"duplicate-item":   "Duplicate item found with id {id}. Remove duplicate items from your input and try again.",
			"not-stored":       "Item with id '{id}' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.",
			"name-pattern":     "Invalid '{path}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
			"arguments":        "Invalid type for '{path}': expected {want}.",
			"unanswered-call":  "No tool output found for {kind} {id}.",
			"orphan-result":    "No tool call found for {kind} output with call_id {id}.",
			"duplicate-call":   "Duplicate call_id {id}",
			"duplicate-result": "Duplicate output for call_id {id}",
			"between-calls":    "No tool output found for tool call {id}.",
			"reasoning-alone":  "Item '{id}' of type 'reasoning' was provided without its required following item.",
			"reasoning-item":   "Item '{id}' of type 'reasoning' was provided without its required following item.",
			"request-bytes":    "(none is published)",
			"media-count":      "(none is published)",
			"image-unreadable": "The image data you provided does not represent a valid image. Please check your input and try again with one of the supported image formats: ['image/jpeg', 'image/png', 'image/gif', 'image/webp'].",
			"arguments-length": "Invalid '{path}': string too long. Expected a string with maximum length {limit}, but got a string with length {length} instead.",
		},
	}
}
