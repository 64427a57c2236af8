// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"net"
	"net/http"
	"net/netip"
)

// callerKey names the caller of a request, for bounds on what one caller may hold: its
// principal or, if there is none, its address.
type callerKey struct {
	known           bool // there is a principal
	issuer, subject string
	address         string
}

func callerOf(r *http.Request) callerKey {
	if p := PrincipalOf(r); p != nil {
		return callerKey{known: true, issuer: p.Issuer, subject: p.Subject}
	}
	return callerKey{address: network(r.RemoteAddr)}
}

// network is the address of a client without its port. The owner of an IPv6 address
// usually has all addresses of its network.
func network(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		prefix, _ := addr.Prefix(64) // which an IPv6 address has
		return prefix.String()
	}
	return addr.String()
}

// caller is a caller that holds sessions.
type caller struct {
	key      callerKey
	sessions int
	kept     kept
}

// callers are those that hold sessions.
type callers map[callerKey]*caller

// add counts a session of a caller; remove must follow.
func (cs callers) add(key callerKey) *caller {
	c := cs[key]
	if c == nil {
		c = &caller{key: key}
		cs[key] = c
	}
	c.sessions++
	return c
}

func (cs callers) remove(c *caller) {
	if c.sessions--; c.sessions == 0 {
		delete(cs, c.key)
	}
}

// sessions is how many sessions a caller has.
func (cs callers) sessions(key callerKey) int {
	if c := cs[key]; c != nil {
		return c.sessions
	}
	return 0
}
