// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-psi/psi/internal/printable"
	"github.com/go-psi/psi/mcp/transport"
)

// CommandOptions configure [NewCommand]. Nil means the zero CommandOptions.
type CommandOptions struct {
	// Stderr receives the server's standard error, from one goroutine per connection.
	// Writes to it should not block, or the server may block as well. Nil means the
	// command's Stderr or, if that is nil too, Logger, with one record per line. In any
	// case, the end of the standard error is kept for [ExitError].
	Stderr io.Writer
	// Logger receives diagnostic messages, such as lines on the server's standard output
	// that are not messages. Nil means slog.Default, which does not receive the standard error.
	Logger *slog.Logger
	// MaxMessage is the maximum length of a message from the server, in bytes. A longer
	// message fails the call that it answers, if its ID can be found near its start or its
	// end. 0 means [DefaultMaxMessage], negative no limit.
	MaxMessage int
	// WaitDelay bounds each step of Close. Close first closes the server's standard input
	// and waits for the server to exit, then sends SIGTERM (on Windows CTRL_BREAK) to its
	// process group and waits again, and finally kills the group. 0 means 2 seconds for
	// each step. A negative value kills the group immediately.
	WaitDelay time.Duration
}

// NewCommand returns a Transport that runs a server as a command and talks to it over its
// standard input and output. Each connection starts a new process, and closing the
// connection ends it. cmd itself is never started, and may be changed or used after
// NewCommand has returned. Its Stdin and Stdout must be nil. A context passed to
// exec.CommandContext has no effect; call Close to end a connection.
//
// If the Env of a command is nil, the server does not inherit the environment of this
// process, which may contain secrets, but gets the variables that [Environ] returns. To
// pass on more variables, or all of them, set Env:
//
//	cmd.Env = append(mcpstdio.Environ("LANG", "HTTPS_PROXY"), "API_KEY="+key)
//	cmd.Env = os.Environ()
//
// A server runs in its own process group (on Windows also in a job), so that it does not
// receive the interrupts of a terminal, and so that the processes it started end with it.
// Lines of its output that are not messages are skipped. If the server exits by itself, the
// connection ends with an [*ExitError].
func NewCommand(cmd *exec.Cmd, opts *CommandOptions) transport.Transport {
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
	c.opts.WaitDelay = max(cmp.Or(c.opts.WaitDelay, 2*time.Second), 0)
	return c
}

type command struct {
	cmd  *exec.Cmd // never started
	opts CommandOptions
}

// Connect implements [transport.Transport].
func (c *command) Connect(ctx context.Context, receive transport.Receiver) (transport.Conn, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	cmd := copyCommand(c.cmd)
	if cmd.Env == nil {
		cmd.Env = Environ()
	}
	p, err := startProcess(cmd, c.opts)
	if err != nil {
		if _, missing := os.Stat(cmd.Dir); cmd.Dir != "" && missing != nil {
			err = missing // otherwise the program seems to be missing
		}
		hint := ""
		if isMissing := errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist); isMissing && strings.Contains(c.cmd.Path, " ") {
			hint = "; arguments are not a part of the command's name: pass them as arguments"
		}
		return nil, fmt.Errorf("mcpstdio: starting %s: %w%s", c.cmd.Path, err, hint)
	}
	return transport.NewConn(p, receive), nil
}

// copyCommand copies the fields that configure a command, but none that hold results.
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

// inherited are the variables that programs need to run properly and that contain no secrets.
var inherited = map[bool][]string{
	false: {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"},
	true: { // on Windows
		"APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE", "PROGRAMFILES",
		"SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE",
	},
}

// Environ returns the environment of a command whose Env is nil, and the additional
// variables that are named, each in the form "key=value". The environment consists of these
// variables of this process: HOME, LOGNAME, PATH, SHELL, TERM and USER; on Windows APPDATA,
// HOMEDRIVE, HOMEPATH, LOCALAPPDATA, PATH, PATHEXT, PROCESSOR_ARCHITECTURE, PROGRAMFILES,
// SYSTEMDRIVE, SYSTEMROOT, TEMP, USERNAME and USERPROFILE. Environ omits variables that are
// not set and functions exported by a shell.
func Environ(more ...string) []string {
	env := make([]string, 0, 16) // never nil: a nil Env would mean the whole environment
	for _, names := range [][]string{inherited[runtime.GOOS == "windows"], more} {
		for _, name := range names {
			if value, ok := os.LookupEnv(name); ok && !strings.HasPrefix(value, "()") {
				env = append(env, name+"="+value)
			}
		}
	}
	return env
}

// An ExitError is the error of a connection whose server has ended.
type ExitError struct {
	// Err is nil if the server's exit status was 0, and otherwise usually an
	// [*exec.ExitError].
	Err error
	// Stderr is the end of the server's standard error, at most a few KiB. It may contain
	// control characters; Error escapes them and indents the lines.
	Stderr string
}

func (e *ExitError) Error() string {
	status := "exit status 0"
	if e.Err != nil {
		status = e.Err.Error()
	}
	if e.Stderr == "" {
		return "mcpstdio: the server ended: " + status
	}
	return "mcpstdio: the server ended: " + status + "; its last words:\n\t" + indented(e.Stderr)
}

// indented returns printable text for an error. All lines but the first are indented.
func indented(text string) string { return strings.ReplaceAll(printable.Text(text), "\n", "\n\t") }

// Unwrap returns Err.
func (e *ExitError) Unwrap() error { return e.Err }
