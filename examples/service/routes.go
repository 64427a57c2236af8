// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/auth"
)

// The scopes. Every caller needs the first.
const (
	scopeRead  = "stock:read"
	scopeWrite = "stock:write"
)

// newRoutes returns the public routes, and the MCP endpoint among them, which must be shut
// down before the server.
func newRoutes(c *config, stock *inventory, metrics *prometheus.Registry, logger *slog.Logger) (http.Handler, *mcphttp.Handler, error) {
	metadata := &auth.Metadata{
		Resource:             c.resource,
		AuthorizationServers: []string{c.issuer},
		ScopesSupported:      []string{scopeRead, scopeWrite},
		ResourceName:         "Stock",
	}
	path, err := auth.MetadataPath(c.resource)
	if err != nil {
		return nil, nil, err
	}
	tokens, err := auth.NewJWT(c.issuer, c.resource, nil)
	if err != nil {
		return nil, nil, err
	}
	endpoint := mcphttp.NewHandler(newMux(stock, metrics, muxOptions(c, logger)), &mcphttp.Options{AllowedHosts: []string{c.host}})
	r := chi.NewRouter()
	r.Handle(path, auth.MetadataHandler(metadata))
	r.Group(func(r chi.Router) {
		r.Use(auth.Require(tokens, &auth.Options{Metadata: metadata, Scopes: []string{scopeRead}, Logger: logger}))
		r.Handle("/mcp", endpoint)
		r.Mount("/v1", restRoutes(stock))
	})
	return r, endpoint, nil
}

func muxOptions(c *config, logger *slog.Logger) *mcp.MuxOptions {
	opts := &mcp.MuxOptions{Logger: logger}
	if c.stateKey != "" {
		opts.StateKeys = [][]byte{[]byte(c.stateKey)}
	}
	return opts
}

// newRegistry returns the metrics of the process, to which the MCP server adds its own.
func newRegistry() *prometheus.Registry {
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return metrics
}

// adminRoutes returns the routes for the operator: /healthz fails if the process should be
// restarted, and /readyz if it should not receive requests.
func adminRoutes(metrics *prometheus.Registry, ready *atomic.Bool) http.Handler {
	r := chi.NewRouter()
	r.Handle("/metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	r.Get("/healthz", func(http.ResponseWriter, *http.Request) {})
	r.Get("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !ready.Load() {
			http.Error(w, "stopping", http.StatusServiceUnavailable)
		}
	})
	return r
}
