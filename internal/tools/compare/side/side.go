// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package side

import (
	"context"
	"net/http"
)

// A Side is one of the compared implementations.
type Side struct {
	Name string
	// New returns a server.
	New func(o Options) Server
	// Dial connects a client over HTTP, and Start connects one to a program over stdio.
	// Both use the given version of the protocol.
	Dial  func(ctx context.Context, url, version string) (Caller, error)
	Start func(ctx context.Context, program Program, version string) (Caller, error)
}

// Options configure a server.
type Options struct {
	// Tools is the number of tools in addition to add and echo.
	Tools int
	// Modern serves HTTP without sessions. Not all sides can serve both eras at the same
	// time.
	Modern bool
	// Stream answers HTTP requests with event streams.
	Stream bool
	// Limits gives the floor the same limits per HTTP request as psi: a deadline for the
	// body, one for the response, and a heartbeat timer.
	Limits bool
	// Middleware wraps recovery, logging and a rate limit around the server. Only psi
	// supports it.
	Middleware bool
	// Tasks adds tasks "beside" the tools, or "behind" them, which runs every call as a
	// task. Only psi supports it.
	Tasks string
}

// A Server serves the tools of package work.
type Server interface {
	HTTP() http.Handler
	// Stdio serves standard input and output of the process.
	Stdio(ctx context.Context) error
	// Dispatcher returns a function that answers one message of the modern era.
	Dispatcher(ctx context.Context) (func(message []byte) ([]byte, error), error)
	// Connect connects a client in the same process.
	Connect(ctx context.Context, version string) (Caller, error)
	// Change changes the list of tools and notifies all listeners.
	Change()
}

// A Caller is a connected client.
type Caller interface {
	Add(ctx context.Context, a, b int) (int, error)
	Echo(ctx context.Context, text string) (string, error)
	Close() error
}

// An HTTPConnector is a Server that can connect a client in the same process over HTTP.
type HTTPConnector interface {
	ConnectHTTP(ctx context.Context) (Caller, error)
}

// A TaskStarter is a Caller that can start a task that waits for an answer.
type TaskStarter interface {
	StartTask(ctx context.Context) error
}

// A Program is a command that a client starts as its server.
type Program struct {
	Path string
	Env  []string // additional variables, as key=value
}
