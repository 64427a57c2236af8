// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package guide_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/auth"
)

// TestKeys has a server that accepts one fixed token.
func TestKeys(t *testing.T) {
	t.Setenv("NOTES_KEY", "0123456789abcdef")
	mux := mcp.NewMux("notes", "v1.0.0", nil)
	mux.Tool("whoami", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		return mcp.PrincipalFromContext(ctx).Subject, nil
	}, nil))

	router := http.NewServeMux()
	keys := auth.APIKeys(map[string]*mcp.Principal{os.Getenv("NOTES_KEY"): {Subject: "ada"}}, nil)
	router.Handle("/mcp", auth.Require(keys, nil)(mcphttp.NewHandler(mux, nil)))

	url := mcptest.Serve(t, router) + "/mcp"
	transport := mcphttp.NewTransport(url, &mcphttp.TransportOptions{
		Header: http.Header{"Authorization": {"Bearer " + os.Getenv("NOTES_KEY")}},
	})
	got, err := mcp.Call[string](t.Context(), mcptest.Dial(t, transport, nil), "whoami", nil)
	if err != nil || got != "ada" {
		t.Errorf("got %q, %v", got, err)
	}
	_, err = mcp.NewClient("stranger", "v1.0.0", nil).Connect(t.Context(), mcphttp.NewTransport(url, nil))
	if !errors.Is(err, mcp.ErrUnauthorized) {
		t.Errorf("without the key: %v", err)
	}
}
