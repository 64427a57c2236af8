// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-psi/psi/mcp"
)

// rules are the requirements on the claims of a token, independent of how it was verified.
type rules struct {
	issuer      string              // empty means any
	audiences   []string            // without trailing slashes; nil means any
	noAudience  map[string][]string // claims that stand for aud, with their accepted values; may be nil
	mustExpire  bool
	leeway      time.Duration
	orClient    bool   // a token without sub is of the client client_id
	otherIssuer string // issuer of tokens without iss

	identify func(ctx context.Context, claims map[string]any) (*mcp.Principal, error) // may be nil
}

// principal validates the claims and returns the caller that they describe.
func (c *rules) principal(ctx context.Context, claims map[string]any, now time.Time) (*mcp.Principal, error) {
	issuer, err := text(claims, "iss")
	if err != nil {
		return nil, err
	}
	if c.issuer != "" && issuer != c.issuer {
		return nil, c.wrongIssuer(issuer)
	}
	if err := c.checkAudience(claims); err != nil {
		return nil, err
	}
	expiry, err := c.expiryOf(claims, now)
	if err != nil {
		return nil, err
	}
	p := &mcp.Principal{Issuer: cmp.Or(issuer, c.otherIssuer), Scopes: scopesOf(claims), Claims: claims, Expiry: expiry}
	if c.identify != nil {
		own, err := c.identify(ctx, claims)
		if err != nil {
			return nil, err
		}
		if own != nil {
			return identified(*own, p)
		}
	}
	if p.Subject, err = c.subjectOf(claims); err != nil {
		return nil, err
	}
	return p, nil
}

// identified completes the principal that Identify has returned with that of the token.
func identified(own mcp.Principal, p *mcp.Principal) (*mcp.Principal, error) {
	if own.Subject == "" {
		return nil, NewInvalidTokenError("the token has no subject")
	}
	own.Issuer = cmp.Or(own.Issuer, p.Issuer)
	if own.Scopes == nil {
		own.Scopes = p.Scopes
	}
	own.Claims = p.Claims // cnf is read from them
	if own.Expiry.IsZero() || !p.Expiry.IsZero() && p.Expiry.Before(own.Expiry) {
		own.Expiry = p.Expiry
	}
	return &own, nil
}

// wrongIssuer returns the error for another issuer. The cause points out the most common
// mistake, a trailing slash. Issuers are compared exactly (RFC 8414, section 3.3).
func (c *rules) wrongIssuer(got string) error {
	err := NewInvalidTokenError("the token is of another issuer")
	if withoutSlash(got) == withoutSlash(c.issuer) {
		return err.because(fmt.Errorf("the issuer is %q, expected %q: they differ in the slash at the end", got, c.issuer))
	}
	return err.because(fmt.Errorf("the issuer is %.200q, expected %q", got, c.issuer))
}

// checkAudience validates the claim aud, a string or a list of strings. It ignores a
// trailing slash, because clients and authorization servers often disagree about it. If
// there is no aud, another claim may stand for it.
func (c *rules) checkAudience(claims map[string]any) error {
	if c.audiences == nil {
		return nil
	}
	if claims["aud"] == nil {
		return c.checkNoAudience(claims)
	}
	names, ok := texts(claims["aud"])
	for _, name := range names {
		if slices.Contains(c.audiences, withoutSlash(name)) {
			return nil
		}
	}
	err := NewInvalidTokenError("the token is for another audience")
	if !ok {
		return err.because(errors.New("the claim aud is neither a text nor a list of texts"))
	}
	return err.because(fmt.Errorf("the audience is %.200q, expected one of %q", names, c.audiences))
}

// checkNoAudience validates the claims that stand for aud in a token without aud.
func (c *rules) checkNoAudience(claims map[string]any) error {
	reason := fmt.Sprintf("the token has no aud, expected one of %q", c.audiences)
	if c.noAudience != nil {
		reason += "; JWTOptions.AudienceClaims could replace it"
	}
	for _, name := range slices.Sorted(maps.Keys(c.noAudience)) {
		got, _ := claims[name].(string)
		if slices.Contains(c.noAudience[name], got) {
			return nil
		}
		reason = fmt.Sprintf("the token has no aud, and %s is %.200q, expected one of %q", name, got, c.noAudience[name])
	}
	return NewInvalidTokenError("the token is for another audience").because(errors.New(reason))
}

func withoutSlash(s string) string { return strings.TrimSuffix(s, "/") }

// expiryOf validates exp, nbf and iat, and returns when the token expires, or zero if it
// never does. The result includes the leeway: otherwise streams opened within it would end
// immediately.
func (c *rules) expiryOf(claims map[string]any, now time.Time) (expiry time.Time, err error) {
	var times [3]time.Time
	for i, name := range []string{"exp", "nbf", "iat"} {
		if times[i], err = instant(claims, name); err != nil {
			return expiry, err
		}
	}
	expiry, notBefore, issued := times[0], times[1], times[2]
	if !expiry.IsZero() {
		expiry = expiry.Add(c.leeway)
	}
	switch {
	case expiry.IsZero() && c.mustExpire:
		return expiry, NewInvalidTokenError("the token has no exp")
	case !expiry.IsZero() && !now.Before(expiry):
		return expiry, NewInvalidTokenError("the token has expired")
	case notBefore.After(now.Add(c.leeway)):
		return expiry, NewInvalidTokenError("the token is not valid yet")
	case issued.After(now.Add(c.leeway)):
		return expiry, NewInvalidTokenError("the token was issued in the future")
	}
	return expiry, nil
}

// subjectOf returns the subject of a token. In introspection, client_id is not used instead
// if there is a username: all users of a client would be one caller.
func (c *rules) subjectOf(claims map[string]any) (string, error) {
	name := "sub"
	if c.orClient && claims[name] == nil && claims["username"] == nil {
		name = "client_id"
	}
	subject, err := text(claims, name)
	if err == nil && subject == "" {
		err = NewInvalidTokenError("the token has no subject")
	}
	return subject, err
}

// scopesOf returns the scopes of the claims scope, a space-separated string, and scp,
// which some servers use instead. Both may be lists.
func scopesOf(claims map[string]any) []string {
	var scopes []string
	for _, name := range []string{"scope", "scp"} {
		list, _ := texts(claims[name])
		for _, s := range list {
			for one := range strings.FieldsSeq(s) {
				if !slices.Contains(scopes, one) {
					scopes = append(scopes, one)
				}
			}
		}
	}
	return scopes
}

// text returns a claim that must be a string, or "" if it is absent.
func text(claims map[string]any, name string) (string, error) {
	switch v := claims[name].(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	}
	return "", NewInvalidTokenError("the claim %s is not a string", name)
}

// texts returns a claim that must be a string or a list of strings.
func texts(claim any) (list []string, ok bool) {
	switch v := claim.(type) {
	case nil:
		return nil, true
	case string:
		return []string{v}, true
	case []any:
		for _, item := range v {
			s, ok := item.(string)
			if !ok {
				return nil, false
			}
			list = append(list, s)
		}
		return list, true
	}
	return nil, false
}

// instant returns a claim that must be a time in seconds, or zero if it is absent.
func instant(claims map[string]any, name string) (time.Time, error) {
	switch v := claims[name].(type) {
	case nil:
		return time.Time{}, nil
	case float64:
		if t, ok := timeOf(v); ok {
			return t, nil
		}
	}
	return time.Time{}, NewInvalidTokenError("the claim %s is not a time", name)
}

// timeOf converts seconds since 1970. ok is false if they are out of range.
func timeOf(seconds float64) (t time.Time, ok bool) {
	const most = 1 << 40 // in about 35,000 years
	if seconds < 0 || seconds >= most {
		return t, false
	}
	return time.UnixMilli(int64(seconds * 1000)), true
}
