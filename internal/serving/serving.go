// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package serving

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	"github.com/go-psi/psi/internal/seam"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

var core = mcp.Internal(seam.Key{})

// A Sender sends complete messages to a client. Send may be called concurrently and must
// not retain message.
type Sender interface {
	Send(ctx context.Context, message []byte) error
}

// An Origin describes the sender of a message and the HTTP message that carried it.
// Messages of one session can have different origins, because a client may reconnect with
// another token.
type Origin struct {
	Principal *mcp.Principal      // nil if unauthenticated
	Header    map[string][]string // of the HTTP message; nil on other transports
}

// NewRequest returns the request or notification m with its origin. If the params cannot be
// read, it also returns an [*mcp.Error].
func (o Origin) NewRequest(m *transport.Message) (*mcp.Request, error) {
	req, err := core.NewRequest(m)
	req.Principal, req.Header = o.Principal, o.Header
	return req, err
}

// A Call is a message that a transport has accepted from a client. It must be served
// exactly once.
type Call interface {
	// Serve runs the handler. Messages that the server sends before the response go to out,
	// until Serve returns. If out is nil, nothing can be sent.
	Serve(out Sender)
	// Err returns the error of the handler, for transports that map it to a status.
	Err() error
	// Append appends the response to dst. If the message is not a request or was cancelled,
	// it appends nothing.
	Append(dst []byte) []byte
}

// NewCall returns a call of h with a request of the newest revision. The request is
// cancelled when ctx is done.
func NewCall(ctx context.Context, h mcp.Handler, req *mcp.Request, logger *slog.Logger) *ModernCall {
	return &ModernCall{ctx: ctx, handler: h, req: req, logger: logger}
}

// A ModernCall is a Call of the newest revision.
type ModernCall struct {
	ctx      context.Context //nolint:containedctx // a Call is accepted in one place and served in another
	handler  mcp.Handler
	req      *mcp.Request
	logger   *slog.Logger
	notifier notificationSender
	res      mcp.Result
	err      error
}

// Serve implements [Call].
func (c *ModernCall) Serve(out Sender) {
	c.notifier.out = out
	c.res, c.err = core.Serve(c.ctx, c.handler, c.req, &c.notifier, c.logger)
}

// Result returns the result of the handler, or nil if there is none.
func (c *ModernCall) Result() mcp.Result { return c.res }

// Err implements [Call].
func (c *ModernCall) Err() error { return c.err }

// Append implements [Call].
func (c *ModernCall) Append(dst []byte) []byte {
	if c.req.IsNotification() || WasCancelled(c.ctx) {
		return dst
	}
	return core.AppendResponse(dst, c.req, c.res, c.err)
}

// A Notifier sends the notifications about one request. Notify may be called concurrently,
// but not after the handler of the request has returned. It must not retain params.
type Notifier interface {
	Notify(ctx context.Context, method string, params json.RawMessage) error
}

// NotifierTo returns a notifier that sends notifications as messages. If out is nil, Notify
// returns [mcp.ErrNotDelivered].
func NotifierTo(out Sender) Notifier { return &notificationSender{out} }

type notificationSender struct{ out Sender } // out may be nil

// Notify implements [Notifier].
func (n *notificationSender) Notify(ctx context.Context, method string, params json.RawMessage) error {
	if n.out == nil {
		return mcp.ErrNotDelivered
	}
	return n.out.Send(ctx, transport.AppendNotification(nil, method, params))
}

// WasCancelled reports whether ctx was cancelled by the client.
func WasCancelled(ctx context.Context) bool {
	_, ok := context.Cause(ctx).(*mcp.CancelError) //nolint:errorlint // a cause is not wrapped
	return ok
}

// MaxInFlight is the default limit on the requests of a connection or session that are
// served concurrently.
const MaxInFlight = 1024

// DuplicateID returns the error for a request whose id is already in flight.
func DuplicateID(id mcp.ID) error {
	return mcp.Errorf(mcp.CodeInvalidRequest, "the id %s belongs to a request that is not answered yet", id)
}

// maxInFlightBytes limits the params of the requests of a connection or session that are
// served concurrently, in bytes. It is the size of the longest message of stdio; over HTTP,
// it is four times that.
const maxInFlightBytes = 64 << 20

// CheckLoad returns an error if a request whose params have size bytes must not be served
// concurrently with count others, whose params have a total of bytes. A single request
// may have any size.
func CheckLoad(count, limit, bytes, size int) error {
	switch {
	case count >= limit:
		return mcp.Errorf(mcp.CodeInternalError, "%d requests are being served, which is the limit; send this one again later", limit)
	case count > 0 && bytes+size > maxInFlightBytes:
		return mcp.Errorf(mcp.CodeInternalError, "requests with %d bytes are being served, and this one has %d more; the limit is %d; send it again later", bytes, size, maxInFlightBytes)
	}
	return nil
}

// AsMessageError returns err as a [transport.MessageError], by default with the code for
// invalid requests.
func AsMessageError(err error) *transport.MessageError {
	e, ok := errors.AsType[*transport.MessageError](err)
	if !ok {
		e = &transport.MessageError{Code: transport.CodeInvalidRequest, Err: err}
	}
	return e
}

// Refusal returns the call of a message that is refused with err. The id is zero if the
// message's id could not be read.
func Refusal(id mcp.ID, err error) Call { return refusal{id, err} }

type refusal struct {
	id  mcp.ID
	err error
}

func (refusal) Serve(Sender)               {}
func (r refusal) Err() error               { return r.err }
func (r refusal) Append(dst []byte) []byte { return core.AppendError(dst, r.id, r.err) }
