// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth

import (
	"net/http"
	"slices"
	"strings"
)

// A challenge is one challenge in a WWW-Authenticate header (RFC 9110, section 11.6.1).
type challenge struct {
	scheme string // in lower case
	params map[string]string
}

// Limits on what is read from headers.
const (
	maxChallengeBytes = 16 << 10
	maxChallenges     = 16
	maxParams         = 64
)

const (
	schemeBearer = "bearer"
	schemeDPoP   = "dpop"
)

// parseChallenges parses all challenges. It skips malformed ones.
func parseChallenges(h http.Header) []challenge {
	var found []challenge
	left := maxChallengeBytes
	for _, line := range h.Values("WWW-Authenticate") {
		if left -= len(line); left < 0 {
			break
		}
		for _, item := range splitList(line) {
			found = addItem(found, item)
		}
	}
	return found
}

// addItem parses and adds the text between two commas: a challenge with its first
// parameter, or another parameter of the previous challenge.
func addItem(found []challenge, item string) []challenge {
	name, value, isParam := cutParam(item)
	if !isParam {
		scheme, rest, _ := strings.Cut(item, " ")
		if !isToken(scheme) || len(found) == maxChallenges {
			return found
		}
		found = append(found, challenge{strings.ToLower(scheme), map[string]string{}})
		if name, value, isParam = cutParam(strings.TrimSpace(rest)); !isParam {
			return found
		}
	}
	if len(found) > 0 {
		if p := found[len(found)-1].params; len(p) < maxParams {
			if _, twice := p[name]; !twice {
				p[name] = value
			}
		}
	}
	return found
}

// splitList splits at commas outside of quotes.
func splitList(s string) []string {
	var items []string
	quoted, start := false, 0
	add := func(end int) {
		if item := strings.Trim(s[start:end], " \t"); item != "" {
			items = append(items, item)
		}
		start = end + 1
	}
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && quoted:
			i++
		case s[i] == '"':
			quoted = !quoted
		case s[i] == ',' && !quoted:
			add(i)
		}
	}
	add(len(s))
	return items
}

// cutParam parses name = value, where value is a token or quoted.
func cutParam(s string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(s, "=")
	name, value = strings.TrimRight(name, " \t"), strings.TrimLeft(value, " \t")
	if !ok || !isToken(name) {
		return "", "", false
	}
	if strings.HasPrefix(value, `"`) {
		value, ok = unquote(value)
	} else if value == "" || strings.Trim(value, "=") == "" {
		return "", "", false // the padding of a token68
	}
	return strings.ToLower(name), value, ok
}

func unquote(s string) (string, bool) {
	var text strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return text.String(), i == len(s)-1
		case '\\':
			if i++; i == len(s) {
				return "", false
			}
		}
		text.WriteByte(s[i])
	}
	return "", false
}

func isToken(s string) bool {
	for _, c := range []byte(s) {
		alphanumeric := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !alphanumeric && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

// A demand summarizes the challenges of a response.
type demand struct {
	metadata string // URL of the server's metadata, "" if not given
	scopes   []string
	code     string // error code
	dpop     bool   // the server accepts DPoP, but not Bearer
	foreign  bool   // the server accepts neither DPoP nor Bearer
}

// readDemand summarizes the challenges. A server need not send any.
func readDemand(h http.Header) demand {
	var d demand
	bearer, all := false, parseChallenges(h)
	for _, c := range all {
		switch c.scheme {
		case schemeBearer:
			bearer = true
		case schemeDPoP:
			d.dpop = true
		default:
			continue
		}
		if d.metadata == "" {
			d.metadata = c.params["resource_metadata"]
		}
		if d.code == "" {
			d.code = c.params["error"]
		}
		if d.scopes == nil {
			d.scopes = splitScope(c.params["scope"])
		}
	}
	d.foreign = len(all) > 0 && !d.dpop && !bearer
	d.dpop = d.dpop && !bearer
	return d
}

// maxScopes is the maximum number of scopes in one request.
const maxScopes = 100

// scopeSet returns the scopes of all lists, without duplicates, in order of appearance.
func scopeSet(lists ...[]string) []string {
	var set []string
	for _, list := range lists {
		for _, s := range list {
			if isScope(s) && len(set) < maxScopes && !slices.Contains(set, s) {
				set = append(set, s)
			}
		}
	}
	return set
}

// isScope reports whether s is a scope-token (RFC 6749, section 3.3).
func isScope(s string) bool {
	for _, c := range []byte(s) {
		if c <= ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return s != "" && len(s) <= 256
}

func splitScope(s string) []string { return scopeSet(strings.Fields(s)) }

// covers reports whether have contains all of want.
func covers(have, want []string) bool {
	return !slices.ContainsFunc(want, func(s string) bool { return !slices.Contains(have, s) })
}
