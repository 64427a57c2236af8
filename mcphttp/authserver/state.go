// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/go-psi/psi/mcp/store"
)

// The kinds of what is stored, and of what is sealed.
const (
	kindLogin   = "login"   // a user is at the provider; by state
	kindPending = "pending" // a user has logged in, and is asked for consent
	kindGrant   = "grant"   // what a user has granted to a client
	kindRecord  = "record"  // what is kept of a user: consents of the past, and the IDs of grants
	kindLock    = "lock"    // one replica refreshes the provider's token
	kindClient  = "client"  // sealed: a registration
	kindCode    = "code"    // sealed: an authorization code
	kindForm    = "form"    // sealed: what a user is asked to consent to
	kindBrowser = "browser" // sealed: the cookie of a browser
	kindUser    = "user"    // sealed: the cookie of the user who last consented in a browser
	kindRefresh = "refresh" // sealed: a refresh token
)

var errSealed = errors.New("authserver: not made by this server")

// sealed is the text by which a client carries a value of ours.
func (s *Server) sealed(kind string, value any) (string, error) {
	plain, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	return s.ring.Seal(plain, s.context(kind)), nil
}

func (s *Server) open(kind, text string, value any) error {
	plain, err := s.ring.Open(text, s.context(kind))
	if err != nil {
		return errSealed
	}
	return json.Unmarshal(plain, value)
}

// context binds what is sealed to its kind and to this server: servers may share keys.
func (s *Server) context(kind string) []byte { return []byte("authserver " + kind + " " + s.resource) }

// keyOf returns the key of a value. The store does not learn the secret by which it is found. Nothing
// that was stored behind another provider is found: its subjects may be other people.
func (s *Server) keyOf(kind, id string) string {
	sum := sha256.Sum256([]byte(s.resource + "\x00" + cmp.Or(s.provider.Issuer, s.provider.TokenURL) + "\x00" + id))
	return "authserver/" + kind + "/" + base64.RawURLEncoding.EncodeToString(sum[:])
}

func (s *Server) put(ctx context.Context, kind, id string, value any, ttl time.Duration) error {
	text, err := s.sealed(kind+" "+id, value)
	if err == nil {
		_, err = s.opts.Values.Put(ctx, s.keyOf(kind, id), []byte(text), 0, ttl)
	}
	return err
}

// take removes a value and returns it: one caller gets it, at whichever replica.
func (s *Server) take(ctx context.Context, kind, id string, value any) error {
	text, err := s.opts.Values.Take(ctx, s.keyOf(kind, id))
	if err != nil {
		return err
	}
	return s.open(kind+" "+id, string(text), value)
}

func (s *Server) get(ctx context.Context, kind, id string, value any) error {
	text, _, err := s.opts.Values.Get(ctx, s.keyOf(kind, id))
	if err != nil {
		return err
	}
	return s.open(kind+" "+id, string(text), value)
}

// update changes a value that exists.
func update[T any](ctx context.Context, s *Server, kind, id string, ttl time.Duration, change func(*T) error) error {
	return modify(ctx, s, kind, id, ttl, false, change)
}

// upsert is like update, but starts from the zero value if no value exists or it cannot be opened.
func upsert[T any](ctx context.Context, s *Server, kind, id string, ttl time.Duration, change func(*T) error) error {
	return modify(ctx, s, kind, id, ttl, true, change)
}

func modify[T any](ctx context.Context, s *Server, kind, id string, ttl time.Duration, create bool, change func(*T) error) error {
	return store.Update(ctx, s.opts.Values, s.keyOf(kind, id), ttl, func(old []byte) ([]byte, error) {
		var value T
		err := store.ErrNotFound
		if old != nil {
			err = s.open(kind+" "+id, string(old), &value)
		}
		if err != nil && (!create || !gone(err)) {
			return nil, err
		}
		if err := change(&value); err != nil {
			return nil, err
		}
		text, err := s.sealed(kind+" "+id, &value)
		return []byte(text), err
	})
}

func newID() string { return rand.Text() }

// hash returns the hash of a secret, by which it is recognized.
func hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
