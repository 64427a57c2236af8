// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp/auth"
)

// tokenFunc is a function that verifies tokens.
type tokenFunc func() (*mcp.Principal, error)

func (f tokenFunc) VerifyToken(context.Context, string) (*mcp.Principal, error) { return f() }

// A verifier that returns neither a caller nor an error is a server bug, in every scheme:
// its callers are neither accepted nor rejected.
func TestVerifierWithoutAnswer(t *testing.T) {
	nothing := tokenFunc(func() (*mcp.Principal, error) { return nil, nil })
	anonymous := tokenFunc(func() (*mcp.Principal, error) { return &mcp.Principal{Issuer: "x"}, nil })
	for name, a := range map[string]answer{
		"bearer":           ask(auth.Bearer(nothing), nil, bearing("t")),
		"DPoP":             ask(must(auth.NewDPoP(nothing, resource, nil)), nil, proving("t", "p")),
		"without Subject":  ask(auth.Bearer(anonymous), nil, bearing("t")),
		"one of several":   ask(auth.FirstOf(auth.Bearer(nothing)), nil, bearing("t")),
		"its error is own": ask(auth.Bearer(tokenFunc(func() (*mcp.Principal, error) { return nil, errors.New("down") })), nil, bearing("t")),
	} {
		if a.Code != http.StatusServiceUnavailable || a.caller != nil || a.challenge() != "" || a.Header().Get("Retry-After") != "5" {
			t.Errorf("%s: got %d, %v", name, a.Code, a.Header())
		}
	}
}

// A rejection is not cached, and is not interpreted as anything but JSON.
func TestRefusalHeaders(t *testing.T) {
	for name, a := range map[string]answer{
		"no credentials": ask(newJWT(auth.JWTOptions{}), nil, request()),
		"a bad token":    ask(newJWT(auth.JWTOptions{}), nil, bearing("x")),
		"not verifiable": ask(auth.Bearer(tokenFunc(func() (*mcp.Principal, error) { return nil, errors.New("down") })), nil, bearing("x")),
	} {
		for header, want := range map[string]string{
			"Cache-Control": "no-store", "Content-Type": "application/json", "X-Content-Type-Options": "nosniff", "Content-Length": strconv.Itoa(a.Body.Len()),
		} {
			if got := a.Header().Get(header); got != want {
				t.Errorf("%s: %s is %q, want %q", name, header, got, want)
			}
		}
	}
}

// The cause of a rejection is for logs: errors.Is finds it, and the caller does not receive
// it.
func TestRejectionCause(t *testing.T) {
	why := errors.New("the directory says that alice has left")
	v := auth.Bearer(tokenFunc(func() (*mcp.Principal, error) {
		return nil, &auth.Error{Code: auth.CodeInvalidToken, Description: "not valid", Cause: why}
	}))
	if _, err := v.Verify(bearing("t")); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
	if a := ask(v, nil, bearing("t")); a.Code != http.StatusUnauthorized || a.challenge() == "" {
		t.Errorf("got %d", a.Code)
	}
}
