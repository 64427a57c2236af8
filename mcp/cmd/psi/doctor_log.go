// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"

	"github.com/go-psi/psi/internal/lint"
)

// complaint matches lines of a host's log that say why a server is not used.
var complaint = regexp.MustCompile(`(?i)\[error\]|ENOENT|EACCES|not valid JSON|disconnected|exited|timed out`)

// maxLog is how many bytes of the end of a log are read.
const maxLog = 64 << 10

// checkLog reports the last complaint in the log that the host keeps about the server. What it
// says may be over, so it is only a note.
func (p patient) checkLog() {
	path := p.logPath()
	if path == "" {
		return
	}
	f, err := os.Open(path) //nolint:gosec // below the user's own directories
	if err != nil {
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return
	}
	tail, err := io.ReadAll(io.NewSectionReader(f, max(info.Size()-maxLog, 0), maxLog))
	if err != nil {
		return
	}
	for _, line := range slices.Backward(textLines(tail)) {
		if complaint.MatchString(line) {
			p.report(lint.Note, "log", "the host's log says at last: "+shorten(oneLine(line), 300), "see "+path+", if the host still does not see the server")
			return
		}
	}
}

// logPath returns the path of the host's log about the server, or "" if it is not known.
func (p patient) logPath() string {
	if p.at.Host != "Claude Desktop" || p.name != filepath.Base(p.name) {
		return ""
	}
	name := fmt.Sprintf("mcp-server-%s.log", p.name)
	if runtime.GOOS == "darwin" {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		return filepath.Join(home, "Library", "Logs", "Claude", name)
	}
	return filepath.Join(filepath.Dir(p.at.Path), "logs", name)
}
