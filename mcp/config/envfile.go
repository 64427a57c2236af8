// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package config

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// maxEnvFile bounds the size of an environment file in bytes.
const maxEnvFile = 1 << 20

// readEnvFile reads the variables of a file, as NAME=value: one on each line, which may begin
// with "export". Empty lines and those that begin with # are skipped. A value may be in
// quotes. Variables in it are not replaced.
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
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimPrefix(strings.TrimSpace(line), "export ")
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if name = strings.TrimSpace(name); !ok || !variableName.MatchString(name) {
			return nil, fmt.Errorf("%s: line %d is not NAME=value", path, number)
		}
		env = append(env, name+"="+unquote(strings.TrimSpace(value)))
	}
	return env, nil
}

// unquote removes the quotes around a value.
func unquote(value string) string {
	if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
		return value[1 : n-1]
	}
	return value
}
