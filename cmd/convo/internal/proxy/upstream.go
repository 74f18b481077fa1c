package proxy

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo/wire"
)

// Upstreams are the addresses of the providers, by format. They are as the variables of programs
// say them: that of OpenAI ends in /v1 or what the provider has in its place, the others do not.
type Upstreams map[string]*url.URL

// A variable is an environment variable by which programs know the address of a provider.
type variable struct {
	name   string
	format string // of package wire; that of OpenAI's two is the first
	path   string // of the address
}

// The variables, those first that count if several are set.
var variables = []variable{
	{"ANTHROPIC_BASE_URL", wire.FormatAnthropic, ""},
	{"ANTHROPIC_API_BASE", wire.FormatAnthropic, ""},     // aider
	{"ANTHROPIC_API_ENDPOINT", wire.FormatAnthropic, ""}, // crush
	{"ANTHROPIC_HOST", wire.FormatAnthropic, ""},         // goose
	{"OPENAI_BASE_URL", wire.FormatOpenAIChat, "/v1"},
	{"OPENAI_API_BASE", wire.FormatOpenAIChat, "/v1"},     // aider
	{"OPENAI_API_ENDPOINT", wire.FormatOpenAIChat, "/v1"}, // crush
	{"OPENAI_HOST", wire.FormatOpenAIChat, ""},            // goose, which adds the path itself
	{"GOOGLE_GEMINI_BASE_URL", wire.FormatGemini, ""},
	{"GEMINI_API_ENDPOINT", wire.FormatGemini, ""}, // crush
}

// Variables returns the environment of a program that is to use the proxy at an address, such as
// http://127.0.0.1:4141: each element is NAME=ADDRESS.
func Variables(address string) (env []string) {
	for _, v := range variables {
		env = append(env, v.name+"="+address+v.path)
	}
	return env
}

// FindUpstreams returns the upstreams: those of the providers, or what the environment says, unless
// that is the proxy itself, or what is given, each as FORMAT=URL.
func FindUpstreams(getenv func(string) string, self string, given []string) (Upstreams, error) {
	all := Upstreams{}
	for format, address := range map[string]string{wire.FormatAnthropic: "https://api.anthropic.com", wire.FormatOpenAIChat: "https://api.openai.com/v1", wire.FormatGemini: "https://generativelanguage.googleapis.com"} {
		all[format], _ = url.Parse(address)
	}
	isSet := map[string]bool{}
	for _, v := range variables {
		value := getenv(v.name)
		if value == "" || isSet[v.format] {
			continue
		}
		u, err := parse(value)
		if err != nil {
			return nil, fmt.Errorf("the variable %s: %w", v.name, err)
		}
		if u.Host == self {
			continue
		}
		if v.name == "OPENAI_HOST" {
			u = u.JoinPath("v1")
		}
		all[v.format], isSet[v.format] = u, true
	}
	all[wire.FormatOpenAIResponses] = all[wire.FormatOpenAIChat]
	for _, text := range given {
		format, address, _ := strings.Cut(text, "=")
		u, err := parse(address)
		if err == nil && u.Host == self {
			err = errors.New("this is the proxy itself")
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("-upstream %s: %w", format, err)
		case format == "openai":
			all[wire.FormatOpenAIChat], all[wire.FormatOpenAIResponses] = u, u
		case all[format] == nil:
			return nil, fmt.Errorf("-upstream: there is no format %q; want openai or one of %s", format, strings.Join(slices.Sorted(maps.Keys(all)), ", "))
		default:
			all[format] = u
		}
	}
	return all, nil
}

// parse reads the address of a provider. Its errors do not quote it, as it may hold a key.
func parse(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("want an address such as https://api.example.com/v1, without a user and a query")
	}
	return u, nil
}

// of returns the address that a request is sent to.
func (all Upstreams) of(r *http.Request) *url.URL {
	format := formatOf(r)
	u := *all[format]
	path := r.URL.EscapedPath()
	if isOpenAI := strings.HasPrefix(format, "openai-"); isOpenAI || strings.HasSuffix(strings.TrimSuffix(u.Path, "/"), "/v1") {
		if rest := strings.TrimPrefix(path, "/v1"); rest == "" || rest[0] == '/' {
			path = rest
		}
	}
	u.RawPath = strings.TrimSuffix(u.EscapedPath(), "/") + path
	u.Path, _ = url.PathUnescape(u.RawPath) // both are valid
	u.RawQuery, u.ForceQuery = r.URL.RawQuery, r.URL.ForceQuery
	return &u
}

// formatOf returns the format of a request by its path, or, of a request of no format, by what is
// known of its provider.
func formatOf(r *http.Request) string {
	path := strings.TrimSuffix(r.URL.Path, "/")
	has := func(part string) bool { return strings.Contains(path+"/", part+"/") }
	_, verb, _ := strings.Cut(path[strings.LastIndexByte(path, '/')+1:], ":")
	switch {
	case has("/chat/completions"):
		return wire.FormatOpenAIChat
	case has("/responses"):
		return wire.FormatOpenAIResponses
	case has("/v1/messages"), strings.HasPrefix(path, "/messages"), verb == "rawPredict", verb == "streamRawPredict", r.Header.Get("Anthropic-Version") != "":
		return wire.FormatAnthropic
	case strings.HasPrefix(path, "/v1beta"), strings.HasPrefix(path, "/v1alpha"), strings.HasPrefix(path, "/upload/"), verb != "", r.Header.Get("X-Goog-Api-Key") != "":
		return wire.FormatGemini
	}
	return wire.FormatOpenAIChat
}
