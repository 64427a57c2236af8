// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package storetest_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-psi/psi/mcp/store"
)

type expiresAtOnce struct{ *store.Memory }

func (s expiresAtOnce) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	return s.Memory.Put(ctx, key, value, version, atOnce(ttl))
}

func atOnce(ttl time.Duration) time.Duration {
	if ttl > 0 && ttl < time.Second {
		return 1
	}
	return ttl
}

type roundsDown struct{ *store.Memory }

func (s roundsDown) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	if ttl > time.Second {
		ttl = ttl.Truncate(time.Second)
	}
	return s.Memory.Put(ctx, key, value, version, ttl)
}

// countsVersions numbers the versions of each key, and starts again at one after the value
// has expired. The version of a value that was taken is remembered.
type countsVersions struct {
	*store.Memory

	mu    sync.Mutex
	first map[string]uint64
	taken map[string]bool
}

func (s *countsVersions) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, version, err := s.Memory.Get(ctx, key)
	return value, version - s.first[key], err
}

func (s *countsVersions) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version != 0 {
		version += s.first[key]
	}
	next, err := s.Memory.Put(ctx, key, value, version, ttl)
	if err == nil && version == 0 && !s.taken[key] {
		if s.first == nil {
			s.first, s.taken = map[string]uint64{}, map[string]bool{}
		}
		s.first[key] = next - 1
	}
	return next - s.first[key], err
}

func (s *countsVersions) Take(ctx context.Context, key string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, err := s.Memory.Take(ctx, key)
	if err == nil {
		s.taken[key] = true
	}
	return value, err
}

// expiresLazily removes expired values only when Get is called.
type expiresLazily struct {
	*store.Memory

	expires sync.Map // times by key
}

func (s *expiresLazily) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	if ttl < 0 {
		return 0, store.ErrInvalid
	}
	next, err := s.Memory.Put(ctx, key, value, version, 0)
	switch {
	case err == nil && ttl > 0:
		s.expires.Store(key, time.Now().Add(ttl))
	case err == nil:
		s.expires.Delete(key)
	}
	return next, err
}

func (s *expiresLazily) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	if at, ok := s.expires.Load(key); ok && time.Now().After(at.(time.Time)) {
		_, _ = s.Take(ctx, key)
	}
	return s.Memory.Get(ctx, key)
}

type refusesLarge struct{ *store.Memory }

func (s refusesLarge) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	if len(value) > 400_000 {
		return 0, store.ErrTooLarge
	}
	return s.Memory.Put(ctx, key, value, version, ttl)
}

func (s refusesLarge) Publish(ctx context.Context, topic string, message []byte) error {
	if len(message) > 4000 {
		return store.ErrTooLarge
	}
	return s.Memory.Publish(ctx, topic, message)
}

// ignoresContext performs the operation before it checks the context.
type ignoresContext struct{ *store.Memory }

func (s ignoresContext) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	next, err := s.Memory.Put(context.WithoutCancel(ctx), key, value, version, ttl)
	return next, errors.Join(err, ctx.Err())
}

// subscription is a subscription of a wrong store. Its messages come from next.
type subscription struct {
	store.Subscription

	next func(ctx context.Context) ([]byte, error)
}

func (s *subscription) Next(ctx context.Context) ([]byte, error) { return s.next(ctx) }

// receivesFirst receives a pending message before it checks the context.
type receivesFirst struct{ *store.Memory }

func (s receivesFirst) Subscribe(ctx context.Context, topic string) (store.Subscription, error) {
	sub, err := s.Memory.Subscribe(ctx, topic)
	if err != nil {
		return nil, err
	}
	return &subscription{sub, func(ctx context.Context) ([]byte, error) {
		if message, err := waiting(sub); err == nil {
			return message, nil
		}
		return sub.Next(ctx)
	}}, nil
}

// waiting returns the next message if one is pending.
func waiting(sub store.Subscription) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 1)
	defer cancel()
	return sub.Next(ctx)
}

type endsWithContext struct{ *store.Memory }

func (s endsWithContext) Subscribe(ctx context.Context, topic string) (store.Subscription, error) {
	sub, err := s.Memory.Subscribe(ctx, topic)
	if err == nil {
		context.AfterFunc(ctx, func() { _ = sub.Close() })
	}
	return sub, err
}

// cutsNames truncates names at a zero byte.
type cutsNames struct{ *store.Memory }

func cutName(name string) string {
	if before, _, ok := strings.Cut(name, "\x00"); ok {
		return before
	}
	return name
}

func (s cutsNames) Publish(ctx context.Context, topic string, message []byte) error {
	return s.Memory.Publish(ctx, cutName(topic), message)
}

func (s cutsNames) Subscribe(ctx context.Context, topic string) (store.Subscription, error) {
	return s.Memory.Subscribe(ctx, cutName(topic))
}

// closesAll closes all subscriptions of the store when the first one is closed.
type closesAll struct {
	*store.Memory

	mu   sync.Mutex
	open []store.Subscription
}

func (s *closesAll) Subscribe(ctx context.Context, topic string) (store.Subscription, error) {
	sub, err := s.Memory.Subscribe(ctx, topic)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = append(s.open, sub)
	return &closing{sub, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, sub := range s.open {
			_ = sub.Close()
		}
	}}, nil
}

// closing is a subscription that calls before when it is closed.
type closing struct {
	store.Subscription

	before func()
}

func (s *closing) Close() error {
	s.before()
	return s.Subscription.Close()
}

// deliversLate delivers pending messages when a subscription is closed.
type deliversLate struct{ *store.Memory }

func (s deliversLate) Subscribe(ctx context.Context, topic string) (store.Subscription, error) {
	sub, err := s.Memory.Subscribe(ctx, topic)
	if err != nil {
		return nil, err
	}
	left := make(chan []byte, 1)
	next := func(ctx context.Context) ([]byte, error) {
		message, err := sub.Next(ctx)
		if errors.Is(err, store.ErrClosed) && len(left) > 0 {
			return <-left, nil
		}
		return message, err
	}
	return &closing{&subscription{sub, next}, func() {
		if message, err := waiting(sub); err == nil {
			left <- message
		}
	}}, nil
}

type reportsOnce struct{ *store.Memory }

func (s reportsOnce) Subscribe(ctx context.Context, topic string) (store.Subscription, error) {
	sub, err := s.Memory.Subscribe(ctx, topic)
	if err != nil {
		return nil, err
	}
	reported := false
	return &subscription{sub, func(ctx context.Context) ([]byte, error) {
		message, err := sub.Next(ctx)
		if errors.Is(err, store.ErrOverflow) && reported {
			return sub.Next(ctx)
		}
		reported = reported || errors.Is(err, store.ErrOverflow)
		return message, err
	}}, nil
}

// goesDeaf loses all numbers but the first, without reporting it, until the disturbance is
// over.
type goesDeaf struct{ *store.Memory }

func (s goesDeaf) Publish(ctx context.Context, topic string, message []byte) error {
	if number, err := strconv.Atoi(string(message)); err == nil && number > 1 {
		return ctx.Err()
	}
	return s.Memory.Publish(ctx, topic, message)
}
