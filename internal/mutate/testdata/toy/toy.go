// Package toy is mutated by the tests of command mutate.
package toy

// Clamp returns n, limited to the range from 0 to 9.
func Clamp(n int) int {
	if n < 0 {
		return 0
	}
	if n > 9 {
		return 9
	}
	return n
}

// Count counts down from n to 0, and returns the number of steps.
func Count(n int) (steps int) {
	for n > 0 {
		n--
		steps++
	}
	return steps
}

// Unseen has no test.
func Unseen(list []string) bool { return len(list) > 1 }
