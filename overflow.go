package convo

import "strings"

// IsOverflow reports whether an error's text is one of those with which the
// known providers and servers say that a request is too long for the model.
// Use it in an Options.IsOverflow of your own.
func IsOverflow(err error) bool {
	if err == nil {
		return false
	}
	text := strings.ToLower(err.Error())
	for _, other := range throttleTexts {
		if strings.Contains(text, other) {
			return false
		}
	}
	for _, known := range overflowTexts {
		if _, rest, ok := strings.Cut(text, known[0]); ok && strings.Contains(rest, known[1]) {
			return true
		}
	}
	return false
}

// throttleTexts are of errors about the rate of requests, some of which speak
// of too many tokens.
var throttleTexts = [...]string{
	"rate limit", "rate_limit", "ratelimit", "throttl", "per minute", "per min", "per day", "quota", "please wait", "(tpm)",
}

// overflowTexts are pairs of which the second stands somewhere behind the
// first, in lower case.
var overflowTexts = [...][2]string{
	{"context_length_exceeded", ""},
	{"maximum context length", ""},
	{"context length", "exceed"},
	{"exceed", "context length"},
	{"longer than", "context length"},
	{"exceed", "context window"},
	{"context window", "exceed"},
	{"contextwindowexceeded", ""},
	{"context_window_exceeded", ""},
	{"exceed", "context limit"},
	{"exceed", "context size"},
	{"exceed_context_size", ""},
	{"prompt is too long", ""},
	{"prompt too long", ""},
	{"input is too long", "model"},
	{"input is too long", "token"},
	{"input length", "exceed"},
	{"input token count", "exceed"},
	{"prompt token count", "exceed"},
	{"token count", "exceeds the maximum"},
	{"maximum prompt length", ""},
	{"maximum allowed input length", ""},
	{"max_model_len", ""},
	{"max_seq_len", ""},
	{"too large for model", "context"},
	{"too long for the context", ""},
	{"reduce the length of the messages", ""},
	{"reduce the length of the input", ""},
	{"too many tokens", ""},
	{"request_too_large", ""},
	{"model_context_window_exceeded", ""},
	{"greater than the context length", ""},
	{"greater than", "n_ctx"},
	{"`inputs` must have less than", "tokens"},
	{"`inputs` tokens + `max_new_tokens`", "must be"},
	{"range of input length should be", ""},
	{"exceeded model token limit", ""},
	{"tokens_limit_reached", ""},
}
