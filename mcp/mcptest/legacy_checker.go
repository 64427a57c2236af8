// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/internal/tasking"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// legacyRules are the rules of the legacy revisions.
type legacyRules struct {
	session *checkedSession       // nil until initialize has been answered
	asked   map[mcp.ID]askedState // requests of the server, by id
}

// A checkedSession is the state of a session, as negotiated by initialize.
type checkedSession struct {
	client      mcp.ClientCapabilities
	changes     []string         // methods of change notifications that the server has declared
	logging     bool             // declared by the server
	level       mcp.LoggingLevel // "" means that the server chooses
	initialized bool
}

// An askedState is the state of a request of the server. It is zero for requests that were
// never sent.
type askedState int

const (
	answerDue      askedState = iota + 1
	answerOptional            // the request was cancelled, or belongs to a lost session
	wasAnswered
)

func newLegacyRules() legacyRules { return legacyRules{asked: map[mcp.ID]askedState{}} }

// isLegacyRequest reports whether clients send a request in the legacy era only.
func isLegacyRequest(method string) bool {
	switch method {
	case revision.Initialize, revision.Ping, revision.SetLevel, revision.Subscribe, revision.Unsubscribe:
		return true
	}
	return false
}

// isLegacyClientNotification reports whether clients send a notification in the legacy era
// only.
func isLegacyClientNotification(method string) bool {
	return method == revision.Initialized || method == mcp.NotificationProgress || method == revision.RootsListChanged
}

// isLegacyCode reports whether servers send an error code in the legacy era only.
func isLegacyCode(code int) bool {
	return code == revision.CodeResourceNotFound || code == revision.CodeURLElicitationRequired
}

func (r *legacyRules) checkRequest(req *mcp.Request) error {
	if req.Method == mcp.MethodDiscover || req.Method == mcp.MethodListen {
		return errors.New("it is a request of the modern era")
	}
	return nil
}

func (r *legacyRules) checkClientNotification(method string) error {
	if method == revision.Initialized && r.session != nil {
		r.session.initialized = true
	}
	if method != mcp.NotificationCancelled && !isLegacyClientNotification(method) && mcp.IsMethod(method) {
		return errors.New("it is a notification of servers")
	}
	return nil
}

func (r *legacyRules) checkResponse(id mcp.ID) error {
	state := r.asked[id]
	r.asked[id] = wasAnswered
	if state != answerDue && state != answerOptional {
		return fmt.Errorf("no request %s of the server waits for an answer", id)
	}
	return nil
}

// unsent records that a response could not be sent, so the client may send it again.
func (r *legacyRules) unsent(id mcp.ID) {
	if r.asked[id] == wasAnswered {
		r.asked[id] = answerOptional
	}
}

func (r *legacyRules) checkError(e *transport.Error) error { return checkError(e) }

func (r *legacyRules) checkResult(req *mcp.Request, raw json.RawMessage) error {
	res, err := parseResult(raw)
	if err != nil {
		return err
	}
	if kind := res.ResultType; kind != nil && *kind != mcp.ResultComplete {
		if len(req.ClientCapabilities().Extensions) == 0 {
			return errNoExtension(*kind)
		}
		return nil
	}
	switch req.Method {
	case revision.Initialize:
		return r.checkInitialize(req, res)
	case revision.SetLevel:
		var p mcp.LoggingMessageParams
		if r.session != nil && req.Decode(&p) == nil {
			r.session.level = p.Level
		}
	}
	return checkMembers(res.Others, resultMembers[req.Method])
}

// checkInitialize checks the result of initialize, which starts a session.
func (r *legacyRules) checkInitialize(req *mcp.Request, res *result) error {
	if err := checkMembers(res.Others, []string{"protocolVersion", "capabilities", "serverInfo"}); err != nil {
		return err
	}
	var client struct {
		Capabilities mcp.ClientCapabilities `json:"capabilities"`
	}
	var server mcp.ServerCapabilities
	if err := errors.Join(jsonv2.Unmarshal(req.Params(), &client), jsonv2.Unmarshal(res.Others["capabilities"], &server)); err != nil {
		return err
	}
	r.session = &checkedSession{
		client:  client.Capabilities,
		changes: declaredChanges(&server),
		logging: server.Logging != nil,

		initialized: r.session != nil, // messages of the lost session may still arrive
	}
	for id, state := range r.asked {
		if state == answerDue {
			r.asked[id] = answerOptional
		}
	}
	return nil
}

// declaredChanges returns the methods of the change notifications that a server has declared.
func declaredChanges(s *mcp.ServerCapabilities) []string {
	tools, prompts, resources := s.Tools, s.Prompts, s.Resources
	return methodsOf(tools != nil && tools.ListChanged, prompts != nil && prompts.ListChanged,
		resources != nil && resources.ListChanged, resources != nil && resources.Subscribe)
}

// isConnectingLocked reports whether initialize is in flight.
func (c *checker) isConnectingLocked() bool {
	for _, call := range c.calls {
		if call.req.Method == revision.Initialize {
			return true
		}
	}
	return false
}

// checkServerRequestLocked checks a request of the server, which exists only in the legacy
// era.
func (c *checker) checkServerRequestLocked(req *mcp.Request) error {
	r := &c.legacy
	if r.asked[req.ID] == answerDue {
		return fmt.Errorf("the id %s is in use", req.ID)
	}
	r.asked[req.ID] = answerDue
	switch {
	case req.Method == revision.Ping && (r.session != nil || c.isConnectingLocked()):
		return nil
	case r.session == nil:
		return errors.New("servers of the modern era send no requests")
	case !r.session.initialized:
		return errors.New("before notifications/initialized, servers send no requests but pings")
	}
	return checkQuestion(&r.session.client, mcp.InputRequest{Method: req.Method, Params: req.Params()})
}

// checkLegacyNotificationLocked checks a notification of the server if the legacy era has its
// own rules for it, and reports whether it has.
func (c *checker) checkLegacyNotificationLocked(note *mcp.Request) (isLegacy bool, err error) {
	s := c.legacy.session
	switch {
	case s == nil && c.isConnectingLocked():
		return true, nil // the result of initialize may have arrived but not been checked yet
	case s != nil && note.Method == tasking.NotificationTask:
		return true, errors.New("it is a notification of the modern era")
	case s == nil:
		return false, nil
	}
	switch note.Method {
	case mcp.NotificationMessage:
		return true, s.checkLog(note)
	case mcp.NotificationCancelled:
		return true, c.legacy.checkCancelled(note)
	case mcp.NotificationAcknowledged:
		return true, errors.New("the legacy era has no acknowledgements")
	case mcp.NotificationToolsListChanged, mcp.NotificationPromptsListChanged, mcp.NotificationResourcesListChanged, mcp.NotificationResourceUpdated:
		return true, s.checkChange(note.Method)
	}
	return false, nil
}

// checkLog checks that the client wants a log message of this level.
func (s *checkedSession) checkLog(note *mcp.Request) error {
	level, err := levelOf(note)
	switch {
	case err != nil:
		return err
	case !s.logging:
		return errors.New("the server did not declare logging")
	case s.level != "" && !reaches(level, s.level):
		return fmt.Errorf("the client asked for the level %s", s.level)
	}
	return nil
}

// checkCancelled checks that the server cancels one of its own requests.
func (r *legacyRules) checkCancelled(note *mcp.Request) error {
	var p mcp.CancelledParams
	if err := note.Decode(&p); err != nil {
		return err
	}
	switch r.asked[p.RequestID] {
	case answerDue:
		r.asked[p.RequestID] = answerOptional
	case answerOptional, wasAnswered: // the answer may have crossed the cancellation
	default:
		return fmt.Errorf("the server made no request %s", p.RequestID)
	}
	return nil
}

// checkChange checks that the server has declared a change notification.
func (s *checkedSession) checkChange(method string) error {
	if !slices.Contains(s.changes, method) {
		return errors.New("the server did not declare that it reports such changes")
	}
	return nil
}
