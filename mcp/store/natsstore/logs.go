// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package natsstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/go-psi/psi/mcp/store"
)

func (s *Store) logSubject(log string) string { return s.opts.Namespace + ".logs." + token(log) }

// maxAppends limits how often Append is repeated because another process has appended. Each
// repetition means that another process succeeded, or that the server misbehaves.
const maxAppends = 1000

// Append adds a record to a log; see [store.Logs].
func (s *Store) Append(ctx context.Context, log string, data []byte, keep store.Retention) (uint64, error) {
	if err := s.check(ctx, log); err != nil {
		return 0, err
	}
	if min(keep.Records, keep.Bytes) < 0 || keep.TTL < 0 {
		return 0, fmt.Errorf("%w: negative retention %+v", store.ErrInvalid, keep)
	}
	subject := s.logSubject(log)
	for attempt := range maxAppends {
		last, err := s.tail(ctx, subject, attempt == 0)
		if err != nil {
			return 0, err
		}
		r := last.append(len(data), keep, &s.opts.Log)
		r.seq, err = s.publish(ctx, s.logs, &nats.Msg{Subject: subject, Data: data, Header: r.header()}, last.seq, r.ttl())
		if errors.Is(err, store.ErrConflict) {
			continue // another process has appended
		}
		if err != nil {
			s.forget(subject)
			return 0, err
		}
		s.trim(ctx, subject, &r)
		s.remember(subject, r)
		return r.seq, nil
	}
	return 0, fmt.Errorf("%w: %d attempts to append a record failed", store.ErrConflict, maxAppends)
}

// trim removes the records up to the mark of the last one, if they are no longer kept. If
// it fails, a later Append removes them.
func (s *Store) trim(ctx context.Context, subject string, last *tail) {
	if last.mark.seq != 0 && last.keeps(&last.mark) {
		return
	}
	if last.mark.seq != 0 {
		_ = s.try(ctx, func(ctx context.Context) error {
			return s.logs.Purge(ctx, jetstream.WithPurgeSubject(subject), jetstream.WithPurgeSequence(last.mark.seq+1))
		})
	}
	last.mark = last.place
}

// tail returns the last record of a log, or the zero value if the log is empty. A
// remembered tail may be out of date.
func (s *Store) tail(ctx context.Context, subject string, remembered bool) (tail, error) {
	if remembered {
		s.mu.Lock()
		t, ok := s.tails.Get(subject)
		s.mu.Unlock()
		if ok {
			return t, nil
		}
	}
	m, err := s.last(ctx, s.logs, subject)
	if errors.Is(err, store.ErrNotFound) {
		return tail{}, nil
	}
	if err != nil {
		return tail{}, err
	}
	return parseTail(m)
}

func (s *Store) remember(subject string, t tail) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tails.Put(subject, t)
}

func (s *Store) forget(subject string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tails.Delete(subject)
}

// readSize is the approximate number of bytes that Read returns if it has no limit.
const readSize = 1 << 20

// Read returns records; see [store.Logs].
//
// Each record names the one before it, so that Read detects gaps, however they came about.
func (s *Store) Read(ctx context.Context, log string, position uint64, limit int) ([]store.Record, error) {
	if err := s.check(ctx, log); err != nil {
		return nil, err
	}
	if limit < 0 {
		return nil, fmt.Errorf("%w: negative limit %d", store.ErrInvalid, limit)
	}
	subject := s.logSubject(log)
	last, err := s.tail(ctx, subject, false)
	if err != nil {
		return nil, err
	}
	if position == last.seq {
		return nil, nil // the end, or an empty log
	}
	var records []store.Record
	for size := 0; position < last.seq; {
		m, err := s.next(ctx, s.logs, subject, position+1)
		if errors.Is(err, store.ErrNotFound) {
			break // it has expired in the meantime
		}
		if err != nil {
			return nil, err
		}
		r, err := parseTail(m)
		if err != nil {
			return nil, err
		}
		if r.before != position || !last.keeps(&r.place) {
			return nil, store.ErrTrimmed
		}
		position = r.seq
		records = append(records, store.Record{Position: position, Data: m.Data})
		if size += len(m.Data); len(records) == limit || limit == 0 && size >= readSize {
			return records, nil
		}
	}
	if position != last.seq {
		return nil, store.ErrTrimmed
	}
	return records, nil
}

// Drop removes a log; see [store.Logs].
func (s *Store) Drop(ctx context.Context, log string) error {
	if err := s.check(ctx, log); err != nil {
		return err
	}
	subject := s.logSubject(log)
	s.forget(subject)
	return s.try(ctx, func(ctx context.Context) error {
		return s.logs.Purge(ctx, jetstream.WithPurgeSubject(subject))
	})
}
