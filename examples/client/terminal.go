// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/go-psi/psi/mcp"
)

// terminal is where the user reads and writes. A server may ask several questions
// at once, and report progress besides: mu is held by what is on the screen.
type terminal struct {
	in  io.Reader
	out io.Writer

	mu    sync.Mutex
	lines chan string // nil until somebody asks, closed at the end of in
	bar   int         // how wide the progress bar on the last line is, 0 if there is none
}

// readLine reads a line, until ctx is done. Not ok is the end of the input. A
// goroutine reads, because nothing interrupts it.
func (t *terminal) readLine(ctx context.Context) (line string, ok bool, err error) {
	if t.lines == nil {
		t.lines = make(chan string)
		go func() {
			defer close(t.lines)
			for s := bufio.NewScanner(t.in); s.Scan(); {
				t.lines <- s.Text()
			}
		}()
	}
	select {
	case line, ok = <-t.lines:
		return strings.TrimSpace(line), ok, nil
	case <-ctx.Done():
		return "", false, context.Cause(ctx)
	}
}

// elicitURL asks for consent. The page is left for the user to open: a server does
// not get to open pages.
func (t *terminal) elicitURL(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clearBar()
	u, err := url.Parse(p.URL)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		fmt.Fprintf(t.out, "The server asks to open %q, which is no web page: declined.\n", p.URL)
		return &mcp.ElicitResult{Action: mcp.ActionDecline}, nil
	}
	fmt.Fprintf(t.out, "The server asks: %s\nIt wants you to open a page of %s:\n  %s\nDo you agree? [y/N] ", clean(p.Message), clean(u.Hostname()), oneLine(u.String()))
	line, ok, err := t.readLine(ctx)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return &mcp.ElicitResult{Action: mcp.ActionCancel}, nil
	case strings.EqualFold(line, "y") || strings.EqualFold(line, "yes"):
		return &mcp.ElicitResult{Action: mcp.ActionAccept}, nil
	}
	return &mcp.ElicitResult{Action: mcp.ActionDecline}, nil
}

const barWidth = 24

// progress draws a bar over the one before.
func (t *terminal) progress(p *mcp.ProgressParams) {
	t.mu.Lock()
	defer t.mu.Unlock()
	line := strconv.FormatFloat(p.Progress, 'g', -1, 64)
	if p.Total != nil && *p.Total > 0 {
		done := int(barWidth * min(max(p.Progress / *p.Total, 0), 1))
		line = fmt.Sprintf("[%s%s] %g/%g", strings.Repeat("#", done), strings.Repeat(".", barWidth-done), p.Progress, *p.Total)
	}
	if p.Message != "" {
		line += " " + oneLine(p.Message)
	}
	width := len([]rune(line))
	fmt.Fprintf(t.out, "\r%s%s", line, strings.Repeat(" ", max(t.bar-width, 0)))
	t.bar = width
}

// endProgress leaves the last bar where it is.
func (t *terminal) endProgress() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clearBar()
}

func (t *terminal) clearBar() {
	if t.bar > 0 {
		fmt.Fprintln(t.out)
		t.bar = 0
	}
}
