// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"

	"github.com/go-psi/psi/mcp"
)

// TransportOptions configure a transport to a server. Nil means the zero
// TransportOptions.
type TransportOptions struct {
	// Client sends the requests. Its Timeout should be 0, for it would end every
	// stream; calls are bounded by their contexts. Its CheckRedirect is asked only
	// about redirects within the server's origin that keep the method: others are
	// not followed, so that no message and no header goes to where the user did not
	// send it. Nil means a client that the transport has for itself.
	Client *http.Client
	// Header has headers for every request, such as Authorization. Those of the
	// protocol cannot be set with it.
	Header http.Header
	// MaxMessage is how many bytes a message of the server may have. A longer one
	// fails the call that it answers with [ErrMessageTooLong]. 0 means 64 MiB.
	MaxMessage int64
	// ReconnectAttempts is how often in a row, without anything new from the
	// server, a stream of the legacy era is taken up again. 0 means 5, negative
	// never.
	ReconnectAttempts int
	// Logger gets what there is to say to the operator. Nil means slog.Default.
	Logger *slog.Logger
}

func (o *TransportOptions) withDefaults() TransportOptions {
	var opts TransportOptions
	if o != nil {
		opts = *o
	}
	opts.Header = opts.Header.Clone()
	opts.MaxMessage = cmp.Or(opts.MaxMessage, 64<<20)
	opts.ReconnectAttempts = cmp.Or(opts.ReconnectAttempts, 5)
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	return opts
}

// NewTransport is a [mcp.Transport] to the server at a URL, in streamable HTTP of
// both eras. If the server refuses initialize as one of 2024-11-05 would, the
// connection goes on as one of [NewSSETransport]. The options may be nil.
//
// A connection takes no network connection for itself: Connect does not talk to
// the server, and every message is a request of its own. What is in the context
// of a call is not read, but passed on to the client's RoundTripper.
//
// A modern request is cancelled by ending its HTTP request, a legacy one by
// notifications/cancelled. If a stream breaks off before the response, a legacy
// call comes back for it if the server has given it an event id to come back with;
// otherwise the call fails with an error that wraps [io.ErrUnexpectedEOF]. Nothing
// is ever sent twice.
//
// The [mcp.Receiver] is called by one goroutine at a time, and must not wait for a
// call of its own connection.
func NewTransport(url string, opts *TransportOptions) mcp.Transport {
	return &httpTransport{url, opts.withDefaults(), func(_ context.Context, p *peer, receive mcp.Receiver) (mcp.Wire, error) {
		return newHTTPWire(p, receive), nil
	}}
}

// NewSSETransport is a [mcp.Transport] to a server that speaks HTTP+SSE, the
// transport of 2024-11-05 and deprecated since: it opens one event stream for all
// that the server says, and posts messages to where the stream's first event
// says, which must be of the same origin. A connection ends with its stream. The
// options may be nil.
func NewSSETransport(url string, opts *TransportOptions) mcp.Transport {
	return &httpTransport{url, opts.withDefaults(), func(ctx context.Context, p *peer, receive mcp.Receiver) (mcp.Wire, error) {
		w, err := openSSEWire(ctx, p, newInbox(receive))
		if err != nil {
			return nil, err // not a nil *sseWire
		}
		return w, nil
	}}
}

type httpTransport struct {
	url  string
	opts TransportOptions
	open func(ctx context.Context, p *peer, receive mcp.Receiver) (mcp.Wire, error)
}

// Connect implements [mcp.Transport].
func (t *httpTransport) Connect(ctx context.Context, receive mcp.Receiver) (mcp.Wire, error) {
	u, err := url.Parse(t.url)
	if err != nil {
		return nil, fmt.Errorf("mcphttp: %w", err)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("mcphttp: %q is not the URL of an HTTP server", t.url)
	}
	return t.open(ctx, newPeer(u, &t.opts), receive)
}
