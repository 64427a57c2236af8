// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"

	"github.com/go-psi/psi/internal/tools/compare/side"
)

// clients returns the workloads that measure clients. Their server is the floor.
func clients() []workload {
	return []workload{
		{name: "client over HTTP, 16 calls at once", begin: dialing, rows: []row{{measure: cpu, ratio: 1.3}, {measure: allocations}}},
		{name: "client over stdio, one call at a time", begin: ops(spec{Role: "client", Op: "client stdio"}), rows: []row{{measure: cpu, ratio: 2}, {measure: allocations}}},
	}
}

// dialing measures a client over HTTP.
func dialing(ctx context.Context, sideName string) (session, error) {
	server, err := launch(spec{Role: "http", Side: floorName, Options: side.Options{Modern: true}})
	if err != nil {
		return nil, err
	}
	s, err := ops(spec{Role: "client", Op: "client http", URL: "http://" + server.addr + "/mcp"})(ctx, sideName)
	if err != nil {
		return nil, errors.Join(err, server.close())
	}
	return &withServer{s, server}, nil
}

// withServer closes a server together with a session.
type withServer struct {
	session
	server *process
}

func (s *withServer) close() error { return errors.Join(s.session.close(), s.server.close()) }
