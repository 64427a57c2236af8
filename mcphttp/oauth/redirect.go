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
	"sync"
	"time"

	"github.com/go-psi/psi/internal/redact"
)

// A Redirector sends users to authorization servers and receives the redirects back. It
// must be safe for concurrent use if several transports share it.
type Redirector interface {
	// Open starts one authorization. registered is the redirect URI already registered,
	// or "". If the Redirect has a different URI, the program registers again.
	Open(ctx context.Context, registered string) (Redirect, error)
}

// A Redirect sends one user to an authorization server and receives the redirect back.
type Redirect interface {
	// RedirectURI returns the URI to which the authorization server sends the user.
	RedirectURI() string
	// Authorize sends the user to a URL, which is https, or http on this machine. It
	// returns the parameters of the user's request to the redirect URI, which the caller
	// validates. It returns early if ctx is done.
	Authorize(ctx context.Context, authorizationURL string) (url.Values, error)
	// Close ends the authorization. It is called once.
	Close() error
}

// NewRedirector returns a Redirector with a fixed redirect URI whose Redirects call
// authorize. It is for programs that serve the redirect URI themselves.
func NewRedirector(redirectURI string, authorize func(ctx context.Context, authorizationURL string) (url.Values, error)) Redirector {
	if authorize == nil {
		panic("oauth: NewRedirector: the function is nil")
	}
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

// Loopback is a [Redirector] for programs on the user's machine. It opens a browser, and
// listens on 127.0.0.1 for the redirect (RFC 8252). The zero Loopback is ready to use.
type Loopback struct {
	// RedirectURI is the URI to listen on: http, with the host localhost or 127.0.0.1. If
	// the port is missing or 0, a free port is used, preferably the registered one.
	// Authorizations in one process that use the same fixed port wait for each other. ""
	// means "http://127.0.0.1/callback".
	RedirectURI string
	// OpenBrowser shows a URL to the user, or prints it. It must not wait for the user.
	// Nil means [OpenBrowser].
	OpenBrowser func(ctx context.Context, url string) error
	// Done is the text of the page after the redirect. "" means "You may close this page
	// now."
	Done string
}

// Open implements [Redirector].
func (l *Loopback) Open(ctx context.Context, registered string) (Redirect, error) {
	u, err := url.Parse(cmp.Or(l.RedirectURI, "http://127.0.0.1/callback"))
	if err != nil || u.Scheme != "http" || u.Hostname() != "localhost" && u.Hostname() != "127.0.0.1" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("oauth: Loopback.RedirectURI is %q, want http://127.0.0.1:port/path", redact.URL(l.RedirectURI))
	}
	unlock := func() {}
	if isFixed(u) {
		if _, unlock, err = ports.Lock(ctx, StoreKey{Resource: u.Port()}); err != nil {
			return nil, err
		}
	}
	listener, err := l.listen(ctx, u, registered)
	if err != nil {
		unlock()
		return nil, err
	}
	bound := *u
	bound.Host = fmt.Sprintf("%s:%d", u.Hostname(), listener.Addr().(*net.TCPAddr).Port)
	bound.Path = cmp.Or(u.Path, "/")
	return &loopbackRedirect{opts: l, uri: &bound, listener: listener, unlock: sync.OnceFunc(unlock), came: make(chan url.Values, 1)}, nil
}

// ports has a lock for each fixed port.
var ports MemoryStore

func isFixed(u *url.URL) bool { return u.Port() != "" && u.Port() != "0" }

// listen listens on the configured port, the registered port, or any free port.
func (l *Loopback) listen(ctx context.Context, u *url.URL, registered string) (net.Listener, error) {
	var config net.ListenConfig
	if isFixed(u) {
		return config.Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", u.Port()))
	}
	if b, err := url.Parse(registered); err == nil && b.Scheme == u.Scheme && b.Hostname() == u.Hostname() && b.Path == u.Path && b.Port() != "" {
		if listener, err := config.Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", b.Port())); err == nil {
			return listener, nil
		}
	}
	return config.Listen(ctx, "tcp4", "127.0.0.1:0")
}

// A loopbackRedirect waits for the redirect of one user.
type loopbackRedirect struct {
	opts     *Loopback
	uri      *url.URL
	listener net.Listener
	unlock   func() // unlocks the port
	state    string
	came     chan url.Values
}

func (w *loopbackRedirect) RedirectURI() string { return w.uri.String() }

func (w *loopbackRedirect) Close() error {
	defer w.unlock()
	return w.listener.Close()
}

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
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second) // to deliver the page
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

// serve accepts the first request with the state of this authorization. It rejects others,
// because any web page can make a browser send them.
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
		fmt.Fprintln(res, "This is not the expected response.")
		return
	}
	select {
	case w.came <- params:
	default: // a later request
	}
	fmt.Fprintln(res, cmp.Or(w.opts.Done, "You may close this page now."))
}

// openers are the commands, by operating system, that open a URL. Other systems use
// xdg-open.
var openers = map[string][]string{"darwin": {"open"}, "windows": {"rundll32", "url.dll,FileProtocolHandler"}}

// OpenBrowser opens a URL, which must be https, or http on this machine, in the user's
// browser. It does not wait for the browser to exit. The URL is not passed through a shell.
func OpenBrowser(ctx context.Context, url string) error {
	u, err := parseURL(url)
	if err != nil {
		return err
	}
	opener, ok := openers[runtime.GOOS]
	if !ok {
		opener = []string{"xdg-open"}
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), opener[0], append(opener[1:len(opener):len(opener)], u.String())...) //nolint:gosec // the URL was checked, and is one argument
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // reaps the process
	return nil
}
