package limits

import (
	"fmt"

	"github.com/seed-c1b73e60/convo/internal/calibrate"
)

// A Judge decides which usage reports to believe. A copy of it does not change.
type Judge struct {
	last    *Claim // the last one, if it was implausible and ignored
	toldLow bool   // a report that is too low was doubted
}

// A Claim is a usage report that may be wrong.
type Claim struct {
	Model               string
	Version             uint64 // of the view that it is for
	Tokens, Raw, Window int64  // of the request; raw tokens of that view; of the model then, 0: not known
}

// Ignores reports whether to ignore a report under the present limits. want says what would be
// believed, if that is to be logged.
func (j *Judge) Ignores(c Claim, l Limits) (ignores bool, want string) {
	least, most := c.Raw/calibrate.MaxRatio, calibrate.MaxRatio*c.Raw+l.MaxOverhead()
	tokens := min(c.Tokens, calibrate.MaxTotal)
	switch {
	case c.Tokens < least && j.toldLow:
		return true, ""
	case c.Tokens < least:
		j.toldLow = true
		return true, fmt.Sprintf("at least %d for a view of %d raw tokens: include the tokens that the provider read from its cache; later figures that are too low are ignored without a warning", least, c.Raw)
	case c.Window > 0 && tokens > c.Window:
		return true, fmt.Sprintf("at most Limits.Window, which is %d: report each request alone, or raise Limits.Window", c.Window)
	}
	same := j.last != nil && j.last.Model == c.Model
	switch {
	case l.Most() == 0 || tokens <= most:
		if same {
			j.last = nil
		}
		return false, ""
	case same && j.last.Version != c.Version:
		return false, "" // accept the second one in a row
	}
	j.last = &c
	return true, fmt.Sprintf("at most %d for a view of %d raw tokens, unless the next report says so too", most, c.Raw)
}
