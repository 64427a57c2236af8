// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/examples/auth/authserver"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/oauth"
)

// To read is what is asked for first, and to write when a tool needs it.
func TestStepUp(t *testing.T) {
	inBothEras(t, func(t *testing.T, conn *mcp.Conn, b *browser) {
		if got, err := mcp.Call[notesOut](t.Context(), conn, "notes", nil); err != nil || len(got.Notes) != 0 {
			t.Fatalf("%v, %v; want no notes", got, err)
		}
		if want := []string{scopeRead}; !slices.Equal(b.asked, want) {
			t.Fatalf("the user was asked for %q, want %q", b.asked, want)
		}
		for range 2 {
			if _, err := mcp.Call[notesOut](t.Context(), conn, "note", note{"milk"}); err != nil {
				t.Fatal(err)
			}
		}
		if want := []string{scopeRead, scopeRead + " " + scopeWrite}; !slices.Equal(b.asked, want) {
			t.Errorf("the user was asked for %q, want %q", b.asked, want)
		}
		if got, err := mcp.Call[notesOut](t.Context(), conn, "notes", nil); err != nil || !slices.Equal(got.Notes, []string{"milk", "milk"}) {
			t.Errorf("%v, %v; want two notes", got, err)
		}
	})
}

// Who does not agree to more goes on with less.
func TestStepUpDenied(t *testing.T) {
	inBothEras(t, func(t *testing.T, conn *mcp.Conn, b *browser) {
		b.deny = true
		_, err := mcp.Call[notesOut](t.Context(), conn, "note", note{"milk"})
		if refusal, ok := errors.AsType[*oauth.Error](err); !ok || refusal.Code != "access_denied" {
			t.Errorf("%v", err)
		}
		if got, err := mcp.Call[notesOut](t.Context(), conn, "notes", nil); err != nil || len(got.Notes) != 0 {
			t.Errorf("%v, %v; want no notes", got, err)
		}
	})
}

func TestRateLimit(t *testing.T) {
	inBothEras(t, func(t *testing.T, conn *mcp.Conn, _ *browser) {
		for range 1000 { // more than there may be, however slow this machine is
			_, err := mcp.Call[notesOut](t.Context(), conn, "notes", nil)
			if err == nil {
				continue
			}
			if after, ok := mcp.RetryAfter(err); mcp.CodeOf(err) != mcp.CodeRateLimited || !ok || after <= 0 || after > time.Second {
				t.Errorf("%v, which says %v", err, after)
			}
			return
		}
		t.Error("there is no limit")
	})
}

func TestWrongPassword(t *testing.T) {
	b := &browser{user: authserver.User, password: "guess"}
	_, err := connect(t, serveNotes(t, serveLogin(t)), "", b)
	if !errors.Is(err, mcp.ErrUnauthorized) || !errors.Is(err, errStay) || b.token != "" {
		t.Errorf("%v", err)
	}
}

// A token is for one server, even if the user is the same, and so is the issuer.
func TestOtherAudience(t *testing.T) {
	issuer := serveLogin(t)
	there, b := serveNotes(t, issuer), &browser{user: authserver.User, password: authserver.Password}
	if _, err := connect(t, there, "", b); err != nil {
		t.Fatal(err)
	}
	stolen := func(resource string) error {
		transport := mcphttp.NewTransport(resource, &mcphttp.TransportOptions{Header: http.Header{"Authorization": {b.token}}})
		conn, err := mcp.NewClient("thief", "v1.0.0", nil).Connect(t.Context(), transport)
		if err == nil {
			err = conn.Close()
		}
		return err
	}
	if err := stolen(there); err != nil {
		t.Error(err)
	}
	err := stolen(serveNotes(t, issuer))
	if refusal, ok := errors.AsType[*mcphttp.StatusError](err); !ok || !strings.Contains(refusal.Header.Get("WWW-Authenticate"), "invalid_token") {
		t.Errorf("%v", err)
	}
}

// Nothing is served to other machines in the clear.
func TestListen(t *testing.T) {
	for addr, want := range map[string]bool{"127.0.0.1:0": true, "0.0.0.0:0": false, "127.0.0.1": false} {
		here, at, err := listen(t.Context(), addr)
		if (err == nil) != want {
			t.Errorf("%s: %q, %v", addr, at, err)
		}
		if here != nil {
			here.Close()
		}
	}
}
