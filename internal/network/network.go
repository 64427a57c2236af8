// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package network

import "net/netip"

// Of returns what of an address, with or without a port, is the caller's own: an IPv4
// address, or the first 64 bits of one of IPv6, which is what one customer has. Anything
// else, such as the path of a socket, is returned as it is.
func Of(address string) string {
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
