// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/go-psi/psi/internal/seam"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// checker checks the messages of one connection. It knows the requests in flight and
// what both sides have declared.
type checker struct {
	tb testing.TB

	mu      sync.Mutex // guards what follows; methods named ...Locked need it
	stopped bool
	calls   map[mcp.ID]*checkedCall // in flight or given up, by id
	ended   map[mcp.ID]bool         // subscriptions that the server has ended
	asked   map[mcp.ID]askedState   // requests of a legacy server, by id
	session *checkedSession         // nil unless initialize was answered
}

// checkedCall is a request of the client.
type checkedCall struct {
	req      *mcp.Request
	modern   bool
	givenUp  bool     // the client does not wait any longer; the server may not know yet
	progress *float64 // last reported

	acknowledged bool     // the subscription was
	accepted     []string // methods of its notifications
}

// askedState is the state of a request of the server. Requests that were never made have
// the zero state.
type askedState int

const (
	answerDue      askedState = iota + 1
	answerOptional            // the request was cancelled, or belongs to a lost session
	wasAnswered
)

// checkedSession is what initialize has negotiated.
type checkedSession struct {
	client      mcp.ClientCapabilities
	changes     []string         // methods of notifications that the server has declared
	logging     bool             // declared by the server
	level       mcp.LoggingLevel // "" means that the server chooses
	initialized bool
}

var core = mcp.Internal(seam.Key{})

// requestOf returns the request or notification that m is, without its params if they
// cannot be read.
func requestOf(m *transport.Message) *mcp.Request {
	req, _ := core.NewRequest(m)
	return req
}

func newChecker(tb testing.TB) *checker {
	return &checker{tb: tb, calls: map[mcp.ID]*checkedCall{}, ended: map[mcp.ID]bool{}, asked: map[mcp.ID]askedState{}}
}

func (c *checker) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
}

// reportLocked fails the test with the rule that a message breaks, unless violation is nil.
func (c *checker) reportLocked(sender string, message any, violation error) {
	if violation != nil && !c.stopped {
		c.tb.Errorf("mcptest: %v: the %s sent %.400s", violation, sender, message)
	}
}

// called checks a request of the client and remembers it.
func (c *checker) called(version string, body []byte) *checkedCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, err := transport.ParseMessage(body)
	if err != nil || !m.IsRequest() {
		c.reportLocked("client", body, errors.Join(errors.New("it is not a request"), err))
		return nil
	}
	call := &checkedCall{req: requestOf(&m), modern: isModern(version)}
	c.reportLocked("client", body, c.checkCallLocked(call))
	c.calls[m.ID] = call
	return call
}

func isModern(version string) bool { return slices.Contains(mcp.ModernVersions(), version) }

func (c *checker) checkCallLocked(call *checkedCall) error {
	if old := c.calls[call.req.ID]; old != nil && !old.givenUp {
		return fmt.Errorf("the id %s is in use", call.req.ID)
	}
	if token := call.req.ProgressToken(); !token.IsZero() {
		for _, other := range c.calls {
			if !other.givenUp && other.req.ProgressToken() == token {
				return fmt.Errorf("the progress token %s is in use", token)
			}
		}
	}
	return checkRequest(call.req, call.modern)
}

// returned checks the answer to a request; it is nil if none came.
func (c *checker) returned(call *checkedCall, r *transport.Message) {
	if call == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if r == nil {
		call.givenUp = true
		return
	}
	if c.calls[call.req.ID] == call {
		delete(c.calls, call.req.ID)
		if call.req.Method == mcp.MethodListen {
			c.ended[call.req.ID] = true
		}
	}
	if r.Error != nil {
		c.reportLocked("server", fmt.Sprintf("the error %v to %s", r.Error, call.req.Method), checkError(&mcp.Error{Code: r.Error.Code, Message: r.Error.Message, Data: r.Error.Data}, call.modern))
		return
	}
	violation := checkResult(call.req, call.modern, r.Result)
	if violation == nil && call.modern && call.req.Method == mcp.MethodListen && !call.acknowledged {
		violation = errUnacknowledged
	}
	c.reportLocked("server", fmt.Sprintf("the result %s to %s", r.Result, call.req.Method), violation)
	if violation == nil {
		c.updateSessionLocked(call.req, r)
	}
}

// updateSessionLocked notes what an answer changes in the session.
func (c *checker) updateSessionLocked(req *mcp.Request, r *transport.Message) {
	switch req.Method {
	case methodInitialize:
		var client struct {
			Capabilities mcp.ClientCapabilities `json:"capabilities"`
		}
		var server struct {
			Capabilities *mcp.ServerCapabilities `json:"capabilities"`
		}
		if err := errors.Join(jsonv2.Unmarshal(req.Params(), &client), jsonv2.Unmarshal(r.Result, &server)); err != nil {
			c.reportLocked("server", r.Result, err)
			return
		}
		c.session = &checkedSession{
			client:  client.Capabilities,
			changes: declaredChanges(server.Capabilities),
			logging: server.Capabilities.Logging != nil,

			initialized: c.session != nil, // messages of the lost session may still arrive
		}
		for id, state := range c.asked {
			if state == answerDue {
				c.asked[id] = answerOptional
			}
		}
	case methodSetLevel:
		var p mcp.LoggingMessageParams
		if c.session != nil && req.Decode(&p) == nil {
			c.session.level = p.Level
		}
	}
}

// sent checks a notification or a response of the client.
func (c *checker) sent(version string, body []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, err := transport.ParseMessage(body)
	switch {
	case err != nil:
		c.reportLocked("client", body, err)
	case m.IsResponse() && isModern(version):
		c.reportLocked("client", body, fmt.Errorf("clients send no responses in %s", version))
	case m.IsResponse():
		if state := c.asked[m.ID]; state != answerDue && state != answerOptional {
			c.reportLocked("client", body, fmt.Errorf("no request %s of the server waits for an answer", m.ID))
		}
		c.asked[m.ID] = wasAnswered
	case !m.ID.IsZero():
		c.reportLocked("client", body, errors.New("nothing waits for the answer to this request"))
	default:
		c.reportLocked("client", body, checkClientNotification(m.Method, isModern(version)))
		if m.Method == methodInitialized && c.session != nil {
			c.session.initialized = true
		}
	}
}

// unsent lets the client send a response again: it could not be sent.
func (c *checker) unsent(id mcp.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked[id] == wasAnswered {
		c.asked[id] = answerOptional
	}
}

// received checks what the server sends other than answers. The id is that of the
// request on whose stream it came, zero if the transport does not know it.
func (c *checker) received(m transport.Message, about mcp.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case m.Err != nil:
		c.reportLocked("server", fmt.Sprintf("a message with the id %q", m.ID), m.Err)
	case m.Method == "": // the transport reports that messages may have been lost
	case m.IsNotification():
		c.reportLocked("server", fmt.Sprintf("%s %s", m.Method, m.Params), c.checkNotificationLocked(requestOf(&m), about))
	default:
		c.reportLocked("server", fmt.Sprintf("the request %s %s %s", m.ID, m.Method, m.Params), c.checkQuestionLocked(requestOf(&m)))
	}
}

// checkQuestionLocked checks a request of the server, which only the legacy era has.
func (c *checker) checkQuestionLocked(req *mcp.Request) error {
	if c.asked[req.ID] == answerDue {
		return fmt.Errorf("the id %s is in use", req.ID)
	}
	c.asked[req.ID] = answerDue
	switch {
	case req.Method == methodPing && (c.session != nil || c.isConnectingLocked()):
		return nil
	case c.session == nil:
		return errors.New("servers of the modern era send no requests")
	case !c.session.initialized:
		return errors.New("before notifications/initialized, servers send no requests but pings")
	}
	return checkQuestion(&c.session.client, mcp.InputRequest{Method: req.Method, Params: req.Params()})
}

// isConnectingLocked reports whether initialize is in flight.
func (c *checker) isConnectingLocked() bool {
	for _, call := range c.calls {
		if call.req.Method == methodInitialize {
			return true
		}
	}
	return false
}
