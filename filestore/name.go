package filestore

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// maxReadable is how many bytes of a key its file shows.
const maxReadable = 24

// isFileName reports whether a file with the name can be the log of a key.
func isFileName(name string) bool {
	const sum = 32 // hexadecimal digits
	begin, ok := strings.CutSuffix(name, ".convo")
	n := len(begin) - sum - 1
	return ok && n >= 1 && n <= maxReadable && begin[n] == '-' && readable(begin[:n]) == begin[:n] &&
		strings.Trim(begin[n+1:], "0123456789abcdef") == ""
}

// fileName returns the name of the file of a key.
func fileName(key string) string {
	sum := sha256.Sum256([]byte(key))
	return fmt.Sprintf("%s-%x.convo", readable(key), sum[:16])
}

// readable returns the beginning of a key as names of files show it.
func readable(key string) string {
	b := []byte(key[:min(len(key), maxReadable)])
	for i, c := range b {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			b[i] = '-'
		}
	}
	return string(b)
}
