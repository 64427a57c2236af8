// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"sync"
)

// copyStderr reads the standard error to its end, even if it is not needed, so that the
// process does not block on a write.
func (p *process) copyStderr() {
	defer close(p.stderrDone)
	defer p.stderr.file.Close()
	to := fanOut{&p.tail}
	switch {
	case p.opts.Stderr != nil:
		to = append(to, p.opts.Stderr)
	case p.opts.Logger != nil:
		lines := &lineLogger{log: p.log}
		defer lines.flush()
		to = append(to, lines)
	}
	_, _ = io.Copy(to, p.stderr)
}

// Peer describes the process; see [transport.Info].
func (p *process) Peer() string {
	stderr := p.tail.String()
	if stderr == "" {
		return "the command " + p.cmd.Path + ", which runs and has written nothing to its standard error"
	}
	return "the command " + p.cmd.Path + ", which runs; its last words:\n\t" + indented(stderr)
}

// tailSize is the number of bytes of the standard error that are kept for errors.
const tailSize = 4 << 10

// A tail keeps the last bytes that are written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte // at most twice tailSize
	cut bool   // earlier bytes were dropped
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(b)
	if n > tailSize {
		t.cut, t.buf, b = true, t.buf[:0], b[n-tailSize:]
	}
	if len(t.buf)+len(b) > 2*tailSize {
		t.trim()
	}
	t.buf = append(t.buf, b...)
	return n, nil
}

// trim drops all but the last tailSize bytes.
func (t *tail) trim() {
	if over := len(t.buf) - tailSize; over > 0 {
		t.cut = true
		t.buf = t.buf[:copy(t.buf, t.buf[over:])]
	}
}

// String returns the tail as text. If earlier bytes were dropped, it starts at the
// beginning of a line, if there is one.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trim()
	text := string(t.buf)
	if _, lines, ok := strings.Cut(text, "\n"); ok && t.cut && lines != "" {
		text = lines
	}
	return strings.ToValidUTF8(strings.TrimSpace(text), "\uFFFD")
}

// A fanOut is an [io.Writer] that writes to several others. A writer that fails is not
// written to again, and does not affect the others.
type fanOut []io.Writer

func (f fanOut) Write(b []byte) (int, error) {
	for i, w := range f {
		if w == nil {
			continue
		}
		if _, err := w.Write(b); err != nil {
			f[i] = nil
		}
	}
	return len(b), nil
}

// maxLogLine is the maximum length of a line in a log. Longer lines are split.
const maxLogLine = 8 << 10

// A lineLogger logs the lines that are written to it, one record per line.
type lineLogger struct {
	log  *slog.Logger
	line []byte // an incomplete line
}

func (l *lineLogger) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		line, rest, complete := bytes.Cut(b, []byte("\n"))
		room := maxLogLine - len(l.line)
		if complete = complete && len(line) <= room; !complete {
			line = b[:min(len(b), room)]
			rest = b[len(line):]
		}
		l.line, b = append(l.line, line...), rest
		if complete || len(l.line) == maxLogLine {
			l.flush()
		}
	}
	return n, nil
}

// flush logs the buffered line, unless it is blank.
func (l *lineLogger) flush() {
	if line := bytes.TrimSpace(l.line); len(line) > 0 {
		l.log.Info("mcpstdio: the server's standard error", "line", strings.ToValidUTF8(string(line), "\uFFFD"))
	}
	l.line = l.line[:0]
}

// excerpt returns the beginning of a line for a log.
func excerpt(line []byte) string {
	const most = 200
	text := strings.ToValidUTF8(string(line[:min(len(line), most)]), "\uFFFD")
	if len(line) > most {
		text += "…"
	}
	return text
}
