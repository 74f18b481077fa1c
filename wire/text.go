package wire

import (
	"fmt"
	"strings"
)

func isBlank(s string) bool { return strings.TrimSpace(s) == "" }

func isNameByte(c byte) bool {
	return isLetter(c) || '0' <= c && c <= '9' || c == '_' || c == '-'
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// isHex reports whether s begins with two lower-case hexadecimal digits.
func isHex(s string) bool {
	return len(s) >= 2 && strings.IndexByte(hexDigits, s[0]) >= 0 && strings.IndexByte(hexDigits, s[1]) >= 0
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

const hexDigits = "0123456789abcdef"

func quote(s string) string { return fmt.Sprintf("%.40q", s) }

// madeOf returns a function that reports whether a text has at least one and at most
// length characters, all of them ASCII letters or digits, or in others.
func madeOf(others string, length int) func(string) bool {
	var ok [256]bool
	for _, c := range []byte(idLetters + others) {
		ok[c] = true
	}
	return func(s string) bool {
		for i := range len(s) {
			if !ok[s[i]] {
				return false
			}
		}
		return s != "" && len(s) <= length
	}
}

const idLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
