// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcpstdio"
	"github.com/go-psi/psi/middleware"
)

// lastWords is a stream of a process that has ended, and said why.
type lastWords struct{ transport.Stream }

var errLastWords = errors.New("the server ended: exit status 2; its last words:\npostgres://admin:hunter2@10.0.0.5/prod")

func (s lastWords) Read(ctx context.Context) ([]byte, error) {
	data, err := s.Stream.Read(ctx)
	if err != nil {
		return nil, errLastWords
	}
	return data, nil
}

// dying is a server on a stream that ends at the first call of a tool.
func dying() transport.Transport {
	return transport.FromStream(func(context.Context) (transport.Stream, error) {
		client, server := transport.Pipe()
		go func() {
			h := failsTools(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
				return nil, server.Close()
			}))
			_ = mcpstdio.ServeStream(context.Background(), h, server, nil)
		}()
		return lastWords{client}, nil
	})
}

// What fails between a gateway and a server behind it is the gateway's business: its
// callers hear that the server is not available, its operator reads why, and a program
// that calls its own connection gets the whole error.
func TestFindingI3U1GatewayKeepsTransportErrorsToItself(t *testing.T) {
	for _, back := range bothEras {
		for _, front := range bothEras {
			t.Run(front+" in front of "+back, func(t *testing.T) {
				endpoint := mcphttp.NewHandler(hello(), nil)
				web := httptest.NewServer(endpoint)
				overHTTP := connectTo(t, mcphttp.NewTransport(web.URL+"?exaApiKey=SECRET-KEY", nil), &mcp.ClientOptions{Version: back, Logger: quiet().Logger})
				overStdio := connectTo(t, dying(), &mcp.ClientOptions{Version: back, Forward: true})
				web.CloseClientConnections()
				web.Close()
				_ = endpoint.Shutdown(t.Context())
				log := new(bytes.Buffer)
				gw := mcp.NewMux("gateway", "v1", quiet())
				gw.Use(middleware.Logger(slog.New(slog.NewTextHandler(log, nil))))
				gw.Mount("x_", overHTTP)
				gw.Mount("y_", overStdio)
				c := connect(t, gw, &mcp.ClientOptions{Version: front})
				for name, secret := range map[string]string{"x_hello": "SECRET-KEY", "y_hello": "hunter2"} {
					_, err := c.CallTool(t.Context(), tool(name, ""))
					coded, ok := errors.AsType[*mcp.Error](err)
					if !ok || coded.Code != mcp.CodeInternalError || coded.Message != "the server behind this one is not available" || coded.Data != nil {
						t.Errorf("%s: the caller is told %v", name, err)
					}
					if !strings.Contains(log.String(), secret) {
						t.Errorf("%s: the operator is not told why:\n%s", name, log)
					}
				}
				if _, err := overHTTP.CallTool(t.Context(), tool("hello", "")); err == nil || !strings.Contains(err.Error(), "SECRET-KEY") {
					t.Errorf("the program itself got %v", err)
				}
				if _, err := overStdio.CallTool(t.Context(), tool("hello", "")); !errors.Is(err, errLastWords) {
					t.Errorf("the program itself got %v", err)
				}
			})
		}
	}
}

// The same for a connection that is served without a mux; a server that takes too long
// is told from one that is not there.
func TestFindingI3ServedConn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := failsTools(mcp.HandlerFunc(func(ctx context.Context, _ *mcp.Request) (mcp.Result, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}))
		up := connect(t, slow, &mcp.ClientOptions{CallTimeout: time.Second, Version: mcp.LatestVersion})
		c := connect(t, up, &mcp.ClientOptions{Version: mcp.LatestVersion})
		_, err := c.CallTool(t.Context(), tool("hello", ""))
		if coded, ok := errors.AsType[*mcp.Error](err); !ok || coded.Message != "the server behind this one did not answer in time" {
			t.Errorf("the caller is told %v", err)
		}
		req, err := mcp.NewRequest(mcp.MethodCallTool, tool("hello", ""))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := up.ServeMCP(t.Context(), req); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("middleware sees %v", err)
		}
		c.Close()
		up.Close()
	})
}

// manual asks like a client that lets its program answer, for somebody.
func manual(t *testing.T, h mcp.Handler, who string, retry mcp.Retry) (mcp.Result, error) {
	t.Helper()
	p := tool("b_greet", "")
	p.Retry = retry
	req, err := mcp.NewRequest(mcp.MethodCallTool, p)
	if err != nil {
		t.Fatal(err)
	}
	var meta mcp.Meta
	meta.Set(mcp.MetaProtocolVersion, mcp.LatestVersion)
	meta.Set(mcp.MetaClientCapabilities, map[string]any{"elicitation": map[string]any{}})
	p.Meta = meta
	if req, err = req.WithParams(p); err != nil {
		t.Fatal(err)
	}
	req.ID = mcp.IntID(1)
	req.Principal = &mcp.Principal{Subject: who}
	return h.ServeMCP(t.Context(), req)
}

// The state of a server behind a gateway is good for the caller whom it was given to,
// and for nobody else, although that server cannot tell them apart.
func TestFindingS23ForwardedStateIsBoundToItsCaller(t *testing.T) {
	for _, back := range bothEras {
		gw := gateway(t, welcoming(), back)
		res, err := manual(t, gw, "alice", mcp.Retry{})
		asked, ok := res.(*mcp.InputRequired)
		if err != nil || !ok || asked.RequestState == nil || len(asked.InputRequests) != 1 {
			t.Fatalf("%s: got %+v, %v", back, res, err)
		}
		retry := mcp.Retry{RequestState: asked.RequestState, InputResponses: map[string]json.RawMessage{}}
		for key := range asked.InputRequests {
			retry.InputResponses[key] = json.RawMessage(`{"action":"accept","content":{"name":"Ada"}}`)
		}
		if res, err := manual(t, gw, "bob", retry); mcp.CodeOf(err) != mcp.CodeInvalidParams {
			t.Errorf("%s: bob goes on with alice's call: %+v, %v", back, res, err)
		}
		forged := "x" + *asked.RequestState
		if res, err := manual(t, gw, "alice", mcp.Retry{RequestState: &forged}); mcp.CodeOf(err) != mcp.CodeInvalidParams {
			t.Errorf("%s: a forged state: %+v, %v", back, res, err)
		}
		if res, err := manual(t, gw, "alice", retry); err != nil {
			t.Errorf("%s: alice's retry: %+v, %v", back, res, err)
		} else if next, ok := res.(*mcp.InputRequired); !ok || fmt.Sprint(next.InputRequests) == fmt.Sprint(asked.InputRequests) {
			t.Errorf("%s: alice's retry: %+v", back, res)
		}
	}
}
