// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// The statuses of a check that count. Others, such as SKIPPED and INFO, are ignored.
const (
	statusSuccess = "SUCCESS"
	statusFailure = "FAILURE"
	statusWarning = "WARNING"
)

// A leg is one run of the suite.
type leg struct {
	name      string
	want      int // expected number of scenarios
	scenarios []*scenario
}

type scenario struct {
	leg, name string
	checks    []check
}

// check is an element of a checks.json.
type check struct {
	ID          string `json:"id"`
	Description string `json:"description"`
	Status      string `json:"status"`
	Message     string `json:"errorMessage"`
}

// readLeg reads the results below the directory of a leg, which must exist.
func readLeg(results fs.FS, name string) (*leg, error) {
	l := &leg{name: name}
	err := fs.WalkDir(results, name, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() != "checks.json" {
			return err
		}
		s := &scenario{leg: name, name: scenarioName(strings.TrimPrefix(path.Dir(file), name+"/"))}
		data, err := fs.ReadFile(results, file)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(data, &s.checks); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		l.scenarios = append(l.scenarios, s)
		return nil
	})
	return l, err
}

var timestamp = regexp.MustCompile(`-\d{4}-\d\d-\d\dT[\d-]+Z$`)

// scenarioName returns the scenario of a results directory, whose name has a timestamp as
// suffix and, for servers, a prefix.
func scenarioName(dir string) string {
	return timestamp.ReplaceAllString(strings.TrimPrefix(dir, "server-"), "")
}
