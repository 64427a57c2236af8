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

// peer is a server as its clients see it: it sends HTTP requests there.
type peer struct {
	url    *url.URL
	opts   *TransportOptions
	client *http.Client
	own    bool // the client's connections are nobody else's
}

func newPeer(u *url.URL, opts *TransportOptions) *peer {
	p := &peer{url: u, opts: opts}
	var client http.Client
	if opts.Client != nil {
		client = *opts.Client
	} else {
		client.Transport, p.own = newRoundTripper()
	}
	client.CheckRedirect = sameOrigin(client.CheckRedirect)
	p.client = &client
	return p
}

// idleConns is how many connections stay open for the next calls. The default of
// net/http, two, makes all but two of many concurrent calls dial.
const idleConns = 64

// newRoundTripper has connections of its own, unless a program has replaced the
// default transport by one that cannot be copied.
func newRoundTripper() (_ http.RoundTripper, own bool) {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport, false
	}
	t = t.Clone()
	t.MaxIdleConnsPerHost = idleConns
	return t, true
}

// close gives up connections that nobody uses any more.
func (p *peer) close() {
	if p.own {
		p.client.CloseIdleConnections()
	}
}

// sameOrigin follows redirects within the origin that keep the method. Another
// origin must not see the message, nor headers of which net/http cannot know that
// they are secret; and a POST that becomes a GET says something else.
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

// origin is scheme, host and port.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// post sends a message; header has what is in its headers but not in the options.
func (p *peer) post(ctx context.Context, to *url.URL, header http.Header, message []byte) (*http.Response, error) {
	header.Set("Content-Type", typeJSON)
	header.Set("Accept", typeJSON+", "+typeStream)
	req := p.request(http.MethodPost, to, header)
	req.ContentLength = int64(len(message))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(message)), nil }
	req.Body = io.NopCloser(bytes.NewReader(message))
	return p.client.Do(req.WithContext(ctx))
}

// get asks for an event stream.
func (p *peer) get(ctx context.Context, header http.Header) (*http.Response, error) {
	header.Set("Accept", typeStream)
	return p.client.Do(p.request(http.MethodGet, p.url, header).WithContext(ctx))
}

func (p *peer) delete(ctx context.Context, header http.Header) (*http.Response, error) {
	return p.client.Do(p.request(http.MethodDelete, p.url, header).WithContext(ctx))
}

// request makes a request without parsing its URL anew.
func (p *peer) request(method string, to *url.URL, header http.Header) *http.Request {
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

// tell posts a message that has no response. What a refusal means, meaning knows.
func (p *peer) tell(x *exchange, to *url.URL, header http.Header, message []byte, meaning func(*StatusError) (*mcp.Error, error)) error {
	res, err := p.post(x.ctx, to, header, message)
	if err != nil {
		return fmt.Errorf("mcphttp: %w", err)
	}
	defer closeBody(res)
	if res.StatusCode/100 == 2 {
		if n := res.ContentLength; n > 0 && n <= drainSize {
			_, _ = io.CopyN(io.Discard, res.Body, n) // so that the connection can be used again
		}
		return nil
	}
	refusal := p.refusal(res)
	if _, err := meaning(refusal); err != nil {
		return err
	}
	return refusal
}
