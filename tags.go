package convo

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The model sees summaries, and messages with an author, between tags. No text
// can forge these tags, because each holds the random key of its conversation,
// and every text is shown with the key masked.

// keyMask replaces the key in a text. It holds no letters, so the letters
// before it and after it cannot form another key.
const keyMask = "***"

// authorTags returns the tags around what an author says. name comes from
// quotedName.
func authorTags(key, name string) (open, end string) {
	return fmt.Sprintf("<from key=%q name=%s>", key, name), fmt.Sprintf("</from key=%q>", key)
}

// quotedName returns the name of an author in quotes, with the key masked. It
// masks the key in the name, and again in the quoted name, because quoting may
// form a key.
func quotedName(key, author string) string {
	return maskKey(key, strconv.Quote(maskKey(key, author)))
}

// maskKey returns a text as the model sees it: if it holds the key in the sense
// of [Snapshot.Messages], keyMask replaces the key and tags are escaped.
// Otherwise the text is returned unchanged.
func maskKey(key, text string) string {
	text, _ = masked(key, text)
	return text
}

// A textRun masks the key in texts that follow each other, in one message or in
// several. Package wire and the provider may join them, so a key may be spread
// over more than one. It is then masked in the last of these, so that the texts
// before do not change. A key spread over several texts does not make show escape
// tags, so that the count of a message hardly depends on what comes before it.
type textRun struct {
	key  string
	last [keyLen - 1]byte // its last n bytes are the letters of the key that the texts so far end with
	n    int
}

// show returns a text as the model sees it, and whether it was changed.
func (r *textRun) show(text string) (string, bool) {
	from, to, crosses := r.crossing(text)
	if crosses {
		text = text[:from] + keyMask + text[to:]
	}
	text, holds := masked(r.key, text)
	r.endWith(text)
	return text, crosses || holds
}

// masked returns a text with each key replaced by keyMask and, if there was
// one, with tags escaped. It also reports whether there was one.
func masked(key, text string) (string, bool) {
	find := newKeyFinder(key, text)
	from, to, found := find.next(0)
	if !found {
		return text, false
	}
	var b strings.Builder
	done := 0
	for found {
		b.WriteString(text[done:from])
		b.WriteString(keyMask)
		done = to
		from, to, found = find.next(done)
	}
	b.WriteString(text[done:])
	return escapeTags(b.String()), true
}

// crossing returns the bounds [from, to) in text of the end of a key that
// begins in the texts before it.
func (r *textRun) crossing(text string) (from, to int, found bool) {
	for n := r.n; n > 0; n-- {
		if string(r.last[len(r.last)-n:]) != r.key[:n] {
			continue
		}
		to = 0
		for i := n; i < keyLen; i++ {
			to = len(text) - len(trimLeft(text[to:]))
			if to == len(text) || text[to]|0x20 != r.key[i] {
				break
			}
			if i == n {
				from = to
			}
			to++
			found = i == keyLen-1
		}
		if found {
			return from, to, true
		}
	}
	return 0, 0, false
}

// endWith updates r.last for a text that was shown.
func (r *textRun) endWith(text string) {
	before := r.last[len(r.last)-r.n:]
	var last [keyLen - 1]byte
	n := 0
	for n < len(last) {
		text = trimRight(text)
		var c byte
		if text == "" {
			if len(before) == 0 {
				break
			}
			c, before = before[len(before)-1], before[:len(before)-1]
		} else {
			c, text = text[len(text)-1]|0x20, text[:len(text)-1]
		}
		if strings.IndexByte(r.key, c) < 0 {
			break
		}
		n++
		last[len(last)-n] = c
	}
	r.last, r.n = last, n
}

// follow lets r mask the end of messages, which are given the last one first. masks returns
// the text of a part that r masks. follow looks at no more messages than r depends on, which
// is most often the last text. tagged reports which of them are shown
// with tags.
func (r *textRun) follow(before iter.Seq[*Message], masks func(Part) (string, bool), tagged func(*Message) bool) {
	var t trail
	for msg := range before {
		if tagged(msg) {
			break // masking started anew after it
		}
		if msg.Role == RoleSystem {
			continue
		}
		if t.gather(r, msg.Parts, masks); t.settled {
			break
		}
	}
	t.show(r)
}

// A trail holds the last texts that were shown, from the last one on.
type trail struct {
	texts   []string
	settled bool // it makes no difference what was shown before them
}

// gather appends the texts in parts that r masks.
func (t *trail) gather(r *textRun, parts []Part, masks func(Part) (string, bool)) {
	for i := len(parts) - 1; i >= 0; i-- {
		if text, ok := masks(parts[i]); ok {
			t.add(r, text)
		} else if result, ok := parts[i].(ToolResult); ok {
			t.gather(r, result.Parts, masks)
		}
	}
}

// maskedText returns the text of a part that masker.text masks.
func maskedText(p Part) (string, bool) {
	t, ok := p.(Text)
	return string(t), ok
}

// maskedReasoning returns the text of a part that masker.reasoning masks.
func maskedReasoning(p Part) (string, bool) {
	r, ok := p.(Reasoning)
	return r.Text, ok && r.isPlain()
}

// holds reports whether parts hold one that is masked.
func holds(parts []Part, masks func(Part) (string, bool)) bool {
	return slices.ContainsFunc(parts, func(p Part) bool {
		if r, ok := p.(ToolResult); ok {
			return holds(r.Parts, masks)
		}
		_, ok := masks(p)
		return ok
	})
}

func (t *trail) add(r *textRun, text string) {
	if !t.settled {
		t.texts, t.settled = append(t.texts, text), r.settles(text)
	}
}

func (t *trail) show(r *textRun) {
	for _, text := range slices.Backward(t.texts) {
		r.show(text)
	}
}

// settles reports whether a text holds a visible character that is no letter of the
// key. No key extends across it.
func (r *textRun) settles(text string) bool {
	for text = trimRight(text); text != ""; text = trimRight(text[:len(text)-1]) {
		if strings.IndexByte(r.key, text[len(text)-1]|0x20) < 0 {
			return true
		}
	}
	return false
}

// A masker masks the key in the parts of messages that follow each other.
type masker struct {
	text, reasoning textRun // separate, because formats write them separately
}

func newMasker(key string) masker {
	return masker{text: textRun{key: key}, reasoning: textRun{key: key}}
}

// parts returns the parts of a message or of a result as the model sees them,
// and whether any differs; if none does, it returns the same slice. Arguments,
// names, IDs, opaque blocks, the data of media, and reasoning that its provider
// can recognise keep their bytes.
func (m *masker) parts(parts []Part) ([]Part, bool) {
	var own []Part
	for i, p := range parts {
		if q, differs := m.part(p); differs {
			if own == nil {
				own = slices.Clone(parts)
			}
			own[i] = q
		}
	}
	if own == nil {
		return parts, false
	}
	return own, true
}

// part does the same as parts for one part.
func (m *masker) part(p Part) (_ Part, differs bool) {
	switch q := p.(type) {
	case Text:
		if s, differs := m.text.show(string(q)); differs {
			return Text(s), true
		}
	case Reasoning:
		if q.isPlain() {
			if q.Text, differs = m.reasoning.show(q.Text); differs {
				return q, true
			}
		}
	case ToolResult:
		if q.Parts, differs = m.parts(q.Parts); differs {
			return q, true
		}
	case Media: // a format that cannot carry it writes its type and address as text
		mime, url := maskKey(m.text.key, q.MIME), maskKey(m.text.key, q.URL)
		if mime != q.MIME || url != q.URL {
			q.MIME, q.URL = mime, url
			return q, true
		}
	}
	return p, false
}

// isPlain reports whether r holds nothing by which its provider could recognise it.
func (r Reasoning) isPlain() bool { return r.ID == "" && r.Signature == "" && r.Encrypted == "" }

// isHidden reports whether r is white space, a control character, or another
// character that is not visible, such as one of zero width.
func isHidden(r rune) bool {
	if r < utf8.RuneSelf {
		return r <= ' ' || r == 0x7f
	}
	switch r {
	case '\u2800', '\ufffc', '\U0001d159': // a blank of Braille, a placeholder, a null note head
		return true
	}
	return unicode.IsSpace(r) || !unicode.IsGraphic(r) ||
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// trimLeft returns s without leading hidden characters. It is fast when there
// are none.
func trimLeft(s string) string {
	if s != "" && ' ' < s[0] && s[0] < 0x7f {
		return s
	}
	return strings.TrimLeftFunc(s, isHidden)
}

// trimRight returns s without trailing hidden characters. It is fast when there
// are none.
func trimRight(s string) string {
	if n := len(s); n > 0 && ' ' < s[n-1] && s[n-1] < 0x7f {
		return s
	}
	return strings.TrimRightFunc(s, isHidden)
}

// A keyFinder finds a key in a text: its letters in order, in upper or lower
// case, with nothing but hidden characters between them. It searches for the
// letter of the key that is the rarest in texts, and compares the rest around
// it.
type keyFinder struct {
	key, text    string
	rare         int // the index of the rarest letter in key
	lower, upper int // where that letter occurs next in text, in each case; len(text) if it does not
}

// commonLetters are the letters from most to least common in texts, and rarity
// the index of each letter in it.
const commonLetters = "etaoinsrhldcumfpgwybvkxjqz"

var rarity = func() (rarity [26]byte) {
	for i := range len(commonLetters) {
		rarity[commonLetters[i]-'a'] = byte(i)
	}
	return rarity
}()

func newKeyFinder(key, text string) keyFinder {
	f := keyFinder{key: key, text: text, lower: -1, upper: -1}
	for i := range len(key) {
		if rarity[key[i]-'a'] > rarity[key[f.rare]-'a'] {
			f.rare = i
		}
	}
	return f
}

// next returns the bounds [start, end) of the first key at or after from. from
// must not decrease from call to call.
func (f *keyFinder) next(from int) (start, end int, found bool) {
	for at := from; ; at++ {
		c := f.key[f.rare]
		f.lower = nextByte(f.text, c, f.lower, at)
		f.upper = nextByte(f.text, c&^0x20, f.upper, at)
		if at = min(f.lower, f.upper); at == len(f.text) {
			return 0, 0, false
		}
		if f.excluded(at) {
			continue
		}
		if start, end, found = f.around(from, at); found {
			return start, end, true
		}
	}
}

// excluded reports whether the byte behind text[at], the rarest letter, rules out
// a key there. It is quick, and true nearly always.
func (f *keyFinder) excluded(at int) bool {
	if f.rare+1 == len(f.key) || at+1 == len(f.text) {
		return false
	}
	c := f.text[at+1]
	return ' ' < c && c < 0x7f && c|0x20 != f.key[f.rare+1]
}

// nextByte returns the index of the first c in text at or after from, len(text)
// if there is none. known is the result for an earlier from, or -1.
func nextByte(text string, c byte, known, from int) int {
	if known >= from {
		return known
	}
	if i := strings.IndexByte(text[from:], c); i >= 0 {
		return from + i
	}
	return len(text)
}

// around returns the bounds [start, end) of the key at or after from whose
// rarest letter is text[at].
func (f *keyFinder) around(from, at int) (start, end int, found bool) {
	start, end = at, at+1
	for i := f.rare - 1; i >= 0; i-- {
		start = from + len(trimRight(f.text[from:start])) - 1
		if start < from || f.text[start]|0x20 != f.key[i] {
			return 0, 0, false
		}
	}
	for i := f.rare + 1; i < len(f.key); i++ {
		end = len(f.text) - len(trimLeft(f.text[end:]))
		if end == len(f.text) || f.text[end]|0x20 != f.key[i] {
			return 0, 0, false
		}
		end++
	}
	return start, end, true
}

// noteTags returns the tags around a note that is sent as a user message.
func noteTags(key string) (open, end string) {
	return fmt.Sprintf("<system key=%q>\n", key), fmt.Sprintf("\n</system key=%q>", key)
}

// summaryTags returns the tags around a summary.
func summaryTags(key string) (open, end string) {
	return fmt.Sprintf("<summary key=%q>\nWhat went before in this conversation, in short:\n", key),
		fmt.Sprintf("\n</summary key=%q>", key)
}

// tagNames are the names of all tags in views and in prompts for summarizers.
var tagNames = [...]string{
	"block", "call", "from", "media", "message", "pinned", "previous-summary", "reasoning", "result", "summary", "system", "transcript",
}

// escapeTags returns s with "&lt;" for each "<" that begins a tag with one of
// our names, so that text which imitates a tag is not taken for one.
func escapeTags(s string) string {
	var b strings.Builder
	done := 0
	for i := 0; i < len(s); i++ {
		if s[i] != '<' || !beginsTag(s[i+1:]) {
			continue
		}
		b.WriteString(s[done:i])
		b.WriteString("&lt;")
		done = i + 1
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

// beginsTag reports whether s, the text after a "<", continues like one of our
// tags.
func beginsTag(s string) bool {
	s = strings.TrimLeft(s, " \t\r\n/")
	return slices.ContainsFunc(tagNames[:], func(name string) bool {
		return len(s) >= len(name) && strings.EqualFold(s[:len(name)], name)
	})
}

// quote returns s in quotes, for an attribute of a tag.
func quote(s string) string { return `"` + strings.ReplaceAll(escapeTags(s), `"`, "&quot;") + `"` }
