// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package network

import (
	"net/netip"
	"strings"
)

// CallerPrefix returns the part of an address, with or without a port, that identifies
// a caller: an IPv4 address, or the first 64 bits of an IPv6 address, which is what a
// provider assigns to one customer. Anything else, such as the path of a socket, is
// returned unchanged.
func CallerPrefix(address string) string {
	addr, err := netip.ParseAddr(address)
	if err != nil {
		withPort, err := netip.ParseAddrPort(address)
		if err != nil {
			return address // a path of a socket, a name, or nothing
		}
		addr = withPort.Addr()
	}
	if addr = addr.Unmap().WithZone(""); addr.Is4() {
		return addr.String()
	}
	prefix, _ := addr.Prefix(64) // every IPv6 address has one
	return prefix.String()
}

// IsLoopback reports whether host, without a port, certainly refers to this machine:
// "localhost" or a loopback address. Names below localhost may resolve to other machines.
func IsLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.IsLoopback()
}
