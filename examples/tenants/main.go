// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command tenants serves several customers at one endpoint. Each has an API key, sees only
// the tools included in its plan, and has its own rate limit and data.
//
//	go run ./examples/tenants
//
// The key is sent as a bearer token: "Authorization: Bearer acme-key-0123456789abcdef".
package main

import (
	"context"
	"flag"
	"log"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/auth"
	"github.com/go-psi/psi/middleware"
)

// tenants are the customers by API key. A real server stores hashes of long random keys
// elsewhere; see auth.HashedAPIKeys and auth.LookupAPIKeys.
var tenants = map[string]*mcp.Principal{
	"acme-key-0123456789abcdef":   {Issuer: "tenants", Subject: "acme", Claims: map[string]any{"plan": "pro"}},
	"globex-key-0123456789abcdef": {Issuer: "tenants", Subject: "globex", Claims: map[string]any{"plan": "free"}},
}

// plans are the tools of each plan.
var plans = map[string]map[string]bool{
	"free": {"note": true, "notes": true},
	"pro":  {"note": true, "notes": true, "forget": true},
}

func main() {
	addr := flag.String("http", "127.0.0.1:8080", "serve at this `address`")
	flag.Parse()
	server := &http.Server{Addr: *addr, Handler: newServer(slog.Default()), ReadHeaderTimeout: 10 * time.Second}
	slog.Info("serving", "url", "http://"+*addr+"/mcp")
	log.Fatal(server.ListenAndServe())
}

func newServer(logger *slog.Logger) http.Handler {
	return mcphttp.NewRouter(newMux(logger), &mcphttp.RouterOptions{
		Middleware: []func(http.Handler) http.Handler{
			auth.Require(auth.APIKeys(tenants, nil), &auth.Options{Logger: logger}),
		},
	})
}

func newMux(logger *slog.Logger) *mcp.Mux {
	mux := mcp.NewMux("tenants", "v1.0.0", &mcp.MuxOptions{Logger: logger})
	mux.Use(
		middleware.Logger(logger),
		middleware.RateLimit(middleware.ByPrincipal, middleware.NewTokenBucket(60, time.Minute, nil)),
		middleware.Visible(paidFor),
	)
	n := &notebooks{byTenant: map[string][]string{}}
	mux.Tool("note", mcp.ToolFunc(n.add, &mcp.Tool{Description: "Write a note."}))
	mux.Tool("notes", mcp.ToolFunc(n.list, &mcp.Tool{Description: "List all notes."}))
	mux.Tool("forget", mcp.ToolFunc(n.clear, &mcp.Tool{Description: "Forget all notes."}))
	return mux
}

// paidFor reports whether the caller's plan includes a tool. Other tools do not exist for
// the caller: they are not listed and cannot be called.
func paidFor(ctx context.Context, kind mcp.Kind, name string) bool {
	p := mcp.PrincipalFromContext(ctx)
	if p == nil {
		return false
	}
	plan, _ := p.Claims["plan"].(string)
	return kind != mcp.KindTool || plans[plan][name]
}

// notebooks holds the notes of all tenants. Their owner is always the principal, never an
// argument.
type notebooks struct {
	mu       sync.Mutex
	byTenant map[string][]string
}

type note struct {
	Text string `json:"text" jsonschema:"minLength=1,maxLength=1000"`
}

type notesOut struct {
	Notes []string `json:"notes"`
}

func (n *notebooks) add(ctx context.Context, in note) (notesOut, error) {
	return n.update(ctx, func(notes []string) []string { return append(notes, in.Text) })
}

func (n *notebooks) list(ctx context.Context, _ struct{}) (notesOut, error) {
	return n.update(ctx, func(notes []string) []string { return notes })
}

func (n *notebooks) clear(ctx context.Context, _ struct{}) (notesOut, error) {
	return n.update(ctx, func([]string) []string { return nil })
}

func (n *notebooks) update(ctx context.Context, change func([]string) []string) (notesOut, error) {
	tenant := mcp.PrincipalFromContext(ctx).Subject
	n.mu.Lock()
	defer n.mu.Unlock()
	n.byTenant[tenant] = change(n.byTenant[tenant])
	return notesOut{append([]string{}, n.byTenant[tenant]...)}, nil
}
