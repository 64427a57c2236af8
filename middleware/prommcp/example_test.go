// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package prommcp_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/middleware"
	"github.com/go-psi/psi/middleware/prommcp"
)

func Example() {
	registry := prometheus.NewRegistry()
	mux := mcp.NewMux("greeter", "v1.0.0", nil)
	mux.Use(middleware.Metrics(prommcp.Server(registry), nil))
	mux.Tool("greet", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "Hi", nil }, nil))

	routes := http.NewServeMux()
	routes.Handle("/mcp", mcphttp.NewHandler(mux, nil))
	routes.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))

	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(context.Background(), mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	if _, err := mcp.Call[string](context.Background(), conn, "greet", nil); err != nil {
		fmt.Println(err)
		return
	}
	series, err := testutil.GatherAndCount(registry, "mcp_server_operation_duration_seconds")
	fmt.Println(series, err) // of server/discover and of the call
	// Output: 2 <nil>
}
