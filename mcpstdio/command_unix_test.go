// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build unix && !aix

package mcpstdio_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcpstdio"
)

var systemBehaviours = map[string]func() int{
	"host": host, "logging": logging, "escape": func() int { return escape("serve") },
	"escape talking": func() int { return escape("talk") }, "talk": talk,
}

// host is a client that is killed before it closes anything.
func host() int {
	cmd := program("logging")
	cmd.ExtraFiles = []*os.File{os.NewFile(3, "witness")}
	conn, err := client().Connect(context.Background(), mcpstdio.NewCommand(cmd, nil))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer conn.Close()
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	<-time.After(forever)
	return 0
}

// logging is a server that logs a lot after its input has ended, and reports the result to
// its witness.
func logging() int {
	in := &lastLogger{in: os.Stdin}
	status := serveTo(in, nil)
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	fmt.Fprintf(os.NewFile(3, "witness"), "%d %d %d", status, in.refused, time.Duration(used.Utime.Nano()+used.Stime.Nano())/time.Second)
	return 0
}

type lastLogger struct {
	in      io.Reader
	refused int
}

func (l *lastLogger) Read(b []byte) (int, error) {
	n, err := l.in.Read(b)
	if err != nil {
		for range 1000 {
			if _, err := fmt.Fprintln(os.Stderr, "a log line"); err != nil {
				l.refused++
			}
		}
		slog.New(slog.NewTextHandler(os.Stderr, nil)).Info("a log record")
	}
	return n, err
}

// escape is a server that leaves a process behind that holds its pipes but is not in its
// process group.
func escape(behaviour string) int {
	cmd := program(behaviour)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.NewFile(3, "leash"), os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	return serve()
}

// talk writes until its input ends.
func talk() int {
	go func() {
		for {
			fmt.Fprintln(os.Stdout, "still here")
			fmt.Fprintln(os.Stderr, "still here")
			<-time.After(20 * time.Millisecond)
		}
	}()
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// T9b: the host is killed. Its server reads the end of its input and exits, although its log
// is no longer read.
func TestCommandHostKilled(t *testing.T) {
	cmd := program("host")
	dead := witnessed(t, cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles[0].Close()
	_ = cmd.Wait()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Errorf("the host ended by itself: %v", cmd.ProcessState)
	}
	if got := soon(t, dead, "death"); got != "0 1000 0" {
		t.Errorf("the server ended with %q, want status 0, 1000 lines refused, 0 seconds of CPU", got)
	}
}

// A process that left the group and holds the pipes delays neither Close nor the error after
// an exit, even if it keeps writing.
func TestCommandEscaped(t *testing.T) {
	for _, test := range []struct{ name, behaviour, how string }{
		{"close", "escape", "close"}, {"exit", "escape", "exit"},
		{"close while it talks", "escape talking", "close"}, {"exit while it talks", "escape talking", "exit"},
	} {
		t.Run(test.name, func(t *testing.T) {
			mcptest.NoLeaks(t)
			how, cmd := test.how, program(test.behaviour)
			leashed, leash, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer leash.Close()
			defer leashed.Close()
			cmd.ExtraFiles = []*os.File{leashed}
			conn := connect(t, cmd, quietly())
			begin := time.Now()
			if how == "exit" {
				_, err := mcp.Call[string](t.Context(), conn, "exit", nil)
				var exit *mcpstdio.ExitError
				if !errors.As(err, &exit) || !strings.Contains(exit.Error(), "exit status 7") {
					t.Errorf("got %v", err)
				}
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
			if took := time.Since(begin); took > 3*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// The SysProcAttr of the command is kept. A session is also a process group.
func TestCommandSession(t *testing.T) {
	cmd := program("serve")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	conn := connect(t, cmd, nil)
	echoes(t, conn, "in a session")
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if cmd.SysProcAttr.Setpgid || cmd.Process != nil {
		t.Error("the command was changed")
	}
}

// Connections leave no goroutine, descriptor or process behind, however they end.
func TestCommandCycles(t *testing.T) {
	cycles := 40
	if testing.Short() {
		cycles = 4
	}
	cycle := func(i int) {
		conn, err := client().Connect(t.Context(), mcpstdio.NewCommand(program("serve"), quietly()))
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			mcp.Call[string](t.Context(), conn, "exit", nil)
		}
		if i%4 != 0 { // every other command that exited is never closed
			conn.Close()
		}
		<-conn.Done()
	}
	cycle(0)
	mcptest.NoLeaks(t)
	before := descriptors(t)
	for i := range cycles {
		cycle(i)
		if _, err := mcpstdio.NewCommand(unstartable(), nil).Connect(t.Context(), nil); err == nil {
			t.Fatal("it started")
		}
	}
	// Pipes that were not closed are released shortly after the exit.
	for deadline := time.Now().Add(5 * time.Second); descriptors(t) > before && time.Now().Before(deadline); {
		<-time.After(time.Millisecond)
	}
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
	if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); !errors.Is(err, syscall.ECHILD) {
		t.Errorf("process %d is left: %v", pid, err)
	}
}

// descriptors returns the number of open files of this process, where the system reports it.
func descriptors(t *testing.T) int {
	t.Helper()
	dir, err := os.Open("/proc/self/fd")
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return len(names)
}
