package calibrate

import "math"

// A Scale converts the raw tokens of a view to the tokens of its request, at one
// moment. Old, Gone and Fresh describe the difference between the view and the
// last measured view.
type Scale struct {
	Known    *Calibration // nil before the first report; then Prior is used
	Prior    Prior
	Overhead int64 // tokens of the request outside the view

	Old   int64 // raw tokens of the view that were measured
	Gone  int64 // raw tokens that were measured and have left the view
	Fresh int64 // raw tokens of the view that were not measured

	// The parts of Old and Fresh that leave the view only after everything else.
	KeptOld, KeptFresh int64
}

// Tokens returns the best estimate of the request's size.
func (s Scale) Tokens() int64 {
	old, fresh := s.ratios()
	return s.Overhead + round(float64(old*float64(s.Old))+float64(fresh*float64(s.Fresh)))
}

// Upper returns a bound that the true size should not exceed. Limits are
// compared with it.
func (s Scale) Upper() int64 {
	if s.Known == nil {
		return s.Prior.upper(s.Tokens())
	}
	old, fresh := s.ratios()
	d := s.drift()
	n := float64(old*float64(s.Old)) + float64(fresh*float64(s.Fresh)) + float64(s.Known.marginFraction()*(d+min(d, smallDrift)))
	return s.Overhead + int64(math.Ceil(n-1e-6))
}

// Measured returns the part of Tokens that was measured.
func (s Scale) Measured() int64 {
	s.Fresh = 0
	return s.Tokens()
}

// ratios returns the tokens per raw token, for the measured part of the view and
// for the rest.
func (s *Scale) ratios() (old, fresh float64) {
	switch {
	case s.Known == nil:
		return 1, s.Prior.Ratio
	case s.Known.Raw == 0:
		return s.Known.Ratio, s.Known.Ratio
	}
	return float64(s.Known.Tokens-s.Overhead) / float64(s.Known.Raw), s.Known.Ratio
}

// drift returns the difference between the view and the measured view, in tokens.
// Removed tokens count less than new tokens, since they were measured together with
// the remaining ones.
func (s Scale) drift() float64 {
	old, fresh := s.ratios()
	d := float64(fresh*float64(s.Fresh)) + float64(goneDrift*old*float64(min(s.Gone, s.Old)))
	if s.Known == nil {
		return d
	}
	doubt := float64(s.Known.Doubt)
	if s.Known.Raw > 0 { // subtract the share of the doubt of what has left the view
		doubt = float64(doubt*float64(s.Old)) / float64(s.Known.Raw)
	}
	return d + doubt
}

// holding returns the scale of a view that has n raw tokens. A smaller view first
// loses measured tokens, because they are older, and loses kept tokens last. A larger
// view gains tokens that were not measured.
func (s Scale) holding(n int64) Scale {
	less := s.Old + s.Fresh - n
	if less <= 0 {
		s.Fresh -= less
		return s
	}
	for _, kept := range []struct{ old, fresh int64 }{{s.KeptOld, s.KeptFresh}, {}} {
		old := min(less, max(s.Old-kept.old, 0))
		fresh := min(less-old, max(s.Fresh-kept.fresh, 0))
		s.Old, s.Gone, s.Fresh = s.Old-old, s.Gone+old, s.Fresh-fresh
		less -= old + fresh
	}
	return s
}

// Without returns the scale of the view without its newest n raw tokens.
func (s Scale) Without(n int64) Scale {
	n = max(n, 0)
	cut := min(n, s.Fresh)
	s.Fresh -= cut
	s.Old = max(s.Old-(n-cut), 0)
	return s
}

// Kept returns the scale of a view with only the kept tokens.
func (s Scale) Kept() Scale { return s.holding(s.KeptOld + s.KeptFresh) }

// Weigh returns the upper bound of a request whose view has n raw tokens.
func (s Scale) Weigh(n int64) int64 { return s.holding(n).Upper() }

// Part returns the upper bound for n new raw tokens, without the overhead.
func (s Scale) Part(n int64) int64 {
	_, fresh := s.ratios()
	return s.Prior.upper(round(fresh * float64(n)))
}

// Holds is the inverse of Weigh: it returns the maximum number of raw tokens of a
// view whose request weighs at most tokens. It returns -1 if even an empty view
// weighs more.
func (s Scale) Holds(tokens int64) int64 { return mostUpTo(tokens, s.Weigh) }

// Worst returns the maximum weight of a request whose view has n raw tokens: the
// kept tokens, and any others, from the current view or not.
func (s Scale) Worst(n int64) int64 {
	if s.Known == nil || n <= s.KeptOld+s.KeptFresh {
		return s.Weigh(n)
	}
	// The drift is largest when least, most or half tokens of Old stay, and the rest
	// of the weight when least or most of them stay.
	least, most := s.KeptOld, max(min(s.Old, n-s.KeptFresh), s.KeptOld)
	half := min(max((s.Gone+s.Old)/2, least), most)
	old, fresh := s.ratios()
	view, drift := 0.0, 0.0
	for _, stays := range []int64{least, most, half, half + 1} {
		if stays > most {
			continue
		}
		t := s
		t.Old, t.Gone, t.Fresh = stays, s.Gone+s.Old-stays, n-stays
		view = max(view, float64(old*float64(t.Old))+float64(fresh*float64(t.Fresh)))
		drift = max(drift, t.drift())
	}
	return s.Overhead + int64(math.Ceil(view+float64(s.Known.marginFraction()*(drift+min(drift, smallDrift)))-1e-6))
}

// HoldsWorst is the inverse of Worst: any view with at most the returned number of
// raw tokens weighs at most tokens.
func (s Scale) HoldsWorst(tokens int64) int64 { return mostUpTo(tokens, s.Worst) }

// mostUpTo returns the largest n for which weigh(n) is at most tokens, or -1 if there
// is none. weigh must not decrease.
func mostUpTo(tokens int64, weigh func(n int64) int64) int64 {
	if weigh(0) > tokens {
		return -1
	}
	low, high := int64(0), int64(MaxTotal) // the result is in between
	for low < high {
		mid := low + (high-low+1)/2
		if weigh(mid) > tokens {
			high = mid - 1
		} else {
			low = mid
		}
	}
	return low
}

// Frees returns how many raw tokens must leave the view for the request to
// weigh tokens less.
func (s Scale) Frees(tokens int64) int64 {
	return max(s.Old+s.Fresh-s.Holds(s.Upper()-tokens), 0)
}
