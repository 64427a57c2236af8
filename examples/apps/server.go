// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/apps"
)

//go:embed page
var files embed.FS

const page = "ui://airline/seats"

// An airline has flights with free seats.
type airline struct {
	mu   sync.Mutex
	free map[string]map[string]bool // by flight and seat
}

func newAirline() *airline {
	return &airline{free: map[string]map[string]bool{
		"PS 12": {"1A": true, "1C": true, "2A": true, "2B": true},
		"PS 13": {"2C": true},
	}}
}

// newServer returns a server with a tool that is shown with a page. The page calls another
// tool, which models cannot call and clients without pages do not see.
func (a *airline) newServer() (*mcp.Mux, error) {
	directory, err := fs.Sub(files, "page")
	if err != nil {
		return nil, err
	}
	mux := mcp.NewMux("airline", "v1.0.0", nil)
	mux.Use(apps.HideAppTools())
	mux.Resource(page, apps.Page(directory, "seats.html", &apps.Options{Border: new(true)}))
	mux.Tool("seat_map", mcp.ToolFunc(a.seatMap, apps.Tool(&mcp.Tool{Description: "Shows the free seats of a flight, PS 12 or PS 13."}, page)))
	mux.Tool("reserve_seat", mcp.ToolFunc(a.reserve, apps.Tool(&mcp.Tool{Description: "Reserves a seat."}, page, apps.ForApp)))
	return mux, nil
}

type flight struct {
	Flight string `json:"flight" jsonschema:"description=number of the flight"`
}

// A seatMap is shown by the page. Models, and clients that show no pages, get it as text.
type seatMap struct {
	Flight string   `json:"flight"`
	Free   []string `json:"free"`
}

func (a *airline) seatMap(_ context.Context, in flight) (seatMap, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	seats, ok := a.free[in.Flight]
	if !ok {
		return seatMap{}, fmt.Errorf("there is no flight %q", in.Flight)
	}
	return seatMap{in.Flight, slices.Sorted(maps.Keys(seats))}, nil
}

type seat struct {
	Flight string `json:"flight"`
	Seat   string `json:"seat"`
}

func (a *airline) reserve(_ context.Context, in seat) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.free[in.Flight][in.Seat] {
		return "", fmt.Errorf("seat %s is taken", in.Seat)
	}
	delete(a.free[in.Flight], in.Seat)
	return fmt.Sprintf("Seat %s on %s is yours.", in.Seat, in.Flight), nil
}
