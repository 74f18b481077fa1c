package filestore

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// maxReadable is the maximum number of bytes of a key in the name of its file.
const maxReadable = 24

// isFileName reports whether name can be the file name of a log.
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

// readable returns the beginning of a key as it appears in file names.
func readable(key string) string {
	b := []byte(key[:min(len(key), maxReadable)])
	for i, c := range b {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			b[i] = '-'
		}
	}
	return string(b)
}
