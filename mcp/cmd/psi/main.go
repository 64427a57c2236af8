// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command psi talks to MCP servers of any revision: it lists what a server has, calls its
// tools, reads its resources and gets its prompts, and serves several servers at one
// endpoint. It also writes servers to start from, restarts them while they are written, adds
// them to the configuration of hosts, says why a host does not see them, and writes what
// registries read.
//
//	go install github.com/go-psi/psi/mcp/cmd/psi@latest
//	psi list http://127.0.0.1:8080/mcp
//	psi call http://127.0.0.1:8080/mcp add a=2 b=3
//	psi call add a=2 b=3 -- ./calculator
//
// "psi help" lists the subcommands, and "psi help call" explains one of them.
//
// The command is a tool, as docs/stability.md defines it: its flags and output may change.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-psi/psi/internal/printable"
	"github.com/go-psi/psi/mcp"
)

// Exit codes, documented by "psi help" and docs/psi.md.
const (
	exitOK           = 0
	exitFailed       = 1 // the server or the connection failed
	exitUsage        = 2 // the command line, the arguments of a tool, or a file is wrong
	exitToolFailed   = 3 // the tool was called and reported that it failed
	exitUnauthorized = 4 // the server requires a login
	exitInterrupted  = 130
)

// oneSignal is the time within which a repeated signal counts as the same one. timeout(1)
// and npm send it twice, and exiting immediately would leave servers behind.
const oneSignal = time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After that, a second interrupt ends the program immediately.
	context.AfterFunc(ctx, func() { time.AfterFunc(oneSignal, stop) })
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run runs the command line args, without the name of the program, and returns the exit
// code. Results are written to stdout; questions, progress and errors are written to
// stderr. It returns soon after ctx is done.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	err := runCommand(ctx, args, stdin, stdout, stderr)
	switch {
	case err == nil:
		return exitOK
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "psi: interrupted")
		return exitInterrupted
	}
	fmt.Fprintln(stderr, "psi:", printable.Text(err.Error()))
	return exitCode(err)
}

func exitCode(err error) int {
	if _, ok := errors.AsType[*usageError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[*mcp.ToolError](err); ok {
		return exitToolFailed
	}
	if errors.Is(err, mcp.ErrUnauthorized) {
		return exitUnauthorized
	}
	return exitFailed
}

// runCommand runs the subcommand named on the command line.
func runCommand(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	name := "help"
	switch {
	case len(args) == 0:
		args = []string{name}
	case args[0] == "--":
		return usagef("which subcommand? psi help lists them")
	case args[0] == "-h", args[0] == "-help", args[0] == "--help":
	default:
		name = args[0]
	}
	c, err := findCommand(name)
	if err != nil {
		return err
	}
	e := newEnv(stdin, stdout, stderr)
	defer e.close()
	return e.run(ctx, c, args[1:])
}
