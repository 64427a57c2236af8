// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package config

import (
	"cmp"
	"context"
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

// readEnvFile reads variables from a file and returns them as NAME=value, as VS Code does. Each
// line has one variable, NAME=value or NAME: value, and may begin with "export". Empty lines
// and lines that begin with # are skipped. So is any other line, with a warning. A value may be
// in quotes, and may be followed by a comment. Variables in values are not replaced.
func (x *expander) readEnvFile(ctx context.Context, path string) (env []string, err error) {
	if path, err = x.path(path); err != nil {
		return nil, err
	}
	f, err := os.Open(path) //nolint:gosec // what the file names
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxEnvFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxEnvFile:
		return nil, fmt.Errorf("%s has more than %d bytes", path, maxEnvFile)
	}
	number, skipped, first := 0, 0, 0
	for line := range strings.SplitSeq(lineBreaks.Replace(string(decodeText(data))), "\n") {
		number++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		line = strings.TrimPrefix(line, "export ")
		i := strings.IndexAny(line, "=:")
		if i < 0 || !envName.MatchString(strings.TrimSpace(line[:i])) {
			skipped, first = skipped+1, cmp.Or(first, number)
			continue
		}
		env = append(env, strings.TrimSpace(line[:i])+"="+envValue(strings.TrimSpace(line[i+1:])))
	}
	if skipped > 0 {
		x.warn(ctx, x.server.errorf("envFile", "%s: lines left out because they are not NAME=value: %d, the first is line %d", path, skipped, first))
	}
	return env, nil
}

var (
	lineBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n")
	// escapes are replaced in double quotes. Keys are often written so.
	escapes = strings.NewReplacer(`\n`, "\n", `\r`, "\r")
)

// envValue returns a value without surrounding quotes and without a trailing comment.
func envValue(text string) string {
	if text != "" && (text[0] == '"' || text[0] == '\'' || text[0] == '`') {
		for i := 1; i < len(text); i++ {
			isEscaped := text[i-1] == '\\' && i < len(text)-1
			if text[i] != text[0] || isEscaped || !isEmptyOrComment(text[i+1:]) {
				continue
			}
			if text[0] == '"' {
				return escapes.Replace(text[1:i])
			}
			return text[1:i]
		}
	}
	value, _, _ := strings.Cut(text, "#")
	return strings.TrimSpace(value)
}

// isEmptyOrComment reports whether rest, the text after a quoted value, is empty or a comment.
func isEmptyOrComment(rest string) bool {
	rest = strings.TrimLeft(rest, " \t")
	return rest == "" || rest[0] == '#'
}
