// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/mcp/transport"
)

// modernClient implements clientEra for the modern era. Every request contains the protocol
// version and the capabilities of its sender.
type modernClient struct{ conn *Conn }

func (*modernClient) version() string { return LatestVersion }

func (*modernClient) pingMethod() string { return MethodDiscover }

func (e *modernClient) ping(ctx context.Context) error {
	req := &Request{call: new(call)}
	req.Method = MethodDiscover
	_, err := e.conn.wire.Call(ctx, e.envelope(e.conn.nextID(), req, ID{}))
	return err
}

func (*modernClient) refuse(transport.Message) {}

// discover sends server/discover, and checks that the server speaks a modern version.
func (e *modernClient) discover(ctx context.Context) (*DiscoverResult, error) {
	req := &Request{call: new(call)}
	req.Method = MethodDiscover
	r, err := e.conn.wire.Call(ctx, e.envelope(e.conn.nextID(), req, ID{}))
	if err == nil && r.Error != nil && r.Error.Code == CodeUnsupportedVersion && !onlyLegacy(fromWire(r.Error)) {
		r, err = e.conn.wire.Call(ctx, e.envelope(e.conn.nextID(), req, ID{})) // some servers refuse the first attempt of every client
	}
	switch {
	case err != nil:
		return nil, err
	case r.Error != nil:
		return nil, fromWire(r.Error)
	}
	res, err := decodeResult(MethodDiscover, r.Result)
	if err != nil {
		return nil, fmt.Errorf("%w: that to %s: %w", ErrUnreadable, MethodDiscover, err)
	}
	d, ok := res.(*DiscoverResult)
	if !ok || !slices.ContainsFunc(d.SupportedVersions, func(v string) bool { return slices.Contains(ModernVersions(), v) }) {
		// Some servers answer server/discover but serve only legacy requests.
		return nil, fmt.Errorf("%w: the answer to %s names no version that this client speaks", transport.ErrNotUnderstood, MethodDiscover)
	}
	return d, nil
}

// send sends a request. If the server considers the headers of a tool call wrong, send reads
// the definition of the tool again and sends the request once more.
func (e *modernClient) send(ctx context.Context, req *Request) (Result, error) {
	res, err := e.sendOnce(ctx, req)
	if req.Method != MethodCallTool || CodeOf(err) != CodeHeaderMismatch {
		return res, err
	}
	for t, err := range e.conn.toolPages(ctx, nil, maxToolPages) {
		if err != nil {
			return nil, err
		}
		if t.Name == req.Name() {
			break
		}
	}
	return e.sendOnce(ctx, req)
}

// maxToolPages bounds how many pages of a list are read to find one tool.
const maxToolPages = 100

func (e *modernClient) sendOnce(ctx context.Context, req *Request) (Result, error) {
	id := e.conn.nextID()
	token, stop := e.conn.listenTo(ctx, req, id)
	defer stop()
	res, err := e.conn.roundTrip(ctx, req, e.envelope(id, req, token))
	if r, ok := res.(*ListToolsResult); ok {
		r.Tools = e.conn.tools.addPage(r.Tools, e.conn.client.opts.Logger)
	}
	return res, err
}

func (e *modernClient) envelope(id ID, req *Request, token ID) *transport.Outgoing {
	env := &transport.Outgoing{ID: id, Method: req.Method, Version: e.version(), Body: e.encode(id, req, token)}
	switch req.Method {
	case MethodCallTool:
		env.Name = req.Name()
		env.Params = e.conn.tools.headers(req)
	case MethodGetPrompt, MethodReadResource:
		env.Name = req.Name()
	}
	return env
}

// encode encodes a request with the metadata of this hop. Other members of its _meta and of
// its params are passed on unchanged.
func (e *modernClient) encode(id ID, req *Request, token ID) []byte {
	body := make([]byte, 0, len(req.Params())+512)
	body = transport.AppendHead(body, id)
	body = append(body, `,"method":`...)
	body = jsonscan.AppendString(body, req.Method)
	body = append(body, `,"params":{"_meta":{`...)
	body = jsonscan.AppendString(jsonscan.AppendKey(body, MetaProtocolVersion), e.version())
	body = append(jsonscan.AppendKey(body, MetaClientCapabilities), e.capabilities(req)...)
	body = append(jsonscan.AppendKey(body, MetaClientInfo), e.conn.client.infoJSON...)
	if level := e.logLevel(req); level != "" {
		body = jsonscan.AppendString(jsonscan.AppendKey(body, MetaLogLevel), string(level))
	}
	if !token.IsZero() {
		body = append(jsonscan.AppendKey(body, MetaProgressToken), token.String()...)
	}
	if req.params.meta != nil {
		body = jsonscan.AppendMembers(body, req.params.meta, ownMeta...)
	} else {
		body = append(body, '}')
	}
	if raw := req.Params(); raw != nil {
		body = jsonscan.AppendMembers(body, raw, "_meta")
	} else {
		body = append(body, '}')
	}
	return append(body, '}')
}

// ownMeta are the members of _meta that every hop sets itself.
var ownMeta = []string{MetaProtocolVersion, MetaClientCapabilities, MetaClientInfo, MetaLogLevel, MetaProgressToken}

// capabilities returns the capabilities to send with a request: those of the client, or
// those of the sender of a request that is forwarded.
func (e *modernClient) capabilities(req *Request) json.RawMessage {
	if req.peer.caps != nil && e.conn.client.opts.Forward {
		return forwardable(req)
	}
	return e.conn.client.ownCapsJSON
}

// extensionTasks is an extension whose results name tasks, which have methods of their own.
// It is not forwarded, because the next hop could not tell whose a task is.
const extensionTasks = "io.modelcontextprotocol/tasks"

// forwardable returns the capabilities of a sender that are valid beyond this hop.
func forwardable(req *Request) json.RawMessage {
	caps := req.ClientCapabilities()
	if !caps.HasExtension(extensionTasks) {
		return req.peer.caps
	}
	without := *caps
	without.Extensions = maps.Clone(caps.Extensions)
	delete(without.Extensions, extensionTasks)
	return mustMarshal(&without)
}

func (e *modernClient) logLevel(req *Request) LoggingLevel {
	if level := req.LogLevel(); level != "" {
		return level
	}
	return e.conn.client.opts.LogLevel
}

// receive handles a notification. Modern servers send no requests.
func (e *modernClient) receive(m transport.Message, about ID) {
	switch {
	case m.Method == "":
	case m.IsNotification():
		if note := e.conn.notification(&m); note != nil {
			e.conn.receiveNotification(note, about)
		}
	default:
		e.conn.logDropped("a server of this revision sends no requests", "method", excerpt(m.Method))
	}
}

func (*modernClient) rootsChanged(context.Context) error { return nil }

func (*modernClient) close() {}

// shortSubscription is the duration below which a subscription counts as a failure. Failures
// in a row make the delay before the next attempt longer.
const shortSubscription = 10 * time.Second

// listen keeps a subscription open until ctx is done or the server ends it. If the
// connection breaks, it subscribes again; then everything counts as changed. The pause
// before that grows as long as subscriptions do not last.
func (e *modernClient) listen(ctx context.Context, req *Request) (Result, error) {
	failures := 0
	for again := false; ; again = true {
		start := time.Now()
		f, r, err := e.subscribe(ctx, req, again)
		switch {
		case err == nil && r.Error != nil:
			return nil, fromWire(r.Error)
		case isMessageError(err):
			return nil, err
		case err == nil, errors.Is(err, errEndedByServer), errors.Is(context.Cause(ctx), ErrClosed):
			return &ListenResult{ResultBase{Meta: req.subscriptionMeta()}}, nil
		case ctx.Err() != nil || e.conn.ctx.Err() != nil || !f.isAccepted() && !again:
			return nil, err
		}
		if time.Since(start) >= shortSubscription {
			failures = 0
		}
		if err := e.conn.sleep(ctx, min(100*time.Millisecond<<min(failures, 6), 5*time.Second)); err != nil {
			return nil, err
		}
		failures++
	}
}

// subscribe sends the request of a subscription and forwards its notifications until it
// ends, including all that came before the end.
func (e *modernClient) subscribe(ctx context.Context, req *Request, again bool) (*forwarder, *transport.Message, error) {
	call, end := context.WithCancelCause(ctx)
	defer end(nil)
	id := e.conn.nextID()
	f := newForwarder(req, again, end)
	e.conn.addForwarder(id, f)
	defer e.conn.removeForwarder(id)
	var (
		r     *transport.Message
		err   error
		ended = make(chan struct{})
	)
	go func() {
		defer close(ended)
		r, err = e.conn.wire.Call(call, e.envelope(id, req, ID{}))
	}()
	for {
		select {
		case <-f.wake:
			f.send(ctx)
		case <-ended:
			if e.conn.ctx.Err() == nil {
				f.send(ctx)
			}
			return f, r, err
		}
	}
}
