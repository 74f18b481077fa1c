package inspect

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/formats"
	"github.com/seed-c1b73e60/convo/wire"
)

// A check says what a format would refuse of the next request.
type check struct {
	Name, Line string
	Bad        bool
	Findings   []string
}

const (
	mostFindings = 20      // of one format
	mostChecked  = 200_000 // raw tokens; a longer conversation is checked on request
)

// showChecks shows what each format would refuse. A long conversation is checked on
// request only, as that takes longer than the rest of the page.
func (v *view) showChecks(s *convo.Snapshot, list []wire.Format) {
	if !v.at.check && s.Tokens() > mostChecked {
		v.Unchecked = true
		if at := v.at; !v.Alone {
			at.check = true
			v.CheckHref = at.href("checks")
		}
		return
	}
	if list == nil {
		for _, name := range formats.Main() {
			list = append(list, formats.New(name, ""))
		}
	}
	v.Checks = make([]check, len(list))
	var wait sync.WaitGroup
	for i, f := range list {
		wait.Go(func() { v.Checks[i] = checked(s, f) })
	}
	wait.Wait()
}

// checked returns what a format would refuse. A panic of the format becomes its line.
func checked(s *convo.Snapshot, f wire.Format) (c check) {
	c = check{Name: short(strings.TrimPrefix(fmt.Sprintf("%T", f), "wire.")), Line: "nothing"}
	defer func() {
		if x := recover(); x != nil {
			c.Line, c.Bad = short(fmt.Sprint("panic: ", x)), true
		}
	}()
	r, err := f.Encode(s)
	if errors.Is(err, wire.ErrEmpty) {
		c.Line = "there is nothing to send"
	} else if err != nil {
		c.Line, c.Bad = short(err.Error()), true
	} else if found := f.Check(r.Body()); len(found) > 0 {
		c.Line, c.Bad = counted(len(found), "finding", "findings"), true
		for _, finding := range found[:min(len(found), mostFindings)] {
			c.Findings = append(c.Findings, visible(first(finding.String(), mostText/4)))
		}
	}
	return c
}
