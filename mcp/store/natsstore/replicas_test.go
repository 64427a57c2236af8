// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package natsstore_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store/natsstore"
	"github.com/go-psi/psi/mcphttp"
)

// A balancer sends each request to a different server than the one before it.
type balancer struct {
	servers []*url.URL
	turn    atomic.Uint64
}

func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	to := b.servers[b.turn.Add(1)%uint64(len(b.servers))]
	r = r.Clone(r.Context())
	r.URL.Host, r.Host = to.Host, to.Host
	return http.DefaultTransport.RoundTrip(r)
}

type confirmation struct {
	Sure bool `json:"sure"`
}

// newReplica returns the URL and the mux of an MCP server that uses one node of a cluster.
func newReplica(t *testing.T, address string) (*url.URL, *mcp.Mux) {
	t.Helper()
	shared := open(t, connect(t, address), &natsstore.Options{Replicas: 3})
	logger := slog.New(slog.DiscardHandler)
	mux := mcp.NewMux("shop", "v1", &mcp.MuxOptions{StateKeys: [][]byte{bytes.Repeat([]byte("k"), 32)}, StateStore: shared, Bus: shared, Logger: logger})
	mux.Resource("shop:stock", mcp.ResourceFunc(func(context.Context, struct{}) (string, error) { return "much", nil }, nil))
	mux.Tool("buy", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		answer, err := mcp.Elicit[confirmation](ctx, "sure", "Are you sure?")
		return fmt.Sprint("sure: ", answer.Sure), err
	}, nil))
	server := httptest.NewUnstartedServer(nil)
	endpoint := mcphttp.NewHandler(mux, &mcphttp.Options{Logger: logger, Sessions: mcphttp.SessionOptions{
		Shared: &mcphttp.SharedSessions{Values: shared, URL: "http://" + server.Listener.Addr().String() + "/peers", Keys: [][]byte{bytes.Repeat([]byte("k"), 32)}},
	}})
	routes := http.NewServeMux()
	routes.Handle("/", endpoint)
	routes.Handle("/peers", endpoint.PeerHandler())
	server.Config.Handler = routes
	server.Start()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := endpoint.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		server.Close()
	})
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return at, mux
}

// Three replicas at three nodes serve clients of every revision, each request by a
// different replica: sessions, questions with their answers, and changes.
func TestReplicas(t *testing.T) {
	b, muxes := &balancer{}, []*mcp.Mux{}
	for _, node := range newCluster(t).servers {
		at, mux := newReplica(t, node.ClientURL())
		b.servers, muxes = append(b.servers, at), append(muxes, mux)
	}
	for _, version := range append(mcp.LegacyVersions(), mcp.LatestVersion) {
		if version == "2024-11-05" || version == "2025-03-26" {
			continue // they have no elicitation
		}
		t.Run(version, func(t *testing.T) {
			client := mcp.NewClient("test", "v1", &mcp.ClientOptions{
				Version: version, Logger: slog.New(slog.DiscardHandler),
				Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: mcp.ActionAccept, Content: []byte(`{"sure":true}`)}, nil
				},
			})
			c, err := client.Connect(t.Context(), mcphttp.NewTransport("http://shop.example/mcp", &mcphttp.TransportOptions{Client: &http.Client{Transport: b}}))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			changes := make(chan mcp.Change, 16)
			sub, err := c.Listen(t.Context(), mcp.SubscriptionFilter{ResourceSubscriptions: []string{"shop:stock"}}, func(c mcp.Change) { changes <- c })
			if err != nil {
				t.Fatal(err)
			}
			defer sub.Close()
			for i := range 10 {
				res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "buy"})
				if err != nil || len(res.Content) != 1 || res.Content[0].(*mcp.TextContent).Text != "sure: true" {
					t.Fatalf("call %d: %v, %v", i, res, err)
				}
			}
			for i, mux := range muxes {
				mux.ResourceUpdated("shop:stock")
				select {
				case got := <-changes:
					if got.URI != "shop:stock" {
						t.Errorf("heard %+v", got)
					}
				case <-soon(t).Done():
					t.Errorf("a change at replica %d was not heard", i)
				}
			}
		})
	}
}

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}
