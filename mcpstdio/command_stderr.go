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

// tailSize is how much of the standard error is kept for errors.
const tailSize = 4 << 10

// A tail keeps the last of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte // at most twice tailSize
	cut bool   // something came before
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(b)
	if n > tailSize {
		t.cut, t.buf, b = true, t.buf[:0], b[n-tailSize:]
	}
	if len(t.buf)+len(b) > 2*tailSize {
		t.shift()
	}
	t.buf = append(t.buf, b...)
	return n, nil
}

// shift drops all but the last tailSize bytes.
func (t *tail) shift() {
	if over := len(t.buf) - tailSize; over > 0 {
		t.cut = true
		t.buf = t.buf[:copy(t.buf, t.buf[over:])]
	}
}

// String is the tail as text. It begins with a whole line if it can.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shift()
	text := string(t.buf)
	if _, lines, ok := strings.Cut(text, "\n"); ok && t.cut && lines != "" {
		text = lines
	}
	return strings.ToValidUTF8(strings.TrimSpace(text), "\uFFFD")
}

// sinks are writers of which each gets everything until it fails.
type sinks []io.Writer

func (s sinks) write(b []byte) {
	for i, w := range s {
		if w == nil || len(b) == 0 {
			continue
		}
		if _, err := w.Write(b); err != nil {
			s[i] = nil
		}
	}
}

// maxLogLine is how long a line in a log may be. A longer one becomes several.
const maxLogLine = 8 << 10

// A lineLogger logs what is written to it, one record a line.
type lineLogger struct {
	log  *slog.Logger
	line []byte // not complete yet
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

// flush logs what there is of a line.
func (l *lineLogger) flush() {
	if line := bytes.TrimSpace(l.line); len(line) > 0 {
		l.log.Info("mcpstdio: the server's standard error", "line", strings.ToValidUTF8(string(line), "\uFFFD"))
	}
	l.line = l.line[:0]
}

// excerpt is a line as a log shows it.
func excerpt(line []byte) string {
	const most = 200
	text := strings.ToValidUTF8(string(line[:min(len(line), most)]), "\uFFFD")
	if len(line) > most {
		text += "…"
	}
	return text
}
