// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/network"
)

// guard refuses requests that a foreign web page makes a browser send. It checks Host to
// stop pages whose name resolves to this server, and Origin to stop pages that call this
// server directly.
type guard struct {
	hosts, origins []string
	refused        *refusalLog
	logger         *slog.Logger
}

// newGuard returns a guard for o. It panics if o contains an invalid host or origin.
func newGuard(o *Options) guard {
	mustBeHosts("Options.AllowedHosts", o.AllowedHosts)
	mustBeOrigins("Options.AllowedOrigins", o.AllowedOrigins)
	return guard{slices.Clone(o.AllowedHosts), slices.Clone(o.AllowedOrigins), &refusalLog{}, o.Logger}
}

// refusal returns why the request is refused, or "" if it is allowed. It logs refusals.
func (g *guard) refusal(r *http.Request) string {
	why := g.check(r)
	if why != "" {
		g.refused.write(g.logger, r, "mcphttp: a request was refused", why)
	}
	return why
}

// check is like refusal but does not log.
func (g *guard) check(r *http.Request) string {
	local := arrivedOnLoopback(r)
	known := local && isLoopback(hostname(r.Host)) || matchesAny(g.hosts, r.Host)
	switch {
	case known:
	case len(g.hosts) > 0:
		return fmt.Sprintf("the host %q is not allowed (Options.AllowedHosts)", r.Host)
	case local:
		return fmt.Sprintf("the host %q is not allowed on a loopback address; behind a proxy on the same machine, list it (Options.AllowedHosts)", r.Host)
	}
	if n := len(r.Header["Origin"]); n > 1 {
		return fmt.Sprintf("the header Origin appears %d times", n)
	}
	origin := r.Header.Get("Origin")
	if origin == "" || matchesAny(g.origins, origin) || originAllowed(r) {
		return ""
	}
	u, err := url.Parse(origin)
	if err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host) {
		if known || !isRebindable(hostname(r.Host)) {
			return ""
		}
		return fmt.Sprintf("the origin %q is the host of the request, which could be anybody's name for this server; list the host (Options.AllowedHosts) or the origin (Options.AllowedOrigins)", origin)
	}
	if err == nil && len(g.origins) == 0 && isLoopback(u.Hostname()) && isLoopback(hostname(r.Host)) {
		return "" // a page served by this machine
	}
	return fmt.Sprintf("the origin %q is not allowed (Options.AllowedOrigins)", origin)
}

func matchesAny(patterns []string, value string) bool {
	for _, p := range patterns {
		if matches(p, value) {
			return true
		}
	}
	return false
}

// matches reports whether a host or an origin matches a pattern. The port "*" matches any
// port, and so does a host pattern without a port. The first label "*" matches any label.
func matches(pattern, value string) bool {
	if pattern == "*" || strings.EqualFold(pattern, value) {
		return true
	}
	if scheme, domain, ok := strings.Cut(pattern, "*."); ok {
		label, rest, ok := strings.Cut(value[min(len(scheme), len(value)):], ".")
		return ok && isLabel(label) && strings.EqualFold(scheme, value[:len(scheme)]) && matches(scheme+domain, scheme+rest)
	}
	if base, ok := strings.CutSuffix(pattern, ":*"); ok {
		return strings.EqualFold(base, withoutPort(value))
	}
	return !strings.Contains(pattern, "://") && withoutPort(pattern) == pattern && strings.EqualFold(pattern, withoutPort(value))
}

// isLabel reports whether s is one label of a host name.
func isLabel(s string) bool {
	return s != "" && strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// withoutPort returns a host or an origin without its port.
func withoutPort(value string) string {
	i := strings.LastIndexByte(value, ':')
	if i < 0 || strings.Trim(value[i+1:], "0123456789") != "" {
		return value
	}
	return value[:i]
}

// hostname returns a host without its port and brackets.
func hostname(host string) string {
	if strings.Count(host, ":") > 1 { // parsing a name as an address is expensive
		if ip, err := netip.ParseAddr(host); err == nil && ip.Is6() {
			return host // without brackets, its last group looks like a port
		}
	}
	host = withoutPort(host)
	if ip := strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"); strings.Contains(ip, ":") {
		return ip
	}
	return host
}

// isRebindable reports whether a host is a name that its owner could resolve to this server
// while one of their pages is open: neither an IP address nor a loopback name. An Origin that
// equals Host proves nothing for other names: a page whose name was resolved to the server's
// address sends equal headers.
func isRebindable(host string) bool {
	_, err := netip.ParseAddr(host)
	return err != nil && !isLoopback(host)
}

// isLoopback reports whether a host names this machine. Unlike [network.IsLoopback], it
// accepts subdomains of localhost, which every browser resolves to this machine.
func isLoopback(host string) bool {
	return network.IsLoopback(host) || strings.HasSuffix(strings.ToLower(host), ".localhost")
}

// arrivedOnLoopback reports whether the connection was accepted on a loopback address. It
// is false if the address is unknown, as on transports other than TCP.
func arrivedOnLoopback(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
