// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package storetest_test

import (
	"context"
	"errors"
	"runtime"
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

func (s expiresAtOnce) Append(ctx context.Context, log string, data []byte, keep store.Retention) (uint64, error) {
	keep.TTL = atOnce(keep.TTL)
	return s.Memory.Append(ctx, log, data, keep)
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

func (s refusesLarge) Append(ctx context.Context, log string, data []byte, keep store.Retention) (uint64, error) {
	if len(data) > 400_000 {
		return 0, store.ErrTooLarge
	}
	return s.Memory.Append(ctx, log, data, keep)
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

// skipsExpired hides expired records one by one.
type skipsExpired struct {
	*store.Memory

	expires sync.Map // times by position
}

func (s *skipsExpired) Append(ctx context.Context, log string, data []byte, keep store.Retention) (uint64, error) {
	if keep.TTL < 0 {
		return 0, store.ErrInvalid
	}
	ttl := keep.TTL
	keep.TTL = 0
	position, err := s.Memory.Append(ctx, log, data, keep)
	if ttl > 0 {
		s.expires.Store(position, time.Now().Add(ttl))
	}
	return position, err
}

func (s *skipsExpired) Read(ctx context.Context, log string, position uint64, limit int) ([]store.Record, error) {
	records, err := s.Memory.Read(ctx, log, position, limit)
	var kept []store.Record
	for _, r := range records {
		if !s.isExpired(r.Position) {
			kept = append(kept, r)
		}
	}
	if position > 0 && s.isExpired(position) && len(kept) == 0 {
		return nil, store.ErrTrimmed
	}
	return kept, err
}

func (s *skipsExpired) isExpired(position uint64) bool {
	at, ok := s.expires.Load(position)
	return ok && time.Now().After(at.(time.Time))
}

// cutsNames truncates names at a zero byte.
type cutsNames struct{ *store.Memory }

func cutName(name string) string {
	if before, _, ok := strings.Cut(name, "\x00"); ok {
		return before
	}
	return name
}

func (s cutsNames) Append(ctx context.Context, log string, data []byte, keep store.Retention) (uint64, error) {
	return s.Memory.Append(ctx, cutName(log), data, keep)
}

func (s cutsNames) Read(ctx context.Context, log string, position uint64, limit int) ([]store.Record, error) {
	return s.Memory.Read(ctx, cutName(log), position, limit)
}

func (s cutsNames) Publish(ctx context.Context, topic string, message []byte) error {
	return s.Memory.Publish(ctx, cutName(topic), message)
}

func (s cutsNames) Subscribe(ctx context.Context, topic string) (store.Subscription, error) {
	return s.Memory.Subscribe(ctx, cutName(topic))
}

// readsAnywhere reads from any position before the last one.
type readsAnywhere struct{ *store.Memory }

func (s readsAnywhere) Read(ctx context.Context, log string, position uint64, limit int) ([]store.Record, error) {
	records, err := s.Memory.Read(ctx, log, position, limit)
	if all, _ := s.Memory.Read(ctx, log, 0, 0); errors.Is(err, store.ErrTrimmed) && len(all) > 0 && position > all[0].Position {
		for i, r := range all {
			if r.Position > position {
				return all[i:], nil
			}
		}
	}
	return records, err
}

// overlaps returns records that share one buffer.
type overlaps struct{ *store.Memory }

func (s overlaps) Read(ctx context.Context, log string, position uint64, limit int) ([]store.Record, error) {
	records, err := s.Memory.Read(ctx, log, position, limit)
	var buffer []byte
	for _, r := range records {
		buffer = append(buffer, r.Data...)
	}
	for i, r := range records {
		records[i].Data, buffer = buffer[:len(r.Data)], buffer[len(r.Data):]
	}
	return records, err
}

// returnsLast looks up the position after it has appended.
type returnsLast struct{ *store.Memory }

func (s returnsLast) Append(ctx context.Context, log string, data []byte, keep store.Retention) (uint64, error) {
	position, err := s.Memory.Append(ctx, log, data, keep)
	runtime.Gosched()
	if later, _ := s.Read(ctx, log, position, 0); err == nil && len(later) > 0 {
		position = later[len(later)-1].Position
	}
	return position, err
}

// showsLate makes a record visible some time after its position was assigned.
type showsLate struct {
	*store.Memory

	hidden sync.Map // positions
}

func (s *showsLate) Append(ctx context.Context, log string, data []byte, keep store.Retention) (uint64, error) {
	position, err := s.Memory.Append(ctx, log, data, keep)
	if position%5 == 0 {
		s.hidden.Store(position, true)
		<-time.After(10 * time.Millisecond)
		s.hidden.Delete(position)
	}
	return position, err
}

func (s *showsLate) Read(ctx context.Context, log string, position uint64, limit int) ([]store.Record, error) {
	records, err := s.Memory.Read(ctx, log, position, limit)
	var shown []store.Record
	for _, r := range records {
		if _, ok := s.hidden.Load(r.Position); !ok {
			shown = append(shown, r)
		}
	}
	return shown, err
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

type losesRecords struct{ *store.Memory }

func (s losesRecords) Read(ctx context.Context, log string, position uint64, limit int) ([]store.Record, error) {
	if _, err := s.Memory.Read(ctx, log, position, limit); err != nil {
		return nil, err
	}
	return nil, nil
}
