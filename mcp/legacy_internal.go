// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/revision"
)

// This file contains the functions of [Internal] that only the older revisions need.

// SetSession marks req as a request of an older revision, whose version, client and
// capabilities are those of its session.
func (internals) SetSession(req *Request, s *Session, version string, clientInfo, capabilities json.RawMessage, level LoggingLevel) {
	req.call.session = s
	req.peer.version, req.peer.info, req.peer.caps, req.peer.logLevel = version, clientInfo, capabilities, level
}

// NewSession returns a Session implemented by impl.
func (internals) NewSession(impl session) *Session { return &Session{impl} }

// CheckQuestions checks that the sender of req can be asked the questions.
func (internals) CheckQuestions(req *Request, questions map[string]InputRequest) error {
	return checkQuestions(req, questions)
}

// Abandon is called if the questions in a result will not be answered.
func (internals) Abandon(asked *InputRequired) {
	if asked.abandon != nil {
		asked.abandon()
	}
}

// Server returns the identity of the mux that served req, or nil if no mux did.
func (internals) Server(req *Request) json.RawMessage { return req.server() }

// IsResourceNotFound reports whether err is a [NewResourceNotFoundError], which may have been
// received from another server.
func (internals) IsResourceNotFound(err error) bool { return isResourceNotFound(err) }

// errRequiresTask is the reason why a tool that requires a task cannot be called.
var errRequiresTask = fmt.Errorf("it requires a task of %s (execution.taskSupport), which is not supported; "+
	"let the tool be called without one, or have the server speak %s", revision.Newest, LatestVersion)

// requiresTask reports whether a tool of 2025-11-25 can only be called as a task.
func requiresTask(t *Tool) bool {
	var execution struct {
		TaskSupport string `json:"taskSupport"`
	}
	return t.Extra["execution"] != nil && unmarshal(t.Extra["execution"], &execution) == nil && execution.TaskSupport == "required"
}

// needsTask reports whether the server refuses calls of the tool t that are not tasks. What a tool
// requires has no meaning if its server does not declare such tasks.
func (c *Conn) needsTask(t *Tool) bool {
	caps := c.server.Capabilities
	return requiresTask(t) && caps != nil && jsonscan.Member(jsonscan.Member(jsonscan.Member(caps.Extra["tasks"], "requests"), "tools"), "call") != nil
}

// errNeedsTask returns the error for a call of a tool for which needsTask is true.
func errNeedsTask(tool string) error {
	return Errorf(CodeMethodNotFound, "the tool %q cannot be called: %w", tool, errRequiresTask)
}

// withoutTaskSupport returns the tools without a member of 2025-11-25, which the newest
// revision does not have. A tool that can only be called as a task keeps it, because mounts
// leave such tools out.
func withoutTaskSupport(tools []*Tool) []*Tool {
	served := make([]*Tool, len(tools))
	for i, t := range tools {
		if _, ok := t.Extra["execution"]; ok && !requiresTask(t) {
			c := *t
			c.Extra = maps.Clone(t.Extra)
			delete(c.Extra, "execution")
			t = &c
		}
		served[i] = t
	}
	return served
}

// withoutTaskCapability returns capabilities without the tasks of 2025-11-25, which are not
// passed on.
func withoutTaskCapability(caps *ServerCapabilities) *ServerCapabilities {
	if caps == nil || caps.Extra["tasks"] == nil {
		return caps
	}
	c := *caps
	c.Extra = maps.Clone(caps.Extra)
	delete(c.Extra, "tasks")
	return &c
}

// RootType returns the type at the root of a JSON Schema, or "" if it is not a single type.
func (internals) RootType(schema []byte) string { return rootType(schema) }

// Target returns the name of req and whether its params contain the name.
func (internals) Target(req *Request) (string, bool) { return req.Name(), req.subject().to != 0 }

// ChangesIn returns all changes that a filter covers, in the order in which they are
// announced.
func (internals) ChangesIn(f *SubscriptionFilter) []Change { return everythingIn(f) }

// ListenAgain calls listen, which serves one subscription, until ctx is done, the connection
// is closed, or the server does not support subscriptions. If again is true, anything may have
// changed before the acknowledgement.
func (internals) ListenAgain(ctx context.Context, listen func(again bool) error) {
	listenAgain(ctx, listen)
}

// SetAccepted sets the URIs, sorted, that were accepted in an earlier subscription of the
// sender of req. They are not checked again. Nil means none.
func (internals) SetAccepted(req *Request, uris []string) { req.call.accepted = uris }

// Panicked logs a panic that occurred while serving req and returns the error for its sender.
func (internals) Panicked(ctx context.Context, req *Request, v any, logger *slog.Logger) error {
	return panicked(ctx, req, v, logger)
}

// ParseLoggingLevel parses a logging level from raw, a JSON value.
func (internals) ParseLoggingLevel(raw json.RawMessage) (LoggingLevel, error) {
	level, ok := parseLoggingLevel(raw)
	if !ok {
		return "", Errorf(CodeInvalidParams, "params.level must be one of %s", loggingLevelNames)
	}
	return level, nil
}

// WithoutKey returns meta without key.
func (internals) WithoutKey(meta Meta, key string) Meta { return withoutKey(meta, key) }

// AppendMeta appends the members of meta to an open object.
func (internals) AppendMeta(dst []byte, meta Meta) ([]byte, error) { return appendMeta(dst, meta) }

// CheckResult validates the raw JSON of a result.
func (internals) CheckResult(res Result) error { return checkResult(res) }

// AppendBody appends the members of res that all revisions share to an open object, and
// closes it. form converts tools before they are encoded; the encodings of registered tools
// are cached by number, which must be above 0 and below 8. Members in omit are left out.
// AppendBody panics if res contains nil where a value is required.
func (internals) AppendBody(dst []byte, res Result, number int, form func(*Tool) *Tool, omit []string) ([]byte, error) {
	return appendBody(dst, res, toolForm{number, form}, omit)
}

// NotificationRootsListChanged is the notification that the roots of a client have changed.
// Clients send it only to servers of older revisions.
const NotificationRootsListChanged = revision.RootsListChanged

// legacyMethods are the methods and notifications that only the older revisions have.
var legacyMethods = []string{
	revision.Initialize, revision.Initialized, revision.Ping, revision.SetLevel, revision.Unsubscribe, NotificationRootsListChanged,
}

// legacyCodeNames are the names of the codes that exist only in the older revisions.
var legacyCodeNames = map[int]string{
	codeResourceNotFound:                "resource not found",
	revision.CodeURLElicitationRequired: "URL elicitation required",
	revision.CodeUserRejectedRequest:    "user rejected",
}

// modernError returns the Error that is sent for err to a peer of the newest revision, which
// must not receive the codes of older ones (basic/index#error-codes). Handlers written for
// other packages return them.
func modernError(err error) *Error {
	e := asError(err)
	code := e.Code
	switch code {
	case revision.CodeResourceNotFound:
		code = CodeInvalidParams
	case revision.CodeURLElicitationRequired:
		code = CodeInternalError
	default:
		return e
	}
	c := *e
	c.Code = code
	return &c
}

// ModernError returns the Error that is sent for err to a peer of the newest revision.
func (internals) ModernError(err error) *Error { return modernError(err) }

// firstMethods describes the first request of a client, for error messages.
const firstMethods = MethodDiscover + " or " + revision.Initialize
