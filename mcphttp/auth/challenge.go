// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth

import (
	"slices"
	"strings"
)

const (
	schemeBearer = "Bearer"
	schemeDPoP   = "DPoP"
)

// challenges builds the values of WWW-Authenticate.
type challenges struct {
	schemes []string // with their own parameters; at least one
	common  string   // parameters common to all schemes, each beginning with ", "
	scopes  []string // required for every request
	plain   []string // challenges for requests without credentials
}

func newChallenges(v Verifier, opts *Options, metadataURL string) *challenges {
	c := &challenges{schemes: slices.Clone(challengesOf(v)), scopes: slices.Clone(opts.Scopes)}
	if len(c.schemes) == 0 {
		c.schemes = []string{schemeBearer} // a 401 must have a challenge
	}
	c.common = param("resource_metadata", metadataURL)
	for _, s := range c.schemes {
		c.plain = append(c.plain, c.value(s, "", "", c.scopes))
	}
	c.plain = slices.Clip(c.plain) // responses share the slice, and a handler may append to it
	return c
}

// value returns one challenge. code, description and scopes may be empty.
func (c *challenges) value(scheme, code, description string, scopes []string) string {
	params := param("error", code) + param("error_description", description) + param("scope", strings.Join(scopes, " ")) + c.common
	if params == "" {
		return scheme
	}
	if !strings.Contains(scheme, " ") {
		params = " " + strings.TrimPrefix(params, ", ")
	}
	return scheme + params
}

// refusal returns the challenges for an error. The challenge in the scheme of the error
// comes first, for clients that read only one. If the credentials are valid but lack a
// scope, it is the only challenge.
func (c *challenges) refusal(e *Error) []string {
	first := max(0, c.index(e.Scheme))
	values := []string{c.value(c.schemes[first], e.code(), e.Description, c.scopes)}
	if e.Code == CodeInsufficientScope {
		return values
	}
	for i, plain := range c.plain {
		if i != first {
			values = append(values, plain)
		}
	}
	return values
}

// insufficient returns the challenge for missing scopes in the given scheme. It lists all
// required scopes, so that the next token includes all of them.
func (c *challenges) insufficient(scheme string, scopes []string) string {
	needed := slices.Clone(c.scopes)
	for _, s := range scopes {
		if !slices.Contains(needed, s) {
			needed = append(needed, s)
		}
	}
	return c.value(c.schemes[max(0, c.index(scheme))], CodeInsufficientScope, "", needed)
}

// index returns the index of a scheme, or -1.
func (c *challenges) index(scheme string) int {
	return slices.IndexFunc(c.schemes, func(s string) bool { return strings.EqualFold(nameOf(s), scheme) })
}

// nameOf returns the scheme of a challenge.
func nameOf(challenge string) string {
	name, _, _ := strings.Cut(challenge, " ")
	return name
}

func param(name, value string) string {
	if value == "" {
		return ""
	}
	return ", " + name + `="` + quotable(value) + `"`
}

// quotable replaces the characters that must not occur in a quoted value (RFC 6750, section
// 3): quotation marks, backslashes, and everything other than visible ASCII and spaces.
func quotable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '"':
			return '\''
		case r < ' ' || r == '\\' || r > '~':
			return '?'
		}
		return r
	}, s)
}

// isScope reports whether s is a scope (RFC 6749, section 3.3).
func isScope(s string) bool {
	return s != "" && !strings.Contains(s, " ") && quotable(s) == s
}
