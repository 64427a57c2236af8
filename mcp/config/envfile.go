// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package config

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

// maxEnvFile is the maximum size of an environment file in bytes.
const maxEnvFile = 1 << 20

// envName matches a name in an environment file. Some programs use dots and hyphens in names.
var envName = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// readEnvFile reads variables from a file and returns them as NAME=value. Each line has one
// variable and may begin with "export". Empty lines and lines that begin with # are skipped.
// A value may be quoted, and may be followed by white space and a comment that begins with #.
// Variables in values are not replaced.
func (x *expander) readEnvFile(path string) (env []string, err error) {
	if path, err = x.path(path); err != nil {
		return nil, err
	}
	f, err := os.Open(path) //nolint:gosec // what the file names
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxEnvFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > maxEnvFile:
		return nil, fmt.Errorf("%s has more than %d bytes", path, maxEnvFile)
	}
	number := 0
	for line := range strings.Lines(strings.TrimPrefix(string(text), "\ufeff")) {
		number++
		line = strings.TrimPrefix(strings.TrimSpace(line), "export ")
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if name = strings.TrimSpace(name); !ok || !envName.MatchString(name) {
			return nil, fmt.Errorf("%s: line %d is not NAME=value", path, number)
		}
		env = append(env, name+"="+envValue(strings.TrimSpace(value)))
	}
	return env, nil
}

// envValue returns a value without surrounding quotes and without a trailing comment.
func envValue(text string) string {
	if text != "" && (text[0] == '"' || text[0] == '\'') {
		for i := 1; i < len(text); i++ {
			if text[i] == text[0] && isEmptyOrComment(text[i+1:]) {
				return text[1:i]
			}
		}
	}
	for i := range len(text) {
		if text[i] == '#' && (i == 0 || text[i-1] == ' ' || text[i-1] == '\t') {
			return strings.TrimSpace(text[:i])
		}
	}
	return text
}

// isEmptyOrComment reports whether rest, the text after a quoted value, is empty or a comment.
func isEmptyOrComment(rest string) bool {
	comment := strings.TrimLeft(rest, " \t")
	return rest == "" || len(comment) < len(rest) && strings.HasPrefix(comment, "#")
}
