package wire

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/seed-c1b73e60/convo"
)

// Providers refuse some names of tools. Such a name is sent in another form, which is
// the same for all providers and depends on nothing but the name:
//
//   - Letters, digits, - and _ stay as they are. Any other byte becomes _ and two
//     hexadecimal digits; so does a first byte that is no letter, and an _ before
//     something that looks like two such digits. At the end stand _x and eight digits of
//     a checksum. Decode turns this form back; by the checksum it knows it from a name
//     that a tool was given.
//   - What would be too long in this form is cut, and ends in _h and twenty digits of a
//     checksum. It cannot be turned back, but FindTool finds the tool.
//
// A name that a provider accepts is sent as it is, unless it is of the first form: then
// Decode would turn it into another one, and so it gets that form once more.

// maxToolName is the length of a name that all providers accept.
const maxToolName = 64

// The names that providers accept, from their error messages and API references.
var (
	openAIToolNames    = madeOf("_-", maxToolName)
	anthropicToolNames = madeOf("_-", 128)
	geminiToolNames    = func(name string) bool { return geminiNameBytes(name) && (isLetter(name[0]) || name[0] == '_') }
	geminiNameBytes    = madeOf("_.:-", maxToolName)
)

// sentName returns the name under which a tool is sent to a provider that accepts the
// valid names.
func sentName(name string, valid func(string) bool) string {
	if valid(name) {
		if _, ok := unescapedName(name); !ok {
			return name
		}
	}
	return escapedName(name)
}

// ownName returns the name that the tool of a call has, if sentName has sent it in the
// first form, or else the name that is given.
func ownName(sent string) string {
	if name, ok := unescapedName(sent); ok {
		return name
	}
	return sent
}

// FindTool returns the tool that a call is for: the one with the name of the call, or
// else the first one that is sent under it, since a provider has refused its own name.
// The names in a [Transcript] are those of the tools already, but for names that are too
// long for the provider; a name in a [CallDelta] or from an SDK is what was sent. If a tool
// has the very name under which another one is sent, which no name has by chance, such a
// sent name finds the tool that has it.
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

// unescapedName returns the name that has been escaped and not cut. It is not ok for
// anything else. A call has a name in any case, so that the form of an empty one stays.
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
