// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package natsstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/go-psi/psi/internal/made"
	"github.com/go-psi/psi/mcp/store"
)

// A value is the only message on its subject; its version is the sequence number of the
// message. Taking a value replaces it with a marker, which expires after a second: unlike
// deleting a message, publishing one is ordered with the writes that expect a version.
const (
	markerHeader = "KV-Operation" // as in key-value buckets
	marker       = "DEL"
	markerTTL    = time.Second
)

func isMarker(m *jetstream.RawStreamMsg) bool { return m.Header.Get(markerHeader) != "" }

func (s *Store) valueSubject(key string) string { return "$KV." + s.opts.Namespace + "." + token(key) }

// Get returns a value; see [store.Values].
func (s *Store) Get(ctx context.Context, key string) (value []byte, version uint64, err error) {
	if err := s.check(ctx, key); err != nil {
		return nil, 0, err
	}
	return s.get(ctx, s.valueSubject(key))
}

func (s *Store) get(ctx context.Context, subject string) (value []byte, version uint64, err error) {
	m, err := s.last(ctx, s.values, subject)
	if err == nil && isMarker(m) {
		err = store.ErrNotFound
	}
	if err != nil {
		return nil, 0, err
	}
	return m.Data, m.Sequence, nil
}

// maxRaces limits how often a step is repeated because another writer was faster.
const maxRaces = 100

// Put replaces a value; see [store.Values].
func (s *Store) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	if err := s.check(ctx, key); err != nil {
		return 0, err
	}
	if ttl < 0 {
		return 0, fmt.Errorf("%w: negative TTL %v", store.ErrInvalid, ttl)
	}
	subject, expected := s.valueSubject(key), version
	for range maxRaces {
		next, err := s.publish(ctx, s.values, &nats.Msg{Subject: subject, Data: value}, expected, ttl)
		if version != 0 || !errors.Is(err, store.ErrConflict) {
			return next, err
		}
		switch last, err := s.last(ctx, s.values, subject); {
		case errors.Is(err, store.ErrNotFound):
			expected = 0
		case err != nil:
			return 0, err
		case !isMarker(last):
			return 0, store.ErrConflict
		default:
			expected = last.Sequence
		}
	}
	return 0, store.ErrConflict
}

// Take removes a value; see [store.Values].
func (s *Store) Take(ctx context.Context, key string) ([]byte, error) {
	// A marker with a short TTL replaces the value. The server does not order a deletion
	// relative to a write in flight that expects the deleted version, so both could succeed.
	if err := s.check(ctx, key); err != nil {
		return nil, err
	}
	subject := s.valueSubject(key)
	for range maxRaces {
		value, version, err := s.get(ctx, subject)
		if err != nil {
			return nil, err
		}
		m := &nats.Msg{Subject: subject, Header: nats.Header{markerHeader: {marker}}}
		_, err = s.publish(ctx, s.values, m, version, markerTTL)
		if errors.Is(err, store.ErrFull) {
			err = s.remove(ctx, version)
		}
		if !errors.Is(err, store.ErrConflict) {
			return value, err
		}
	}
	return nil, store.ErrConflict
}

// remove deletes a value from a full store, which has no room for a marker. It is not
// ordered with a write in flight that expects the same version, but a full store rejects
// that write, too.
func (s *Store) remove(ctx context.Context, version uint64) error {
	err := s.try(ctx, func(ctx context.Context) error { return s.values.DeleteMsg(ctx, version) })
	if errors.Is(err, jetstream.ErrMsgNotFound) || errors.Is(err, jetstream.ErrMsgDeleteUnsuccessful) {
		return store.ErrConflict
	}
	return err
}

// check does the checks that all methods have in common.
func (s *Store) check(ctx context.Context, key string) error {
	made.Check(s != nil && s.js != nil, "natsstore: a Store", "Open")
	if err := ctx.Err(); err != nil {
		return err
	}
	return store.CheckKey(key)
}
