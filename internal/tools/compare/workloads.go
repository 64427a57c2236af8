// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/tools/compare/side"
)

// workloads returns all workloads. Their bars are explained in docs/performance.md.
func workloads() []workload {
	return slices.Concat(overHTTP(), overStdio(), inside(), clients(), held(), taskWorkloads(), []workload{fanOut(), smallest(), middlewares()})
}

func overHTTP() []workload {
	var all []workload
	for _, conns := range []int{1, 16, 64} {
		rows := []row{{measure: cpu, ratio: 1.1}}
		if conns == 16 {
			rows = append(rows, row{measure: allocations}, row{measure: allocated})
		}
		all = append(all, workload{name: fmt.Sprintf("HTTP modern, JSON, %d at once", conns), begin: calls(modern, conns, side.Options{}), rows: rows})
	}
	for _, w := range []struct {
		name   string
		era    era
		stream bool
	}{
		{"HTTP modern, event stream, 16 at once", modern, true},
		{"HTTP legacy session, JSON, 16 at once", legacy, false},
		{"HTTP legacy session, event stream, 16 at once", legacy, true},
	} {
		all = append(all,
			workload{name: w.name, begin: calls(w.era, 16, side.Options{Stream: w.stream}), rows: []row{{measure: cpu, ratio: 1.1}, {measure: allocations}, {measure: allocated}}},
			workload{name: w.name + ", raw with limits", begin: calls(w.era, 16, side.Options{Stream: w.stream, Limits: true}), rows: []row{{measure: cpu, ratio: 1.1}}, only: []string{floorName, ownName}})
	}
	return append(all,
		workload{name: "HTTP legacy session among 9,000, JSON, 16 at once", begin: crowded(9000), rows: []row{{measure: cpu, ratio: 1.1}}, only: []string{floorName, ownName}},
		workload{name: "HTTP modern, echo of 1 MB", begin: echoes(1 << 20), rows: []row{{measure: cpu, ratio: 0.9}, {measure: allocated}}},
	)
}

// calls measures calls of add over HTTP.
func calls(e era, conns int, o side.Options) func(context.Context, string) (session, error) {
	o.Modern = e == modern
	s := spec{Role: "http", Options: o}
	return func(ctx context.Context, sideName string) (session, error) {
		return under(s, func(ctx context.Context, p *process) (load, error) {
			return newHTTPLoad(ctx, p.addr, e, conns, accepting(sideName, o.Stream), "add", e.add(), checkAdd)
		})(ctx, sideName)
	}
}

// crowded measures calls of add in sessions while many other sessions are idle.
func crowded(others int) func(context.Context, string) (session, error) {
	return under(spec{Role: "http"}, func(ctx context.Context, p *process) (load, error) {
		idle := hold{ctx: ctx, era: legacy}
		if err := errors.Join(idle.open(p.addr, others), idle.close()); err != nil {
			return nil, err
		}
		return newHTTPLoad(ctx, p.addr, legacy, 16, acceptBoth, "add", legacy.add(), checkAdd)
	})
}

// accepting returns the Accept header for a client that wants an event stream, or not. With
// psi, the client chooses; with the other sides, the server does.
func accepting(sideName string, stream bool) string {
	if stream && sideName == ownName {
		return acceptSSE
	}
	return acceptBoth
}

func echoes(length int) func(context.Context, string) (session, error) {
	text := strings.Repeat("0123456789abcdef", length/16)
	return under(spec{Role: "http", Options: side.Options{Modern: true}}, func(ctx context.Context, p *process) (load, error) {
		return newHTTPLoad(ctx, p.addr, modern, 2, acceptBoth, "echo", modern.echo(text), checkEcho(length))
	})
}

func overStdio() []workload {
	piped := func(inFlight int) func(context.Context, string) (session, error) {
		return under(spec{Role: "stdio"}, func(_ context.Context, p *process) (load, error) { return newStdioLoad(p, inFlight), nil })
	}
	return []workload{
		{name: "stdio, one call at a time", begin: piped(1), rows: []row{{measure: cpu, ratio: 0.9}, {measure: allocations}}},
		{name: "stdio, 64 calls in flight", begin: piped(64), rows: []row{{measure: cpu, ratio: 0.9}, {measure: allocations}}},
	}
}

// ops measures an operation that the child repeats by itself.
func ops(s spec) func(context.Context, string) (session, error) {
	return under(s, func(_ context.Context, p *process) (load, error) { return ordered{p}, nil })
}

func inside() []workload {
	return []workload{
		{name: "in process, client and server", begin: ops(spec{Op: "in process"}), rows: []row{{measure: cpu, ratio: 1.3}, {measure: allocations}}},
		{name: "in process, echo of 64 KB", begin: ops(spec{Op: "in process 64 KB"}), rows: []row{{measure: cpu, ratio: 0.9}, {measure: allocated}}},
		{name: "dispatch of a message", begin: ops(spec{Op: "dispatch"}), rows: []row{{measure: cpu, ratio: 0.8}, {measure: allocations, most: 14}}},
		{name: "dispatch among 10,000 tools", begin: ops(spec{Op: "dispatch", Options: side.Options{Tools: 10_000}}), rows: []row{{measure: cpu, ratio: 0.8}, {measure: allocations, most: 14}}, only: []string{floorName, ownName}},
		{name: "http.Handler without sockets", begin: ops(spec{Op: "handler", Options: side.Options{Modern: true}}), rows: []row{{measure: cpu, ratio: 1}, {measure: allocations, most: 48}}},
		{name: "tools/list of 1,000 tools", begin: ops(spec{Op: "list", Options: side.Options{Tools: 1000}}), rows: []row{{measure: cpu, ratio: 0.1}, {measure: allocations, most: 40}}},
	}
}
