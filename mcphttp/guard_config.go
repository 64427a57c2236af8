// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/go-psi/psi/mcp"
)

// mustBeHandler panics if h is nil or a nil HandlerFunc.
func mustBeHandler(function string, h mcp.Handler) {
	if f, ok := h.(mcp.HandlerFunc); h == nil || ok && f == nil {
		panic("mcphttp: " + function + ": the handler is nil")
	}
}

// mustBeHosts panics if a pattern can never match a host.
func mustBeHosts(field string, patterns []string) {
	for _, p := range patterns {
		if p == "*" {
			continue
		}
		host := strings.TrimSuffix(p, ":*")
		if domain, ok := strings.CutPrefix(host, "*."); ok && isDomain(domain) {
			host = domain
		}
		if u, err := url.Parse("//" + host); err == nil && u.Host == host && host != "" && !strings.Contains(host, "*") {
			continue
		}
		panic(fmt.Sprintf("mcphttp: %s: %q is not a host%s", field, p, insteadOf(p, `"mcp.example.com" or "mcp.example.com:8443"`)))
	}
}

// isDomain reports whether a pattern may allow all names below a domain, which may have a
// port: a domain of at least two labels that is neither a part of an IP address nor of
// localhost.
func isDomain(domain string) bool {
	name := withoutPort(domain)
	last := name[strings.LastIndexByte(name, '.')+1:]
	return last != name && strings.Trim(last, "0123456789") != "" && !isLoopback(name)
}

// mustBeOrigins panics if a pattern can never match an origin. Pages with an opaque origin
// send "null".
func mustBeOrigins(field string, patterns []string) {
	for _, p := range patterns {
		if p == "*" || p == "null" {
			continue
		}
		origin := strings.TrimSuffix(p, ":*")
		if scheme, domain, ok := strings.Cut(origin, "://*."); ok && isDomain(domain) {
			origin = scheme + "://" + domain
		}
		if u, err := url.Parse(origin); err == nil && u.Host != "" && u.Scheme+"://"+u.Host == origin && !strings.Contains(origin, "*") {
			continue
		}
		panic(fmt.Sprintf("mcphttp: %s: %q is not an origin%s", field, p, insteadOf(p, `"https://app.example.com" or "http://localhost:*"`)))
	}
}

// insteadOf returns the end of an error text: what to write instead of an invalid pattern.
func insteadOf(pattern, examples string) string {
	switch u, err := url.Parse(pattern); {
	case pattern == "":
		return ": it is empty; leave it out, or write one such as " + examples
	case strings.Contains(pattern, "*"):
		return `: "*" must be the whole name, the port, or the first label before a domain of two or more; write one such as ` + examples
	case strings.HasPrefix(examples, `"https:`) && strings.HasPrefix(pattern, "file:"):
		return `: browsers send the origin "null" for pages of files; write "null"`
	case strings.HasPrefix(examples, `"https:`) && err == nil && u.Host != "":
		return fmt.Sprintf(`: write "%s://%s"`, u.Scheme, u.Host)
	case strings.HasPrefix(examples, `"https:`):
		return fmt.Sprintf(`: write "https://%s"`, strings.Trim(pattern, "/"))
	case err == nil && u.Host != "":
		return fmt.Sprintf(": write %q", u.Host)
	}
	return ": write one such as " + examples
}
