// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package debug

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/go-psi/psi/mcp"
)

// A failure is an error response to a request for the page.
type failure struct {
	status  int
	message string
}

func (f failure) Error() string { return "debug: " + f.message }

// statusOf returns the status for an error.
func statusOf(err error) int {
	if f, ok := errors.AsType[failure](err); ok {
		return f.status
	}
	return http.StatusBadGateway
}

// policy allows the page's own script, style and requests, and the images and audio in results.
// It ends with the form targets, to which Options.Apps is appended: the form that opens an app is
// redirected there.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"media-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self' "

func (p *page) setHeaders(h http.Header) {
	// With no-referrer, browsers submit forms with the origin null, which the guard rejects.
	h.Set("Content-Security-Policy", strings.TrimSpace(policy+p.opts.Apps))
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin") // with no-referrer, forms would have the Origin null
	h.Set("Cache-Control", "no-store")
}

// forwarded are headers that proxies add.
var forwarded = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "Via"}

// pagePrincipal is the principal of calls made from the page, unless Options.Authorize returns
// another one.
var pagePrincipal = mcp.Principal{Issuer: "psi/debug", Subject: "debug page"}

var crossOrigin = http.NewCrossOriginProtection()

// authorize returns the principal of the calls that r makes, or an error if r is not authorized.
func (p *page) authorize(r *http.Request) (*mcp.Principal, error) {
	if why := p.guard(r); why != "" {
		return nil, failure{http.StatusForbidden, why}
	}
	if err := checkSite(r); err != nil {
		return nil, err
	}
	principal := pagePrincipal
	if p.opts.Authorize == nil {
		return &principal, p.checkLocal(r)
	}
	authorized, err := p.opts.Authorize(r)
	switch {
	case err != nil:
		p.opts.Logger.WarnContext(r.Context(), "debug: a request for the page was refused", "remote", r.RemoteAddr, "error", err)
		return nil, failure{http.StatusForbidden, "you are not allowed to see this page"}
	case authorized != nil:
		principal = *authorized
	}
	return &principal, nil
}

// checkSite returns an error if r was sent by a page of another origin.
func checkSite(r *http.Request) error {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
	default:
		return failure{http.StatusForbidden, "requests of other sites are refused; open the page by its address"}
	}
	if crossOrigin.Check(r) != nil {
		return failure{http.StatusForbidden, "requests of other origins are refused"}
	}
	return nil
}

// checkLocal returns an error unless r was sent by this machine. It checks both the local address
// of the connection and the remote address, which middleware may have taken from a header.
func (p *page) checkLocal(r *http.Request) error {
	for _, name := range forwarded {
		if r.Header.Get(name) != "" {
			return failure{http.StatusForbidden, "a proxy has forwarded the request (" + name + "); Options.Authorize then decides who is served"}
		}
	}
	if !web.ArrivedOnLoopback(r) || !isLoopback(r.RemoteAddr) {
		return failure{http.StatusForbidden, "only requests of this machine are served; Options.Authorize decides who else is served"}
	}
	return nil
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
