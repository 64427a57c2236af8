// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package server

import (
	"github.com/go-psi/psi/internal/header"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// A rule is a requirement of the specification for messages of the newest revision.
type rule struct {
	http, other   bool // it applies to messages over HTTP, and over other transports
	notifications bool // it also applies to notifications over HTTP
	check         func(req *mcp.Request) error
}

// rules are checked in this order: the headers and the metadata must be present and agree,
// and the version must be supported.
var rules = [...]rule{
	{http: true, check: requireHeaders},
	{http: true, other: true, check: core.CheckMeta},
	{http: true, notifications: true, check: compareVersion},
	{http: true, check: compareMethod},
	{http: true, check: compareName},
	{http: true, other: true, check: core.CheckVersion},
}

// checkModern returns why a message of the newest revision is invalid.
func checkModern(req *mcp.Request) error {
	isHTTP := req.Header != nil
	for i := range rules {
		r := &rules[i]
		applies := r.other
		if isHTTP {
			applies = r.http && (r.notifications || !req.IsNotification())
		}
		if !applies {
			continue
		}
		if err := r.check(req); err != nil {
			return err
		}
	}
	return nil
}

func requireHeaders(req *mcp.Request) error {
	keys := []string{header.Version, header.Method, header.Name}
	if !core.IsNamed(req.Method) {
		keys = keys[:2]
	}
	for _, key := range keys {
		switch n := len(req.Header[key]); {
		case n == 0:
			return mcp.Errorf(mcp.CodeHeaderMismatch, "the header %s is missing; requests of %s must have it", key, mcp.LatestVersion)
		case n > 1:
			return mcp.Errorf(mcp.CodeHeaderMismatch, "the header %s appears %d times", key, n)
		}
	}
	return nil
}

func compareVersion(req *mcp.Request) error {
	values := req.Header[header.Version]
	if len(values) == 0 || req.Version() == "" || values[0] == req.Version() {
		return nil
	}
	return headerMismatch(header.Version, values[0], "version", req.Version())
}

func compareMethod(req *mcp.Request) error {
	if method := req.Header[header.Method][0]; method != req.Method {
		return headerMismatch(header.Method, method, "method", req.Method)
	}
	return nil
}

func compareName(req *mcp.Request) error {
	if !core.IsNamed(req.Method) {
		return nil
	}
	name, err := transport.DecodeHeaderValue(req.Header[header.Name][0])
	if err != nil {
		return mcp.Errorf(mcp.CodeHeaderMismatch, "the header %s: %w", header.Name, err)
	}
	if name != req.Name() {
		return headerMismatch(header.Name, name, "name or URI", req.Name())
	}
	return nil
}

func headerMismatch(key, value, member, body string) error {
	return mcp.Errorf(mcp.CodeHeaderMismatch, "the header %s is %.80q, but the %s in the body is %.80q", key, value, member, body)
}
