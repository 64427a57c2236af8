// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-psi/psi/internal/printable"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
)

// A terminal is where the user reads output and answers questions. A server may ask several
// questions and report progress concurrently. The lock asking is held while one question is
// answered. It is acquired before mu, which is held only while writing, so that only
// questions wait for the user.
type terminal struct {
	in    io.Reader
	out   io.Writer
	lines func() <-chan string // of the input; closed at its end

	asking sync.Mutex

	mu       sync.Mutex // guards out and the state of its last line:
	bar      int        // width of the progress bar, 0 if there is none
	prompted bool       // a question is waiting for its answer
}

// maxLine limits the length of an input line, in bytes.
const maxLine = 1 << 20

// newTerminal returns a terminal, which reads nothing before the first question. A
// goroutine does the reading, because reads cannot be interrupted; it ends with the
// program.
func newTerminal(in io.Reader, out io.Writer) *terminal {
	return &terminal{in: in, out: out, lines: sync.OnceValue(func() <-chan string {
		lines := make(chan string)
		go func() {
			defer close(lines)
			s := bufio.NewScanner(in)
			s.Buffer(nil, maxLine)
			for s.Scan() {
				lines <- s.Text()
			}
		}()
		return lines
	})}
}

// isInteractive reports whether a user is present: both input and output are a terminal.
func (t *terminal) isInteractive() bool { return isTerminal(t.in) && isTerminal(t.out) }

// isTerminal reports whether a file is a terminal. The null device is a character device,
// too, but not a terminal.
func isTerminal(file any) bool {
	f, ok := file.(interface{ Stat() (os.FileInfo, error) })
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// ask reads an answer, until ctx is done. The action is decline if the user entered !, and
// cancel at the end of the input. The caller holds asking.
func (t *terminal) ask(ctx context.Context) (line, action string, err error) {
	t.printf("> ")
	t.setPrompted(true)
	defer t.setPrompted(false)
	select {
	case line, ok := <-t.lines():
		switch line = strings.TrimSpace(line); {
		case !ok:
			t.printf("") // ends the line
			return "", mcp.ActionCancel, nil
		case line == "!":
			return "", mcp.ActionDecline, nil
		}
		return line, mcp.ActionAccept, nil
	case <-ctx.Done():
		return "", "", context.Cause(ctx)
	}
}

func (t *terminal) setPrompted(prompted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prompted = prompted
}

// lock locks mu and starts a new line below the bar or the prompt, if there is one. The
// caller unlocks mu.
func (t *terminal) lock() {
	t.mu.Lock()
	if t.bar > 0 || t.prompted {
		fmt.Fprintln(t.out)
		t.bar, t.prompted = 0, false
	}
}

// endBar ends the line of the progress bar.
func (t *terminal) endBar() {
	t.lock()
	t.mu.Unlock()
}

// close ends the line of the progress bar. Later output is discarded, because a callback of
// a connection may still run when the connection is closed.
func (t *terminal) close() {
	t.lock()
	defer t.mu.Unlock()
	t.out = io.Discard
}

// printf writes lines. The caller escapes text of servers.
func (t *terminal) printf(format string, args ...any) {
	t.lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.out, format, args...)
}

// watching returns a context for a call whose progress and log messages are shown while it
// runs.
func (t *terminal) watching(ctx context.Context) context.Context {
	return mcp.WithLog(mcp.WithProgress(ctx, t.progress), "", t.serverLog)
}

// serverLog shows a log message of the server.
func (t *terminal) serverLog(p *mcp.LoggingMessageParams) {
	text, ok := p.Data.(string)
	if !ok {
		text = string(strictjson.MustMarshal(p.Data)) // as it was received
	}
	t.printf("%s: %s\n", printable.Line(strings.TrimSpace(string(p.Level)+" "+p.Logger)), printable.Line(text))
}

// results writes to standard output, below the progress bar.
type results struct {
	term *terminal
	out  io.Writer
}

func (r results) Write(p []byte) (int, error) {
	r.term.endBar()
	return r.out.Write(p)
}

// barWidth is the width of a full bar, and maxBar the maximum width of its line.
const barWidth, maxBar = 24, 78

// progress draws the bar over the previous one, if the output is a terminal and no question
// is pending.
func (t *terminal) progress(p *mcp.ProgressParams) {
	line := fmt.Sprintf("%g", p.Progress)
	if p.Total != nil && *p.Total > 0 {
		done := int(barWidth * min(max(p.Progress / *p.Total, 0), 1))
		line = fmt.Sprintf("[%s%s] %g/%g", strings.Repeat("#", done), strings.Repeat(".", barWidth-done), p.Progress, *p.Total)
	}
	line = shorten(printable.Line(line+" "+p.Message), maxBar)
	width := utf8.RuneCountInString(line)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.prompted || !isTerminal(t.out) {
		return
	}
	fmt.Fprintf(t.out, "\r%s%s", line, strings.Repeat(" ", max(t.bar-width, 0)))
	t.bar = width
}

// shorten truncates a text to a number of characters.
func shorten(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}
