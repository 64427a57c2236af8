// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcpstdio"
)

// T6: the server exits during calls.
func TestCommandExits(t *testing.T) {
	mcptest.NoLeaks(t)
	conn := connect(t, program("serve"), quietly())
	check := func(err error) {
		t.Helper()
		var exit *mcpstdio.ExitError
		var status *exec.ExitError
		if !errors.As(err, &exit) || !errors.As(err, &status) || status.ExitCode() != 7 || exit.Stderr != "goodbye,\ncruel world" {
			t.Errorf("got %v", err)
		}
		if text := err.Error(); !strings.Contains(text, "exit status 7") || !strings.Contains(text, "cruel world") {
			t.Errorf("the error says %q", text)
		}
	}
	var calls sync.WaitGroup
	calls.Go(func() {
		_, err := mcp.Call[string](t.Context(), conn, "wait", nil)
		check(err)
	})
	_, err := mcp.Call[string](t.Context(), conn, "exit", nil)
	check(err)
	calls.Wait()
	_, err = mcp.Call[string](t.Context(), conn, "pid", nil)
	check(err)
	check(reasonOfEnd(conn))
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

// A connection whose server exits with status 0 ends with an error, too. A server that has
// closed its output is terminated.
func TestCommandMute(t *testing.T) {
	mcptest.NoLeaks(t)
	cmd := program("mute")
	dead := witnessed(t, cmd)
	wire, err := mcpstdio.NewCommand(cmd, quietly()).Connect(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles[0].Close()
	soon(t, wire.Done(), "the end")
	var exit *mcpstdio.ExitError
	if err := wire.Err(); !errors.As(err, &exit) || !strings.Contains(exit.Stderr, "silence falls") {
		t.Errorf("got %v", err)
	}
	soon(t, dead, "death")
	if err := wire.Close(); err != nil {
		t.Error(err)
	}
}

// T7: the server ignores the end of its input and SIGTERM, and has a child.
func TestCommandStubborn(t *testing.T) {
	mcptest.NoLeaks(t)
	var log notes
	cmd := program("stubborn")
	dead := witnessed(t, cmd)
	opts := &mcpstdio.CommandOptions{Logger: log.logger(), WaitDelay: 50 * time.Millisecond}
	conn := connect(t, cmd, opts)
	cmd.ExtraFiles[0].Close()
	begin := time.Now()
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("Close took %v", took)
	}
	soon(t, dead, "death")
	if !strings.Contains(log.String(), "had to be killed") {
		t.Errorf("logged %s", log.String())
	}
}

// A server that exits on SIGTERM is not killed.
func TestCommandTerminated(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no SIGTERM")
	}
	mcptest.NoLeaks(t)
	var log notes
	conn := connect(t, program("obedient"), &mcpstdio.CommandOptions{Logger: log.logger(), WaitDelay: 2 * time.Second})
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "was terminated") {
		t.Errorf("logged %s", log.String())
	}
}

// Processes that a server leaves behind end with it, whether its connection is closed or it
// exits.
func TestCommandHelpers(t *testing.T) {
	for _, how := range []string{"close", "exit"} {
		t.Run(how, func(t *testing.T) {
			mcptest.NoLeaks(t)
			cmd := program("parent")
			dead := witnessed(t, cmd)
			conn := connect(t, cmd, quietly())
			cmd.ExtraFiles[0].Close()
			if how == "close" {
				conn.Close()
			} else {
				_, err := mcp.Call[string](t.Context(), conn, "exit", nil)
				var exit *mcpstdio.ExitError
				if !errors.As(err, &exit) || !strings.Contains(exit.Error(), "exit status 7") {
					t.Errorf("got %v", err)
				}
			}
			soon(t, dead, "death")
		})
	}
}

// Pending calls fail when Close begins, not when the server has ended.
func TestCommandClosedWhileCalling(t *testing.T) {
	mcptest.NoLeaks(t)
	opts := quietly()
	opts.WaitDelay = 3 * time.Second
	conn := connect(t, program("stubborn"), opts)
	pid, err := mcp.Call[int](t.Context(), conn, "pid", nil)
	if err != nil {
		t.Fatal(err)
	}
	failed, closed := make(chan error), make(chan error)
	go func() {
		_, err := mcp.Call[string](context.Background(), conn, "wait", nil)
		failed <- err
	}()
	go func() { closed <- conn.Close() }()
	if err := soon(t, failed, "the call"); !errors.Is(err, mcp.ErrClosed) {
		t.Errorf("got %v", err)
	}
	server, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Kill(); err != nil {
		t.Errorf("the server had ended: %v", err)
	}
	if err := soon(t, closed, "Close"); err != nil {
		t.Error(err)
	}
}

// Close returns even if a Receiver calls it, or if it is called several times.
func TestCommandClosedFromReceiver(t *testing.T) {
	mcptest.NoLeaks(t)
	opts := quietly()
	opts.WaitDelay = -1
	wires, closed := make(chan transport.Conn, 1), make(chan error, 2)
	wire, err := mcpstdio.NewCommand(program("deaf"), opts).Connect(t.Context(), func(*transport.Message) {
		wire := <-wires
		go func() { closed <- wire.Close() }()
		closed <- wire.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	wires <- wire
	for range 2 {
		if err := soon(t, closed, "Close"); err != nil {
			t.Error(err)
		}
	}
	soon(t, wire.Done(), "the end")
	if err := wire.Err(); !errors.Is(err, mcp.ErrClosed) {
		t.Errorf("got %v", err)
	}
}
