// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package store

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// MaxKey is the maximum length of a key, and of the name of a topic, in bytes.
const MaxKey = 512

// Errors returned by a store. Compare with [errors.Is]: implementations may wrap them.
var (
	// ErrNotFound means that the key has no value, or no longer has one.
	ErrNotFound = errors.New("store: not found")
	// ErrConflict means that the value is not at the expected version.
	ErrConflict = errors.New("store: conflict")
	// ErrOverflow means that a subscription has lost messages.
	ErrOverflow = errors.New("store: messages lost by a slow subscriber")
	// ErrClosed means that the subscription is closed.
	ErrClosed = errors.New("store: subscription closed")
	// ErrTooLarge means that a value or message is larger than the store accepts.
	ErrTooLarge = errors.New("store: too large")
	// ErrFull means that the store currently has no room for more data.
	ErrFull = errors.New("store: full")
	// ErrInvalid means that an argument violates the contract. It is a mistake of the caller.
	ErrInvalid = errors.New("store: invalid argument")
)

// A Store holds everything that replicas share.
type Store interface {
	Values
	Topics
}

// Values holds values by key. Every write gives the value a new version.
type Values interface {
	// Get returns the value of a key and its version, which is never zero, or
	// [ErrNotFound].
	Get(ctx context.Context, key string) (value []byte, version uint64, err error)

	// Put writes a value if the key is at the expected version, and returns the new
	// version. Version zero means that the key must have no value. If the key is at another
	// version, or has no value where one is expected, nothing changes and the error is
	// [ErrConflict]. A key never has the same version twice, not even after its value was
	// taken or has expired, so a matching version proves that nothing was written in between.
	//
	// The ttl replaces the previous one. To extend it, put the same value again.
	Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error)

	// Take removes a value and returns it, or returns [ErrNotFound]. If several callers
	// take a key concurrently, only one of them gets the value.
	Take(ctx context.Context, key string) (value []byte, err error)
}

// Topics carries messages from publishers to subscribers. It stores nothing: a message is
// gone when all subscribers have received it. Messages are hints to look at values.
// They are small, and may be lost or delivered twice when a connection breaks. Lost
// messages are reported.
type Topics interface {
	// Publish sends a message to the current subscriptions. It does not wait for
	// subscribers, however slow, and does not report how many there are.
	Publish(ctx context.Context, topic string, message []byte) error

	// Subscribe starts receiving the messages of a topic. Every message whose Publish
	// begins after Subscribe has returned is delivered, or its loss is reported. The
	// context applies only to the call. The subscription lasts until Close, which the
	// caller must call.
	Subscribe(ctx context.Context, topic string) (Subscription, error)
}

// A Subscription receives the messages of a topic. Messages of one publisher arrive in the
// order in which they were published.
type Subscription interface {
	// Next returns the next message, waiting for one if necessary. If messages are missing
	// because too many were queued or the engine lost them, Next returns [ErrOverflow] once
	// in their place; the next call continues after it. After Close, Next returns
	// [ErrClosed]. Next must not be called concurrently.
	Next(ctx context.Context) (message []byte, err error)

	// Close ends the subscription and unblocks Next. It may be called at any time, from any
	// goroutine, and more than once.
	Close() error
}

// maxAttempts limits Update. Each failed attempt means that another caller succeeded.
const maxAttempts = 1000

// Update changes a value atomically: it gets the value, calls change to compute a new one, and
// puts the result with the ttl. If another caller has changed the value in between, Update
// starts again. If the key has no value, old is nil. Change may be called several times and
// should have no side effects. If it returns an error, Update returns that error. If others
// keep changing the value, Update gives up with [ErrConflict] after many attempts.
func Update(ctx context.Context, values Values, key string, ttl time.Duration, change func(old []byte) ([]byte, error)) error {
	if values == nil || change == nil {
		return fmt.Errorf("%w: Update needs values and a function", ErrInvalid)
	}
	for range maxAttempts {
		old, version, err := values.Get(ctx, key)
		switch {
		case errors.Is(err, ErrNotFound):
			old, version = nil, 0
		case err != nil:
			return err
		case old == nil:
			old = []byte{}
		}
		value, err := change(old)
		if err != nil {
			return err
		}
		_, err = values.Put(ctx, key, value, version, ttl)
		if !errors.Is(err, ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("%w: %d attempts to update a value failed", ErrConflict, maxAttempts)
}

// CheckKey returns an [ErrInvalid] unless key is valid as a key or as the name of a
// topic. It is for implementations.
func CheckKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: empty key", ErrInvalid)
	case len(key) > MaxKey:
		return fmt.Errorf("%w: key of %d bytes, at most %d are allowed", ErrInvalid, len(key), MaxKey)
	case !utf8.ValidString(key):
		return fmt.Errorf("%w: key is not UTF-8", ErrInvalid)
	}
	return nil
}
