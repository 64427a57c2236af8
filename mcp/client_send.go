// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/go-psi/psi/internal/async"
	"github.com/go-psi/psi/internal/inflight"
	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/mark"
	"github.com/go-psi/psi/internal/tasking"
	"github.com/go-psi/psi/mcp/mcptrace"
	"github.com/go-psi/psi/mcp/transport"
)

// discover sends server/discover, through the client's middleware, and stores the result.
func (c *Conn) discover(ctx context.Context) error {
	req := newRequest()
	req.Method = MethodDiscover
	send := HandlerFunc(func(ctx context.Context, req *Request) (Result, error) {
		if err := c.discoverOnce(ctx, req); err != nil {
			return nil, err
		}
		return c.server, nil
	})
	_, err := wrap(send, c.client.opts.Middleware).ServeMCP(ctx, req)
	if err == nil && c.server == nil {
		err = fmt.Errorf("mcp: Connect: the client's middleware did not pass %s on", MethodDiscover)
	}
	return err
}

func (c *Conn) discoverOnce(ctx context.Context, req *Request) error {
	r, err := c.call(ctx, c.envelope(ctx, c.nextID(), req, ID{}))
	if err == nil && r.Error != nil && r.Error.Code == CodeUnsupportedVersion {
		trace(traceOf(ctx).Retry, mcptrace.RetryInfo{Method: MethodDiscover, Err: fromWire(r.Error)})
		// Some servers reject the first attempt of every client.
		r, err = c.call(ctx, c.envelope(ctx, c.nextID(), req, ID{}))
	}
	switch {
	case err != nil:
		return refusedHandshake(err)
	case r.Error != nil:
		return refusedError(MethodDiscover, fromWire(r.Error))
	}
	var left omissions
	if c.server, left, err = decodeDiscovery(r.Result); err != nil {
		return err
	}
	c.logOmissions(MethodDiscover, left)
	era := c.legacy.era()
	if c.client.opts.Version != "" {
		era.Reason = "ClientOptions.Version"
	}
	c.version = era.Version
	if direct := c.legacy.direct(); direct != nil {
		c.wire = direct
	}
	trace(traceOf(ctx).EraChosen, era)
	return nil
}

// refusedError returns the error of connecting to a server that answered its first request
// with an error.
func refusedError(method string, err error) error {
	return fmt.Errorf("mcp: Connect: the server refused %s: %w", method, err)
}

func decodeDiscovery(result json.RawMessage) (*DiscoverResult, omissions, error) {
	res, left, err := decodeResult(MethodDiscover, result)
	d, ok := res.(*DiscoverResult)
	switch {
	case err != nil:
		return nil, left, fmt.Errorf("%w: that to %s: %w", ErrUnreadable, MethodDiscover, err)
	case !ok:
		return nil, left, fmt.Errorf("%w: that to %s has an unknown resultType", ErrUnreadable, MethodDiscover)
	}
	if d.Capabilities == nil {
		d.Capabilities = &ServerCapabilities{}
	}
	return d, left, nil
}

// ping sends server/discover. It returns nil for any response, even an error.
func (c *Conn) ping(ctx context.Context) error {
	req := newRequest()
	req.Method = MethodDiscover
	_, err := c.call(ctx, c.envelope(ctx, c.nextID(), req, ID{}))
	return err
}

// exchange sends a request and returns the result. Whenever the server asks questions, it
// calls the client's functions and sends the request again with the answers. If there is no
// function for a question, it returns the questions to the sender of the request.
func (c *Conn) exchange(ctx context.Context, req *Request) (Result, error) {
	if req.Method == MethodListen {
		return c.listen(ctx, req)
	}
	if err := c.checkCall(ctx, req); err != nil {
		return nil, err
	}
	ctx = withIncreasingProgress(ctx)
	questions := 0
	rounds, _ := ctx.Value(roundsKey{}).(*int)
	for round := range c.client.opts.maxRounds {
		if rounds != nil {
			*rounds = round
		}
		if round > 0 {
			trace(traceOf(ctx).Round, mcptrace.RoundInfo{Method: req.Method, Name: req.Name(), Round: round + 1, Questions: questions})
		}
		res, err := c.roundTrip(ctx, req)
		if req.Method == MethodCallTool && CodeOf(err) == CodeHeaderMismatch {
			res, err = c.callToolAgain(ctx, req, err)
		}
		asked, ok := res.(*InputRequired)
		if err != nil || !ok {
			if r, ok := res.(cacheable); ok && round > 0 {
				*r.hints() = Cacheable{} // it depends on answers and must not be cached
			}
			return res, err
		}
		if err := c.checkAsked(req, asked); err != nil {
			return nil, err
		}
		if !c.answersAll(asked) {
			return asked, nil
		}
		answers, err := c.answerAll(ctx, asked)
		if err != nil {
			return c.unanswered(ctx, req, err)
		}
		if req, err = req.withAnswers(answers, asked.RequestState); err != nil {
			return nil, err
		}
		questions = len(answers)
	}
	return nil, c.errTooManyRounds()
}

// roundsKey is the key of an *int in the context of a request. It is set to the number of
// rounds of questions about the request.
type roundsKey struct{}

// callToolAgain retries a tool call whose headers the server has rejected with the error
// mismatch. It reads the definition of the tool again, which determines the new headers. The
// headers of a received call are compared with the new definition as well.
func (c *Conn) callToolAgain(ctx context.Context, req *Request, mismatch error) (Result, error) {
	if err := c.readTool(ctx, req.Name()); err != nil {
		return nil, err
	}
	if err := c.checkHeaders(ctx, req); err != nil {
		return nil, err
	}
	trace(traceOf(ctx).Retry, mcptrace.RetryInfo{Method: req.Method, Name: req.Name(), Err: mismatch})
	return c.roundTrip(ctx, req)
}

// roundTrip sends a request once and decodes the response. Meanwhile it receives the
// progress and the log messages of the call.
func (c *Conn) roundTrip(ctx context.Context, req *Request) (Result, error) {
	id, caller, listener := c.nextID(), inFlightCaller(req), c.newCallListener(ctx, req)
	var token ID
	if listener != nil {
		token = id
		defer listener.queue.finish()
	}
	if caller != (inflight.Caller{}) {
		ctx = inflight.NewContext(ctx, caller)
	}
	c.inFlight.Add(id, caller, listener)
	r, err := c.call(ctx, c.envelope(ctx, id, req, token))
	c.inFlight.Remove(id, err)
	switch {
	case c.noAnswer.Load() && errors.Is(err, ErrClosed):
		return nil, fmt.Errorf("%w: %w", ErrNoAnswer, err)
	case err != nil:
		return nil, err
	case r.Error != nil:
		return nil, fromWire(r.Error)
	}
	res, left, err := decodeResult(req.Method, r.Result, c.client.opts.Extensions...)
	if err != nil {
		return nil, fmt.Errorf("mcp: the answer to %s: %w", req.Method, err)
	}
	c.logOmissions(req.Method, left)
	c.legacy.noteAsked(res)
	if list, ok := res.(*ListToolsResult); ok {
		list.Tools = c.rememberTools(req, list)
	}
	return res, nil
}

// call sends an encoded request and returns the response. Its errors are private.
func (c *Conn) call(ctx context.Context, m *transport.Outgoing) (*transport.Message, error) {
	r, err := c.wire.Call(ctx, m)
	return r, privateWireError(ctx, err)
}

// inFlightCaller returns the caller on whose behalf a request is sent.
func inFlightCaller(req *Request) inflight.Caller {
	switch p := req.Principal; {
	case p != nil && (p.Issuer != "" || p.Subject != ""):
		return inflight.Caller{Issuer: p.Issuer, Subject: p.Subject}
	case req.sharedCall().session != nil:
		return inflight.Caller{Session: req.sharedCall().session}
	}
	return inflight.Caller{}
}

// readTool reads the definition of a tool again, if the server lists it.
func (c *Conn) readTool(ctx context.Context, name string) error {
	for t, err := range c.toolPages(mark.Refresh(ctx), nil, maxToolPages) {
		if err != nil {
			return err
		}
		if t.Name == name {
			break
		}
	}
	return nil
}

// maxToolPages is the maximum number of pages read to find one tool.
const maxToolPages = 100

func (c *Conn) envelope(ctx context.Context, id ID, req *Request, token ID) *transport.Outgoing {
	env := &transport.Outgoing{ID: id, Method: req.Method, Version: LatestVersion, Body: c.encode(id, req, token, c.logLevel(ctx, req))}
	if isNamed(req.Method) {
		env.Name = req.Name()
	}
	if req.Method == MethodCallTool {
		env.Headers = c.tools.headers(req)
	}
	return env
}

// encode encodes a request with the metadata of this hop. The other members of its _meta
// and params are passed on unchanged.
func (c *Conn) encode(id ID, req *Request, token ID, level LoggingLevel) []byte {
	body := make([]byte, 0, len(req.Params())+512)
	body = transport.AppendHead(body, id)
	body = append(body, `,"method":`...)
	body = jsonscan.AppendString(body, req.Method)
	body = append(body, `,"params":{"_meta":{`...)
	body = jsonscan.AppendString(jsonscan.AppendKey(body, MetaProtocolVersion), LatestVersion)
	body = append(jsonscan.AppendKey(body, MetaClientCapabilities), c.capabilities(req)...)
	body = append(jsonscan.AppendKey(body, MetaClientInfo), c.client.infoJSON...)
	if level != "" {
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

// capabilities returns the capabilities to send with a request: the client's or, for a
// forwarded request, those of its sender.
func (c *Conn) capabilities(req *Request) json.RawMessage {
	if req.peer.caps != nil && c.client.opts.Forward {
		return c.forwardable(req)
	}
	return c.client.ownCapsJSON
}

// passesTasks reports whether a task that answers a request is passed to the sender of the
// request, rather than handled by the client itself. This requires a mount, which seals the
// ID of the task, because the next hop cannot tell which caller a task belongs to.
func (c *Conn) passesTasks(req *Request) bool {
	return c.client.opts.Forward && req.mounts != "" && declaresTasks(req) && !req.sharedCall().inTask
}

// forwardable returns the capabilities of a sender that are valid beyond this hop, plus the
// extensions that the client itself supports.
func (c *Conn) forwardable(req *Request) json.RawMessage {
	caps := req.ClientCapabilities()
	if !caps.HasExtension(tasking.Extension) && len(c.client.opts.Extensions) == 0 {
		return req.peer.caps
	}
	forwarded := *caps
	forwarded.Extensions = maps.Clone(caps.Extensions)
	if !c.passesTasks(req) {
		delete(forwarded.Extensions, tasking.Extension)
	}
	for _, x := range c.client.opts.Extensions {
		forwarded.declare(x)
	}
	return mustMarshal(&forwarded)
}

// listen keeps a subscription open until ctx is done or the server ends it. If the
// connection breaks, it subscribes again and reports everything as changed.
func (c *Conn) listen(ctx context.Context, req *Request) (res Result, err error) {
	const firstDelay, maxDelay = 100 * time.Millisecond, 5 * time.Second
	cause := async.Renew(ctx, firstDelay, maxDelay, func(after time.Duration) bool {
		again := after > 0
		if again {
			trace(traceOf(ctx).Retry, mcptrace.RetryInfo{Method: MethodListen, Err: err, Delay: after})
		}
		f, r, problem := c.subscribe(ctx, req, again)
		switch err = problem; {
		case err == nil && r.Error != nil:
			err = fromWire(r.Error)
		case isMessageError(err):
		case err == nil, errors.Is(err, errEndedByServer), errors.Is(context.Cause(ctx), ErrClosed):
			res, err = &ListenResult{ResultBase{Meta: req.subscriptionMeta()}}, nil
		case ctx.Err() != nil || c.ctx.Err() != nil || !f.isAccepted() && !again:
		case c.lost() != nil:
			err = c.lost()
		default:
			return true
		}
		return false
	})
	if cause != nil {
		return nil, cause
	}
	return res, err
}

// isMessageError reports whether a call failed because its response was unreadable.
func isMessageError(err error) bool {
	_, ok := errors.AsType[*transport.MessageError](err)
	return ok
}

// subscribe sends a subscription request and forwards its notifications until it ends,
// including all that arrived before the end.
func (c *Conn) subscribe(ctx context.Context, req *Request, again bool) (*forwarder, *transport.Message, error) {
	call, end := context.WithCancelCause(ctx)
	defer end(nil)
	id := c.nextID()
	f := newForwarder(req, again, end)
	c.addForwarder(id, f)
	defer c.removeForwarder(id)
	var (
		r     *transport.Message
		err   error
		ended = make(chan struct{})
	)
	go func() {
		defer close(ended)
		r, err = c.call(call, c.envelope(ctx, id, req, ID{}))
	}()
	for {
		select {
		case <-f.changes.Wake():
			f.send(ctx)
		case <-ended:
			if c.ctx.Err() == nil {
				f.send(ctx)
			}
			return f, r, err
		}
	}
}
