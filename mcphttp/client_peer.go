// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-psi/psi/mcp"
)

// peer is the server of a client. It sends HTTP requests there.
type peer struct {
	url    *url.URL
	opts   *TransportOptions
	client *http.Client

	ownsConnections bool // no other client uses the network connections
}

func newPeer(u *url.URL, opts *TransportOptions) *peer {
	p := &peer{url: u, opts: opts}
	var client http.Client
	if opts.Client != nil {
		client = *opts.Client
	} else {
		client.Transport, p.ownsConnections = newRoundTripper()
	}
	client.CheckRedirect = sameOrigin(client.CheckRedirect)
	p.client = &client
	return p
}

// idleConns is how many network connections stay open for later calls. With the default
// of net/http, which is two, most of many concurrent calls have to dial.
const idleConns = 64

// newRoundTripper returns a RoundTripper with network connections of its own, unless the
// program has replaced the default transport by one that cannot be copied.
func newRoundTripper() (_ http.RoundTripper, ownsConnections bool) {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport, false
	}
	t = t.Clone()
	t.MaxIdleConnsPerHost = idleConns
	return t, true
}

// close closes idle network connections, unless others may use them.
func (p *peer) close() {
	if p.ownsConnections {
		p.client.CloseIdleConnections()
	}
}

// sameOrigin returns a CheckRedirect that follows redirects within the origin that keep
// the method. Another origin must see neither the message nor headers that net/http
// cannot know to be secret, and a POST that becomes a GET means something else.
func sameOrigin(next func(*http.Request, []*http.Request) error) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		switch {
		case origin(req.URL) != origin(via[0].URL) || req.Method != via[0].Method:
			return http.ErrUseLastResponse
		case next != nil:
			return next(req, via)
		case len(via) >= 10:
			return errors.New("stopped after 10 redirects")
		}
		return nil
	}
}

// origin returns scheme, host and port of a URL.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// post sends a message. Header has its headers that are not in the options; post adds to
// them.
func (p *peer) post(ctx context.Context, to *url.URL, header http.Header, message []byte) (*http.Response, error) {
	header.Set("Content-Type", typeJSON)
	header.Set("Accept", typeJSON+", "+typeStream)
	req := p.newRequest(http.MethodPost, to, header)
	req.ContentLength = int64(len(message))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(message)), nil }
	req.Body = io.NopCloser(bytes.NewReader(message))
	return p.client.Do(req.WithContext(ctx))
}

// get requests an event stream.
func (p *peer) get(ctx context.Context, header http.Header) (*http.Response, error) {
	header.Set("Accept", typeStream)
	return p.client.Do(p.newRequest(http.MethodGet, p.url, header).WithContext(ctx))
}

func (p *peer) delete(ctx context.Context, header http.Header) (*http.Response, error) {
	return p.client.Do(p.newRequest(http.MethodDelete, p.url, header).WithContext(ctx))
}

// newRequest returns a request to a URL that has been parsed.
func (p *peer) newRequest(method string, to *url.URL, header http.Header) *http.Request {
	for key, values := range p.opts.Header {
		key = http.CanonicalHeaderKey(key)
		if _, ours := header[key]; !ours {
			header[key] = values
		}
	}
	u := *to
	return &http.Request{Method: method, URL: &u, Host: to.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header}
}

// readMessage reads a whole body, up to the limit for a message.
func (p *peer) readMessage(res *http.Response) ([]byte, error) {
	limit := p.opts.MaxMessage
	if res.ContentLength > limit {
		return nil, ErrMessageTooLong
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, limit+1))
	if err == nil && int64(len(body)) > limit {
		err = ErrMessageTooLong
	}
	return body, err
}

// send posts a message that has no response. Meaning says what a refusal means.
func (p *peer) send(ctx context.Context, to *url.URL, header http.Header, message []byte, meaning func(*StatusError) (*mcp.Error, error)) error {
	res, err := p.post(ctx, to, header, message)
	if err != nil {
		return fmt.Errorf("mcphttp: %w", err)
	}
	defer closeBody(res)
	if res.StatusCode/100 == 2 {
		if n := res.ContentLength; n > 0 && n <= drainSize {
			_, _ = io.CopyN(io.Discard, res.Body, n) // so that the network connection can be reused
		}
		return nil
	}
	refusal := p.readRefusal(res)
	if _, err := meaning(refusal); err != nil {
		return err
	}
	return refusal
}
