// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package side

import (
	"context"
	"net/http"
)

// A Side is one of the implementations that are compared.
type Side struct {
	Name string
	// New makes a server.
	New func(o Options) Server
	// Dial connects a client over HTTP, and Start one to a program over stdio, in a
	// version of the protocol.
	Dial  func(ctx context.Context, url, version string) (Caller, error)
	Start func(ctx context.Context, program Program, version string) (Caller, error)
}

// Options are those of a server.
type Options struct {
	// Tools is how many tools there are besides add and echo.
	Tools int
	// Modern serves HTTP without sessions: not all sides serve both eras at once.
	Modern bool
	// Stream answers HTTP with event streams.
	Stream bool
	// Limits gives the floor what psi has for each request over HTTP: a deadline for the
	// body, one for the response, and a timer for a heartbeat.
	Limits bool
	// Middleware wraps recovery, logging and a rate limit around everything. Only
	// psi has it.
	Middleware bool
	// Tasks adds tasks: "beside" the tools, or "behind" them, so that a call is one. Only psi
	// has them.
	Tasks string
}

// A Server has the tools of package work.
type Server interface {
	HTTP() http.Handler
	// Stdio serves the process's standard input and output.
	Stdio(ctx context.Context) error
	// Dispatcher returns a function that answers one message of the modern era.
	Dispatcher(ctx context.Context) (func(message []byte) ([]byte, error), error)
	// Connect connects a client in the same process.
	Connect(ctx context.Context, version string) (Caller, error)
	// Change changes the list of tools, and tells all that listen.
	Change()
}

// A Caller is a client that is connected.
type Caller interface {
	Add(ctx context.Context, a, b int) (int, error)
	Echo(ctx context.Context, text string) (string, error)
	Close() error
}

// An HTTPConnector is a Server that can connect a client in the same process over HTTP.
type HTTPConnector interface {
	ConnectHTTP(ctx context.Context) (Caller, error)
}

// A TaskStarter is a Caller that can start a task which waits for an answer.
type TaskStarter interface {
	StartTask(ctx context.Context) error
}

// A Program is what a client starts as its server.
type Program struct {
	Path string
	Env  []string // besides what there is, as key=value
}
