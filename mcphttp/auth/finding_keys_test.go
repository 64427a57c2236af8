// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp/auth"
)

// Keys whose principals have no subject would be the same caller, and share sessions.
func TestFindingS33KeysWithoutSubject(t *testing.T) {
	for name, register := range map[string]func(){
		"plain": func() {
			auth.APIKeys(map[string]*mcp.Principal{"0123456789abcdef": {Issuer: "us", Scopes: []string{"read"}}}, nil)
		},
		"hashed": func() { auth.HashedAPIKeys(map[auth.KeyHash]*mcp.Principal{auth.HashKey("key"): {}}, nil) },
	} {
		func() {
			defer func() {
				if problem, _ := recover().(string); !strings.Contains(problem, "Subject") || strings.Contains(problem, "0123456789abcdef") {
					t.Errorf("%s: %q", name, problem)
				}
			}()
			register()
		}()
	}
	// An invalid principal of a lookup fails the request.
	nobody := &mcp.Principal{Issuer: "us"}
	for name, v := range map[string]auth.Verifier{
		"looked up": auth.LookupAPIKeys(func(context.Context, auth.KeyHash) (*mcp.Principal, error) { return nobody, nil }, nil),
		"of a user": auth.VerifierFunc(func(*http.Request) (*mcp.Principal, error) { return nobody, nil }),
	} {
		if a := ask(v, nil, bearing("0123456789abcdef")); a.Code != http.StatusServiceUnavailable || a.caller != nil {
			t.Errorf("%s: %d, %+v", name, a.Code, a.caller)
		}
	}
}
