// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcpstdio"
)

// listen listens on a socket in a directory of the test.
func listen(t *testing.T) (l net.Listener, address string) {
	t.Helper()
	address = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, address
}

// listenAndServe serves on a socket until stop is called with a cause. Stop returns the
// result of ServeListener.
func listenAndServe(t *testing.T, h mcp.Handler, opts *mcpstdio.ListenerOptions) (address string, stop func(error) error) {
	t.Helper()
	l, address := listen(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mcpstdio.ServeListener(ctx, l, h, opts) }()
	stop = func(cause error) error {
		cancel(cause)
		err := soon(t, ended, "ServeListener")
		ended <- err
		return err
	}
	t.Cleanup(func() { stop(nil) })
	return address, stop
}

func TestSocket(t *testing.T) {
	mcptest.NoLeaks(t)
	address, stop := listenAndServe(t, server(nil), nil)
	var clients sync.WaitGroup
	for i := range 8 {
		clients.Go(func() {
			conn, err := client().Connect(t.Context(), mcpstdio.NewSocket("unix", address))
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			for range 10 {
				echoes(t, conn, strings.Repeat(string(rune('A'+i)), 100_000))
			}
			if err := errors.Join(conn.Close(), reasonOfEnd(conn)); err != nil {
				t.Error(err)
			}
		})
	}
	clients.Wait()
	reason := errors.New("enough")
	if err := stop(reason); !errors.Is(err, reason) {
		t.Errorf("got %v", err)
	}
	if _, err := client().Connect(t.Context(), mcpstdio.NewSocket("unix", address)); err == nil {
		t.Error("connected after the end")
	}
}

// Requests in flight when ctx is done are answered.
func TestListenerDrains(t *testing.T) {
	mcptest.NoLeaks(t)
	started, release := make(chan struct{}), make(chan struct{})
	mux := mcp.NewMux("m", "v1", nil)
	mux.Tool("slow", mcp.ToolFunc(func(context.Context, struct{}) (string, error) {
		close(started)
		<-release
		return "done", nil
	}, nil))
	address, stop := listenAndServe(t, mux, nil)
	conn, err := client().Connect(t.Context(), mcpstdio.NewSocket("unix", address))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answered := make(chan error, 1)
	go func() {
		got, err := mcp.Call[string](t.Context(), conn, "slow", nil)
		if got != "done" {
			err = fmt.Errorf("got %q, %w", got, err)
		}
		answered <- err
	}()
	soon(t, started, "the call")
	go func() {
		defer close(release)
		for { // until nobody is let in any more
			other, err := net.Dial("unix", address)
			if err != nil {
				return
			}
			other.Close()
		}
	}()
	stop(nil)
	if err := soon(t, answered, "the answer"); err != nil {
		t.Error(err)
	}
	if err := reasonOfEnd(conn); !errors.Is(err, io.EOF) {
		t.Errorf("the connection ended with %v", err)
	}
}

// A client beyond the bound is served when another one has left.
func TestListenerBound(t *testing.T) {
	mcptest.NoLeaks(t)
	address, _ := listenAndServe(t, server(nil), &mcpstdio.ListenerOptions{MaxConns: 1})
	first, err := client().Connect(t.Context(), mcpstdio.NewSocket("unix", address))
	if err != nil {
		t.Fatal(err)
	}
	hasty := mcp.NewClient("test", "v1", &mcp.ClientOptions{Version: mcp.LatestVersion, ConnectTimeout: 30 * time.Millisecond})
	if _, err := hasty.Connect(t.Context(), mcpstdio.NewSocket("unix", address)); err == nil {
		t.Error("a second client was served")
	}
	echoes(t, first, "still here")
	first.Close()
	second, err := client().Connect(t.Context(), mcpstdio.NewSocket("unix", address))
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	echoes(t, second, "my turn")
}

// A client that does not read its answers is disconnected.
func TestListenerSlowReader(t *testing.T) {
	mcptest.NoLeaks(t)
	address, _ := listenAndServe(t, server(nil), &mcpstdio.ListenerOptions{
		WriteTimeout: 50 * time.Millisecond,
		Stream:       &mcpstdio.StreamOptions{Logger: slog.New(slog.DiscardHandler), DrainTimeout: -1},
	})
	conn, err := net.Dial("unix", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ask := request(1, "tools/call", `"name":"echo","arguments":{"text":"`+strings.Repeat("x", 1<<20)+`"},`) + "\n"
	_ = conn.SetWriteDeadline(time.Now().Add(20 * time.Second))
	for err == nil {
		_, err = io.WriteString(conn, ask)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection lasts")
	}
}

// flakyListener returns errors first.
type flakyListener struct {
	net.Listener
	errs []error
}

func (l *flakyListener) Accept() (net.Conn, error) {
	if len(l.errs) > 0 {
		err := l.errs[0]
		l.errs = l.errs[1:]
		return nil, err
	}
	return l.Listener.Accept()
}

// Accept is tried again after a temporary error, not after another.
func TestListenerErrors(t *testing.T) {
	mcptest.NoLeaks(t)
	broken := errors.New("broken")
	l, _ := listen(t)
	flaky := &flakyListener{l, []error{syscall.EMFILE, syscall.EMFILE, broken}}
	opts := &mcpstdio.ListenerOptions{Stream: &mcpstdio.StreamOptions{Logger: slog.New(slog.DiscardHandler)}}
	if err := mcpstdio.ServeListener(t.Context(), flaky, server(nil), opts); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if len(flaky.errs) != 0 {
		t.Errorf("gave up before %v", flaky.errs)
	}
}

// A message whose sending was cancelled does not mix with the next one. Line breaks are
// removed.
func TestSocketSendInterrupted(t *testing.T) {
	mcptest.NoLeaks(t)
	l, address := listen(t)
	wire, err := mcpstdio.NewSocket("unix", address).Connect(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer wire.Close()
	peer, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	envelope := func(i int) *transport.Outgoing {
		text := strings.Repeat(fmt.Sprint(i), 2<<20)
		return &transport.Outgoing{Body: []byte("{\n" + `"jsonrpc":"2.0","method":"n` + fmt.Sprint(i) + `","params":{"text":"` + text + `"}}`)}
	}
	lines := bufio.NewReader(peer)
	sent := make(chan error, 1)
	ctx, giveUp := context.WithCancel(t.Context())
	go func() { sent <- wire.Send(ctx, envelope(0)) }()
	if _, err := lines.Peek(1); err != nil { // a part of it has been sent
		t.Fatal(err)
	}
	giveUp()
	if err := soon(t, sent, "giving up"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	for i := range 2 { // nothing of these
		if err := wire.Send(ctx, envelope(i+1)); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	go func() { sent <- wire.Send(t.Context(), envelope(3)) }()
	for _, want := range []string{"n0", "n3"} {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ Method string }
		if err := json.Unmarshal(line, &got); err != nil || got.Method != want {
			t.Errorf("got %q, %v; want %q", got.Method, err, want)
		}
	}
	if err := soon(t, sent, "sending"); err != nil {
		t.Error(err)
	}
}
