// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package store

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// memoryLog is a log with at least one record.
type memoryLog struct {
	expiry // expires with its last record

	records []memoryRecord
	bytes   int    // of data in records
	before  uint64 // position of the record before the first, 0 if there was none
}

type memoryRecord struct {
	Record

	deadline time.Duration
}

// Append adds a record to a log; see [Logs].
func (m *Memory) Append(ctx context.Context, log string, data []byte, keep Retention) (uint64, error) {
	if keep.Records < 0 || keep.Bytes < 0 {
		return 0, fmt.Errorf("%w: negative retention %+v", ErrInvalid, keep)
	}
	if err := m.checkData(len(data), keep.TTL); err != nil {
		return 0, err
	}
	keep = keep.within(m.options.Log)
	now, err := m.startOperation(ctx, log)
	if err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	l, growth := m.log(log, now), overhead+len(data)
	if l == nil {
		growth += overhead + len(log)
	} else {
		// Records to be trimmed make room, but are kept unless there is enough room.
		growth -= l.size(l.surplus(keep, len(data)))
	}
	if err := m.reserve(growth, now); err != nil {
		return 0, err
	}
	if l == nil {
		l = &memoryLog{expiry: expiry{key: strings.Clone(log)}}
		m.logs[l.key] = l
	} else {
		l.trim(l.surplus(keep, len(data)))
	}
	m.last++
	end := max(l.deadline, deadline(now, keep.TTL)) // records expire in order
	l.records = append(l.records, memoryRecord{Record{m.last, bytes.Clone(data)}, end})
	l.bytes += len(data)
	m.expiries.set(l, end)
	return m.last, nil
}

// within returns r with its zero fields, and those above the limit, set to limit.
func (r Retention) within(limit Retention) Retention {
	if r.Records == 0 || r.Records > limit.Records {
		r.Records = limit.Records
	}
	if r.Bytes == 0 || r.Bytes > limit.Bytes {
		r.Bytes = limit.Bytes
	}
	if r.TTL == 0 || r.TTL > limit.TTL {
		r.TTL = limit.TTL
	}
	return r
}

// Read returns copies of records; see [Logs].
func (m *Memory) Read(ctx context.Context, log string, position uint64, limit int) ([]Record, error) {
	if limit < 0 {
		return nil, fmt.Errorf("%w: negative limit %d", ErrInvalid, limit)
	}
	now, err := m.startOperation(ctx, log)
	if err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	l := m.log(log, now)
	if l == nil {
		if position == 0 {
			return nil, nil
		}
		return nil, ErrTrimmed
	}
	first, ok := l.after(position)
	if !ok {
		return nil, ErrTrimmed
	}
	found := l.records[first:]
	if limit > 0 && limit < len(found) {
		found = found[:limit]
	}
	records := make([]Record, len(found))
	for i, r := range found {
		records[i] = Record{r.Position, bytes.Clone(r.Data)}
	}
	return records, nil
}

// Drop removes a log; see [Logs].
func (m *Memory) Drop(ctx context.Context, log string) error {
	if _, err := m.startOperation(ctx, log); err != nil {
		return err
	}
	defer m.mu.Unlock()
	if l := m.logs[log]; l != nil {
		m.remove(l)
	}
	return nil
}

// log returns a log without its expired records, or nil if none are left.
func (m *Memory) log(name string, now time.Duration) *memoryLog {
	l := m.logs[name]
	if l == nil {
		return nil
	}
	if l.over(now) {
		m.remove(l)
		return nil
	}
	expired := 0
	for l.records[expired].deadline <= now {
		expired++
	}
	m.bytes -= l.size(expired)
	l.trim(expired)
	return l
}

// after returns the index of the record after a position. ok is false if the position does
// not belong to this log, or if records after it are gone.
func (l *memoryLog) after(position uint64) (index int, ok bool) {
	if position == l.before {
		return 0, true
	}
	index, ok = slices.BinarySearchFunc(l.records, position, func(r memoryRecord, position uint64) int {
		return cmp.Compare(r.Position, position)
	})
	return index + 1, ok
}

// surplus returns how many records must be removed to make room for a new one.
func (l *memoryLog) surplus(keep Retention, size int) int {
	n := max(0, len(l.records)+1-keep.Records)
	total := l.bytes + size
	for i := range l.records {
		if i >= n && total <= keep.Bytes {
			return i
		}
		total -= len(l.records[i].Data)
	}
	return len(l.records)
}

// size returns the number of bytes that the first n records count for.
func (l *memoryLog) size(n int) int {
	size := n * overhead
	for i := range n {
		size += len(l.records[i].Data)
	}
	return size
}

// trim removes the first n records.
func (l *memoryLog) trim(n int) {
	if n == 0 {
		return
	}
	l.before = l.records[n-1].Position
	l.bytes -= l.size(n) - n*overhead
	clear(l.records[:n])      // or the array would keep their data alive
	l.records = l.records[n:] // append moves the rest when the array is used up
}
