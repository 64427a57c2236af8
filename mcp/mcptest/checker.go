// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/go-psi/psi/internal/seam"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// A checker checks the messages of one connection. It tracks the requests in flight and the
// capabilities declared by both sides. It checks messages on the wire, not answers of a
// client of its own, so it finds faults that cancel out because both sides share them.
type checker struct {
	tb testing.TB

	mu      sync.Mutex // guards the fields below; methods named ...Locked require it
	stopped bool
	calls   map[mcp.ID]*checkedCall // in flight or abandoned, by id
	ended   map[mcp.ID]bool         // subscriptions that have ended, by id
	legacy  legacyRules
}

// A checkedCall is a request of the client.
type checkedCall struct {
	req      *mcp.Request
	rules    rules
	givenUp  bool     // the client no longer waits; the server may not know yet
	progress *float64 // last reported value

	acknowledged bool     // the subscription was acknowledged
	accepted     []string // methods of the notifications covered by the subscription
}

var core = mcp.Internal(seam.Key{})

// requestOf returns m as a request or notification, without its params if they are invalid.
func requestOf(m *transport.Message) *mcp.Request {
	req, _ := core.NewRequest(m)
	return req
}

func newChecker(tb testing.TB) *checker {
	return &checker{tb: tb, calls: map[mcp.ID]*checkedCall{}, ended: map[mcp.ID]bool{}, legacy: newLegacyRules()}
}

func (c *checker) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
}

// reportLocked fails the test with the rule that message violates, unless violation is nil.
func (c *checker) reportLocked(sender string, message any, violation error) {
	if violation != nil && !c.stopped {
		c.tb.Errorf("mcptest: %v: the %s sent %.400s", violation, sender, message)
	}
}

// called checks and records a request of the client.
func (c *checker) called(version string, body []byte) *checkedCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, err := transport.ParseMessage(body)
	if err != nil || !m.IsRequest() {
		c.reportLocked("client", body, errors.Join(errors.New("it is not a request"), err))
		return nil
	}
	call := &checkedCall{req: requestOf(&m), rules: c.rulesLocked(version)}
	c.reportLocked("client", body, c.checkCallLocked(call))
	c.calls[m.ID] = call
	return call
}

// rulesLocked returns the rules of a protocol version.
func (c *checker) rulesLocked(version string) rules {
	if !slices.Contains(mcp.ModernVersions(), version) {
		return &c.legacy
	}
	return modernRules{}
}

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
	switch call.req.Method {
	case mcp.MethodElicit, mcp.MethodCreateMessage, mcp.MethodListRoots:
		return errors.New("it is a request of servers")
	}
	return call.rules.checkRequest(call.req)
}

// returned checks the response to a request. r is nil if there was none.
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
		c.reportLocked("server", fmt.Sprintf("the error %v to %s", r.Error, call.req.Method), call.rules.checkError(r.Error))
		return
	}
	violation := call.rules.checkResult(call.req, r.Result)
	if violation == nil && call.req.Method == mcp.MethodListen && !call.acknowledged {
		violation = errUnacknowledged
	}
	c.reportLocked("server", fmt.Sprintf("the result %s to %s", r.Result, call.req.Method), violation)
}

// sent checks a notification or a response of the client.
func (c *checker) sent(version string, body []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, err := transport.ParseMessage(body)
	switch {
	case err != nil:
		c.reportLocked("client", body, err)
	case m.IsResponse():
		c.reportLocked("client", body, c.rulesLocked(version).checkResponse(m.ID))
	case !m.ID.IsZero():
		c.reportLocked("client", body, errors.New("nothing waits for the answer to this request"))
	default:
		c.reportLocked("client", body, c.rulesLocked(version).checkClientNotification(m.Method))
	}
}

// unsent records that a response could not be sent, so the client may send it again.
func (c *checker) unsent(id mcp.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.legacy.unsent(id)
}

// received checks messages of the server other than responses. about is the id of the request
// on whose stream the message arrived, or zero if unknown.
func (c *checker) received(m *transport.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case m.Err != nil:
		c.reportLocked("server", fmt.Sprintf("a message with the id %q", m.ID), m.Err)
	case m.Lost: // the transport reports that messages may have been lost
	case m.IsNotification():
		c.reportLocked("server", fmt.Sprintf("%s %s", m.Method, m.Params), c.checkNotificationLocked(requestOf(m), m.About))
	default:
		c.reportLocked("server", fmt.Sprintf("the request %s %s %s", m.ID, m.Method, m.Params), c.checkServerRequestLocked(requestOf(m)))
	}
}
