package wire

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/seed-c1b73e60/convo"
)

// Providers refuse some names of tools. Those names are sent in another form, which is
// the same for all providers and depends only on the name:
//
//   - Letters, digits, - and _ stay as they are. Any other byte becomes _ and two
//     hexadecimal digits; so does a first byte that is not a letter or _, and an _ that
//     two hexadecimal digits follow. The form ends in _x and eight digits of a checksum.
//     Decode restores the name; the checksum shows that the form is not itself the name
//     of a tool.
//   - A name that is too long in this form is cut, and ends in _h and twenty digits of a
//     checksum. Decode cannot restore it, but FindTool finds the tool.
//
// A name that a provider accepts is sent unchanged, unless it already has the first form.
// Such a name is converted once more, because Decode would otherwise change it.

// maxToolName is the maximum length of a name that all providers accept.
const maxToolName = 64

// The names that providers accept, from their error messages and API references.
var (
	openAIToolNames    = madeOf("_-", maxToolName)
	anthropicToolNames = madeOf("_-", 128)
	geminiToolNames    = func(name string) bool { return geminiNameBytes(name) && (isLetter(name[0]) || name[0] == '_') }
	geminiNameBytes    = madeOf("_.:-", maxToolName)
)

// sentName returns the name under which a tool is sent to a provider. The valid argument
// reports whether the provider accepts a name.
func sentName(name string, valid func(string) bool) string {
	if valid(name) {
		if _, ok := unescapedName(name); !ok {
			return name
		}
	}
	return escapedName(name)
}

// ownName returns the name of the tool that sentName sent in the first form. Any other
// name is returned unchanged.
func ownName(sent string) string {
	if name, ok := unescapedName(sent); ok {
		return name
	}
	return sent
}

// FindTool returns the tool that a call is for: the tool with the name of the call, or
// else the first tool that is sent under that name because the provider refuses the
// tool's own. Names in a [Transcript] are already the tools' own, except for names that
// are too long for the provider. A name in a [CallDelta] or from an SDK is the name that
// was sent. If one tool has exactly the name under which another is sent, which does not
// happen by chance, FindTool returns the tool that has the name.
func FindTool(tools []convo.Tool, name string) (convo.Tool, bool) {
	for _, t := range tools {
		if t.Name == name {
			return t, true
		}
	}
	for _, t := range tools {
		if escapedName(t.Name) == name {
			return t, true
		}
	}
	return convo.Tool{}, false
}

// escapedName returns the form of a name that all providers accept.
func escapedName(name string) string {
	const longest = maxToolName - len("_x") - 8
	b := make([]byte, 0, maxToolName)
	i := 0
	for ; i < len(name) && len(b) <= longest; i++ {
		if c := name[i]; !isNameByte(c) || i == 0 && !isLetter(c) && c != '_' || c == '_' && isHex(name[i+1:]) {
			b = append(b, '_')
			b = hex.AppendEncode(b, []byte{c})
		} else {
			b = append(b, c)
		}
	}
	sum := sha256.Sum256([]byte(name))
	if i == len(name) && len(b) <= longest {
		return string(hex.AppendEncode(append(b, "_x"...), sum[:4]))
	}
	b = b[:maxToolName-len("_h")-20]
	return string(hex.AppendEncode(append(b, "_h"...), sum[:10]))
}

// unescapedName restores a name that was escaped and not cut. It returns false for
// anything else, including the form of an empty name, because a call must have a name.
func unescapedName(sent string) (name string, ok bool) {
	end := len(sent) - len("_x") - 8
	if end < 1 || sent[end:end+2] != "_x" {
		return "", false // most names
	}
	b := make([]byte, 0, end)
	for i := 0; i < end; i++ {
		if sent[i] == '_' && isHex(sent[i+1:end]) {
			b, _ = hex.AppendDecode(b, []byte(sent[i+1:i+3]))
			i += 2
		} else {
			b = append(b, sent[i])
		}
	}
	return string(b), escapedName(string(b)) == sent
}
