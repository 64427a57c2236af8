// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"github.com/go-psi/psi/internal/network"
	"github.com/go-psi/psi/internal/redact"
)

// A reach is the set of non-public networks to which a server may send a client.
type reach struct {
	loopback, private, linkLocal bool
}

// reachFrom returns the reach of a server at an address: the server's own network and wider
// ones.
func reachFrom(ip netip.Addr) reach {
	switch network.KindOf(ip) {
	case network.Loopback:
		return reach{loopback: true, private: true}
	case network.Private:
		return reach{private: true}
	case network.LinkLocal:
		return reach{linkLocal: true}
	case network.Public, network.Reserved:
	}
	return reach{}
}

// allows returns an error if an address must not be dialled.
func (r reach) allows(ip netip.Addr) error {
	switch k := network.KindOf(ip); {
	case k == network.Public, k == network.Loopback && r.loopback, k == network.Private && r.private, k == network.LinkLocal && r.linkLocal:
		return nil
	case k == network.Private:
		return fmt.Errorf("%w: %s is a private address; Options.PrivateNetworks would allow it", ErrUnsafeURL, ip)
	}
	return fmt.Errorf("%w: %s is not an address that a server may send its clients to", ErrUnsafeURL, ip)
}

// isSecure reports whether requests to a URL cannot be intercepted.
func isSecure(u *url.URL) bool {
	return u.Scheme == "https" || u.Scheme == "http" && network.IsLoopback(u.Hostname())
}

// parseURL parses a URL from a server and rejects unsafe ones. A URL must be absolute, must
// be https, or http on this machine, and must have no user information or fragment.
func parseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	var problem string
	switch {
	case err != nil, len(s) > 8<<10:
		problem = "is malformed"
	case !isSecure(u):
		problem = "is not https"
	case u.Hostname() == "" || u.Opaque != "":
		problem = "has no host"
	case u.User != nil || u.Fragment != "":
		problem = "has user information or a fragment"
	default:
		return u, nil
	}
	return nil, fmt.Errorf("%w: %.100q %s", ErrUnsafeURL, redact.URL(s), problem)
}

// checkURL returns an error if a URL must not be requested, as far as this is known without
// resolving its host.
func (r reach) checkURL(u *url.URL) error {
	if _, err := parseURL(u.String()); err != nil {
		return err
	}
	host := u.Hostname()
	if network.IsLocalName(host) {
		return r.allows(netip.IPv6Loopback())
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return r.allows(ip)
	}
	if network.IsOddAddress(host) {
		return fmt.Errorf("%w: the host %.100q is neither a name in ASCII nor an address in its usual form", ErrUnsafeURL, host)
	}
	return nil
}

// origin returns the scheme, host and port of a URL.
func origin(u *url.URL) string {
	scheme, port := strings.ToLower(u.Scheme), u.Port()
	switch {
	case port != "":
	case scheme == "http":
		port = "80"
	case scheme == "https":
		port = "443"
	}
	return scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// sameIssuer reports whether two issuers are the same: they are identical, or differ only in
// the case of the scheme and host, in the default port, or in the slash of an empty path.
// Such URLs are equivalent (RFC 3986, section 6.2.3), and their metadata is at the same URL,
// so neither can impersonate the other. Servers often disagree about the slash. Any other
// difference makes another issuer, including a slash after a path.
func sameIssuer(a, b string) bool { return a == b || plainIssuer(a) == plainIssuer(b) }

func plainIssuer(issuer string) string {
	u, err := url.Parse(issuer)
	if err != nil || u.Scheme == "" || u.Host == "" || u.User != nil {
		return issuer
	}
	_, rest, _ := strings.Cut(issuer, "://")
	if i := strings.IndexAny(rest, "/?#"); i >= 0 && rest[i:] != "/" {
		return origin(u) + rest[i:]
	}
	return origin(u)
}
