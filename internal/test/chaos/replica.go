// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/tasks"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/authserver"
)

// runReplica serves until the process is killed.
func runReplica(ctx context.Context, r *role) error {
	shared, err := openStore(ctx, r)
	if err != nil {
		return err
	}
	mux := mcp.NewMux("chaos", "v1", &mcp.MuxOptions{StateKeys: [][]byte{r.Key}, StateStore: shared, Bus: shared})
	manager := tasks.New("chaos", &tasks.Options{Store: shared, Lease: 5 * time.Second, PollInterval: 500 * time.Millisecond})
	manager.Register(mux)
	mux.Tool("echo", mcp.ToolFunc(echo, nil))
	mux.Tool("whoami", mcp.ToolFunc(whoami, nil))
	mux.Tool("ask", mcp.ToolFunc(ask, nil))
	mux.Tool("work", mcp.ToolFunc(work, nil))
	n := &news{shared, mux}
	mux.Tool("publish", mcp.ToolFunc(n.publish, nil))
	mux.Resource(newsURI, mcp.ResourceFunc(n.read, &mcp.Resource{Name: "news"}))
	mux.With(manager.Background(nil)).Tool("render", mcp.ToolFunc(render, nil))
	endpoint := mcphttp.NewHandler(mux, &mcphttp.Options{
		Heartbeat: 2 * time.Second, Sessions: mcphttp.SessionOptions{
			Shared:       &mcphttp.SharedSessions{Values: shared, URL: "http://" + r.Addr + "/peers", Keys: [][]byte{r.Key}},
			MaxPerCaller: 10_000, Replay: 64 << 20,
		},
	})
	front, err := newFront(r.URL, r.Issuer, r.Key, shared, http.DefaultTransport, slog.Default())
	if err != nil {
		return err
	}
	routes := http.NewServeMux()
	routes.Handle("/peers", endpoint.PeerHandler())
	routes.Handle("/", front)
	routes.HandleFunc("/{$}", func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set(replicaHeader, strconv.Itoa(r.Number))
		endpoint.ServeHTTP(w, req)
	})
	srv := &http.Server{Addr: r.Addr, Handler: routes, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = srv.Close() })
	if err := srv.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// newFront returns the authorization server of the resource /mcp, which tells who calls.
func newFront(url, issuer string, key []byte, shared store.Values, transport http.RoundTripper, logger *slog.Logger) (http.Handler, error) {
	provider := authserver.OIDC(issuer, "psi", "secret")
	provider.Client = &http.Client{Transport: transport}
	front, err := authserver.New(url+"/mcp", &authserver.Options{Provider: provider, Values: shared, Keys: [][]byte{key}, Scopes: []string{"read"}, Logger: logger})
	if err != nil {
		return nil, err
	}
	routes := http.NewServeMux()
	routes.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		p, err := front.Verifier().Verify(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, p.Subject) //nolint:gosec // the guest is no browser, and may be gone
	})
	routes.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		r.RemoteAddr = r.Header.Get(addressHeader)
		front.ServeHTTP(w, r)
	})
	return routes, nil
}

type in struct {
	Text  string `json:"text"`
	Steps int    `json:"steps"`
}

type answer struct {
	Text string `json:"text"`
}

func echo(_ context.Context, in in) (string, error) { return in.Text, nil }

// whoami returns the ID of the session, or "none".
func whoami(ctx context.Context, _ struct{}) (string, error) {
	if s := mcp.SessionFromContext(ctx); s != nil {
		return s.ID(), nil
	}
	return "none", nil
}

// ask elicits two answers.
func ask(ctx context.Context, in in) (string, error) {
	var text strings.Builder
	for _, key := range []string{"a", "b"} {
		a, err := mcp.Elicit[answer](ctx, key, in.Text+key)
		if err != nil {
			return "", err
		}
		text.WriteString(a.Text)
	}
	return text.String(), nil
}

// work reports progress, which gives the call a resumable stream.
func work(ctx context.Context, in in) (string, error) {
	for i := range in.Steps {
		mcp.Progress(ctx, float64(i+1), float64(in.Steps), in.Text)
		sleep(ctx, 100*time.Millisecond)
	}
	return in.Text, context.Cause(ctx)
}

// render runs steps that are not repeated, and elicits an answer halfway.
func render(ctx context.Context, in in) (string, error) {
	var text strings.Builder
	text.WriteString(in.Text)
	for i := range in.Steps {
		step, err := mcp.Once(ctx, fmt.Sprint("step ", i), func(context.Context) (string, error) {
			sleep(ctx, 300*time.Millisecond)
			return strconv.Itoa(i), context.Cause(ctx)
		})
		if err != nil {
			return "", err
		}
		text.WriteString(step)
		if i != in.Steps/2 {
			continue
		}
		a, err := mcp.Elicit[answer](ctx, "middle", in.Text)
		if err != nil {
			return "", err
		}
		text.WriteString(a.Text)
	}
	return text.String(), nil
}

const (
	newsURI = "news://latest"
	newsKey = "chaos/news"
)

// news is a resource backed by a number in the store, which only grows.
type news struct {
	shared store.Store
	mux    *mcp.Mux
}

func (n *news) publish(ctx context.Context, in in) (string, error) {
	err := store.Update(ctx, n.shared, newsKey, time.Hour, func(old []byte) ([]byte, error) {
		last, _ := strconv.Atoi(string(old)) // 0 if unset
		return strconv.AppendInt(nil, int64(max(last, in.Steps)), 10), nil
	})
	if err != nil {
		return "", err
	}
	n.mux.ResourceUpdated(newsURI)
	return in.Text, nil
}

func (n *news) read(ctx context.Context, _ struct{}) (string, error) {
	value, _, err := n.shared.Get(ctx, newsKey)
	if errors.Is(err, store.ErrNotFound) {
		return "0", nil
	}
	return string(value), err
}
