// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// variable matches a variable: ${name}, or {env:NAME} as in opencode.
var variable = regexp.MustCompile(`\$\{[^{}]*\}|\{env:[A-Za-z_][A-Za-z0-9_]*\}`)

// variableName matches the name of an environment variable, including ProgramFiles(x86) on
// Windows.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\(x86\))?$`)

// An expander replaces variables in the members of a server. A variable without a value is an
// error: a server would get a wrong key and report another problem. Values are not expanded
// again.
type expander struct {
	server *Server
	opts   Options
	err    error // the first error
}

// expand returns the value of a member with its variables replaced. Replacements are not
// expanded again.
func (x *expander) expand(ctx context.Context, member, value string) string {
	return variable.ReplaceAllStringFunc(value, func(match string) string {
		name := strings.TrimPrefix(match, "$")
		text, err := x.value(ctx, name[1:len(name)-1])
		if err != nil && x.err == nil {
			x.err = x.server.errorf(member, "%s: %w", match, err)
		}
		return text
	})
}

// value returns the value of a variable.
func (x *expander) value(ctx context.Context, name string) (string, error) {
	switch name {
	case "userHome":
		return os.UserHomeDir()
	case "workspaceFolder", "cwd":
		return x.workspace()
	case "workspaceFolderBasename":
		dir, err := x.workspace()
		return filepath.Base(dir), err
	case "pathSeparator", "/":
		return string(filepath.Separator), nil
	}
	if id, ok := strings.CutPrefix(name, "input:"); ok {
		return x.server.file.input(ctx, id, x.opts.Input)
	}
	name, fallback, hasFallback := strings.Cut(strings.TrimPrefix(name, "env:"), ":-")
	if !variableName.MatchString(name) {
		return "", errors.New("there is no such variable")
	}
	value, ok := x.opts.LookupEnv(name)
	if hasFallback {
		return cmp.Or(value, fallback), nil
	}
	if !ok {
		return "", errors.New("the environment does not have it")
	}
	return value, nil
}

func (x *expander) workspace() (string, error) {
	if x.opts.Workspace != "" {
		return x.opts.Workspace, nil
	}
	return os.Getwd()
}

// path resolves a relative path against the workspace.
func (x *expander) path(path string) (string, error) {
	if filepath.IsAbs(path) {
		return path, nil
	}
	dir, err := x.workspace()
	return filepath.Join(dir, path), err
}

// input returns the user's answer to an input. Each input is asked for only once.
func (f *File) input(ctx context.Context, id string, ask func(context.Context, Input) (string, error)) (string, error) {
	if f == nil {
		return "", errors.New("there are no inputs without a file")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if answer, ok := f.answers[id]; ok {
		return answer, nil
	}
	i := slices.IndexFunc(f.Inputs, func(in Input) bool { return in.ID == id })
	switch {
	case i < 0:
		return "", fmt.Errorf("the file has no input %q%s", id, f.oddities())
	case ask == nil:
		return "", errors.New("the user cannot be asked for it: Options.Input is nil")
	}
	answer, err := ask(ctx, f.Inputs[i])
	if err != nil {
		return "", err
	}
	f.answers[id] = answer
	return answer, nil
}
