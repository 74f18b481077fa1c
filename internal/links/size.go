package links

import "github.com/seed-c1b73e60/convo/internal/calibrate"

// A Size says about how long a log is, and how long its next full record would be. That is
// estimated from the raw tokens of the view: as many bytes for each as the last one had, and a
// frame.
type Size struct {
	Before int64 // bytes of the records before the newest full one; more than there is if another process has removed some
	Read   int64 // bytes of Data from the newest full record on, which Open reads
	Count  int   // of these records

	retry    int64   // no full record is tried before Read is above this
	perToken float64 // bytes of a full record for each raw token of the view
}

// AroundData is how many bytes a Store keeps of a record besides its Data.
const AroundData = 300

const (
	maxRead         = 3   // most that Open reads, in lengths of a full record
	maxCount        = 256 // most records that Open reads: each may be a request to a server
	perRecord       = 512 // most bytes of a full record for each record since the last; more would make the log much longer
	frameBytes      = 800
	leastMeasured   = 200 // raw tokens of a view whose full record is measured
	defaultPerToken = 4   // until a full record was measured
)

// NewSize returns the size of a log without records.
func NewSize() Size { return Size{perToken: defaultPerToken} }

// Bytes returns about how many bytes the log has.
func (s *Size) Bytes() int64 {
	return min(s.Before+s.Read+int64(s.Count)*AroundData, calibrate.MaxTotal)
}

// Open sets the size of a log that was read. Its view has so many raw tokens.
func (s *Size) Open(before, read int64, count int, raw int64) {
	s.Before, s.Read, s.Count, s.retry = before, read, count, 0
	if raw > 0 {
		s.perToken = min(float64(read)/float64(raw), defaultPerToken)
	}
}

// Add adds a record with so many bytes of Data.
func (s *Size) Add(n int64, full bool) {
	if full {
		s.Before, s.Read, s.Count, s.retry = s.Bytes(), 0, 0, 0
	}
	s.Read += n
	s.Count++
}

// Learn takes over what was learned about full records from another size of the log.
func (s *Size) Learn(from Size) { s.retry, s.perToken = from.retry, from.perToken }

// Measure takes note of the length of the Data of a full record, whose view has so many raw tokens.
func (s *Size) Measure(full int, raw int64) {
	if raw >= leastMeasured {
		s.perToken = max(float64(full-frameBytes)/float64(raw), 0.5)
	}
}

// MayBeFull reports whether a record with n bytes of Data may have to be a full one, for a view
// with so many raw tokens, and whether it must be.
func (s *Size) MayBeFull(n int, raw int64) (may, must bool) {
	read, likely := s.Read+int64(n), frameBytes+s.perToken*float64(raw)
	must = float64(s.Count) >= max(maxCount, likely/perRecord)
	return must || read > s.retry && float64(read) > maxRead*likely, must
}

// IsTooMuch reports whether Open would read too much with a record that has n bytes of Data, as the
// length of a full record shows. If not, none is tried until Open reads a quarter more.
func (s *Size) IsTooMuch(n, full int) bool {
	read := s.Read + int64(n)
	if read > maxRead*int64(full) {
		return true
	}
	s.retry = read + read/4
	return false
}
