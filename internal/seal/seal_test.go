// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package seal_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-psi/psi/internal/seal"
)

func ring(t *testing.T, keys ...string) *seal.Ring {
	t.Helper()
	var secrets [][]byte
	for _, k := range keys {
		secrets = append(secrets, []byte(strings.Repeat(k, 16)))
	}
	r, err := seal.NewRing(secrets...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRotation(t *testing.T) {
	before, during, after := ring(t, "a"), ring(t, "b", "a"), ring(t, "b")
	token := before.Seal([]byte("hello"), []byte("ctx"))
	if plain, err := during.Open(token, []byte("ctx")); err != nil || string(plain) != "hello" {
		t.Errorf("a rotated ring opens %q, %v", plain, err)
	}
	if _, err := after.Open(token, []byte("ctx")); err == nil {
		t.Error("a key that was dropped still opens")
	}
	if _, err := after.Open(during.Seal(nil, nil), nil); err != nil {
		t.Error("a rotated ring does not seal with its first key")
	}
}

func TestForgery(t *testing.T) {
	r := ring(t, "a")
	token := r.Seal([]byte("hello"), []byte("ctx"))
	forged := []string{"", "x", token + "A", token[:len(token)-2], strings.ToUpper(token), token + "-TAMPERED", "!!!!"}
	for i := range token {
		b := []byte(token)
		b[i] ^= 1
		forged = append(forged, string(b))
	}
	for _, f := range forged {
		if _, err := r.Open(f, []byte("ctx")); err == nil {
			t.Errorf("Open(%q) succeeded", f)
		}
	}
	if _, err := r.Open(token, []byte("other")); err == nil {
		t.Error("a token opens in another context")
	}
	if _, err := ring(t).Open(ring(t).Seal(nil, nil), nil); err == nil {
		t.Error("two random rings share a key")
	}
}

func TestShortKey(t *testing.T) {
	if _, err := seal.NewRing([]byte("short")); err == nil {
		t.Error("a short key was accepted")
	}
}

func FuzzOpen(f *testing.F) {
	r, _ := seal.NewRing(bytes.Repeat([]byte("k"), 32))
	f.Add(r.Seal([]byte("x"), nil))
	f.Fuzz(func(t *testing.T, token string) {
		if plain, err := r.Open(token, nil); err == nil && r.Seal(plain, nil) == token {
			t.Fatal("sealing is deterministic")
		}
	})
}
