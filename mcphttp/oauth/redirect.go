// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth

import (
	"cmp"
	"context"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"runtime"
	"time"
)

// A Redirector takes users to authorization servers and back. It is used by several
// transports at once if they share it.
type Redirector interface {
	// Open prepares for one authorization. Before is the redirect URI with which the
	// program is registered already, "" if there is none; another one means that it
	// has to register anew.
	Open(ctx context.Context, before string) (Redirect, error)
}

// A Redirect is the way of one user to an authorization server and back.
type Redirect interface {
	// RedirectURI is where the authorization server sends the user to.
	RedirectURI() string
	// Authorize takes the user to a URL, which is https, or http on this machine, and
	// returns the parameters with which the user comes back to the redirect URI. They
	// are checked by the caller. It returns when ctx ends.
	Authorize(ctx context.Context, authorizationURL string) (url.Values, error)
	// Close ends the reception. It is called once.
	Close() error
}

// NewRedirector makes a Redirector of a function that is a Redirect's Authorize, and a
// redirect URI that is always the same: for programs that have a page for it.
func NewRedirector(redirectURI string, authorize func(ctx context.Context, authorizationURL string) (url.Values, error)) Redirector {
	return &fixed{redirectURI, authorize}
}

type fixed struct {
	uri       string
	authorize func(ctx context.Context, authorizationURL string) (url.Values, error)
}

func (f *fixed) Open(context.Context, string) (Redirect, error) { return f, nil }

func (f *fixed) RedirectURI() string { return f.uri }

func (f *fixed) Authorize(ctx context.Context, authorizationURL string) (url.Values, error) {
	return f.authorize(ctx, authorizationURL)
}

func (f *fixed) Close() error { return nil }

// Loopback is a [Redirector] for programs that run on the user's machine: it opens a
// browser, and listens on 127.0.0.1 for the way back (RFC 8252). The zero Loopback
// is ready to use.
type Loopback struct {
	// RedirectURI is where it listens: http, with a host that is localhost or
	// 127.0.0.1. Without a port, or with port 0, any that is free is taken, but the
	// one of the registration if possible. "" means "http://127.0.0.1/callback".
	RedirectURI string
	// OpenBrowser shows a URL to the user: it may print it. It must not wait for the
	// user. Nil means [OpenBrowser].
	OpenBrowser func(ctx context.Context, url string) error
	// Done is the text of the page that the user comes back to. "" means "You may
	// close this page now."
	Done string
}

// Open implements [Redirector].
func (l *Loopback) Open(ctx context.Context, before string) (Redirect, error) {
	u, err := url.Parse(cmp.Or(l.RedirectURI, "http://127.0.0.1/callback"))
	if err != nil || u.Scheme != "http" || u.Hostname() != "localhost" && u.Hostname() != "127.0.0.1" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("oauth: Loopback.RedirectURI is %q, want http://127.0.0.1:port/path", l.RedirectURI)
	}
	listener, err := l.listen(ctx, u, before)
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		_ = listener.Close()
		return nil, err
	}
	bound := *u
	bound.Host = u.Hostname() + ":" + port
	bound.Path = cmp.Or(u.Path, "/")
	return &loopbackRedirect{opts: l, uri: &bound, listener: listener, came: make(chan url.Values, 1)}, nil
}

// listen takes the port that is configured, or the one of before, or any.
func (l *Loopback) listen(ctx context.Context, u *url.URL, before string) (net.Listener, error) {
	var config net.ListenConfig
	if port := u.Port(); port != "" && port != "0" {
		return config.Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", port))
	}
	if b, err := url.Parse(before); err == nil && b.Scheme == u.Scheme && b.Hostname() == u.Hostname() && b.Path == u.Path && b.Port() != "" {
		if listener, err := config.Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", b.Port())); err == nil {
			return listener, nil
		}
	}
	return config.Listen(ctx, "tcp4", "127.0.0.1:0")
}

// waiting is for a user who is at the authorization server.
type loopbackRedirect struct {
	opts     *Loopback
	uri      *url.URL
	listener net.Listener
	state    string
	came     chan url.Values
}

func (w *loopbackRedirect) RedirectURI() string { return w.uri.String() }

func (w *loopbackRedirect) Close() error { return w.listener.Close() }

// Authorize implements [Redirect].
func (w *loopbackRedirect) Authorize(ctx context.Context, authorizationURL string) (url.Values, error) {
	u, err := parseURL(authorizationURL)
	if err != nil {
		return nil, err
	}
	w.state = u.Query().Get("state")
	server := &http.Server{
		Handler:           http.HandlerFunc(w.serve),
		ReadHeaderTimeout: 5 * time.Second,
		WriteTimeout:      5 * time.Second,
		IdleTimeout:       5 * time.Second,
		MaxHeaderBytes:    32 << 10,
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(w.listener) }()
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second) // for the page to get there
		defer cancel()
		if server.Shutdown(ending) != nil {
			_ = server.Close()
		}
	}()
	browse := w.opts.OpenBrowser
	if browse == nil {
		browse = OpenBrowser
	}
	if err := browse(ctx, u.String()); err != nil {
		return nil, fmt.Errorf("oauth: open the browser: %w", err)
	}
	select {
	case params := <-w.came:
		return params, nil
	case err := <-failed:
		return nil, fmt.Errorf("oauth: wait for the browser: %w", err)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// serve takes the first request that comes back from this authorization. Any page
// can make a browser send others.
func (w *loopbackRedirect) serve(res http.ResponseWriter, req *http.Request) {
	h := res.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	params, err := url.ParseQuery(req.URL.RawQuery)
	switch {
	case req.URL.Path != w.uri.Path:
		res.WriteHeader(http.StatusNotFound)
		return
	case req.Method != http.MethodGet:
		res.WriteHeader(http.StatusMethodNotAllowed)
		return
	case err != nil, subtle.ConstantTimeCompare([]byte(params.Get("state")), []byte(w.state)) != 1:
		res.WriteHeader(http.StatusBadRequest)
		fmt.Fprintln(res, "This is not what was waited for.")
		return
	}
	select {
	case w.came <- params:
	default: // only the first counts
	}
	fmt.Fprintln(res, cmp.Or(w.opts.Done, "You may close this page now."))
}

// OpenBrowser opens a URL, https or http to this machine, in the user's browser. It
// does not wait for the browser to end. No shell sees the URL.
func OpenBrowser(ctx context.Context, url string) error {
	u, err := parseURL(url)
	if err != nil {
		return err
	}
	name, args := "xdg-open", []string{u.String()}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", u.String()}
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), name, args...) //nolint:gosec // the URL was checked, and is one argument
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // so that it leaves nothing behind
	return nil
}
