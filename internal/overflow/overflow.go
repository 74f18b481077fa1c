// Package overflow recognizes the errors with which providers, gateways and model servers
// report that a request was too long for the model, or that a part of it was refused.
package overflow

import (
	"cmp"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/seed-c1b73e60/convo/internal/text"
)

// Is reports whether an error means that a request was too long for the model. IsOverflow
// of package convo documents what Is reads.
func Is(err error) bool {
	return slices.ContainsFunc(read(err), (*providerError).isOverflow)
}

// The HTTP status codes for an exceeded rate and for a request with too many bytes.
// Package net/http, which has names for them, would more than double the time that a
// program takes to start.
const (
	tooManyRequests = 429
	requestTooLarge = 413
)

// An expression is compiled when its pattern is first needed. Most programs never see
// an error of a provider.
type expression struct {
	text     string
	once     sync.Once
	compiled *pattern
}

func (e *expression) pattern() *pattern {
	e.once.Do(func() { e.compiled = compile(e.text) })
	return e.compiled
}

// answerShare bounds answers: if the requested answer leaves less than 1/answerShare of
// the window for the request, the answer is too long, and not the request.
const answerShare = 16

// A providerError is what an error contains of a provider's answer.
type providerError struct {
	texts  []string
	own    []string // the texts of each error alone, for Refused
	text   string   // all texts in lower case, without escapes and addresses, with single spaces
	status int      // the HTTP status; 0: not known

	tooLarge bool // a client says that the request was too long
}

// isOverflow reports whether e is about the length of a request.
func (e *providerError) isOverflow() bool {
	switch {
	case e.tooLarge, e.quota().Limit > 0:
		return true
	case e.status == tooManyRequests, containsAny(e.text, loadTexts[:]), e.isAboutAnswer():
		return false
	case !slices.ContainsFunc(plainTexts[:], func(t string) bool { return e.says(t, "") }) &&
		(containsAny(e.text, throttleTexts[:]) || !e.isTooLong()):
		return false
	}
	f := e.figures()
	return f.Output == 0 || f.Limit == 0 || f.Output < f.Limit-f.Limit/answerShare
}

// answerName finds the parameters for the length of an answer. answerExceeds finds words
// after the parameter which mean that it exceeds something. otherSubject finds other
// things that are part of the sum.
var (
	answerName    = expression{text: `\b(?:max_(?:completion_|new_|output_)?tokens|budget_tokens)\b`}
	answerExceeds = expression{text: `^[^.;{}]{0,32}?\b(?:exceed(?:s|ed)?|must be (?:less|smaller) than)\b`}
	otherSubject  = expression{text: `\b(?:and|plus|with|prompt|input|messages?)\b|\+`}
)

// isAboutAnswer reports whether e means that the length requested for the answer alone
// exceeds the window, and not its sum with the prompt.
func (e *providerError) isAboutAnswer() bool {
	others := false // the clause names other things before the parameter
	for at := 0; ; {
		name, ok := answerName.pattern().find(e.text, at)
		if !ok {
			return false
		}
		before := e.text[at:name.from]
		if end := strings.LastIndexAny(before, ".:;{}\""); end >= 0 {
			before, others = before[end+1:], false
		}
		others = others || otherSubject.pattern().in(before)
		at = name.to
		next := e.text[at:min(at+160, len(e.text))] // longer than any match
		exceeds, ok := answerExceeds.pattern().find(next, 0)
		if ok && !others && !otherSubject.pattern().in(next[:exceeds.to]) {
			return true
		}
	}
}

// isTooLong reports whether e is about the length of something that is not a
// file.
func (e *providerError) isTooLong() bool {
	for _, p := range overflowTexts {
		if e.says(p[0], p[1]) {
			return true
		}
	}
	if e.status != requestTooLarge && !containsAny(e.text, tooLargeTexts[:]) && !tooLargeStatus.pattern().in(e.text) {
		return false
	}
	return !slices.ContainsFunc(fileTexts[:], func(t string) bool { return startsWord(e.text, t) })
}

// fieldBefore finds a part of a request, other than its messages, at the end of the text
// before a match: that part is too long. otherUnit finds a length in a unit other than
// tokens in the text after a match.
var (
	fieldBefore = expression{text: `(?:^|[^a-z])(?:names?|titles?|labels?|descriptions?|schemas?|definitions?|metadata|user[ _]ids?|ids?|identifiers?|` +
		`cache[ _]keys?|api[ _]keys?|passwords?|string|(?:stop[ _])?sequences?|headers?|urls?|images?|dimensions?|files?|documents?|pdfs?|audio|videos?|attachments?|number of tools)` +
		`(?:\.[0-9]+)? (?:value )?(?:(?:is|are|was) )?(?:too (?:long|large|big|many)[:;,] (?:it )?)?$`}
	otherUnit = expression{text: `^[^{}]{0,64}?\b[0-9][0-9,._]*[ -]?(?:characters?|chars|bytes|[km]i?b|pixels?)\b`}
)

// says reports whether e has the texts of a pair of overflowTexts, without a field of the
// request before them or a unit other than tokens after them.
func (e *providerError) says(first, then string) bool {
	for at := 0; ; {
		i := indexPair(e.text[at:], first, then)
		if i < 0 {
			return false
		}
		before, after := e.text[:at+i], e.text[at+i+len(first):]
		length, ok := otherUnit.pattern().find(after, 0)
		if (!ok || strings.Contains(after[:length.to], "token")) && !fieldBefore.pattern().in(before[max(len(before)-maxGap, 0):]) &&
			!strings.HasSuffix(before, "requests that ") { // the text states a rule for requests
			return true
		}
		at += i + len(first)
	}
}

// throttleTexts appear in errors about the rate of requests and about quotas, which may
// also mention too many tokens.
var throttleTexts = [...]string{
	"rate limit", "rate_limit", "ratelimit", "throttl", "per minute", "per min", "per day", "quota", "please wait", "(tpm)",
	"too many requests", "of your plan", "more credits", "insufficient credits", "insufficient_balance", "insufficient balance",
}

// plainTexts are texts of overflowTexts that do not occur in errors about a rate or a
// quota. With one of them, a mention of a rate is only the name of a service, or a note
// on another attempt.
var plainTexts = [...]string{
	"context_length_exceeded", "context_window_exceeded", "contextwindowexceeded", "exceed_context_size",
	"maximum context length", "maximum prompt length", "longer than the maximum model length",
	"prompt is too long", "input is too long for requested model", "cannot exceed the total tokens limit",
}

// overQuota finds that a request alone has more tokens than an account may use in a minute
// or a day: waiting never helps. An error about what is left of it also has the tokens used.
var overQuota = expression{text: `request too large .{0,256}\btokens per .{0,32}: limit #l, requested #t`}

// quota returns the numbers of an error about a request that alone exceeds the quota of an
// account, or none.
func (e *providerError) quota() Figures {
	f := Figures{Quota: true}
	m, ok := overQuota.pattern().find(e.text, 0)
	if ok {
		f.read(e.text, m)
	}
	if f.Total <= f.Limit {
		return Figures{}
	}
	return f
}

// loadTexts are about the memory and the settings of a server, or about settings
// that a request names.
var loadTexts = [...]string{
	"context_length_exceeded_behavior", "must be a positive integer", "out of memory", "failed to allocate",
	"failed to load model", "failed to load the model", "available memory", "invalid num_ctx", "greater than n_ctx_train",
}

// tooLargeTexts and tooLargeStatus find errors about a request with too many bytes.
// fileTexts are beginnings of words which mean that a file is the cause.
var (
	tooLargeTexts  = [...]string{"request_too_large", "request entity too large", "maximum request body size", "request exceeds the maximum size"}
	tooLargeStatus = expression{text: `\b413\b[^a-z0-9]{1,4}(?:payload|content|request) too large`}
	fileTexts      = [...]string{"file", "image", "audio", "video", "upload", "attachment", "media", "multimedia"}
)

// overflowTexts are pairs of texts. An error is an overflow if its text has both,
// the second at most maxGap bytes after the first.
var overflowTexts = [...][2]string{
	{"context_length_exceeded", ""},
	{"context_window_exceeded", ""},
	{"contextwindowexceeded", ""},
	{"exceed_context_size", ""},
	{"tokens_limit_reached", ""},
	{"maximum context length", ""},
	{"maximum prompt length", ""},
	{"maximum input length of", "token"},
	{"context length is only", ""},
	{"context length of only", ""},
	{"configured context size is", ""},
	{"context length", "exceed"},
	{"exceed", "context length"},
	{"longer than", "context length"},
	{"greater than the context length", ""},
	{"context window", "exceed"},
	{"exceed", "context window"},
	{"context size", "exceed"},
	{"exceed", "context size"},
	{"exceed", "context limit"},
	{"greater than", "n_ctx"},
	{"prompt is too long", ""},
	{"prompt too long", ""},
	{"prompt exceeds max length", ""},
	{"input is too long for", "model"},
	{"input is too long", "token"},
	{"input length", "exceeds the maximum allowed input length"},
	{"input length", "exceeds the maximum allowed length ("},
	{"input length", "exceeds the maximum length"},
	{"prompt length", "exceeds maximum input length"},
	{"input length", "exceeds maximum input length"},
	{"exceed max message tokens", ""},
	{"cannot truncate to", "required"},
	{"prompt is [[", "is supported"},
	{"greater than max_seq_len", ""},
	{"input token count", "exceed"},
	{"input token count", "supports up to"},
	{"longer than the maximum model length", ""},
	{"cannot exceed the total tokens limit", ""},
	{"prompt token count", "exceed"},
	{"input tokens exceed", ""},
	{"exceeds max_seq_len", ""},
	{"too large for model", "context"},
	{"too long for the context", ""},
	{"too long to fit into the model", ""},
	{"reduce the length of the messages", ""},
	{"reduce the length of the input", ""},
	{"too many tokens: ", "exceed"},
	{"too many input tokens", ""},
	{"`inputs` must have less than", "tokens"},
	{"`inputs` tokens + `max_new_tokens`", "must be"},
	{"range of input length should be", ""},
	{"exceeded model token limit", ""},
	{"exceeded max_prompt_tokens", ""},
	{"prompt_tokens", "must be less than max_seq_len"},
	{"number of tokens", "exceeded the service limit of"},
	{"model max length exceeded", ""},
	{"message exceeds token limit", ""},
	{"total message size", "exceeds limit"},
}

// maxGap is the maximum number of bytes between the texts of a pair. It allows a few
// words and a number, so both texts are probably in one sentence.
const maxGap = 64

// Figures are the numbers of tokens that an error states. A missing number is 0.
type Figures struct {
	Limit  int // the limit of the window, or of the request alone
	Prompt int // tokens of the request
	Output int // tokens requested for the answer
	Total  int // tokens of both, or a size that the error does not explain

	Quota bool // Limit is what the account may use in a minute or a day
}

// Request returns the size of the refused request without the answer, or 0 if it is not
// known.
func (f Figures) Request() int {
	switch {
	case f.Prompt > 0:
		return f.Prompt
	case f.Total > f.Output:
		return f.Total - f.Output
	}
	return 0
}

// Refused returns the size that was compared with the limit.
func (f Figures) Refused() int { return max(f.Total, sum(f.Prompt, f.Output)) }

// sum returns a + b, or MaxInt if that overflows.
func sum(a, b int) int { return a + min(b, math.MaxInt-a) }

// figurePatterns find the numbers in a text.
var figurePatterns = sync.OnceValue(func() (all []*pattern) {
	for _, p := range figureTexts {
		all = append(all, compile(p))
	}
	return all
})

var figureTexts = [...]string{
	// The sizes that were compared.
	`limit: #p \+ #o > #l`,
	`#p tokens > #l maximum`,
	`prompt is too long: #p, model maximum context length: #l`,
	`prompt contains #p tokens .{0,40}too large for model with #l maximum`,
	`input tokens #p cannot exceed the total tokens limit #l`,
	`but (?:the )?model (?:only )?supports up to #l`,
	`n_keep: #t ?>= ?n_ctx: #l`,
	`\(total length #p\)`,
	`<= #l\. given: #p .inputs. tokens and #o .max_new_tokens`,
	`cannot exceed #l - received #t`,
	`length is #t while limit is #l`,
	`token limit: #l \(requested: #t\)`,
	`prompt has #p tokens, but the configured context size is #l`,
	`length \(?#p\)? exceeds (?:the )?maximum (?:input )?length \(?#l`,
	`cannot truncate to #l, required #p`,
	`prompt is \[\[#p\]\] long while only #l is supported`,
	`length #p is greater than max_seq_len #l`,
	`prompt_tokens \(#p\) must be less than max_seq_len \(#l\)`,
	`input tokens \(#p\) have exceeded max_prompt_tokens \(#l\)`,

	// Sizes.
	`messages resulted in #p tokens`,
	`requested (?:about |a total of )?#t tokens`,
	`#p tokens from the input`,
	`#o tokens for the completion`,
	`your request will take #t tokens`,
	`#p in (?:the messages|your prompt)`,
	`#o (?:in|for) the (?:completion|output)`,
	`requested #o output tokens`,
	`is too large: #o\. this model`,
	`request has #p input tokens`,
	`passed #p input tokens`,
	`request contains #p tokens`,
	`request \(#p tokens\)`,
	`total of at least #t tokens`,
	`token count:? \(?#p\)?`,
	`token count (?:of|is) #p`,
	`input \(#p tokens\)`,
	`input length \(?#p`,
	`prompt \(length #p\)`,
	`prompt length of #p`,
	`but .?max_tokens.? is #o`,
	`prompt too long: #p tokens`,
	`n_prompt_tokens"?: ?#p`,
	`requested tokens \(#t\)`,
	`window exceeded: #t tokens`,
	`keep the first #t tokens`,

	// Limits.
	`maximum context length (?:is |of |\()#l`,
	`maximum number of tokens allowed \(#l\)`,
	`maximum prompt length is #l`,
	`maximum model length of #l`,
	`maximum allowed (?:input )?length (?:of )?\(?#l`,
	`maximum input length of #l`,
	`maximum context length of [a-z][^ ]* is #l`,
	`max input tokens: #l`,
	`exceeds the (?:configured )?limit of #l`,
	`exceed the configured limit of #l`,
	`context window of #l`,
	`context length \(?(?:of only |is only )?#l`,
	`context size \(#l`,
	`exceeds context length #l`,
	`n_ctx"?: ?#l`,
	`max_seq_len #l`,
	`max size: #l tokens`,
	`model token limit: #l`,
	`exceeded, max length: ?#l`,
	`exceeded the service limit of #l`,
	`input length should be \[[0-9]+, ?#l\]`,
}

// figures returns the numbers that the text names. If several patterns match for one
// figure, the first counts.
func (e *providerError) figures() Figures {
	f := e.quota()
	if f.Quota {
		return f
	}
	for _, p := range figurePatterns() {
		m, _ := p.find(e.text, 0)
		f.read(e.text, m)
	}
	if f.Prompt > 0 && f.Total > sum(f.Prompt, f.Output) {
		f.Prompt = f.Total - f.Output // tool definitions are counted separately
	}
	return f
}

// read sets the fields that are 0 to the numbers of a match in a text.
func (f *Figures) read(text string, m match) {
	for i, field := range [len(figureNames)]*int{&f.Limit, &f.Prompt, &f.Output, &f.Total} {
		if from, to := m.figures[2*i], m.figures[2*i+1]; to > 0 && *field == 0 {
			*field = tokensOf(text[from:to])
		}
	}
}

// tokensOf returns a number of tokens. The number may have separators, and a k for
// thousands or an m for millions. tokensOf returns 0 if the number is too large.
func tokensOf(digits string) int {
	unit := 1.0
	switch digits[len(digits)-1] {
	case 'k':
		unit = 1e3
	case 'm':
		unit = 1e6
	}
	n, err := strconv.ParseFloat(strings.ReplaceAll(strings.ReplaceAll(strings.TrimRight(digits, "km"), ",", ""), "_", ""), 64)
	if n *= unit; err != nil || n > math.MaxInt32 {
		return 0
	}
	return int(n)
}

// Read returns the numbers of the overflow error in err, or of err if there is none.
func Read(err error) Figures {
	said := read(err)
	if i := slices.IndexFunc(said, (*providerError).isOverflow); i >= 0 {
		return said[i].figures()
	}
	return said[len(said)-1].figures()
}

// These bound the work of read for errors that are large on purpose.
const (
	maxErrors    = 64      // the maximum number of errors in a tree that are read
	maxErrorText = 4 << 10 // the number of bytes read at each end of a text
	maxErrorSum  = 32 << 10
	maxOwn       = 64 << 10
	maxOwnSum    = 256 << 10
	maxEmbedded  = 4 // levels of structs embedded in an error
)

// readFields reads the fields of an error that is a pointer to a struct with a field
// StatusCode, as the errors of some clients are, whose text says nothing else: Message and
// Code are given to add, and StatusCode is returned.
func readFields(err error, add func(string)) (status int) {
	v := reflect.ValueOf(err)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return 0
	}
	v = v.Elem()
	code := field(v, "StatusCode", maxEmbedded)
	if !code.IsValid() || code.Kind() != reflect.Int {
		return 0
	}
	for _, name := range [...]string{"Message", "Code"} {
		if f := field(v, name, maxEmbedded); f.IsValid() && f.Kind() == reflect.String && f.Len() > 0 {
			add(f.String())
		}
	}
	return int(code.Int())
}

// field returns the field of a struct with a name, or if it has none, that of a struct
// embedded in it, down to a number of levels; the zero Value if there is none. FieldByName
// of reflect panics for an embedded pointer that is nil, and makes programs larger.
func field(v reflect.Value, name string, levels int) (found reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Name == name {
			return v.Field(i)
		}
		if e := reflect.Indirect(v.Field(i)); f.Anonymous && levels > 0 && e.Kind() == reflect.Struct && !found.IsValid() {
			found = field(e, name, levels-1)
		}
	}
	return found
}

// read reads an error and the errors that it wraps. If one error wraps several, each of
// them is also read on its own; err itself, with the texts of all, is the last. It does
// not use errors.As, which never returns when errors wrap each other in a circle.
func read(err error) []*providerError {
	sum, kept := 0, 0
	var to *providerError
	add := func(s string) {
		if kept += min(len(s), maxOwn); s != "" && kept <= maxOwnSum {
			to.own = append(to.own, s[:min(len(s), maxOwn)])
		}
		if len(s) > 2*maxErrorText {
			s = s[:text.Floor(s, maxErrorText)] + " " + s[text.Ceil(s, len(s)-maxErrorText):]
		}
		if sum+len(s) <= maxErrorSum && !slices.ContainsFunc(to.texts, func(t string) bool { return strings.Contains(t, s) }) {
			to.texts, sum = append(to.texts, s), sum+len(s)
		}
	}
	said := []*providerError{{}}
	type reading struct {
		error
		to *providerError
	}
	waiting := []reading{{err, said[0]}}
	for n := 0; n < maxErrors && n < len(waiting); n++ {
		if err, to = waiting[n].error, waiting[n].to; err == nil {
			continue
		}
		// Error may panic: errors of some clients that were made by hand lack the request
		// that their text quotes.
		guarded(func() { add(err.Error()) })
		if e, ok := err.(interface{ RawJSON() string }); ok {
			guarded(func() { add(e.RawJSON()) })
		}
		if e, ok := err.(interface{ ErrorCode() string }); ok {
			guarded(func() { add(e.ErrorCode()) })
		}
		if e, ok := err.(interface{ ErrorMessage() string }); ok {
			guarded(func() { add(e.ErrorMessage()) })
		}
		if e, ok := err.(interface{ HTTPStatusCode() int }); ok && to.status == 0 {
			guarded(func() { to.status = e.HTTPStatusCode() })
		}
		if e, ok := err.(interface{ IsContextTooLarge() bool }); ok {
			guarded(func() { to.tooLarge = to.tooLarge || e.IsContextTooLarge() })
		}
		guarded(func() {
			status := readFields(err, add)
			to.status = cmp.Or(to.status, status)
		})
		switch e := err.(type) {
		case interface{ Unwrap() error }:
			guarded(func() { waiting = append(waiting, reading{e.Unwrap(), to}) })
		case interface{ Unwrap() []error }:
			guarded(func() {
				wrapped := e.Unwrap()
				for _, one := range wrapped[:min(len(wrapped), maxErrors)] {
					alone := &providerError{}
					waiting, said = append(waiting, reading{one, alone}), append(said, alone)
				}
			})
		}
	}
	slices.Reverse(said)
	for _, e := range said {
		e.text = address.pattern().replace(plainText(strings.Join(e.texts, "\n")), " ")
		for _, timeout := range [...]string{"deadline exceeded", "timeout exceeded"} {
			e.text = strings.ReplaceAll(e.text, timeout, "")
		}
	}
	return said
}

// address finds the addresses of requests, which hold the names of models and
// gateways.
var address = expression{text: `https?://[^ "'<>()]+`}

// guarded calls f, and ignores a panic in it.
func guarded(f func()) {
	defer func() { _ = recover() }()
	f()
}

// plainText returns s in lower case, with each run of white space as one space
// and without the escapes of JSON, however often s was encoded.
func plainText(s string) string {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '\\' {
			for i < len(s) && s[i] == '\\' {
				i++
			}
			if i == len(s) {
				break
			}
			switch c = s[i]; c {
			case 'n', 'r', 't':
				c = ' '
			case 'u':
				if r, err := strconv.ParseUint(s[i+1:min(i+5, len(s))], 16, 16); err == nil && r < 0x80 {
					c, i = byte(r), i+4
				}
			}
		}
		switch {
		case 'A' <= c && c <= 'Z':
			c |= 0x20
		case c <= ' ':
			if c = ' '; len(b) > 0 && b[len(b)-1] == ' ' {
				continue
			}
		}
		b = append(b, c)
	}
	return string(b)
}

// containsAny reports whether s contains one of the texts.
func containsAny(s string, texts []string) bool {
	return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(s, t) })
}

// startsWord reports whether a word of s begins with the text. Parts of a name with
// hyphens, such as the name of a model, do not count as words.
func startsWord(s, text string) bool {
	for {
		before, rest, ok := strings.Cut(s, text)
		if !ok {
			return false
		}
		if before == "" || !strings.Contains("abcdefghijklmnopqrstuvwxyz0123456789-", before[len(before)-1:]) {
			return true
		}
		s = "-" + rest // text that follows directly does not begin a word
	}
}

// indexPair returns where s contains first, and then at most maxGap bytes after it,
// or -1.
func indexPair(s, first, then string) int {
	for at := 0; ; {
		i := strings.Index(s[at:], first)
		if i < 0 {
			return -1
		}
		rest := s[at+i+len(first):]
		if strings.Contains(rest[:min(len(rest), maxGap+len(then))], then) {
			return at + i
		}
		at += i + len(first)
	}
}
