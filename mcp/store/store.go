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

// MaxKey is the maximum length of a key, and of the name of a log or topic, in bytes.
const MaxKey = 512

// Errors returned by a store. Compare with [errors.Is]: implementations may wrap them.
var (
	// ErrNotFound means that the key has no value, or no longer has one.
	ErrNotFound = errors.New("store: not found")
	// ErrConflict means that the value is not at the expected version.
	ErrConflict = errors.New("store: conflict")
	// ErrTrimmed means that records after the position are gone, or that the log never had
	// the position.
	ErrTrimmed = errors.New("store: position is not in the log")
	// ErrOverflow means that a subscription has lost messages.
	ErrOverflow = errors.New("store: messages lost by a slow subscriber")
	// ErrClosed means that the subscription is closed.
	ErrClosed = errors.New("store: subscription closed")
	// ErrTooLarge means that a value, record or message is larger than the store accepts.
	ErrTooLarge = errors.New("store: too large")
	// ErrFull means that the store currently has no room for more data.
	ErrFull = errors.New("store: full")
	// ErrInvalid means that an argument violates the contract. It is a mistake of the caller.
	ErrInvalid = errors.New("store: invalid argument")
)

// A Store holds everything that replicas share.
type Store interface {
	Values
	Logs
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

// Logs holds logs by name. A log exists while it has records; a log that does not exist is
// equivalent to an empty one.
type Logs interface {
	// Append adds a record at the end of a log and returns its position. Positions are
	// greater than zero and increase from record to record, not always by one. The log is
	// then trimmed from the beginning to what keep allows.
	Append(ctx context.Context, log string, data []byte, keep Retention) (position uint64, err error)

	// Read returns the records after a position, oldest first. It returns at most limit
	// records or, if limit is zero, as many as the store chooses. Position zero is before
	// the first record. If there are no records and no error, the position is the end of
	// the log. To wait for more, subscribe to a topic, then read, then wait.
	//
	// If a record after the position has been trimmed or has expired, the error is
	// [ErrTrimmed], even for position zero: Read never skips records silently. The error is
	// also [ErrTrimmed] if the position does not, or no longer, belong to this log. If all
	// records have expired, this is the case for every position except zero.
	Read(ctx context.Context, log string, position uint64, limit int) ([]Record, error)

	// Drop removes a log. Dropping a log that does not exist is not an error. Positions of
	// the dropped log are invalid in a later log of the same name.
	Drop(ctx context.Context, log string) error
}

// A Record is an element of a log.
type Record struct {
	Position uint64
	Data     []byte
}

// Retention limits how much of a log is kept. A zero field means the store's own limit; a
// field cannot raise that limit. The newest record is always kept until its TTL ends. All
// records of a log should be appended with the same Retention. How long a record is kept
// between records with a different Retention is undefined, but records are always removed
// from the beginning of the log.
type Retention struct {
	Records int           // number of records
	Bytes   int           // bytes of data in all records
	TTL     time.Duration // of a record, from when it is appended
}

// Topics carries messages from publishers to subscribers. It stores nothing: a message is
// gone when all subscribers have received it. Messages are hints to look at values and
// logs. They are small, and may be lost or delivered twice when a connection breaks. Lost
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

// Update changes a value atomically: it gets the value, calls change to compute a new one,
// and puts the result with the ttl. If another caller has changed the value in between,
// Update starts again. If the key has no value, old is nil. Change may be called several
// times and should have no side effects. If it returns an error, Update returns that error.
// Update gives up with [ErrConflict] after a thousand attempts.
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

// CheckKey returns an [ErrInvalid] unless key is valid as a key or as the name of a log or
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
