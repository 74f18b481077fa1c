package clients

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/models"
	"github.com/seed-c1b73e60/convo/wire"
)

// cachedShare is the part of its price that a provider takes for a token from its cache.
const cachedShare = 10

// Summarizer returns a [convo.Summarizer] that asks a model. ask makes the request with the
// ctx that it is given, without its stream being shown, and returns the answer. usual is the
// model of the parameters.
//
// There are two kinds of requests. One sends the request that was sent last again, with the
// instruction after it, if model made the newest answer in it, and reading it from the
// provider's cache costs less than the prompt of what is to be summarised. What the cache
// holds stays the same, so the tools stay. The other is bare: the prompt alone. It is also
// the one if the model of the newest answer is not known, an instruction cannot follow the
// request, the parameters set a response format or make the model call a tool, or their
// budget for thinking leaves no room.
//
// Neither has a response format, stop sequences or more than one answer. If the parameters
// limit the output, or the format needs a limit, it has room for twice
// SummaryRequest.MaxTokens and for thinking, as far as the model can write so much, and is
// never below that of the parameters. If the provider finds the request too long, it is made
// once more without the room for thinking that has no budget. If the model cannot write so much,
// it is made once more with the limit that the error names, and with that of the parameters. A bare request keeps only some
// of the parameters, is not stored, and lets the model think as little as it can. The page
// PARAMETERS.md lists them. [Body] sees to all this.
func Summarizer(format wire.Format, model, usual string, ask func(ctx context.Context, req wire.Request) (convo.Reply, error)) convo.Summarizer {
	return convo.SummarizerFunc(func(ctx context.Context, r convo.SummaryRequest) (convo.Summary, error) {
		bare, err := single(format, r.Prompt)
		if err != nil {
			return convo.Summary{}, err
		}
		q := &summary{format: format, model: model, isUsual: models.Same(model, usual), tokens: r.MaxTokens, bare: bare}
		req := bare
		if isCached(r, model) {
			last, takes, err := ride(format, r)
			if err != nil {
				return convo.Summary{}, err
			}
			if q.rides = takes; takes {
				req = last
			}
		}
		ctx = context.WithValue(ctx, summaryKey{}, q)
		reply, err := ask(ctx, req)
		for q.again(err) {
			reply, err = ask(ctx, req)
		}
		paid := convo.Summary{Usage: reply.Usage, Model: model}
		if err != nil {
			return paid, err
		}
		if calls := reply.OpenCalls(); len(calls) > 0 {
			return paid, &convo.RefusedError{Reason: fmt.Sprintf("the model called %q in place of a summary; use another model to summarise", calls[0].Name)}
		}
		return convo.Summary{Text: reply.Text(), Stop: reply.Stop, Usage: reply.Usage, Model: model}, nil
	})
}

// isCached reports whether a model made the newest answer of the request that was sent last,
// and reading that from the cache costs less than the prompt.
func isCached(r convo.SummaryRequest, model string) bool {
	if r.Sent == nil || r.Sent.Tokens()/cachedShare >= r.Count(r.Prompt) {
		return false
	}
	made := r.Sent.Model()
	for i := range r.Sent.Len() {
		e, _ := r.Sent.At(r.Sent.Len() - 1 - i)
		if e.Message.Role == convo.RoleAssistant {
			made = cmp.Or(e.Message.Origin.Model, made)
			break
		}
	}
	return made != "" && models.Same(made, model)
}

// single returns the request for one message of the user, without cache marks: no later
// request begins with it.
func single(format wire.Format, text string) (wire.Request, error) {
	switch f := format.(type) {
	case wire.Anthropic:
		f.Cache = false
		format = f
	case wire.Converse:
		f.Cache = false
		format = f
	}
	return format.Encode(convo.NewSnapshot([]convo.Message{convo.User(text)}))
}

// ride returns the request that was sent last with the instruction after it, and whether the
// provider takes it. It does not if a call of its own tools waits for a result.
func ride(format wire.Format, r convo.SummaryRequest) (wire.Request, bool, error) {
	req, err := format.Encode(r.Sent)
	if err != nil {
		return req, false, err
	}
	before := len(format.Check(req.Body()))
	last, err := single(format, r.Instruction)
	if err != nil {
		return req, false, err
	}
	req.Messages = append(slices.Clone(req.Messages), last.Messages...)
	if _, ok := format.(wire.Converse); ok {
		if req.Messages, err = merge(req.Messages); err != nil {
			return req, false, err
		}
	}
	return req, len(format.Check(req.Body())) <= before, nil
}

// merge joins the last two messages if both are of the user: Bedrock takes no two in a row.
func merge(messages []json.RawMessage) ([]json.RawMessage, error) {
	n := len(messages)
	if n < 2 {
		return messages, nil
	}
	type message struct {
		Role    string            `json:"role"`
		Content []json.RawMessage `json:"content"`
	}
	var before, last message
	if err := errors.Join(json.Unmarshal(messages[n-2], &before), json.Unmarshal(messages[n-1], &last)); err != nil {
		return nil, fmt.Errorf("clients: messages: %w", err)
	}
	if before.Role != last.Role {
		return messages, nil
	}
	joined := fmt.Appendf(nil, `{"role":%q,"content":%s}`, last.Role, rawList(append(before.Content, last.Content...)))
	return append(slices.Clone(messages[:n-2]), joined), nil
}

// A summary says how to ask for one. The ctx of its request holds it.
type summary struct {
	format  wire.Format
	model   string
	isUsual bool // it is the model of the parameters
	tokens  int  // how long the summary may be
	rides   bool // the request is the last one sent, with an instruction
	bare    wire.Request

	asked   int  // the largest limit of the last request that was raised; 0: none
	thinks  bool // one was raised by room for thinking that nothing bounds
	tight   bool // without such room
	refused bool // a raised limit was refused
	named   int  // the limit that the refusal named; 0: none
}

// again reports whether to make a request once more that has failed, and with which limits.
func (q *summary) again(err error) bool {
	switch tooLong := convo.IsOverflow(err); {
	case err == nil:
		return false
	case tooLong && q.thinks && !q.tight: // a server may count the limit as a part of the request
		q.tight = true
		return true
	case tooLong || q.asked == 0 || q.refused && q.named == 0 || !aboutLimit.MatchString(err.Error()):
		return false
	case q.refused: // the number was another one
		q.named = 0
		return true
	}
	for _, m := range numbers.FindAllStringSubmatch(err.Error(), -1) {
		n, err := strconv.Atoi(strings.NewReplacer(",", "", "_", "").Replace(m[1]))
		if err == nil && n < q.asked {
			q.named = max(q.named, n-1) // some name the first that is too large
		}
	}
	q.refused = true
	return true
}

// aboutLimit finds the name of a limit of the output in an error, or that the output exceeds one. numbers finds addresses and
// words with digits, such as the names of models, and numbers alone.
var (
	aboutLimit = regexp.MustCompile(`(?i)max(?:imum)?[\w ]{0,30}tokens|max_gen_len|num_predict|\boutput\b.{0,64}\bexceeds?\b|\bexceeds?\b.{0,64}\boutput\b`)
	numbers    = regexp.MustCompile(`(?i)https?://\S+|[\w.-]*[a-z-][\w.-]*|(\d{1,3}(?:[,_]\d{3})+|\d+)`)
)

type summaryKey struct{}

// A use is what becomes of a parameter in the request for a summary.
type use int

const (
	stays    use = iota // also in a bare request
	goes                // from a bare request
	never               // in any request for a summary
	inside              // an object, whose fields have uses of their own
	limit               // of the output: raised
	form                // of the answer, such as JSON: never, and makes the request bare
	choice              // of a tool: goes, and makes the request bare if it asks for a call
	stored              // by the provider: off in a bare request
	modelOwn            // stays for the model of the parameters only
	thinking            // as little as can be in a bare request
	effort              // of thinking: as above, and stays for the model of the parameters if that is not known
)

// uses are the parameters of all formats, by their path in the body. Those that are not
// listed stay, for gateways have their own; see useOf.
var uses = map[string]use{
	"model": stays, "stream": stays, "stream_options": stays, "metadata": stays, "user": stays, "service_tier": stays, "safety_identifier": stays, "moderation": stays,
	"inference_geo": stays, "access_programs": stays, "prompt_cache_retention": stays, "anthropic_version": stays, "anthropic_beta": stays,
	"safetySettings": stays, "labels": stays, "serviceTier": stays, "modelArmorConfig": stays, "guardrailConfig": stays, "requestMetadata": stays,

	"max_tokens": limit, "max_completion_tokens": limit, "max_output_tokens": limit, "generationConfig.maxOutputTokens": limit, "inferenceConfig.maxTokens": limit,
	"max_new_tokens": limit, "max_gen_len": limit, "num_predict": limit, "options.num_predict": limit, "inferenceConfig.max_new_tokens": limit,

	"temperature": modelOwn, "generationConfig.temperature": modelOwn, "inferenceConfig.temperature": modelOwn,

	"stop": never, "stop_sequences": never, "generationConfig.stopSequences": never, "inferenceConfig.stopSequences": never,
	"stop_token_ids": never, "stop_strings": never, "stop_regex": never, "options.stop": never, "min_tokens": never, "min_new_tokens": never, "ignore_eos": never,
	"n": never, "best_of": never, "generationConfig.candidateCount": never, "num_completions": never, "num_generations": never, "num_choices": never,

	"response_format": form, "output_format": form, "output_config.format": form, "outputConfig": form, "text.format": form,
	"generationConfig.responseMimeType": form, "generationConfig.responseSchema": form, "generationConfig.responseJsonSchema": form,
	"regex": form, "ebnf": form, "structural_tag": form,

	"store": stored,

	"thinking": thinking, "generationConfig.thinkingConfig": effort, "reasoning_effort": effort, "reasoning": inside, "reasoning.effort": effort,
	"reasoning_config": thinking, "reasoningConfig": thinking, "output_config.effort": effort,
	"reasoning.summary": goes, "reasoning.generate_summary": goes, "reasoning.context": goes, "reasoning.mode": goes,

	"tools": goes, "tool_choice": choice, "function_call": choice, "toolConfig": choice, "parallel_tool_calls": goes, "max_tool_calls": goes, "functions": goes, "mcp_servers": goes,

	"generationConfig": inside, "inferenceConfig": inside, "output_config": inside, "text": inside, "options": inside, "additionalModelRequestFields": inside,

	"container": goes, "context_management": goes, "speed": goes, "cache_control": goes, "diagnostics": goes, "fallbacks": goes, "compaction": goes, "output_config.task_budget": goes,
	"top_p": goes, "top_k": goes, "seed": goes, "frequency_penalty": goes, "presence_penalty": goes, "logprobs": goes, "top_logprobs": goes, "logit_bias": goes,
	"echo": goes, "prompt_logprobs": goes, "disable_search": stays,
	"audio": goes, "modalities": goes, "prediction": goes, "verbosity": goes, "web_search_options": goes, "prompt_cache_key": goes, "prompt_cache_options": goes,
	"background": goes, "include": goes, "prompt": goes, "truncation": goes, "image": goes, "text.verbosity": goes,
	"cachedContent": goes, "continuationToken": goes, "generationConfig.topP": goes, "generationConfig.topK": goes, "generationConfig.seed": goes,
	"generationConfig.presencePenalty": goes, "generationConfig.frequencyPenalty": goes, "generationConfig.logprobs": goes, "generationConfig.responseLogprobs": goes,
	"generationConfig.responseModalities": goes, "generationConfig.mediaResolution": goes, "generationConfig.speechConfig": goes, "generationConfig.audioTimestamp": goes,
	"generationConfig.imageConfig": goes, "generationConfig.audioTranscriptionConfig": goes, "generationConfig.enableEnhancedCivicAnswers": goes,
	"generationConfig.routingConfig": goes, "generationConfig.modelConfig": goes,
	"additionalModelResponseFieldPaths": goes, "performanceConfig": goes, "promptVariables": goes, "inferenceConfig.topP": goes, "topK": goes,
}

// usesOfWords are the uses of parameters that are not listed, by a word of the name.
var usesOfWords = map[string]use{
	"tool": goes, "tools": goes, "function": goes, "functions": goes, "plugin": goes, "plugins": goes, "mcp": goes, "search": goes,
	"format": form, "formats": form, "schema": form, "grammar": form, "guided": form, "structured": form,
	"candidate": never, "candidates": never,
}

// words finds the words of a name.
var words = regexp.MustCompile(`[A-Z]?[a-z]+`)

// modelFields is the field of Converse for the parameters of a model. They have the uses that
// they have elsewhere.
const modelFields = "additionalModelRequestFields."

// useOf returns the use of the parameter at a path. If it is not listed, the first word of its
// name that says so decides.
func useOf(path string) use {
	path = strings.TrimPrefix(path, modelFields)
	if u, ok := uses[path]; ok {
		return u
	}
	for _, word := range words.FindAllString(path, -1) {
		if u, ok := usesOfWords[strings.ToLower(word)]; ok {
			return u
		}
	}
	return stays
}

// request changes the parameters to those of the request for a summary, and returns what the
// request holds of the conversation.
func (q *summary) request(req wire.Request, params map[string]json.RawMessage) wire.Request {
	e := edit{summary: q, rides: q.rides}
	budget, bounded := e.room(params)
	most := models.Output(q.model)
	full := bounded && budget > 0 && most > 0 && most-budget < 2*q.tokens
	if e.rides = q.rides && !full && !restricts("", params); !e.rides {
		req = q.bare
	}
	if _, ok := q.format.(wire.OpenAIChat); ok && !e.rides && string(params["store"]) == "true" {
		delete(params, "metadata") // Chat Completions takes it only with what is stored
	}
	e.object("", params)
	if !e.rides {
		if _, ok := q.format.(wire.OpenAIResponses); ok {
			params["store"] = json.RawMessage("false") // the default of the API is true
		}
		e.thinkLess(params)
	}
	e.raise(params)
	return req
}

// restricts reports whether parameters ask for a form of the answer, or for a call.
func restricts(prefix string, params map[string]json.RawMessage) bool {
	for name, value := range params {
		path, found := prefix+name, false
		switch useOf(path) {
		case form:
			found = !isEmpty("", value) && !isText(value)
		case choice:
			found = isForced(value)
		case inside:
			found = restricts(path+".", fieldsOf(value))
		}
		if found {
			return true
		}
	}
	return false
}

// isText reports whether the form of an answer is that of any text.
func isText(value json.RawMessage) bool {
	var s string
	var o struct{ Type string }
	_ = json.Unmarshal(value, &s)
	_ = json.Unmarshal(value, &o)
	return s == "text/plain" || o.Type == "text"
}

// isForced reports whether a choice of tools makes the model call one. Gemini and Converse
// have it in an object.
func isForced(value json.RawMessage) bool {
	var s string
	if json.Unmarshal(value, &s) == nil {
		return s != "" && s != "auto" && s != "none"
	}
	var o struct {
		Type       string
		Name       string
		ToolChoice map[string]json.RawMessage
		Config     struct{ Mode string } `json:"functionCallingConfig"`
	}
	if json.Unmarshal(value, &o) != nil {
		return false
	}
	_, may := o.ToolChoice["auto"]
	return o.Type != "" && o.Type != "auto" && o.Type != "none" || o.Name != "" || len(o.ToolChoice) > 0 && !may || o.Config.Mode == "ANY"
}

// fieldsOf returns the fields of an object, or nil for any other value.
func fieldsOf(value json.RawMessage) (fields map[string]json.RawMessage) {
	_ = json.Unmarshal(value, &fields)
	return fields
}

// An edit changes the parameters of one request.
type edit struct {
	*summary
	rides bool
}

// object removes what has no place in the request. An object that becomes empty is removed.
func (e edit) object(prefix string, params map[string]json.RawMessage) {
	for _, name := range slices.Sorted(maps.Keys(params)) {
		path, remove := prefix+name, false
		switch useOf(path) {
		case never, form:
			remove = true
		case goes, choice, thinking:
			remove = !e.rides
		case modelOwn, effort:
			remove = !e.rides && !e.isUsual
		case stored:
			if !e.rides {
				params[name] = json.RawMessage("false")
			}
		case inside:
			if fields := fieldsOf(params[name]); len(fields) > 0 {
				before := len(fields)
				e.object(path+".", fields)
				if remove = len(fields) == 0; !remove && len(fields) < before {
					params[name] = encode(fields)
				}
			}
		}
		if remove {
			delete(params, name)
		}
	}
}

// thinkLess has the model think as little as it can, if it is known how little that is.
func (e edit) thinkLess(params map[string]json.RawMessage) {
	least := models.LeastThinking(e.model)
	_, version, _ := models.Claude(e.model)
	switch e.format.(type) {
	case wire.Anthropic:
		thinkLessClaude(params, "", least)
	case wire.Converse:
		thinkLessClaude(params, modelFields, least)
	case wire.OpenAIChat, wire.OpenAIResponses:
		path := "reasoning_effort"
		if _, ok := e.format.(wire.OpenAIResponses); ok {
			path = "reasoning.effort"
		}
		switch least {
		case models.Unasked:
			put(params, path, nil)
		case "none", "minimal", "low":
			if version > 0 {
				return
			}
			put(params, path, least)
		default:
			return
		}
		if path == "reasoning_effort" {
			delete(params, "reasoning") // what gateways have in its place
		}
	case wire.Gemini:
		const path = "generationConfig.thinkingConfig"
		n, err := strconv.Atoi(least)
		switch {
		case least == models.Unasked:
			put(params, path, nil)
		case err == nil:
			put(params, path, map[string]int{"thinkingBudget": n})
		case least != "" && version == 0:
			put(params, path, map[string]string{"thinkingLevel": least})
		}
	}
}

// thinkLessClaude is thinkLess for Claude, whose parameters begin with a path.
func thinkLessClaude(params map[string]json.RawMessage, path, least string) {
	switch least {
	case "low":
		put(params, path+"output_config.effort", least)
	case "disabled", "between_tools":
		put(params, path+"thinking", map[string]string{"type": least})
		put(params, path+"output_config.effort", nil)
	case models.Unasked:
		put(params, path+"output_config.effort", nil)
	}
}

// noBudget is the room for thinking, in tokens, if nothing bounds it.
const noBudget = 8_000

// room returns how many tokens the model may think, and whether anything bounds them.
func (e edit) room(params map[string]json.RawMessage) (tokens int, bounded bool) {
	for _, name := range []string{"thinking", modelFields + "thinking", "reasoning_config", modelFields + "reasoning_config", "reasoning", "generationConfig.thinkingConfig"} {
		var o struct {
			Type   string
			Effort string
			Budget *int `json:"budget_tokens"`
			Tokens *int `json:"max_tokens"`
			Gemini *int `json:"thinkingBudget"`
		}
		value, ok := get(params, name)
		if !ok || isEmpty("", value) || json.Unmarshal(value, &o) != nil {
			continue
		}
		if budget := cmp.Or(o.Budget, o.Tokens, o.Gemini); budget != nil && *budget >= 0 {
			return *budget, true
		}
		if o.Type == "disabled" || o.Effort == "none" || o.Type == "between_tools" && !e.rides {
			return 0, true
		}
		return noBudget, false
	}
	if value, ok := get(params, "reasoning_effort"); ok {
		if string(value) == `"none"` {
			return 0, true
		}
	} else if models.LeastThinking(e.model) == models.Unasked {
		return 0, true
	}
	return noBudget, false
}

// raise raises the limits of the output.
func (e edit) raise(params map[string]json.RawMessage) {
	if e.tokens <= 0 {
		return
	}
	room, bounded := e.room(params)
	if !bounded && e.tight {
		room = 0
	}
	e.asked, e.thinks = 0, false
	if _, ok := e.format.(wire.Anthropic); ok && len(params["max_tokens"]) == 0 {
		params["max_tokens"] = encode(2 * e.tokens) // the format needs one
	}
	for path, u := range uses {
		if u == limit {
			e.raiseLimit(params, path, 2*e.tokens+room, !bounded)
			e.raiseLimit(params, modelFields+path, 2*e.tokens+room, !bounded)
		}
	}
}

// raiseLimit raises one limit, if there is one.
func (e edit) raiseLimit(params map[string]json.RawMessage, path string, want int, thinks bool) {
	value, _ := get(params, path)
	given, ok := number(value)
	own := int(given)
	if !ok || own < 0 { // no limit
		return
	}
	n := max(own, want)
	if most := models.Output(e.model); most > 0 {
		n = min(n, most)
	}
	if e.refused {
		n = max(own, min(n, e.named))
	}
	if n > own {
		e.asked, e.thinks = max(e.asked, n), thinks
	}
	put(params, path, n)
}

// get returns the value at a path, and whether there is one.
func get(params map[string]json.RawMessage, path string) (json.RawMessage, bool) {
	name, rest, nested := strings.Cut(path, ".")
	value, ok := params[name]
	if !nested || !ok {
		return value, ok
	}
	return get(fieldsOf(value), rest)
}

// put sets the value at a path; nil removes it, and the objects that it leaves empty.
func put(params map[string]json.RawMessage, path string, value any) {
	name, rest, nested := strings.Cut(path, ".")
	if nested {
		fields := fieldsOf(params[name])
		if fields == nil {
			fields = map[string]json.RawMessage{}
		}
		put(fields, rest, value)
		value = fields
		if len(fields) == 0 {
			value = nil
		}
	}
	if value == nil {
		delete(params, name)
		return
	}
	params[name] = encode(value)
}

// encode returns the JSON of a value that has one.
func encode(value any) json.RawMessage {
	data, _ := json.Marshal(value)
	return data
}
