package wire

import (
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// A partKind says what the code that all formats share does with parts of one kind. The
// files of a format say how the format writes them. A kind that no format writes needs
// held and size alone, or also shown and lost, to be sent as a text.
type partKind struct {
	// held returns how many bytes a part holds, and size about how many it takes in JSON.
	held, size func(p convo.Part) int

	// keep reports whether a part of a message can be sent before the calls, and what is
	// lost if not. keepInResult does so for a part of a result. If a function is nil, no
	// part of the kind has a place there.
	keep         func(k *keeping, i int, p convo.Part) (keep bool, lost string)
	keepInResult func(f *profile, p convo.Part) (keep bool, lost string)

	// shown returns the text that is sent in place of a part that a format does not write,
	// or "". If shown is nil, nothing is sent in its place. follows reports whether the part
	// follows a text.
	shown func(format string, p convo.Part, follows bool) string

	// text returns the text that stands for a part where only text can be sent, and lost
	// what is lost then. If text is nil, no text stands for the part. If lost is nil,
	// nothing is lost.
	text func(p convo.Part) string
	lost func(p convo.Part) string

	// For Patch: whether two parts say the same, the ID of a part, and how well a text
	// fits in its place. If same is nil, parts that are equal say the same.
	same     func(f *patchForm, a, b convo.Part) bool
	id       func(p convo.Part) (id string, minted bool)
	likeText int
}

// kinds are the kinds of parts. A part of the kind none is not sent.
var kinds struct{ none, text, media, reasoning, call, result, opaque partKind }

// kindOfPart returns the kind of a part.
func kindOfPart(p convo.Part) *partKind {
	switch p.(type) {
	case convo.Text:
		return &kinds.text
	case convo.Media:
		return &kinds.media
	case convo.Reasoning:
		return &kinds.reasoning
	case convo.ToolCall:
		return &kinds.call
	case convo.ToolResult:
		return &kinds.result
	case convo.Opaque:
		return &kinds.opaque
	}
	return &kinds.none
}

func init() {
	kinds.text = partKind{
		held: func(p convo.Part) int { return len(p.(convo.Text)) },
		size: func(p convo.Part) int { return quotedLen(string(p.(convo.Text))) + 32 },
		keep: func(_ *keeping, _ int, p convo.Part) (bool, string) {
			return !isBlankPart(p), ""
		},
		keepInResult: func(_ *profile, p convo.Part) (bool, string) {
			return !isBlankPart(p), ""
		},
		text: func(p convo.Part) string { return string(p.(convo.Text)) },
		same: func(_ *patchForm, a, b convo.Part) bool {
			return sameText(string(a.(convo.Text)), string(b.(convo.Text)))
		},
		likeText: 3,
	}
	kinds.media = partKind{
		held:         func(p convo.Part) int { return len(p.(convo.Media).Data) },
		size:         func(p convo.Part) int { return len(p.(convo.Media).Data) + 96 },
		keep:         func(*keeping, int, convo.Part) (bool, string) { return true, "" },
		keepInResult: func(*profile, convo.Part) (bool, string) { return true, "" },
		text:         func(p convo.Part) string { return mediaText(p.(convo.Media)) },
		lost:         func(convo.Part) string { return lostMedia },
		likeText:     2,
	}
	kinds.reasoning = partKind{
		held: func(p convo.Part) int {
			r := p.(convo.Reasoning)
			return len(r.Text) + len(r.Signature) + len(r.Encrypted)
		},
		size: func(p convo.Part) int {
			r := p.(convo.Reasoning)
			return quotedLen(r.Text) + len(r.Signature) + len(r.Encrypted) + 96
		},
		keep: (*keeping).reasoning,
		same: func(f *patchForm, a, b convo.Part) bool {
			x, y := a.(convo.Reasoning), b.(convo.Reasoning)
			return sameText(x.Text, y.Text) && x.Encrypted == y.Encrypted && (f.leads || x.Signature == y.Signature)
		},
	}
	kinds.call = partKind{
		held: func(p convo.Part) int { return len(p.(convo.ToolCall).Arguments) },
		size: func(p convo.Part) int {
			c := p.(convo.ToolCall)
			return len(c.ID) + len(c.Name) + quotedLen(c.Arguments) + 96
		},
		keep: (*keeping).call,
		id: func(p convo.Part) (id string, minted bool) {
			c := p.(convo.ToolCall)
			return c.ID, c.Minted
		},
		same: func(_ *patchForm, a, b convo.Part) bool {
			x, y := a.(convo.ToolCall), b.(convo.ToolCall)
			return sameID(a, b) && x.Name == y.Name && sameText(x.Arguments, y.Arguments)
		},
	}
	kinds.result = partKind{
		held: func(p convo.Part) int { return heldBy(p.(convo.ToolResult).Parts) },
		size: func(p convo.Part) int { return sizeOf(p.(convo.ToolResult).Parts) + 96 },
		id:   func(p convo.Part) (id string, minted bool) { return p.(convo.ToolResult).CallID, false },
		same: func(f *patchForm, a, b convo.Part) bool {
			x, y := a.(convo.ToolResult), b.(convo.ToolResult)
			return sameID(a, b) && x.IsError == y.IsError && f.sameUnits(appendUnits(nil, "", x.Parts), appendUnits(nil, "", y.Parts))
		},
	}
	kinds.opaque = partKind{
		held:         func(p convo.Part) int { return len(p.(convo.Opaque).JSON) },
		size:         func(p convo.Part) int { return len(p.(convo.Opaque).JSON) + 1 },
		keep:         (*keeping).opaque,
		keepInResult: (*profile).keepBlockInResult,
		shown:        shownBlock,
		lost: func(p convo.Part) string {
			if _, mark := isMark(p); mark {
				return lostCacheMark
			}
			return lostBlock
		},
		likeText: 2,
	}
}

// heldBy returns how many bytes parts hold.
func heldBy(parts []convo.Part) (n int) {
	for _, p := range parts {
		if held := kindOfPart(p).held; held != nil {
			n += held(p)
		}
	}
	return n
}

// sizeOf estimates how many bytes parts take in JSON.
func sizeOf(parts []convo.Part) (n int) {
	for _, p := range parts {
		if size := kindOfPart(p).size; size != nil {
			n += size(p)
		}
	}
	return n
}

// textOf returns the text of a part, or the text that stands for it, or "".
func textOf(p convo.Part) string {
	if text := kindOfPart(p).text; text != nil {
		return text(p)
	}
	return ""
}

// joinTexts joins the texts of parts, and those that stand for parts of other kinds.
func joinTexts(parts []convo.Part, sep string) string {
	var texts []string
	for _, p := range parts {
		if kindOfPart(p).text != nil {
			texts = append(texts, textOf(p))
		}
	}
	return strings.Join(texts, sep)
}

// unsaid records what is lost of a part if only its text, or a text that replaces it, is
// sent.
func (l *losses) unsaid(at place, inside int, part convo.Part) {
	if lost := kindOfPart(part).lost; lost != nil {
		l.tell(at, inside, lost(part), "")
	}
}

// unjoined records what joinTexts leaves out.
func (l *losses) unjoined(parts []convo.Part, places []place) {
	for i, p := range parts {
		l.unsaid(places[i], whole, p)
	}
}

// A keeping decides which parts of a message can be sent.
type keeping struct {
	*projector
	message message // with the parts so far
	parts   []convo.Part
	seal    messageSeal
	calls   bool // there was a call
	cites   bool // the previous part is a text that is sent, and not a tag
}

func (k *keeping) reasoning(i int, p convo.Part) (keep bool, lost string) {
	keep = k.message.thinks && k.seal.allows(i)
	if !keep {
		k.projector.lost.reasoning(k.message.placeOfAll(i), p.(convo.Reasoning), convo.Reasoning{})
	}
	return keep, ""
}

// call keeps no call, since calls are sent last.
func (k *keeping) call(int, convo.Part) (keep bool, lost string) {
	if k.message.role != convo.RoleAssistant {
		return false, lostPart
	}
	k.calls = true
	return false, ""
}

func (k *keeping) opaque(i int, p convo.Part) (keep bool, lost string) {
	if _, mark := isMark(p); mark {
		keep = k.marks && !k.calls && len(k.message.parts) > 0
		if !keep && !(k.marks && k.calls) {
			lost = lostCacheMark
		}
		return keep, lost
	}
	block := p.(convo.Opaque)
	keep = k.isBlock(block, k.message.role) && (k.cites || !isCitations(block))
	if !keep && !k.saysCustom(block, k.parts[i+1:]) {
		lost = lostBlock
	}
	return keep, lost
}

func (f *profile) keepBlockInResult(p convo.Part) (keep bool, lost string) {
	if _, mark := isMark(p); mark {
		return f.marks, lostCacheMark
	}
	keep = f.isBlock(p.(convo.Opaque), convo.RoleTool)
	if !keep && !isObjectMark(p) {
		lost = lostBlock
	}
	return keep, lost
}

func isBlankPart(p convo.Part) bool {
	text, ok := p.(convo.Text)
	return ok && isBlank(string(text))
}
