// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/network"
	"github.com/go-psi/psi/internal/redact"
)

// A reach is the set of non-public networks to which a server may send a client.
type reach struct {
	loopback, private, linkLocal bool
}

// A kind classifies an address.
type kind int

const (
	public kind = iota
	loopback
	private
	linkLocal
	reserved // no host has such an address
)

// Networks that netip does not classify.
var (
	privateNets = prefixes("100.64.0.0/10", "192.0.0.0/24", "198.18.0.0/15", "fec0::/10", "64:ff9b:1::/48")
	reservedIPs = prefixes("0.0.0.0/8", "240.0.0.0/4", "::/96", "::ffff:0:0:0/96", "100::/64", "2001::/32", "2002::/16")
	nat64       = netip.MustParsePrefix("64:ff9b::/96")
)

func prefixes(list ...string) []netip.Prefix {
	var nets []netip.Prefix
	for _, s := range list {
		nets = append(nets, netip.MustParsePrefix(s))
	}
	return nets
}

// kindOf classifies an address. An address that embeds an IPv4 address has the kind of the
// embedded address.
func kindOf(ip netip.Addr) kind {
	ip = ip.Unmap().WithZone("")
	if nat64.Contains(ip) {
		b := ip.As16()
		ip = netip.AddrFrom4([4]byte(b[12:]))
	}
	within := func(p netip.Prefix) bool { return p.Contains(ip) }
	switch {
	case ip.IsLoopback():
		return loopback
	case ip.IsLinkLocalUnicast():
		return linkLocal
	case ip.IsUnspecified(), ip.IsMulticast(), slices.ContainsFunc(reservedIPs, within):
		return reserved
	case ip.IsPrivate(), slices.ContainsFunc(privateNets, within):
		return private
	}
	return public
}

// reachFrom returns the reach of a server at an address: the server's own network and wider
// ones.
func reachFrom(ip netip.Addr) reach {
	switch kindOf(ip) {
	case loopback:
		return reach{loopback: true, private: true}
	case private:
		return reach{private: true}
	case linkLocal:
		return reach{linkLocal: true}
	case public, reserved:
	}
	return reach{}
}

// allows returns an error if an address must not be dialled.
func (r reach) allows(ip netip.Addr) error {
	switch k := kindOf(ip); {
	case k == public, k == loopback && r.loopback, k == private && r.private, k == linkLocal && r.linkLocal:
		return nil
	case k == private:
		return fmt.Errorf("%w: %s is a private address; Options.PrivateNetworks would allow it", ErrUnsafeURL, ip)
	}
	return fmt.Errorf("%w: %s is not an address that a server may send its clients to", ErrUnsafeURL, ip)
}

// isLocalName reports whether a name is reserved for this machine (RFC 6761).
func isLocalName(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
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
	if isLocalName(host) {
		return r.allows(netip.IPv6Loopback())
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return r.allows(ip)
	}
	if isOddAddress(host) {
		return fmt.Errorf("%w: the host %.100q is neither a name in ASCII nor an address in its usual form", ErrUnsafeURL, host)
	}
	return nil
}

// isOddAddress reports whether a resolver may interpret a host as an address that netip
// does not accept: a host whose last label is a number, such as 127.1 or 0x7f000001 (WHATWG
// URL, ends in a number), or that may become one when its letters are mapped to ASCII.
// Resolvers, proxies and URL parsers interpret such hosts differently.
func isOddAddress(host string) bool {
	if strings.ContainsFunc(host, func(r rune) bool { return r > '~' }) {
		return true
	}
	host = strings.TrimSuffix(host, ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	digits := "0123456789"
	if hex, ok := strings.CutPrefix(strings.ToLower(last), "0x"); ok {
		last, digits = "0"+hex, "0123456789abcdef"
	}
	return last != "" && strings.Trim(last, digits) == ""
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
