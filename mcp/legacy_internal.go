// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/internal/tasking"
)

// This file has the functions of [Internal] that only the older revisions need.

// SetSession marks req as one of an older revision, which the session describes
// instead of the request itself.
func (internals) SetSession(req *Request, s *Session, version string, clientInfo, capabilities json.RawMessage, level LoggingLevel) {
	req.call.session = s
	req.peer.version, req.peer.info, req.peer.caps, req.peer.logLevel = version, clientInfo, capabilities, level
}

// NewSession returns the session that impl implements.
func (internals) NewSession(impl session) *Session { return &Session{impl} }

// CheckQuestions checks that the sender of req can be asked the questions.
func (internals) CheckQuestions(req *Request, questions map[string]InputRequest) error {
	return checkQuestions(req, questions)
}

// Server returns the identity of the mux that served req, nil if none did.
func (internals) Server(req *Request) json.RawMessage { return req.sharedCall().server() }

// IsResourceNotFound reports whether err is [NewResourceNotFoundError], also that of another
// server.
func (internals) IsResourceNotFound(err error) bool { return isResourceNotFound(err) }

// RootType returns the type of the values of a JSON Schema, "" if it does not say.
func (internals) RootType(schema []byte) string { return rootType(schema) }

// Target returns what the request is about, and whether its params say so.
func (internals) Target(req *Request) (string, bool) { return req.Name(), req.subject().to != 0 }

// TaskSupport reports whether a tool of a list can be called as a task.
func (internals) TaskSupport(t *Tool) tasking.Support { return t.taskSupport }

// ChangesIn returns all changes that a filter covers, in the order in which they are
// announced.
func (internals) ChangesIn(f *SubscriptionFilter) []Change { return everythingIn(f) }

// ListenAgain calls listen, which serves one subscription, until ctx is done or the
// server has no changes to announce. If again is true, anything may have changed before
// the acknowledgement.
func (internals) ListenAgain(ctx context.Context, listen func(again bool) error) {
	listenAgain(ctx, listen)
}

// SetAccepted notes the URIs, sorted, of whose updates the sender of req was told before:
// they are not checked again. Nil means none.
func (internals) SetAccepted(req *Request, uris []string) { req.call.accepted = uris }

// SetTaskTerms sets what req, and all copies of it, demand of tasks.
func (internals) SetTaskTerms(req *Request, terms *tasking.Terms) { req.call.terms = terms }

// Panicked logs a panic while req is served, and returns the error for its sender.
func (internals) Panicked(ctx context.Context, req *Request, v any, logger *slog.Logger) error {
	return panicked(ctx, req, v, logger)
}

// ParseLoggingLevel returns the level that raw, a JSON value, names.
func (internals) ParseLoggingLevel(raw json.RawMessage) (LoggingLevel, error) {
	level, ok := parseLoggingLevel(raw)
	if !ok {
		return "", Errorf(CodeInvalidParams, "params.level must be one of %s", loggingLevelNames)
	}
	return level, nil
}

// WithoutKey returns meta without a key.
func (internals) WithoutKey(meta Meta, key string) Meta { return withoutKey(meta, key) }

// AppendMeta continues an object with the members of meta.
func (internals) AppendMeta(dst []byte, meta Meta) ([]byte, error) { return appendMeta(dst, meta) }

// CheckResult checks what a handler made by hand in res.
func (internals) CheckResult(res Result) error { return checkResult(res) }

// AppendBody continues an object with the members of res that every revision has, and
// closes it. Tools are encoded as form makes them; what a registered tool becomes is kept
// under the number of the form, which is above 0 and below 8. It panics if res has a nil
// where there must be something.
func (internals) AppendBody(dst []byte, res Result, number int, form func(*Tool) *Tool) ([]byte, error) {
	return appendBody(dst, res, toolForm{number, form})
}

// NotificationRootsListChanged tells a server of an older revision that the roots of its
// client have changed.
const NotificationRootsListChanged = revision.RootsListChanged

// legacyMethods are the methods and notifications that only the older revisions have.
var legacyMethods = []string{
	revision.Initialize, revision.Initialized, revision.Ping, revision.SetLevel, revision.Unsubscribe, NotificationRootsListChanged,
}

// isLegacyCode reports whether an error code is one that only the older revisions have.
func isLegacyCode(code int) bool {
	return code == revision.CodeURLElicitationRequired || code == revision.CodeUserRejectedRequest
}

// firstMethods are the methods with which a client begins.
const firstMethods = MethodDiscover + " or " + revision.Initialize
