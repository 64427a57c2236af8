// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-psi/psi/internal/printable"
	"github.com/go-psi/psi/mcp"
)

// CommandOptions configure [NewCommand]. Nil means the zero CommandOptions.
type CommandOptions struct {
	// Stderr gets what the server writes to its standard error, from one
	// goroutine for each connection. It should not block, or the server may. Nil
	// means the command's Stderr and, where that is nil too, Logger, one record a
	// line. The last of it is kept for [ExitError] in any case.
	Stderr io.Writer
	// Logger gets what there is to say to the operator, such as the lines on the
	// server's standard output that are no messages. Nil means slog.Default,
	// which does not get the standard error.
	Logger *slog.Logger
	// MaxMessage is how many bytes a message of the server may have. A longer one
	// fails the call that it answers, if it says which that is at its start or its end. 0
	// means [DefaultMaxMessage].
	MaxMessage int

	// ExitWait is how long Close leaves the server, whose standard input is closed
	// then, to exit. 0 means 2 seconds, negative not at all.
	ExitWait time.Duration
	// TerminateWait is how long Close then leaves the server's process group to
	// obey SIGTERM (on Windows CTRL_BREAK). 0 means 2 seconds, negative that it is
	// killed at once.
	TerminateWait time.Duration
	// KillWait is how long Close waits for a group that it killed. 0 means 2
	// seconds.
	KillWait time.Duration
}

// NewCommand makes a Transport to a server that is a program, on its standard
// input and output. Each connection starts the command anew and ends it when it is
// closed. The command itself is never started, and may be changed or used after
// NewCommand returned; its Stdin and Stdout must be nil. What exec.CommandContext
// added to it has no effect: connections end with their Close.
//
// A command whose Env is nil does not get the environment of this process, which may
// hold secrets, but the variables that [Environ] returns. To pass on more, or all, set
// Env:
//
//	cmd.Env = append(mcpstdio.Environ("LANG", "HTTPS_PROXY"), "API_KEY="+key)
//	cmd.Env = os.Environ()
//
// A server runs in a process group of its own (on Windows in a job, too), so that
// it does not get the interrupts of a terminal, and that what it started ends when
// it does. Lines of its output that are no messages are skipped. When it ends by
// itself, so does the connection, with an [*ExitError].
func NewCommand(cmd *exec.Cmd, opts *CommandOptions) mcp.Transport {
	switch {
	case cmd == nil:
		panic("mcpstdio: NewCommand of a nil command")
	case cmd.Stdin != nil || cmd.Stdout != nil:
		panic("mcpstdio: NewCommand of a command with a Stdin or Stdout: messages go there")
	}
	c := &command{cmd: copyCommand(cmd)}
	if opts != nil {
		c.opts = *opts
	}
	if c.opts.Stderr == nil {
		c.opts.Stderr = cmd.Stderr
	}
	for _, wait := range []*time.Duration{&c.opts.ExitWait, &c.opts.TerminateWait, &c.opts.KillWait} {
		*wait = cmp.Or(*wait, 2*time.Second)
	}
	return c
}

type command struct {
	cmd  *exec.Cmd // never started
	opts CommandOptions
}

// Connect implements [mcp.Transport].
func (c *command) Connect(ctx context.Context, receive mcp.Receiver) (mcp.Wire, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	cmd := copyCommand(c.cmd)
	if cmd.Env == nil {
		cmd.Env = Environ()
	}
	p, err := start(cmd, c.opts)
	if err != nil {
		return nil, fmt.Errorf("mcpstdio: starting %s: %w", c.cmd.Path, err)
	}
	return mcp.NewStreamWire(p, receive), nil
}

// copyCommand copies what describes a command, not what it did.
func copyCommand(cmd *exec.Cmd) *exec.Cmd {
	var attr syscall.SysProcAttr
	if cmd.SysProcAttr != nil {
		attr = *cmd.SysProcAttr
	}
	return &exec.Cmd{
		Path: cmd.Path, Args: slices.Clone(cmd.Args), Env: slices.Clone(cmd.Env), Dir: cmd.Dir,
		ExtraFiles: slices.Clone(cmd.ExtraFiles), SysProcAttr: &attr, Err: cmd.Err,
	}
}

// An ExitError is why a connection ended whose server ended.
type ExitError struct {
	// Err is how the server ended: nil if its exit status was 0, otherwise in
	// general an [*exec.ExitError].
	Err error
	// Stderr is the end of what the server wrote to its standard error, a few KiB
	// at most, as it was. Error indents its lines and escapes control characters.
	Stderr string
}

func (e *ExitError) Error() string {
	how := "exit status 0"
	if e.Err != nil {
		how = e.Err.Error()
	}
	if e.Stderr == "" {
		return "mcpstdio: the server ended: " + how
	}
	words := strings.ReplaceAll(printable.Text(e.Stderr), "\n", "\n\t")
	return "mcpstdio: the server ended: " + how + "; its last words:\n\t" + words
}

// Unwrap returns Err.
func (e *ExitError) Unwrap() error { return e.Err }
