package inspect

// Moment returns the size of the present request twice: the sum of its kinds, and its
// estimate.
func Moment(h present) (sum, tokens int) {
	m := now(h)
	for _, k := range kinds(&m.breakdown) {
		sum += k.Tokens
	}
	return sum, m.estimate.Tokens
}
