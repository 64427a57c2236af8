// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"

	"github.com/go-psi/psi/mcp"
)

// terminal is where the user reads and writes. A server may ask several questions
// at once, and report progress besides: mu is held by what is on the screen.
type terminal struct {
	out   io.Writer
	lines func() <-chan string // of the input, closed at its end

	mu  sync.Mutex
	bar int // how wide the progress bar on the last line is, 0 if there is none
}

// newTerminal reads nothing before the first question. A goroutine reads, because
// nothing interrupts it.
func newTerminal(in io.Reader, out io.Writer) *terminal {
	return &terminal{out: out, lines: sync.OnceValue(func() <-chan string {
		lines := make(chan string)
		go func() {
			defer close(lines)
			for s := bufio.NewScanner(in); s.Scan(); {
				lines <- s.Text()
			}
		}()
		return lines
	})}
}

// ask reads an answer, until ctx is done. The action is to decline if the user wrote
// a !, and to cancel at the end of the input.
func (t *terminal) ask(ctx context.Context) (line, action string, err error) {
	fmt.Fprint(t.out, "> ")
	select {
	case line, ok := <-t.lines():
		switch line = strings.TrimSpace(line); {
		case !ok:
			return "", mcp.ActionCancel, nil
		case line == "!":
			return "", mcp.ActionDecline, nil
		}
		return line, mcp.ActionAccept, nil
	case <-ctx.Done():
		return "", "", context.Cause(ctx)
	}
}

// take takes the screen for the caller, below the bar. The caller unlocks t.mu.
func (t *terminal) take() {
	t.mu.Lock()
	if t.bar > 0 {
		fmt.Fprintln(t.out)
		t.bar = 0
	}
}

func (t *terminal) endBar() {
	t.take()
	t.mu.Unlock()
}

// results are written below the bar.
type results struct {
	term *terminal
	out  io.Writer
}

func (r results) Write(p []byte) (int, error) {
	r.term.endBar()
	return r.out.Write(p)
}

// progress draws a bar over the one before.
func (t *terminal) progress(p *mcp.ProgressParams) {
	t.mu.Lock()
	defer t.mu.Unlock()
	line := fmt.Sprintf("%g", p.Progress)
	if p.Total != nil && *p.Total > 0 {
		const width = 24
		done := int(width * min(max(p.Progress / *p.Total, 0), 1))
		line = fmt.Sprintf("[%s%s] %g/%g", strings.Repeat("#", done), strings.Repeat(".", width-done), p.Progress, *p.Total)
	}
	line = oneLine(line + " " + p.Message)
	width := len([]rune(line))
	fmt.Fprintf(t.out, "\r%s%s", line, strings.Repeat(" ", max(t.bar-width, 0)))
	t.bar = width
}

// clean makes text of a server fit for a terminal, which obeys control characters:
// with them a server could rewrite the very question that the user agrees to.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// oneLine is clean text without its line breaks.
func oneLine(s string) string { return strings.Join(strings.Fields(clean(s)), " ") }
