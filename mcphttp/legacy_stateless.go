// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"cmp"
	"net/http"

	"github.com/go-psi/psi/internal/header"
	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/internal/server"
	"github.com/go-psi/psi/mcp"
)

// This file serves clients of the older revisions without sessions: each request gets a
// session of its own, which has no ID and ends with the request.

// statelessMethods lists the HTTP methods that the endpoint serves without sessions.
const statelessMethods = "POST, OPTIONS"

// transient returns a session for one request. If it is for a handshake, isNew is true.
// Otherwise the version is that of the header, and the client has no capabilities, because
// nothing remembers those that it has declared.
func (ss *sessions) transient(r *http.Request, isNew bool) *session {
	var state *server.State
	if !isNew {
		version := cmp.Or(r.Header.Get(header.Version), revision.R202503.String()) // older clients send none
		state = &server.State{Version: version, Level: mcp.LoggingLevelInfo}
	}
	return &session{
		caller: new(caller), isTransient: true,
		legacy: ss.server.NewSession(server.Details{Principal: PrincipalOf(r)}, state),
	}
}

var errNoSubscriptions = mcp.Errorf(mcp.CodeInvalidRequest, "this server keeps no sessions, and so no subscriptions: read the resource again instead")

// needsSession returns an error if a request has no effect without a session.
func needsSession(c *server.Call) error {
	if c.IsRequest() && (c.Method() == mcp.MethodSubscribe || c.Method() == revision.Unsubscribe) {
		return errNoSubscriptions
	}
	return nil
}

func writeStateless(w http.ResponseWriter) {
	writeNotAllowed(w, statelessMethods, "this server keeps no sessions: there is no stream and nothing to delete; requests are sent with POST")
}
