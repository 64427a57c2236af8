// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/go-psi/psi/internal/network"
)

const (
	maxDocument  = 1 << 20 // maximum bytes of metadata, a registration, or a token response
	maxRedirects = 3

	requestTimeout = 30 * time.Second // for metadata, a registration or a token
)

// An egress sends requests to metadata, registration and token endpoints.
type egress struct {
	base http.RoundTripper // to the MCP server's own origin
	far  http.RoundTripper // to all others
	home string            // the MCP server's origin

	logger *slog.Logger
}

// A destination tells the dialer which addresses a request may use.
type destination struct {
	reach    reach
	plain    bool // not https
	anywhere bool // configured by the user
	proxied  bool // the connection goes to a proxy
}

type destinationKey struct{}

// destinationOf returns the destination in a context. Without one, only public addresses
// may be dialed.
func destinationOf(ctx context.Context) *destination {
	if d, ok := ctx.Value(destinationKey{}).(*destination); ok {
		return d
	}
	return &destination{}
}

// newEgressTransport returns a transport that dials only addresses allowed by the
// destination in the context. It checks each address when dialing, because a name may
// resolve to another address than before. It does not reuse connections, because the next
// request may have another destination.
func newEgressTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: 20 * time.Second, ControlContext: controlDial}
	return &http.Transport{
		Proxy: func(req *http.Request) (*url.URL, error) {
			proxy, err := http.ProxyFromEnvironment(req)
			destinationOf(req.Context()).proxied = proxy != nil
			return proxy, err
		},
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		DisableKeepAlives:      true,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

func controlDial(ctx context.Context, _, address string, _ syscall.RawConn) error {
	d := destinationOf(ctx)
	to, err := netip.ParseAddrPort(address)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %q is not an address", ErrUnsafeURL, address)
	case d.proxied, d.anywhere && !d.plain:
		return nil
	case d.plain && network.KindOf(to.Addr()) != network.Loopback:
		return fmt.Errorf("%w: %s is not on this machine, and the URL is not https", ErrUnsafeURL, to.Addr())
	case d.anywhere:
		return nil
	}
	return d.reach.allows(to.Addr())
}

// A call is a request to a URL from a server or from the configuration.
type call struct {
	method   string
	url      string
	header   http.Header
	form     url.Values // body, if not nil
	json     any        // body, if not nil
	reach    reach
	anywhere bool // the URL was configured, so any address is allowed
}

// A reply is a response whose body has been read.
type reply struct {
	status int
	header http.Header
	isJSON bool
	body   []byte
}

// do sends a call and reads the reply. It follows redirects only for GET, within the
// origin.
func (e *egress) do(ctx context.Context, c *call) (*reply, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	to := c.url
	for hop := 0; ; hop++ {
		res, err := e.send(ctx, c, to)
		if err != nil {
			return nil, err
		}
		if res.StatusCode/100 != 3 {
			return readReply(res)
		}
		_ = res.Body.Close()
		next, err := res.Location()
		switch {
		case err != nil:
			return nil, fmt.Errorf("oauth: %s answered with status %d", c.place(to), res.StatusCode)
		case c.method != http.MethodGet:
			return nil, fmt.Errorf("%w: %s redirects, which is not followed", ErrUnsafeURL, c.place(to))
		case hop == maxRedirects:
			return nil, fmt.Errorf("%w: %s redirects more than %d times", ErrUnsafeURL, c.place(c.url), maxRedirects)
		case origin(next) != origin(res.Request.URL):
			return nil, fmt.Errorf("%w: %s redirects to %q", ErrUnsafeURL, c.place(to), origin(next))
		}
		to = next.String()
	}
}

// place returns a URL for error messages.
func (c *call) place(to string) string { return fmt.Sprintf("%.200q", withoutQuery(to)) }

// withoutQuery returns a URL without its query, which may be secret.
func withoutQuery(to string) string {
	to, _, _ = strings.Cut(to, "?")
	return to
}

func (e *egress) send(ctx context.Context, c *call, to string) (*http.Response, error) {
	u, err := parseURL(to)
	if err != nil {
		return nil, err
	}
	near := origin(u) == e.home
	if !near && !c.anywhere {
		if err := c.reach.checkURL(u); err != nil {
			return nil, err
		}
	}
	body, kind, err := c.body()
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, c.method, to, body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsafeURL, err)
	}
	maps.Copy(req.Header, c.header)
	req.Header.Set("Accept", "application/json")
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	rt := e.base
	if !near {
		rt = e.far
		d := &destination{reach: c.reach, plain: u.Scheme != "https", anywhere: c.anywhere}
		req = req.WithContext(context.WithValue(ctx, destinationKey{}, d))
	}
	res, err := rt.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("oauth: %w", err)
	}
	if res.StatusCode == http.StatusSwitchingProtocols {
		// The body is the network connection, which net/http no longer ties to the context.
		_ = res.Body.Close()
		res.Body = http.NoBody
	}
	return res, nil
}

func (c *call) body() (io.Reader, string, error) {
	switch {
	case c.form != nil:
		return strings.NewReader(c.form.Encode()), "application/x-www-form-urlencoded", nil
	case c.json != nil:
		data, err := json.Marshal(c.json)
		return bytes.NewReader(data), "application/json", err
	}
	return http.NoBody, "", nil
}

var errTooLong = fmt.Errorf("%w: it is longer than %d bytes", ErrMetadata, maxDocument)

func readReply(res *http.Response) (*reply, error) {
	defer res.Body.Close()
	body, err := io.ReadAll(http.MaxBytesReader(nil, res.Body, maxDocument))
	if _, tooLong := errors.AsType[*http.MaxBytesError](err); tooLong {
		err = errTooLong
	}
	if err != nil {
		return nil, fmt.Errorf("oauth: answer of %q: %w", origin(res.Request.URL), err)
	}
	name, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	isJSON := name == "application/json" || strings.HasSuffix(name, "+json")
	body = bytes.TrimPrefix(body, []byte("\ufeff")) // a byte order mark
	return &reply{res.StatusCode, res.Header, isJSON, body}, nil
}

// errAbsent means that there is no document at a URL. errUnavailable means that there may
// be one later.
var (
	errAbsent      = errors.New("oauth: there is no metadata")
	errUnavailable = fmt.Errorf("%w for now", ErrMetadata)
)

// document fetches a JSON document; see decode. Servers that lack it respond with a 4xx
// status or an HTML page.
func (e *egress) document(ctx context.Context, c *call, into any, needed ...string) error {
	c.method = http.MethodGet
	r, err := e.do(ctx, c)
	switch {
	case err != nil:
		return err
	case r.status/100 == 4 && r.status != http.StatusTooManyRequests:
		return fmt.Errorf("%w: %s answered with status %d", errAbsent, c.place(c.url), r.status)
	case r.status != http.StatusOK:
		return fmt.Errorf("%w: %s answered with status %d", errUnavailable, c.place(c.url), r.status)
	case !r.isJSON && !bytes.HasPrefix(bytes.TrimLeft(r.body, " \t\r\n"), []byte("{")):
		return fmt.Errorf("%w: %s is not JSON", errAbsent, c.place(c.url))
	}
	if err := e.decode(ctx, c, r.body, into, needed...); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrMetadata, c.place(c.url), err)
	}
	return nil
}
