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

// MaxKey is the most bytes in a key or in the name of a log or topic.
const MaxKey = 512

// The errors of a store. Compare with [errors.Is]: implementations may wrap them.
var (
	// ErrNotFound: no value, or none any more, has the key.
	ErrNotFound = errors.New("store: not found")
	// ErrConflict: the value is not at the version that the caller expected.
	ErrConflict = errors.New("store: conflict")
	// ErrTrimmed: records after the position are gone, or the log never gave it out.
	ErrTrimmed = errors.New("store: position is not in the log")
	// ErrOverflow: a subscription has lost messages.
	ErrOverflow = errors.New("store: messages lost by a slow subscriber")
	// ErrClosed: the subscription is closed.
	ErrClosed = errors.New("store: subscription closed")
	// ErrTooLarge: a value, record or message is larger than the store takes.
	ErrTooLarge = errors.New("store: too large")
	// ErrFull: the store has no room for more at the moment.
	ErrFull = errors.New("store: full")
	// ErrInvalid: an argument breaks the contract; a mistake of the caller.
	ErrInvalid = errors.New("store: invalid argument")
)

// A Store is everything that replicas share.
type Store interface {
	Values
	Logs
	Topics
}

// Values holds values by key. Every write gives a value a new version.
type Values interface {
	// Get returns the value of a key and its version, which is never zero, or
	// [ErrNotFound].
	Get(ctx context.Context, key string) (value []byte, version uint64, err error)

	// Put writes a value if the key is at the expected version, and returns the new
	// one. Version zero expects that the key has no value. If the key is at another
	// version, or has no value where one is expected, nothing changes and the error
	// is [ErrConflict]. A key never has the same version twice, not even after it
	// was taken or has expired, so a version that fits proves that nobody wrote in
	// between.
	//
	// The ttl replaces the one the value had. To extend it, put the same value.
	Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error)

	// Take removes a value and returns it, or [ErrNotFound]. If several callers take
	// a key at once, one of them gets the value.
	Take(ctx context.Context, key string) (value []byte, err error)
}

// Logs holds logs by name. A log exists from its first record to the end of its
// last one; a log that does not exist is the same as an empty one.
type Logs interface {
	// Append adds a record at the end of a log and returns its position. Positions
	// are greater than zero and increase from record to record, not always by one.
	// The log is then trimmed from its beginning to what keep allows.
	Append(ctx context.Context, log string, data []byte, keep Retention) (position uint64, err error)

	// Read returns the records behind a position, oldest first, at most limit of
	// them; with a limit of zero, as many as the store likes. Position zero stands
	// before the first record. No records and no error mean that the position is the
	// end of the log; to wait for more, subscribe to a topic, then read, then wait.
	//
	// If a record behind the position has been trimmed or has expired, the error is
	// [ErrTrimmed], also for position zero: Read never skips silently. It is the
	// answer to every position that is not, or no longer, one of this log as well,
	// such as any but zero when all records have expired.
	Read(ctx context.Context, log string, position uint64, limit int) ([]Record, error)

	// Drop removes a log. Dropping one that does not exist is no error. Positions of
	// the dropped log are not valid in a later one of the same name.
	Drop(ctx context.Context, log string) error
}

// A Record is an element of a log.
type Record struct {
	Position uint64
	Data     []byte
}

// Retention says how much of a log is kept. A zero field means the store's own
// limit; a field cannot raise that limit. The newest record is always kept, until
// its TTL ends. A log should get the same Retention with every record; how long a
// record is kept that comes between others with another one is not defined, but
// records always leave from the beginning of the log.
type Retention struct {
	Records int           // number of records
	Bytes   int           // bytes of data in all records
	TTL     time.Duration // of a record, from when it is appended
}

// Topics carries messages from publishers to whoever has subscribed. It stores
// nothing: a message is gone when all subscribers have received it. Messages are
// hints to look at values and logs, so they are small, and one may be lost, or come
// twice, when a connection breaks. The loss is reported.
type Topics interface {
	// Publish sends a message to the subscriptions that exist now. It does not wait
	// for subscribers, however slow, and does not report how many there are.
	Publish(ctx context.Context, topic string, message []byte) error

	// Subscribe starts to receive the messages of a topic. Every message whose
	// Publish begins after Subscribe has returned is delivered, or its loss reported.
	// The context is for the call only; the subscription ends with Close, which the
	// caller must call.
	Subscribe(ctx context.Context, topic string) (Subscription, error)
}

// A Subscription receives the messages of a topic. Messages of one publisher come
// in the order they were published.
type Subscription interface {
	// Next returns the next message and waits for one if there is none. It returns
	// [ErrOverflow] once at each place where messages are missing because too many
	// were waiting, or the engine lost them; the next call continues behind that
	// place. After Close it returns [ErrClosed]. Next is for one goroutine at a time.
	Next(ctx context.Context) (message []byte, err error)

	// Close ends the subscription and any waiting Next. It may be called at any time,
	// by any goroutine, more than once.
	Close() error
}

// maxAttempts bounds Update. Each failed attempt means that someone else succeeded.
const maxAttempts = 1000

// Update changes a value atomically: it gets the value, has change compute a new
// one, and puts that with the ttl, again from the start if someone else was faster.
// A key without a value gives change a nil old. Change may run several times and
// should have no effects; its error ends Update, which returns it. Update gives up
// with [ErrConflict] after a thousand attempts.
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

// CheckKey returns an [ErrInvalid] unless key can be a key or the name of a log or
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
