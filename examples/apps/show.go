// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"log"
	"net/http"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/apps"
	"github.com/go-psi/psi/mcp/apps/host"
)

// show shows the apps of a server in a browser until ctx is done. The sandbox is a
// different origin, because it has a different port.
func show(ctx context.Context, mux *mcp.Mux, site, sandbox string) error {
	client := mcp.NewClient("airline-host", "v1.0.0", &mcp.ClientOptions{Extensions: []*mcp.ClientExtension{apps.Client()}})
	conn, err := client.Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		return err
	}
	defer conn.Close()
	h, err := host.New(conn, "http://"+sandbox, nil)
	if err != nil {
		return err
	}
	log.Printf("open http://%s in a browser", site)
	ended := make(chan error, 2)
	for addr, handler := range map[string]http.Handler{site: h, sandbox: host.Sandbox()} {
		server := &http.Server{Addr: addr, Handler: handler, ReadHeaderTimeout: 10 * time.Second}
		go func() { ended <- server.ListenAndServe() }()
		defer server.Close()
	}
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
}
