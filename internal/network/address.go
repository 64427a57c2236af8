// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package network

import (
	"net/netip"
	"slices"
	"strings"
)

// A Kind classifies an address.
type Kind int

// The kinds of addresses. Only public ones belong to the internet.
const (
	Public Kind = iota
	Loopback
	Private
	LinkLocal
	Reserved // no host has such an address
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

// KindOf classifies an address. An address that embeds an IPv4 address has the kind of the
// embedded address.
func KindOf(ip netip.Addr) Kind {
	ip = ip.Unmap().WithZone("")
	if nat64.Contains(ip) {
		b := ip.As16()
		ip = netip.AddrFrom4([4]byte(b[12:]))
	}
	within := func(p netip.Prefix) bool { return p.Contains(ip) }
	switch {
	case ip.IsLoopback():
		return Loopback
	case ip.IsLinkLocalUnicast():
		return LinkLocal
	case ip.IsUnspecified(), ip.IsMulticast(), slices.ContainsFunc(reservedIPs, within):
		return Reserved
	case ip.IsPrivate(), slices.ContainsFunc(privateNets, within):
		return Private
	}
	return Public
}

// IsLocalName reports whether a name is reserved for this machine (RFC 6761).
func IsLocalName(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// IsOddAddress reports whether a resolver may interpret a host as an address that netip
// does not accept: a host whose last label is a number, such as 127.1 or 0x7f000001 (WHATWG
// URL, ends in a number), or that may become one when its letters are mapped to ASCII.
// Resolvers, proxies and URL parsers interpret such hosts differently.
func IsOddAddress(host string) bool {
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
