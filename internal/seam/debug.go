// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package seam

import "time"

// A Registration describes a handler that is registered on a mux.
type Registration struct {
	// Kind is "tool", "prompt", "resource", "method" or "mount".
	Kind string `json:"kind"`
	// Name is the name, URI, template, method or prefix, as clients of the outermost mux use it.
	Name string `json:"name"`
	// Site is the file and line of the registration.
	Site string `json:"site"`
	// Handler is the type of the registered handler.
	Handler string `json:"handler"`
	// Middleware is the middleware around the handler, outermost first.
	Middleware []Function `json:"middleware,omitempty"`
}

// A Function is a function of a program.
type Function struct {
	Name string `json:"name"`
	Site string `json:"site"`
}

// A Subscription is an open subscriptions/listen request.
type Subscription struct {
	Caller  string `json:"caller,omitempty"` // the subject, if the caller is authenticated
	Covers  int    `json:"covers"`           // number of lists and resources
	Waiting int    `json:"waiting"`          // number of changes that have not been sent
}

// A Stream is an event stream of a session over HTTP.
type Stream struct {
	Session      string `json:"session"` // as in logs
	Name         string `json:"name"`
	IsStandalone bool   `json:"standalone"` // belongs to no request
	Attached     bool   `json:"attached"`   // a client is reading it
	Kept         int    `json:"kept"`       // bytes of events, for a client that resumes the stream
}

// A Task is a task whose handler runs in this process.
type Task struct {
	ID       string    `json:"id"`   // not the ID of the task, which is a secret
	Tool     string    `json:"tool"` // "" before its request has reached the tool
	Caller   string    `json:"caller,omitempty"`
	Message  string    `json:"message,omitempty"` // the latest status message
	Created  time.Time `json:"created"`
	Attempts int       `json:"attempts"` // runs since its last progress that ended with their process, plus this
}

// Tasks describes the tasks of one manager in this process.
type Tasks struct {
	Running []Task `json:"running"` // oldest first
	Waiting int    `json:"waiting"` // number of tasks that wait for a slot
	Slots   int    `json:"slots"`
}
