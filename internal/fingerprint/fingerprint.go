// Package fingerprint computes 64-bit fingerprints that are the same in every process.
// They tell contents apart that differ by chance or by an edit. They do not protect
// against a search for two contents with one fingerprint.
package fingerprint

import (
	"encoding/binary"
	"math/bits"

	"github.com/seed-c1b73e60/convo/internal/text"
)

// A Sum is the fingerprint of a sequence of values. The zero Sum is that of no values.
type Sum uint64

const (
	k0 = 0x9e3779b97f4a7c15
	k1 = 0xbf58476d1ce4e5b9
	k2 = 0x94d049bb133111eb
)

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// Uint64 returns the fingerprint of the values of s followed by v.
func (s Sum) Uint64(v uint64) Sum {
	return Sum(mix(uint64(s)^k0, v^k1) + k2)
}

// String returns the fingerprint of the values of s followed by a text.
func (s Sum) String(t string) Sum {
	a, b := uint64(s)^k0, uint64(len(t))^k2
	for len(t) >= 16 {
		a = mix(a^text.Word(t), k1)
		b = mix(b^text.Word(t[8:]), k2)
		t = t[16:]
	}
	if len(t) >= 8 {
		a = mix(a^text.Word(t), k1)
		t = t[8:]
	}
	var rest [8]byte
	copy(rest[:], t)
	return Sum(mix(a^binary.LittleEndian.Uint64(rest[:]), k0) ^ mix(b, k1)).Uint64(b)
}

// A List is the fingerprint of a list of sums. Unlike for a Sum, the last one can be taken
// away again. The zero List is that of an empty list.
type List uint64

const (
	step = 0x9fb21c651e98df25 // odd
	back = 0x02ab9c720d1024ad // step * back is 1
)

// Add returns the fingerprint of l with one more sum.
func (l List) Add(s Sum) List { return l*step + List(s) }

// Remove is the inverse of Add: l.Add(s).Remove(s) is l.
func (l List) Remove(s Sum) List { return (l - List(s)) * List(back) }

// The offset and the prime of the 64-bit FNV-1a hash, for texts that are read byte by byte.
const FNVOffset, FNVPrime = 14695981039346656037, 1099511628211
