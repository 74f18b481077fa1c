package convo

import (
	"crypto/sha256"
	"fmt"
	"regexp"
)

// maxReadable is how many bytes of a key its file shows.
const maxReadable = 24

var logName = regexp.MustCompile(`^[a-z0-9-]{1,24}-[0-9a-f]{32}\.convo$`)

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
