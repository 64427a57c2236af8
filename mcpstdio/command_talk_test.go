// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio_test

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcpstdio"
)

func TestCommand(t *testing.T) {
	mcptest.NoLeaks(t)
	transport := mcpstdio.NewCommand(program("serve"), nil)
	pids := map[string]bool{}
	for range 2 {
		conn, err := client().Connect(t.Context(), transport)
		if err != nil {
			t.Fatal(err)
		}
		pid, err := mcp.Call[string](t.Context(), conn, "pid", nil)
		if err != nil || pids[pid] {
			t.Errorf("got process %q again, or %v", pid, err)
		}
		pids[pid] = true
		if err := errors.Join(conn.Close(), reasonOfEnd(conn)); err != nil {
			t.Error(err)
		}
	}
}

// T1: messages of 10 MiB pass in both directions. A message that is too long fails only its
// call.
func TestCommandLongMessages(t *testing.T) {
	echoes(t, connect(t, program("serve"), nil), strings.Repeat("0123456789abcdef", 10<<20/16))

	var log notes
	conn := connect(t, program("serve"), &mcpstdio.CommandOptions{MaxMessage: 1 << 20, Logger: log.logger()})
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := mcp.Call[string](ctx, conn, "long", map[string]int{"bytes": 2 << 20}); err == nil {
		t.Error("a message beyond the limit was taken")
	}
	echoes(t, conn, strings.Repeat("x", 1<<19))
	if !strings.Contains(log.String(), "longer than 1048576 bytes") {
		t.Errorf("logged %s", log.String())
	}
}

// T2: 1 MiB on standard error before the first reply.
func TestCommandStderr(t *testing.T) {
	t.Run("writer", func(t *testing.T) {
		var stderr notes
		conn := connect(t, program("noisy"), &mcpstdio.CommandOptions{Stderr: &stderr})
		echoes(t, conn, "heard")
		conn.Close()
		if text := stderr.String(); len(text) < 1<<20-11 || !strings.HasSuffix(text, "the end of the noise\n") {
			t.Errorf("got %d bytes of standard error", len(text))
		}
	})
	t.Run("command's", func(t *testing.T) {
		var stderr notes
		cmd := program("noisy")
		cmd.Stderr = &stderr
		connect(t, cmd, nil).Close()
		if text := stderr.String(); !strings.HasSuffix(text, "the end of the noise\n") {
			t.Errorf("got %d bytes of standard error", len(text))
		}
	})
	t.Run("logger", func(t *testing.T) {
		var log notes
		connect(t, program("noisy"), &mcpstdio.CommandOptions{Logger: log.logger()}).Close()
		if got := strings.Count(log.String(), `line="some noise"`); got != 1<<20/11 {
			t.Errorf("logged %d lines", got)
		}
	})
	t.Run("broken writer", func(t *testing.T) {
		echoes(t, connect(t, program("noisy"), &mcpstdio.CommandOptions{Stderr: brokenWriter{}}), "heard")
	})
	t.Run("tail", func(t *testing.T) {
		conn := connect(t, program("noisy"), quietly())
		mcp.Call[string](t.Context(), conn, "exit", nil)
		var exit *mcpstdio.ExitError
		if err := reasonOfEnd(conn); !errors.As(err, &exit) {
			t.Fatalf("got %v", err)
		}
		if text := exit.Stderr; len(text) > 4<<10 || !strings.HasPrefix(text, "some noise\nsome") || !strings.HasSuffix(text, "noise\ngoodbye,\ncruel world") {
			t.Errorf("got %d bytes: %.40q...", len(text), text)
		}
	})
}

// T3: concurrent long messages do not mix.
func TestCommandConcurrently(t *testing.T) {
	conn := connect(t, program("serve"), nil)
	var calls sync.WaitGroup
	for i := range 100 {
		calls.Go(func() { echoes(t, conn, strings.Repeat(string(rune('A'+i%26)), 128<<10)) })
	}
	calls.Wait()
}

// T5: a byte order mark, banners, other output, CRLF and blank lines.
func TestCommandBanner(t *testing.T) {
	var log notes
	conn := connect(t, program("banner"), &mcpstdio.CommandOptions{Logger: log.logger()})
	echoes(t, conn, "after the banner")
	for _, line := range []string{"Welcome!", `"[INFO] ready"`, "[1]", `"{'a': 1}"`, "line={", "\uFFFD"} {
		if !strings.Contains(log.String(), line) {
			t.Errorf("did not log %s: %s", line, log.String())
		}
	}
	if got := strings.Count(log.String(), "is not a message"); got != 6 {
		t.Errorf("logged %d lines: %s", got, log.String())
	}
}

// A command whose output is full of other lines does not fill the log.
func TestFindingX14OtherOutputIsLoggedSparsely(t *testing.T) {
	var log notes
	echoes(t, connect(t, program("chatty"), &mcpstdio.CommandOptions{Logger: log.logger()}), "after the noise")
	if got := strings.Count(log.String(), "is not a message"); got != 20 { // 16, then 32, 64, 128 and 256
		t.Errorf("of 500 lines, %d are logged", got)
	}
}

// T61: servers that exit, or do not answer, on an unknown method. The first kind needs a new
// process.
func TestCommandProbe(t *testing.T) {
	for _, name := range []string{"old", "silent"} {
		t.Run(name, func(t *testing.T) {
			mcptest.NoLeaks(t)
			conn, err := client().Connect(t.Context(), mcpstdio.NewCommand(program(name), quietly()))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if conn.Version() != mcp.LegacyVersions()[0] {
				t.Errorf("speaks %s", conn.Version())
			}
			echoes(t, conn, "from of old")
		})
	}
}

// A server that reads nothing blocks neither Send beyond its context nor Close.
func TestCommandDeaf(t *testing.T) {
	mcptest.NoLeaks(t)
	received := make(chan struct{}, 1)
	opts := quietly()
	opts.WaitDelay = -1
	wire, err := mcpstdio.NewCommand(program("deaf"), opts).Connect(t.Context(), func(*transport.Message) { received <- struct{}{} })
	if err != nil {
		t.Fatal(err)
	}
	soon(t, received, "start")
	long := &transport.Outgoing{Body: []byte(`{"jsonrpc":"2.0","method":"long","params":{"text":"` + strings.Repeat("x", 1<<20) + `"}}`)}
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if err := wire.Send(ctx, long); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		cancel()
	}
	sent := make(chan error)
	go func() { sent <- wire.Send(context.Background(), long) }()
	if err := wire.Close(); err != nil {
		t.Error(err)
	}
	if err := soon(t, sent, "sending"); !errors.Is(err, mcp.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestCommandNotStarted(t *testing.T) {
	for name, cmd := range map[string]*exec.Cmd{
		"unknown": exec.Command("no-such-program-anywhere"),
		"absent":  exec.Command("/no/such/program"),
	} {
		if _, err := mcpstdio.NewCommand(cmd, nil).Connect(t.Context(), nil); err == nil || !strings.Contains(err.Error(), cmd.Path) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	elsewhere := program("serve") // fork reports that the program does not exist
	elsewhere.Dir = "/no/such/directory"
	if _, err := mcpstdio.NewCommand(elsewhere, nil).Connect(t.Context(), nil); err == nil || !strings.Contains(err.Error(), elsewhere.Dir) {
		t.Errorf("in a directory that does not exist: got %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(mcp.ErrDeclined)
	if _, err := mcpstdio.NewCommand(program("serve"), nil).Connect(ctx, nil); !errors.Is(err, mcp.ErrDeclined) {
		t.Errorf("got %v", err)
	}
}

func TestCommandMisuse(t *testing.T) {
	withInput := program("serve")
	withInput.Stdin = strings.NewReader("")
	for _, cmd := range []*exec.Cmd{nil, withInput} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.HasPrefix(text, "mcpstdio: ") {
					t.Errorf("panicked with %q", text)
				}
			}()
			mcpstdio.NewCommand(cmd, nil)
		}()
	}
}
