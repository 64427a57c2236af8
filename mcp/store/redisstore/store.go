// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/go-psi/psi/internal/async"
	"github.com/go-psi/psi/internal/made"
	"github.com/go-psi/psi/mcp/store"
)

// Options configure a [Store]. A nil *Options is equivalent to the zero Options.
type Options struct {
	// Namespace separates servers that share one Redis. All replicas of a server must use
	// the same one. It has up to 64 letters, digits, dashes and underscores. "" means "psi".
	Namespace string
	// Timeout bounds every operation, including the time to reconnect. 0 means 10 seconds.
	Timeout time.Duration
}

const (
	maxValue = 1 << 20 // bytes of a value or message, as in store.Memory
	maxQueue = 1024    // messages in one subscription: more than in memory, because they arrive in bursts
)

var namespacePattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func (o *Options) withDefaults() (Options, error) {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.Timeout < 0 {
		return opts, fmt.Errorf("redisstore: an option is negative: %+v", opts)
	}
	opts.Namespace = cmp.Or(opts.Namespace, "psi")
	if !namespacePattern.MatchString(opts.Namespace) {
		return opts, fmt.Errorf("redisstore: the namespace %q must have 1 to 64 letters, digits, dashes and underscores", opts.Namespace)
	}
	opts.Timeout = cmp.Or(opts.Timeout, 10*time.Second)
	return opts, nil
}

// A Store is a [store.Store] in Redis. It is safe for concurrent use.
type Store struct {
	// The client is rueidis because it repeats only reads when a connection breaks. With one
	// that repeats everything, a GETDEL could report that there is no value although it has
	// just removed one.
	client rueidis.Client
	opts   Options
	down   atomic.Pointer[time.Time] // when operations began to fail; nil if the last one succeeded

	mu     sync.Mutex
	topics map[string]*topic // topics with subscriptions, by channel
}

var _ store.Store = (*Store)(nil)

// Open returns a store that uses a client. opts may be nil. Close the store before the
// client.
//
// It fails if the server does not respond, or drops data when its memory is full. The
// latter is not checked if the user may not run INFO.
func Open(ctx context.Context, client rueidis.Client, opts *Options) (*Store, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Store{client: client, opts: o, topics: map[string]*topic{}}
	if err := s.try(ctx, func(ctx context.Context, _ bool) error {
		return client.Do(ctx, client.B().Ping().Build()).Error()
	}); err != nil {
		return nil, err
	}
	info, err := client.Do(ctx, client.B().Info().Section("memory").Build()).ToString()
	if _, isReply := rueidis.IsRedisErr(err); isReply {
		return s, nil // the user may not run INFO
	}
	if err != nil {
		return nil, fmt.Errorf("redisstore: %w", err)
	}
	for line := range strings.Lines(info) {
		policy, ok := strings.CutPrefix(strings.TrimSpace(line), "maxmemory_policy:")
		if ok && policy != "noeviction" {
			return nil, fmt.Errorf("redisstore: the server drops data when its memory is full (maxmemory-policy %s): set it to noeviction", policy)
		}
	}
	return s, nil
}

// Close ends all subscriptions. It does not close the client.
func (s *Store) Close() error {
	s.mu.Lock()
	var open []*subscription
	for _, t := range s.topics {
		for sub := range t.subscriptions {
			open = append(open, sub)
		}
	}
	s.mu.Unlock()
	for _, sub := range open {
		_ = sub.Close()
	}
	return nil
}

// firstAttempt is the timeout of the first attempt, which doubles with each attempt that
// times out. retryDelay is the delay between two attempts.
const (
	firstAttempt = time.Second
	retryDelay   = 50 * time.Millisecond
)

// try calls step until there is a response, and tells it whether it is repeated. It gives
// up after Options.Timeout, or after one attempt if all operations have failed for that long.
func (s *Store) try(ctx context.Context, step func(ctx context.Context, again bool) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	for wait, again := firstAttempt, false; ; again = true {
		attempt, stop := context.WithTimeout(bounded, wait)
		err := step(attempt, again)
		if attempt.Err() != nil {
			wait *= 2
		}
		stop()
		if err == nil || !isTransient(err) {
			s.down.Store(nil)
			return contractError(err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if since := s.noteDown(); since > s.opts.Timeout || async.Sleep(bounded, retryDelay) != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("redisstore: no answer from Redis for %v: %w", since.Round(time.Millisecond), err)
		}
	}
}

// noteDown records a failed attempt, and returns for how long all attempts have failed.
func (s *Store) noteDown() time.Duration {
	now := time.Now()
	if s.down.CompareAndSwap(nil, &now) {
		return 0
	}
	if since := s.down.Load(); since != nil {
		return now.Sub(*since)
	}
	return 0
}

// isTransient reports whether repeating the operation may help: there was no response, or
// the server is starting or being replaced.
func isTransient(err error) bool {
	if e, ok := rueidis.IsRedisErr(err); ok {
		return e.IsLoading() || e.IsClusterDown() || e.IsTryAgain() || strings.HasPrefix(e.Error(), "MASTERDOWN")
	}
	return !errors.Is(err, context.Canceled) && !errors.Is(err, rueidis.ErrClosing) && !isAnswer(err)
}

// isAnswer reports whether an error was made from a response.
func isAnswer(err error) bool {
	return rueidis.IsRedisNil(err) || errors.Is(err, errUnknown) || errors.Is(err, store.ErrConflict)
}

// contractError returns an error that wraps the matching error of package store, if any.
func contractError(err error) error {
	e, ok := rueidis.IsRedisErr(err)
	switch {
	case rueidis.IsRedisNil(err):
		return store.ErrNotFound
	case err == nil, isAnswer(err):
		return err
	case !ok:
		return fmt.Errorf("redisstore: %w", err)
	case strings.HasPrefix(e.Error(), "OOM"):
		return fmt.Errorf("%w: %w", store.ErrFull, err)
	case strings.HasPrefix(e.Error(), "READONLY"), strings.HasPrefix(e.Error(), "MISCONF"):
		return fmt.Errorf("redisstore: the server accepts no writes: %w", err)
	}
	return fmt.Errorf("redisstore: %w", err)
}

// errUnknown is returned for a write whose response was lost, if later writes hide whether
// it took effect.
var errUnknown = errors.New("redisstore: the connection broke during a write, and it is unknown whether it was made")

// check does the checks that all methods have in common.
func (s *Store) check(ctx context.Context, key string, size int) error {
	made.Check(s != nil && s.client != nil, "redisstore: a Store", "Open")
	if err := ctx.Err(); err != nil {
		return err
	}
	if size > maxValue {
		return fmt.Errorf("%w: %d bytes, at most %d are allowed", store.ErrTooLarge, size, maxValue)
	}
	return store.CheckKey(key)
}

// name returns the key for a kind of data. All names that begin with it are in the same
// slot of a cluster. The slot depends on the text between the braces, which is never empty.
func (s *Store) name(kind, key string) string {
	return s.opts.Namespace + ":{" + kind + ":" + key + "}"
}
