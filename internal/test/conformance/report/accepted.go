// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"fmt"
	"path"
	"strings"
)

// An exception is a line of the file of accepted problems: a leg, a scenario and a check,
// each a path.Match pattern, and a reason.
type exception struct {
	leg, scenario, check, reason string
	used                         bool
}

func (e *exception) String() string {
	return fmt.Sprintf("%s %s %s (%s)", e.leg, e.scenario, e.check, e.reason)
}

// parseExceptions parses one exception per line. Empty lines and lines that start with #
// are ignored.
func parseExceptions(text string) ([]*exception, error) {
	var list []*exception
	number := 0
	for line := range strings.Lines(text) {
		number++
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(words) < 4 {
			return nil, fmt.Errorf("line %d: want a leg, a scenario, a check and a reason", number)
		}
		for _, pattern := range words[:3] {
			if _, err := path.Match(pattern, ""); err != nil {
				return nil, fmt.Errorf("line %d: %q: %w", number, pattern, err)
			}
		}
		list = append(list, &exception{leg: words[0], scenario: words[1], check: words[2], reason: strings.Join(words[3:], " ")})
	}
	return list, nil
}

// isAccepted reports whether an exception covers p, and marks all that do as used.
func isAccepted(list []*exception, p problem) bool {
	accepted := false
	for _, e := range list {
		if matches(e.leg, p.leg) && matches(e.scenario, p.scenario) && matches(e.check, p.check) {
			e.used, accepted = true, true
		}
	}
	return accepted
}

func matches(pattern, name string) bool {
	ok, _ := path.Match(pattern, name) // the pattern was validated
	return ok
}
