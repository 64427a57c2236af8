// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/apps"
	"github.com/go-psi/psi/mcp/mcptest"
)

func server(t *testing.T) *mcp.Mux {
	t.Helper()
	mux, err := newAirline().newServer()
	if err != nil {
		t.Fatal(err)
	}
	return mux
}

// Hosts find nothing wrong with the server.
func TestCheck(t *testing.T) {
	if err := apps.Check(t.Context(), server(t)); err != nil {
		t.Error(err)
	}
}

// The model sees the map, and only the page can reserve a seat.
func TestSeats(t *testing.T) {
	client := &mcptest.Client{Options: mcp.ClientOptions{Extensions: []*mcp.ClientExtension{apps.Client()}}}
	client.RunNew(t, func(t *testing.T) mcp.Handler { return server(t) }, func(t *testing.T, c *mcp.Conn) {
		reserve := func(ctx context.Context) (string, error) {
			return mcp.Call[string](ctx, c, "reserve_seat", seat{"PS 13", "2C"})
		}
		if _, err := reserve(t.Context()); err == nil || !strings.Contains(err.Error(), "for the app only") {
			t.Error(err)
		}
		if got, err := reserve(apps.AsApp(t.Context())); err != nil || got != "Seat 2C on PS 13 is yours." {
			t.Errorf("%q, %v", got, err)
		}
		if _, err := reserve(apps.AsApp(t.Context())); err == nil || !strings.Contains(err.Error(), "is taken") {
			t.Error(err)
		}
		if got, err := mcp.Call[seatMap](t.Context(), c, "seat_map", flight{"PS 13"}); err != nil || len(got.Free) != 0 {
			t.Errorf("%+v, %v", got, err)
		}
		d, err := apps.Read(t.Context(), c, page)
		if err != nil || !strings.Contains(d.HTML, "ui/initialize") || !strings.Contains(d.HTML, "<style>") {
			t.Errorf("%v, %v", d, err)
		}
	})
}
