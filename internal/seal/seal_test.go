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

// Open fails for tokens that were not sealed with this key for this context, or were
// changed afterwards.
func FuzzOpen(f *testing.F) {
	r, _ := seal.NewRing(bytes.Repeat([]byte("k"), 32))
	f.Add(r.Seal([]byte("x"), nil), []byte("plain"), []byte("context"), []byte("other"), uint16(0), byte(1))
	f.Add("", []byte{}, []byte{}, []byte{0}, uint16(5), byte(0x80))
	f.Add("bm90IHNlYWxlZA", []byte(`{"e":1}`), []byte("c"), []byte("c "), uint16(40), byte('='))
	f.Fuzz(func(t *testing.T, token string, plain, context, other []byte, at uint16, change byte) {
		if got, err := r.Open(token, context); err == nil && r.Seal(got, context) == token {
			t.Fatal("sealing is deterministic")
		}
		sealed := r.Seal(plain, context)
		if got, err := r.Open(sealed, context); err != nil || !bytes.Equal(got, plain) {
			t.Errorf("sealed %q, opened %q, %v", plain, got, err)
		}
		if _, err := r.Open(sealed, other); err == nil && !bytes.Equal(context, other) {
			t.Errorf("sealed for %q, opened for %q", context, other)
		}
		if change != 0 {
			forged := []byte(sealed)
			forged[int(at)%len(forged)] ^= change
			if _, err := r.Open(string(forged), context); err == nil {
				t.Errorf("%q opens, which was %q", forged, sealed)
			}
		}
	})
}

// A token has exactly one spelling, so used tokens can be recognized by comparing text.
func TestTokensHaveOneSpelling(t *testing.T) {
	r := ring(t, "a")
	token := r.Seal([]byte("hello"), nil)
	for _, again := range []string{token + "\n", "\r" + token, token[:9] + "\r\n" + token[9:], token + "=", " " + token} {
		if plain, err := r.Open(again, nil); err == nil {
			t.Errorf("%q is another way to write a token, and opens as %q", again, plain)
		}
	}
}
