// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// slowToClose is a transport whose connections end at once when they are closed, and say so
// two seconds later, like those over HTTP that send a DELETE to a server that hangs.
type slowToClose struct{ transport.Transport }

func (s slowToClose) Connect(ctx context.Context, receive transport.Receiver) (transport.Conn, error) {
	c, err := s.Transport.Connect(ctx, receive)
	return &slowConn{Conn: c, done: make(chan struct{})}, err
}

type slowConn struct {
	transport.Conn
	done chan struct{}
}

func (c *slowConn) Done() <-chan struct{} { return c.done }

func (c *slowConn) Close() error {
	err := c.Conn.Close()
	<-time.After(2 * time.Second)
	close(c.done)
	return err
}

// A server stops answering, and its connection takes time to close. Calls in flight say what
// has happened, and calls that follow wait for the next connection.
func TestUpstreamClosing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hangs atomic.Bool
		mux := withTools("hello")
		mux.Use(func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				if hangs.Load() {
					<-ctx.Done()
				}
				return next.ServeMCP(ctx, req)
			})
		})
		client := mcp.NewClient("c", "v1", &mcp.ClientOptions{KeepAlive: time.Second, Logger: quiet().Logger})
		u := client.Maintain(t.Context(), slowToClose{mcp.InProcess(mux)}, &mcp.ReconnectOptions{Wait: time.Minute})
		defer u.Close()
		hello := func() (string, error) {
			c, err := u.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return mcp.Call[string](t.Context(), c, "hello", nil)
		}
		if got, err := hello(); err != nil || got != "hello" {
			t.Fatalf("%q, %v", got, err)
		}
		hangs.Store(true)
		if _, err := hello(); !errors.Is(err, mcp.ErrNoAnswer) || !errors.Is(err, mcp.ErrClosed) {
			t.Errorf("the call in flight returned %v", err)
		}
		hangs.Store(false)
		if got, err := hello(); err != nil || got != "hello" {
			t.Errorf("the next call returned %q, %v", got, err)
		}
	})
}
