// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package model_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

// principals are the two callers. Neither may see or affect what belongs to the other.
var principals = []*mcp.Principal{
	{Issuer: "https://id.example", Subject: "ada"},
	{Issuer: "https://id.example", Subject: "bob"},
}

func otherThan(p *mcp.Principal) *mcp.Principal {
	if p.Is(principals[0]) {
		return principals[1]
	}
	return principals[0]
}

// privateTo returns the URI of a resource that only p may see.
func privateTo(p *mcp.Principal) string { return "res://of-" + p.Subject }

// visible reports whether a caller may see an item, on servers and gateways.
func visible(ctx context.Context, _ mcp.Kind, name string) bool {
	p := mcp.PrincipalFromContext(ctx) // nil if the caller is a gateway
	return p == nil || !strings.HasSuffix(name, privateTo(otherThan(p)))
}

// userHeader names the caller of an HTTP request. Gateways are anonymous.
const userHeader = "X-User"

func authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, p := range principals {
			if p.Subject == r.Header.Get(userHeader) {
				r = mcphttp.WithPrincipal(r, p)
			}
		}
		next.ServeHTTP(w, r)
	})
}

// as serves every request as principal p.
func as(p *mcp.Principal, next mcp.Handler) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		req.Principal = p
		return next.ServeMCP(ctx, req)
	})
}

// seenAs returns the principal that the server sees, or nil behind a gateway.
func (c *client) seenAs() *mcp.Principal {
	if c.way.gateway {
		return nil
	}
	return c.principal
}

// watch checks that calls arrive as the principal of their client, at servers and gateways.
// Before a request with a state is served, the other principal sends it, which must fail.
func (w *world) watch(next mcp.Handler) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		k := w.callOf(tagOf(req.Params()))
		if k == nil || req.Principal == nil {
			return next.ServeMCP(ctx, req)
		}
		if !req.Principal.Is(k.client.principal) {
			w.wrongf("%s came as one of %s", k, req.Principal.Subject)
		}
		if bytes.Contains(req.Params(), []byte(`"requestState"`)) {
			w.stealState(ctx, next, req, k)
		}
		return next.ServeMCP(ctx, req)
	})
}

func (w *world) stealState(ctx context.Context, next mcp.Handler, req *mcp.Request, k *call) {
	stolen, err := mcp.NewRequest(req.Method, req.Params())
	if err != nil {
		w.wrongf("%s: %v", k, err)
		return
	}
	stolen.ID, stolen.Principal = req.ID, otherThan(req.Principal)
	res, err := core.Serve(context.WithValue(ctx, thiefKey{}, true), next, stolen, nowhere{}, quiet)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stolen++
	if err == nil {
		w.wrongLockedf("%s: %s took its state, and got %v", k, stolen.Principal.Subject, res)
	}
}

// thiefKey marks a call with the state of another principal. Its handler may start, and is
// then told that the state is not the caller's.
type thiefKey struct{}

func isThief(ctx context.Context) bool { return ctx.Value(thiefKey{}) != nil }

// nowhere discards notifications.
type nowhere struct{}

// Notify implements mcp.Notifier.
func (nowhere) Notify(context.Context, string, json.RawMessage) error { return nil }

// steal first sends an HTTP request of a client's session as the other principal, who must
// neither receive nor disturb anything.
func (c *cutter) steal(r *http.Request, body []byte) {
	w, me := c.faults.client.w, c.faults.client
	inSession := r.Header.Get("Mcp-Session-Id") != "" || r.URL.Query().Get("sessionId") != ""
	if n := c.sent.Add(1); !inSession || w.isDown() || w.rng(fmt.Sprint("thief ", me.name, n)).IntN(4) > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), time.Minute)
	defer cancel()
	stolen := r.Clone(ctx)
	stolen.Body = io.NopCloser(bytes.NewReader(body))
	stolen.Header.Set(userHeader, otherThan(me.principal).Subject)
	res, err := c.next.RoundTrip(stolen)
	if err != nil {
		return // the server is shutting down
	}
	defer res.Body.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stolen++
	if res.StatusCode < 400 {
		w.wrongLockedf("%s: somebody else sent %s %s in its session, and got %s", me.name, r.Method, body, res.Status)
	}
}

// logged checks a log message from the server.
func (c *client) logged(_ context.Context, _ *mcp.Conn, p *mcp.LoggingMessageParams) {
	text := fmt.Sprint(p.Data)
	k := c.w.callOf(tagOf([]byte(text)))
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	switch {
	case strings.Contains(text, forged) && c.hasHostileCallLocked():
	case k == nil || k.client != c:
		c.w.wrongLockedf("%s got the message %q, which belongs to %s", c.name, text, k)
	default:
		c.w.logged++
	}
}
