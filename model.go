package convo

import (
	"errors"

	"github.com/seed-c1b73e60/convo/internal/text"
)

// SetModel names the model that the next requests go to, and replaces the limits in the
// same step, so that no request is made for one model with the limits of another. Zero
// limits keep those in force. Limits that are wrong are reported as by
// [History.SetLimits]; the model then stays the same. The name is empty at first. With
// the name and the limits in force, SetModel changes nothing, so it may be called before
// each request. Another name or other limits end the bound that Recover set after a
// provider named a limit.
//
// What usage reports have shown is kept separately for each model: a new name starts from
// its [Prior], a known one from its own reports. SetModel removes nothing: the next
// Prepare or Do compacts if the new model needs it.
func (h *History) SetModel(name string, l Limits) error {
	name = text.Valid(name)
	limits, faults := l.withDefaults()
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	defer h.warnDue(true)
	return h.ifOpen(func() error {
		if name == h.known().model && (l == Limits{} || limits == h.meter.marks().set) {
			return nil
		}
		if l != (Limits{}) {
			h.setLimitsLocked(limits, l.Tools > 0)
		}
		if name != h.known().model {
			h.newVersion()
			h.meter.setModel(nil)
			h.setModel(name, h.opts.prior(name), h.known().learned)
		}
		return nil
	})
}

// SetLimits replaces the limits, and ends the bound that Recover has set after a provider
// named a limit. It removes nothing: the next Prepare compacts to the new limits. If
// limits are out of range or clash, nothing changes, and the error joins a [*ValueError]
// for each fault.
func (h *History) SetLimits(l Limits) error {
	limits, faults := l.withDefaults()
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	defer h.warnDue(true)
	return h.ifOpen(func() error {
		h.setLimitsLocked(limits, true)
		return nil
	})
}

// setLimitsLocked replaces the limits. The new ones have their defaults. If tools is true,
// Limits.Tools was set with them.
func (h *History) setLimitsLocked(limits Limits, tools bool) {
	h.meter.setModel(&limits)
	h.setLimits(limits, tools)
	h.compactor.limitsSet()
	h.keepOriginalsLocked()
}
