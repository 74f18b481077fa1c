// Package wording says in words what figures of package convo mean: for errors, and for types that
// print themselves. Its structs have the fields of those of package convo, so that one can be
// converted into the other.
package wording

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo/internal/text"
)

// A Floor is a FloorError of package convo. R is its Role.
type Floor[R ~string] struct {
	Floor, Room, Limit int
	Pool               bool

	System, Newest, Round, Calls, Users, Pinned, Ephemeral, Tools int

	NewestRole               R
	ToolsReported            bool
	RewindRound, RewindUsers int
	Queued                   int
}

// takeBack says how to take something back with the given calls of Rewind(1),
// of which done were named before.
func (f *Floor[R]) takeBack(what string, calls int, done *int) string {
	more := calls - *done
	first := *done == 0
	*done = max(*done, calls)
	s := "Rewind"
	switch {
	case more <= 0:
		return "that takes " + what + " back too"
	case more > 1 && first:
		s = fmt.Sprintf("Rewind(1), called %d times,", more)
	case more > 1:
		s = fmt.Sprintf("Rewind(1), called %d times more,", more)
	case !first:
		s = "Rewind again"
	}
	if f.Queued > 0 && first {
		s = "call Unqueue, then " + s
	}
	return s + " takes " + what + " back"
}

// A share is a share of the floor, with what to do about it.
type share struct {
	tokens int
	text   string
	remedy string // empty: Rewind
	calls  int    // of Rewind(1)
	what   string // what these take back
}

// shares returns the shares in the order in which the text names them.
func (f *Floor[R]) shares() []share {
	newest := "the newest exchange holds"
	switch {
	case f.NewestRole == "user":
		newest = "the newest user message holds"
	case f.NewestRole == "assistant" && f.Calls > 0:
		newest = "the newest assistant message and its results hold"
	case f.NewestRole == "assistant":
		newest = "the newest assistant message holds"
	}
	users, calls := "other user messages of the newest turn hold", "the arguments of the newest calls hold"
	rewindCalls := 1
	if f.RewindRound > 0 { // the round's turn is the one before the newest
		users, calls = "other user messages of the two newest turns hold", "the arguments of unanswered calls hold"
		rewindCalls = f.RewindRound
	}
	shares := []share{
		{tokens: f.System, text: "system messages hold", remedy: "SetSystem replaces them"},
		{tokens: f.Newest, text: newest, calls: 1, what: "it"},
		{tokens: f.Calls, text: calls, calls: rewindCalls, what: "them"},
		{tokens: f.Round, text: "unanswered tool results hold", calls: f.RewindRound, what: "them"},
		{tokens: f.Users, text: users, calls: f.RewindUsers, what: "them"},
		{tokens: f.Pinned, text: "pinned exchanges hold", remedy: "Unpin them"},
		{tokens: f.Ephemeral, text: "ephemeral messages hold", remedy: "SetEphemeral replaces them"},
		{tokens: f.Room, text: "MakeRoom is to reserve", remedy: "reserve less"},
		{tokens: f.Tools, text: "tool definitions and the like hold", remedy: "define fewer tools, and lower Limits.Tools"},
	}
	sorted, tools := shares, &shares[len(shares)-1]
	if f.ToolsReported {
		tools.text, tools.remedy = "tool definitions and the like hold, by usage reports,", "define fewer tools"
		sorted = shares[:len(shares)-1]
	}
	sort.SliceStable(sorted, func(i, j int) bool { return sorted[i].tokens > sorted[j].tokens })
	return shares
}

func (f Floor[R]) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "cannot fit: %s protected", text.Grouped(f.Floor))
	if f.Room > 0 {
		fmt.Fprintf(&s, " + %s reserved", text.Grouped(f.Room))
	}
	fmt.Fprintf(&s, " tokens exceed limit %s: ", text.Grouped(f.Limit))
	done := 0
	for i, held := range f.shares() {
		if i == 0 || held.tokens > 0 && held.tokens >= f.Limit/50 {
			remedy := held.remedy
			if remedy == "" {
				remedy = f.takeBack(held.what, held.calls, &done)
			}
			fmt.Fprintf(&s, "%s %s: %s; ", held.text, text.Grouped(held.tokens), remedy)
		}
	}
	if f.Pool {
		return s.String() + "or use a larger Budget"
	}
	return s.String() + "or raise Limits.Window"
}

// A RoleError is one of package convo.
type RoleError[R ~string] struct {
	Attempted, Previous R
	Index               int
	Answer              bool
}

func (e RoleError[R]) String() string {
	remedy := "set Options.Roles to allow it"
	switch {
	case e.Answer:
		remedy = "give user messages to Queue, or append them when Do has returned; SetSystem takes system messages"
	case e.Attempted == "system":
		remedy = "a system message may stand before calls or after all their results, unless RolePolicy.NoNotes is set; SetSystem replaces the system messages in front"
	case e.Attempted == "user" && e.Previous == "user" && e.Index > 0:
		remedy = "put both into one message, or set Options.Roles to Relaxed() to allow it"
	case e.Attempted == "user" && e.Previous == "user":
		remedy = "request an answer first, or give the message to Queue, which appends it after the answer; Rewind(1) takes the unanswered one back"
	case e.Attempted == "assistant" && e.Previous == "assistant":
		remedy = "put both into one message, or append what the user said in between, or set Options.Roles to Relaxed() to allow it"
	case e.Attempted == "assistant" && (e.Previous == "" || e.Previous == "system"):
		remedy = "append the user message that it answers before it, or set Options.Roles to Relaxed() to allow it"
	}
	return fmt.Sprintf("message %d: %s; %s", e.Index, e.Fault(), remedy)
}

// Fault returns what is wrong, without the position and the remedy.
func (e RoleError[R]) Fault() string {
	if e.Answer {
		return fmt.Sprintf("role %s may not be in an answer", RoleName(string(e.Attempted)))
	}
	if e.Previous == "" {
		return fmt.Sprintf("role %s may not come first", RoleName(string(e.Attempted)))
	}
	return fmt.Sprintf("role %s may not follow %s", RoleName(string(e.Attempted)), RoleName(string(e.Previous)))
}

// RoleName returns a role as an error quotes it.
func RoleName(role string) string {
	if role == "" {
		return "no role"
	}
	return fmt.Sprintf("%.20q", role)
}

// A Usage is a Usage of package convo.
type Usage struct {
	Input, CacheRead, CacheWrite, CacheWriteLong, InputAudio, Extra int

	Output, Reasoning, OutputAudio int

	CacheTTL time.Duration
}

func (u Usage) String() string {
	parts := func(total int, verb string, of ...string) string {
		of = slices.DeleteFunc(of, func(s string) bool { return s == "" })
		if len(of) > 0 {
			verb += " (" + strings.Join(of, ", ") + ")"
		}
		return text.Grouped(total) + " " + verb
	}
	part := func(n int, what string) string {
		if n == 0 {
			return ""
		}
		return text.Grouped(n) + " " + what
	}
	return parts(u.Input, "read", part(u.CacheRead, "from the cache"), part(u.CacheWrite, "to the cache"), part(u.InputAudio, "sound"), part(u.Extra, "beyond the request")) + ", " +
		parts(u.Output, "written", part(u.Reasoning, "reasoning"), part(u.OutputAudio, "sound"))
}

// Fault returns the name of a field that is wrong, its value, and what is allowed; or no name.
func (u Usage) Fault() (name string, value int, want string) {
	fields := []struct {
		name, whole string
		n, most     int
	}{
		{name: "Input", n: u.Input},
		{name: "CacheRead", n: u.CacheRead},
		{name: "CacheWrite", n: u.CacheWrite},
		{"CacheWriteLong", "CacheWrite", u.CacheWriteLong, u.CacheWrite},
		{"InputAudio", "Input", u.InputAudio, u.Input},
		{"Extra", "Input", u.Extra, u.Input},
		{name: "Output", n: u.Output},
		{"Reasoning", "Output", u.Reasoning, u.Output},
		{"OutputAudio", "Output", u.OutputAudio, u.Output},
	}
	for _, f := range fields {
		if f.n < 0 {
			return f.name, f.n, "0 or more"
		}
	}
	if u.CacheRead > u.Input || u.CacheWrite > u.Input-u.CacheRead {
		cached := min(u.CacheRead, math.MaxInt-u.CacheWrite) + u.CacheWrite
		return "Input", u.Input, fmt.Sprintf("at least %s, CacheRead + CacheWrite, because Input includes cached tokens", text.Grouped(cached))
	}
	for _, f := range fields {
		if f.whole != "" && f.n > f.most {
			return f.name, f.n, fmt.Sprintf("at most %s, Usage.%s, of which it is a part", text.Grouped(f.most), f.whole)
		}
	}
	return "", 0, ""
}

// Largest lists the figures that are not 0 with their names, the largest first.
func Largest(names []string, figures []*int) string {
	order := make([]int, 0, len(figures))
	for i, n := range figures {
		if *n != 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(*figures[j], *figures[i]) })
	texts := make([]string, len(order))
	for k, i := range order {
		texts[k] = names[i] + " " + text.Grouped(*figures[i])
	}
	return strings.Join(texts, ", ")
}

// NameOf returns the name of a constant of an enumeration. names are those of the constants 0,
// 1, 2 and so on.
func NameOf[N ~uint8](n N, names ...string) string {
	if int(n) < len(names) {
		return names[n]
	}
	return fmt.Sprintf("%T(%d)", n, uint8(n))
}

// OfLimit returns a number of tokens along with the limit, if there is one.
func OfLimit(tokens, limit int) string {
	if limit == 0 {
		return text.Grouped(tokens) + " tokens"
	}
	return fmt.Sprintf("%s of %s tokens", text.Grouped(tokens), text.Grouped(limit))
}

// Written says how long a summary is, and which model has written it, in how many calls and how
// much time, if one has.
func Written(tokens int, model string, calls int, took time.Duration) string {
	var how []string
	if model != "" {
		how = append(how, Abbreviate(model))
	}
	if calls > 1 {
		how = append(how, text.Counted(calls, "call", "calls"))
	}
	if calls > 0 {
		how = append(how, fmt.Sprintf("%.1f s", took.Seconds()))
	}
	note := fmt.Sprintf(" in %s tokens", text.Grouped(tokens))
	if len(how) > 0 {
		note += " (" + strings.Join(how, ", ") + ")"
	}
	return note
}

// unfinished says for each Stop of package convo why a summary is refused, and what to do.
var unfinished = [...]string{
	1: "the summary was cut off; raise the output limit of its model",
	2: "the model called a tool instead of finishing the summary; request it without tools, or with tool choice none",
	3: "the model refused to write a summary; use another model to summarise",
	4: "the model paused before it finished the summary; let the Summarizer go on until it is done",
	5: "the summary was stopped before it was whole; compact again",
}

// Unfinished says why a summary is refused with a Stop of package convo that is not StopDone.
func Unfinished[S interface {
	~uint8
	fmt.Stringer
}](stop S) string {
	if int(stop) < len(unfinished) {
		return unfinished[stop]
	}
	return "the summary has an unknown Stop: " + stop.String() + "; want StopDone for one that is whole"
}

// Print implements Format for a type. text returns the text to print, with or without IDs.
func Print(f fmt.State, verb rune, text func(ids bool) string) {
	if verb == 'v' && (f.Flag('+') || f.Flag('#')) {
		_, _ = io.WriteString(f, text(f.Flag('+')))
		return
	}
	_, _ = fmt.Fprintf(f, fmt.FormatString(f, verb), text(false))
}

// Changed names what was added to a list, changed in it or taken away, after a colon. It names
// nothing if one of the lists is empty.
func Changed[T comparable](was, now []T, name func(T) string) string {
	if len(was) == 0 || len(now) == 0 {
		return ""
	}
	var names []string
	add := func(list, other []T) {
		for _, t := range list {
			if !slices.Contains(other, t) && !slices.Contains(names, name(t)) {
				names = append(names, name(t))
			}
		}
	}
	add(was, now)
	add(now, was)
	const most = 8
	if n := len(names) - most; n > 0 {
		names = append(names[:most], strconv.Itoa(n)+" more")
	}
	if len(names) == 0 {
		return ""
	}
	return ": " + strings.Join(names, ", ")
}
