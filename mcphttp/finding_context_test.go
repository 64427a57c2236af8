// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcpstdio"
)

// A call to a server that does not answer any more ends with its context, whatever is
// called, in every transport and era; and so does the connection.
func TestFindingCM4W9CallsObeyTheirContext(t *testing.T) {
	transports := map[string]func(t *testing.T, h mcp.Handler) transport.Transport{
		"in process": func(_ *testing.T, h mcp.Handler) transport.Transport { return mcp.InProcess(h) },
		"stream": func(t *testing.T, h mcp.Handler) transport.Transport {
			return transport.FromStream(func(context.Context) (transport.Stream, error) {
				near, far := transport.Pipe()
				go func() {
					_ = mcpstdio.ServeStream(t.Context(), h, far, &mcpstdio.StreamOptions{DrainTimeout: -1, Logger: quiet})
				}()
				return near, nil
			})
		},
		"HTTP": func(t *testing.T, h mcp.Handler) transport.Transport {
			return mcphttp.NewTransport("http://localhost/mcp", serve(t, newHandler(t, h, nil)).options(nil))
		},
		"HTTP+SSE": func(t *testing.T, h mcp.Handler) transport.Transport {
			handler := newSSEHandler(t, h)
			return mcphttp.NewSSETransport("http://localhost/sse", serve(t, handler).options(nil))
		},
	}
	for name, transport := range transports {
		for _, version := range both {
			if name == "HTTP+SSE" && version == mcp.LatestVersion || name == "in process" && version != mcp.LatestVersion {
				continue
			}
			t.Run(name+" "+version, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var silent atomic.Bool
					mux := tools()
					mux.Resource("r:a", mcp.ResourceFunc(func(context.Context, struct{}) (string, error) { return "", nil }, nil))
					mux.Use(func(next mcp.Handler) mcp.Handler {
						return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
							if silent.Load() {
								<-time.After(24 * time.Hour) // not even its context
							}
							return next.ServeMCP(ctx, req)
						})
					})
					conn, err := mcp.NewClient("c", "v1", &mcp.ClientOptions{Version: version, Logger: quiet}).Connect(t.Context(), transport(t, mux))
					if err != nil {
						t.Fatal(err)
					}
					silent.Store(true)
					listen := &mcp.ListenParams{Notifications: mcp.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{"r:a"}}}
					for method, params := range map[string]any{
						mcp.MethodDiscover: nil, mcp.MethodListTools: nil, mcp.MethodListen: listen, mcp.MethodCallTool: &mcp.CallToolParams{Name: "hello"},
					} {
						req, err := mcp.NewRequest(method, params)
						if err != nil {
							t.Fatal(err)
						}
						req.ID = mcp.IntID(1)
						why := errors.New("enough")
						ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, why)
						start := time.Now()
						_, err = core.Serve(ctx, conn, req, nil, quiet)
						cancel()
						known := method == mcp.MethodDiscover || method == mcp.MethodListen // what a server of the legacy era is not asked
						if took := time.Since(start); took > time.Minute || !errors.Is(err, why) && (version == mcp.LatestVersion || !known) {
							t.Errorf("%s: %v after %v", method, err, took)
						}
					}
					start := time.Now()
					_ = conn.Close()
					if took := time.Since(start); took > 2*time.Second {
						t.Errorf("Close took %v", took)
					}
					<-time.After(48 * time.Hour)
				})
			})
		}
	}
}
