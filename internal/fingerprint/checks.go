package fingerprint

import "math/bits"

// Checks compare sums that stand at places, such as the contents of entries at their IDs,
// without holding each of them. The check with index j is the total of sum * place^j, in the
// field of the integers modulo prime. These are the syndromes of a Reed-Solomon code: any
// MostUnknown places may be left out of a comparison, and each other difference is still found, but
// for one in 2^61. The place of a single difference follows from two checks.
type Checks [8]uint64

// MostUnknown is how many places Compare can leave out.
const MostUnknown = len(Checks{}) - 1

const prime = 1<<61 - 1

// Add adds a sum at a place, which is between 1 and prime-1.
func (c *Checks) Add(place uint64, s Sum) {
	term := uint64(s) % prime
	for j := range c {
		c[j] = plus(c[j], term)
		term = times(term, place)
	}
}

// Compare reports whether the sums that were added to c and to d are equal, except at unknown
// places, which are different from one another and at most MostUnknown. If they differ at one
// place and fewer than MostUnknown are unknown, it returns the place. If they differ at several,
// it returns 0, or any number if only two checks are left: the caller sees that it is no place.
func (c Checks) Compare(d Checks, unknown ...uint64) (equal bool, place uint64) {
	diff := c[:] // of the sums, in each check
	for j := range diff {
		diff[j] = minus(diff[j], d[j])
	}
	for _, u := range unknown { // each place has a factor place-u now, which is 0 at u
		for j := range len(diff) - 1 {
			diff[j] = minus(diff[j+1], times(diff[j], u))
		}
		diff = diff[:len(diff)-1]
	}
	equal = true
	for _, v := range diff {
		equal = equal && v == 0
	}
	if equal || diff[0] == 0 || len(diff) < 2 {
		return equal, 0
	}
	place = times(diff[1], inverse(diff[0]))
	for j := range len(diff) - 1 {
		if diff[j+1] != times(diff[j], place) {
			return false, 0
		}
	}
	return false, place
}

func plus(a, b uint64) uint64  { return (a + b) % prime }
func minus(a, b uint64) uint64 { return (a + prime - b) % prime }

func times(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return plus(hi<<3|lo>>61, lo&prime) // 2^61 is 1
}

// inverse returns the number whose product with a is 1. a is not 0.
func inverse(a uint64) uint64 {
	out := uint64(1)
	for n := uint64(prime - 2); n > 0; n >>= 1 {
		if n&1 != 0 {
			out = times(out, a)
		}
		a = times(a, a)
	}
	return out
}
