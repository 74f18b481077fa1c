package wire

func init() {
	textsOf[FormatGemini] = ruleTexts{
		fixes: map[string]string{
			"role":            "use user or model, and user for results",
			"unanswered-call": "send a functionResponse for the call in the next content",
		},
		errors: map[string]string{
			"json":                "Invalid JSON payload received.",
			"contents-empty":      "* GenerateContentRequest.contents: contents is not specified",
			"role":                "Please use a valid role: user, model.",
			"call-first":          "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
			"last-role":           "Please ensure that multiturn requests ends with a user role or a function response",
			"parts-empty":         "* GenerateContentRequest.{path}: contents.parts must not be empty.",
			"part-empty":          "* GenerateContentRequest.{path}.data: required oneof field 'data' must have one initialized field",
			"part-data":           "Invalid value at '{path}' (oneof), oneof field 'data' is already set. Cannot set '{field}'",
			"part-role":           "Content with role '{role}' can't contain '{kind}' part",
			"name-missing":        "* GenerateContentRequest.{path}: Name cannot be empty.",
			"args":                "Invalid value at '{path}' (type.googleapis.com/google.protobuf.Struct)",
			"response":            "Invalid value at '{path}' (type.googleapis.com/google.protobuf.Struct)",
			"unanswered-call":     "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.",
			"orphan-result":       "Please ensure that function response turn comes immediately after a function call turn.",
			"orphan-result/count": "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.",
			"duplicate-result":    "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.",
			"mixed-results":       "Requests ending with a model turn are not supported.",
			"split-results":       "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.",
			"late-result":         "Please ensure that function response turn comes immediately after a function call turn.",
			"result-id":           "(none: the model answers nothing, with finishReason STOP)",
			"signature-missing":   "Function call is missing a thought_signature in functionCall parts. Additional data, function call `default_api:{name}`, position {position}.",
			"cached-content":      "CachedContent can not be used with GenerateContent request setting system_instruction, tools or tool_config.\n\nProposed fix: move those values to CachedContent from GenerateContent request.",
			"request-bytes":       "Request payload size exceeds the limit: {most} bytes.",
			"media-count":         "(none is published)",
			"image-unreadable":    "Provided image is not valid.",
		},
	}
}
