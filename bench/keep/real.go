package keep

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/bench/cost"
)

// mostReal is how many bytes of each file of conversations are taken.
const mostReal = 2 << 20

// Real returns the conversations for a window. A needle counts if more than a window of
// tokens stand between its newest mention and its use, and none of them holds it as part of
// another word. So every policy has compacted since. A few messages may still be new to it,
// since a History cuts large results when they are appended.
func Real(talks []Talk) func(window int) []Talk {
	return func(window int) (out []Talk) {
		for _, t := range talks {
			at := make([]int, len(t.Messages)+1)
			for i, m := range t.Messages {
				at[i+1] = at[i] + convo.Heuristic{}.CountTokens(said(m))
			}
			far := Talk{Messages: t.Messages}
			for _, n := range t.Needles {
				isNear := func(m convo.Message) bool { return strings.Contains(said(m), n.Text) }
				if at[n.Due]-at[n.Entry+1] > window && !slices.ContainsFunc(t.Messages[n.Entry+1:n.Due], isNear) {
					far.Needles = append(far.Needles, n)
				}
			}
			if len(far.Needles) > 0 {
				out = append(out, far)
			}
		}
		return out
	}
}

// RealTalks returns the conversations in the .jsonl files of a directory, up to 20 joined
// into one. A needle is an identifier that stands in a message and that a later one of the
// user or the agent uses, in the same conversation; see [needlesIn].
func RealTalks(dir string) (talks []Talk, err error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		msgs, err := cost.ReadMessages(file)
		_ = file.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		size := 0
		for group := range slices.Chunk(msgs, 20) {
			t, err := joined(group)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			talks = append(talks, t)
			for _, m := range t.Messages {
				size += len(said(m))
			}
			if size > mostReal {
				break
			}
		}
	}
	return talks, nil
}

// joined returns conversations one after the other, without the system messages of all but
// the first. No needle leads from one to another.
func joined(group [][]convo.Message) (t Talk, err error) {
	for i, part := range group {
		if i > 0 {
			part = slices.DeleteFunc(slices.Clone(part), func(m convo.Message) bool { return m.Role == convo.RoleSystem })
		}
		c, err := cost.NewConversation("", part)
		if err != nil {
			return Talk{}, err
		}
		for _, n := range needlesIn(c.Messages) {
			n.Entry += len(t.Messages)
			n.Due += len(t.Messages)
			t.Needles = append(t.Needles, n)
		}
		t.Messages = append(t.Messages, c.Messages...)
	}
	return t, nil
}

var (
	token   = regexp.MustCompile(`[A-Za-z0-9_./-]{6,80}`)
	telling = regexp.MustCompile(`[0-9_/]|[a-z][A-Z]|[a-z]\.[a-z]`)
)

// everywhere is in how many messages an identifier is known anyway.
const everywhere = 8

// An identifier is a word that says what it names.
type identifier struct {
	word string
	at   int // where it stands first
}

// identifiers returns the words of a text that have at least 6 characters and hold a digit,
// a slash, an underscore, a dot or a capital within, each once.
func identifiers(text string) (found []identifier) {
	seen := map[string]bool{}
	for _, at := range token.FindAllStringIndex(text, -1) {
		word := strings.Trim(text[at[0]:at[1]], "./-")
		if len(word) >= 6 && telling.MatchString(word) && !seen[word] {
			seen[word] = true
			found = append(found, identifier{word, at[0]})
		}
	}
	return found
}

// needlesIn returns the needles of a conversation: identifiers that stand in a message and
// are used by a later one of the user or the agent. Entry is the newest message before the
// use that holds the word. The query is what stands around the use, 200 bytes to each side,
// without the word.
func needlesIn(msgs []convo.Message) (needles []Needle) {
	newest, times := map[string]int{}, map[string]int{}
	var uses []Needle
	for i, m := range msgs {
		text := said(m)
		for _, f := range identifiers(text) {
			times[f.word]++
			if from, known := newest[f.word]; known && (m.Role == convo.RoleUser || m.Role == convo.RoleAssistant) {
				uses = append(uses, Needle{Text: f.word, Query: strings.ReplaceAll(around(text, f.at), f.word, " "), Entry: from, Due: i})
			}
			newest[f.word] = i
		}
	}
	for _, n := range uses {
		if times[n.Text] <= everywhere {
			needles = append(needles, n)
		}
	}
	return needles
}

// said returns the text of a message, the arguments of its calls, and results. The strings
// of arguments are decoded. The names of tools are left out, since their definitions hold
// them.
func said(m convo.Message) string {
	var b strings.Builder
	b.WriteString(m.Text() + "\n")
	for _, c := range m.ToolCalls() {
		b.WriteString(decoded(c.Arguments) + "\n")
	}
	for _, r := range m.ToolResults() {
		b.WriteString(r.Text() + "\n")
	}
	return b.String()
}

// decoded returns the keys and values of a JSON text in their order, or the text if it is
// not JSON.
func decoded(text string) string {
	if !json.Valid([]byte(text)) {
		return text
	}
	var b strings.Builder
	d := json.NewDecoder(strings.NewReader(text))
	for t, err := d.Token(); err == nil; t, err = d.Token() {
		if _, isDelim := t.(json.Delim); !isDelim {
			fmt.Fprintf(&b, "%v ", t)
		}
	}
	return b.String()
}

// around returns the part of a text around an offset, 200 bytes to each side.
func around(text string, at int) string {
	return strings.ToValidUTF8(text[max(at-200, 0):min(at+200, len(text))], "")
}
