// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcpstdio"
)

// withoutDeadlines hides all methods of a connection but Write.
type withoutDeadlines struct{ io.Writer }

// On a stream of one's own, such as a connection over ssh or TLS, every call ends with its
// context, even if the server has stopped reading. When it reads again, the connection works.
func TestFindingY9ServerThatDoesNotRead(t *testing.T) {
	for _, version := range []string{mcp.LatestVersion, "2025-11-25"} {
		for name, writer := range map[string]func(net.Conn) io.Writer{
			"a connection": func(c net.Conn) io.Writer { return c },
			"a writer":     func(c net.Conn) io.Writer { return withoutDeadlines{c} },
		} {
			t.Run(version+" over "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					near, far := net.Pipe()
					mux := mcp.NewMux("m", "v1", nil)
					mux.Tool("size", mcp.ToolFunc(func(_ context.Context, in struct {
						Text string `json:"text,omitzero"`
					}) (int, error) {
						return len(in.Text), nil
					}, nil))
					var isDeaf atomic.Bool
					hears := make(chan struct{})
					in := readerFunc(func(p []byte) (int, error) {
						if isDeaf.Load() {
							<-hears
						}
						return far.Read(p)
					})
					served := make(chan error, 1)
					go func() {
						served <- mcpstdio.ServeStream(t.Context(), mux, mcpstdio.NewStream(in, far, &mcpstdio.LineOptions{Close: far.Close}), nil)
					}()
					to := transport.FromStream(func(context.Context) (transport.Stream, error) {
						return mcpstdio.NewStream(near, writer(near), &mcpstdio.LineOptions{Close: near.Close}), nil
					})
					c, err := mcp.NewClient("c", "v1", &mcp.ClientOptions{Version: version}).Connect(t.Context(), to)
					if err != nil {
						t.Fatal(err)
					}
					synctest.Wait() // the server reads
					isDeaf.Store(true)
					_ = c.Notify(t.Context(), "notifications/x", nil) // the last that the server reads
					synctest.Wait()
					args, err := json.Marshal(map[string]string{"text": strings.Repeat("x", 4<<20)})
					if err != nil {
						t.Fatal(err)
					}
					for range 3 {
						for what, do := range map[string]func(context.Context) error{
							"a call": func(ctx context.Context) error {
								_, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "size", Arguments: args})
								return err
							},
							"a ping":         c.Ping,
							"a notification": func(ctx context.Context) error { return c.Notify(ctx, "notifications/x", json.RawMessage(args)) },
							"listening": func(ctx context.Context) error {
								_, err := c.Listen(ctx, mcp.SubscriptionFilter{ToolsListChanged: true}, func(mcp.Change) {})
								return err
							},
						} {
							ctx, cancel := context.WithTimeout(t.Context(), time.Second)
							start := time.Now()
							err := do(ctx)
							cancel()
							// A cancellation is given a second more. A small notification, and a
							// listener of an older revision, need not wait for the server.
							if took := time.Since(start); took > 2*time.Second || err != nil && !errors.Is(err, context.DeadlineExceeded) {
								t.Errorf("%s: after %v: %v", what, took, err)
							}
						}
					}
					isDeaf.Store(false)
					close(hears)
					if n, err := mcp.Call[int](t.Context(), c, "size", map[string]string{"text": "four"}); err != nil || n != 4 {
						t.Errorf("when the server reads again: %d, %v", n, err)
					}
					_ = c.Close()
					<-served
				})
			})
		}
	}
}

// A call that is given up while its request is being written is cancelled at the server, which
// receives the request in the end.
func TestFindingY9CallGivenUpWhileWritingIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		to := transport.FromStream(func(context.Context) (transport.Stream, error) {
			return mcpstdio.NewStream(near, near, &mcpstdio.LineOptions{Close: near.Close}), nil
		})
		conn, err := to.Connect(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		call := &transport.Outgoing{ID: transport.IntID(7), Method: mcp.MethodCallTool, Body: []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call"}`)}
		if _, err := conn.Call(ctx, call); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the call: %v", err)
		}
		lines := bufio.NewScanner(far)
		for _, want := range []string{`"method":"tools/call"`, `"method":"notifications/cancelled","params":{"requestId":7`} {
			if !lines.Scan() || !strings.Contains(lines.Text(), want) {
				t.Errorf("the server got %s, want %s", lines.Text(), want)
			}
		}
		_ = conn.Close()
		_ = far.Close()
	})
}

// A stream keeps no more for a peer that does not read than 64 KiB, or one message, and the
// message that is being written. The rest is not written when the writer has given up.
func TestFindingY9StreamKeepsLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, out := io.Pipe()
		s := mcpstdio.NewStream(strings.NewReader(""), out, nil)
		accepted := 0
		for range 1000 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := s.Write(ctx, []byte(`"`+strings.Repeat("x", 1<<20)+`"`)); err == nil {
				accepted++
			} else if !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			cancel()
		}
		read := make(chan int)
		go func() {
			lines := bufio.NewScanner(in)
			lines.Buffer(nil, 2<<20)
			n := 0
			for lines.Scan() {
				n++
			}
			read <- n
		}()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		_ = out.Close()
		if n := <-read; n != 2 || accepted > 1 {
			t.Errorf("%d of 1000 messages were kept; %d writes succeeded", n, accepted)
		}
	})
}

// Closing a stream whose peer does not read ends the write.
func TestFindingY9CloseEndsTheWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, out := io.Pipe()
		s := mcpstdio.NewStream(strings.NewReader(""), out, &mcpstdio.LineOptions{Close: out.Close})
		written := make(chan error, 1)
		go func() { written <- s.Write(t.Context(), []byte("1")) }()
		synctest.Wait()
		start := time.Now()
		if err := s.Close(); err != nil || time.Since(start) > 2*time.Second {
			t.Errorf("closed after %v: %v", time.Since(start), err)
		}
		if err := <-written; !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("the write: %v", err)
		}
	})
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
