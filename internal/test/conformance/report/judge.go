// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"cmp"
	"fmt"
)

// A problem is a check that failed or warned, or a scenario without any successful check.
type problem struct {
	leg, scenario, check string
	status, message      string
}

// nothing is the check of a scenario without any successful check.
const nothing = "any-success"

func (s *scenario) problems() []problem {
	var found []problem
	succeeded := false
	for _, c := range s.checks {
		switch c.Status {
		case statusSuccess:
			succeeded = true
		case statusFailure, statusWarning:
			found = append(found, problem{s.leg, s.name, c.ID, c.Status, cmp.Or(c.Message, c.Description)})
		}
	}
	if !succeeded && len(found) == 0 {
		found = append(found, problem{s.leg, s.name, nothing, statusFailure, "no check has succeeded"})
	}
	return found
}

// verdict is the summary of all legs.
type verdict struct {
	lines []line
	bad   []string
}

// line summarizes one leg.
type line struct {
	leg                                   string
	scenarios, checks, failures, warnings int
	excepted                              int // scenarios with accepted problems only
}

func judge(legs []*leg, exceptions []*exception) *verdict {
	v := &verdict{}
	for _, l := range legs {
		v.lines = append(v.lines, v.judgeLeg(l, exceptions))
		if len(l.scenarios) != l.want {
			v.bad = append(v.bad, fmt.Sprintf("%s: %d scenarios were run, want %d", l.name, len(l.scenarios), l.want))
		}
	}
	for _, e := range exceptions {
		if !e.used {
			v.bad = append(v.bad, fmt.Sprintf("accepted, but did not happen; take it off the list: %s", e))
		}
	}
	return v
}

func (v *verdict) judgeLeg(l *leg, exceptions []*exception) line {
	sum := line{leg: l.name}
	for _, s := range l.scenarios {
		var bad []problem
		excepted := false
		for _, p := range s.problems() {
			if isAccepted(exceptions, p) {
				excepted = true
			} else {
				bad = append(bad, p)
			}
		}
		if excepted && len(bad) == 0 {
			sum.excepted++
			continue
		}
		sum.add(s, bad)
		for _, p := range bad {
			v.bad = append(v.bad, fmt.Sprintf("%s %s %s: %s: %s", p.leg, p.scenario, p.check, p.status, p.message))
		}
	}
	return sum
}

func (n *line) add(s *scenario, bad []problem) {
	n.scenarios++
	for _, c := range s.checks {
		switch c.Status {
		case statusSuccess, statusFailure, statusWarning:
			n.checks++
		}
	}
	for _, p := range bad {
		if p.status == statusWarning {
			n.warnings++
		} else {
			n.failures++
		}
	}
}
