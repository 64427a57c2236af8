// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package storetest

import (
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/go-psi/psi/mcp/store"
)

var logsTests = []test{
	{"LogsEmpty", testEmptyLog},
	{"LogsRead", testRead},
	{"LogsTrimRecords", testTrimRecords},
	{"LogsTrimBytes", testTrimBytes},
	{"LogsExpire", testLogExpire},
	{"LogsForeignPositions", testForeignPositions},
	{"LogsDrop", testDrop},
	{"LogsOwnership", testLogOwnership},
	{"LogsConcurrentAppends", testConcurrentAppends},
}

// appendTo appends records and returns their positions.
func appendTo(t *testing.T, s store.Store, log string, keep store.Retention, records ...string) []uint64 {
	t.Helper()
	var positions []uint64
	last := uint64(0)
	for _, data := range records {
		position, err := s.Append(t.Context(), log, []byte(data), keep)
		want(t, "Append", err, nil)
		if position <= last {
			t.Fatalf("Append returned position %d after %d", position, last)
		}
		last = position
		positions = append(positions, position)
	}
	return positions
}

// checkRead checks what is behind a position.
func checkRead(t *testing.T, s store.Store, log string, position uint64, expected ...string) {
	t.Helper()
	records, err := readAll(t, s, log, position)
	want(t, "Read", err, nil)
	if got := texts(records); !slices.Equal(got, expected) {
		t.Fatalf("behind position %d are %q, want %q", position, got, expected)
	}
}

func readAll(t *testing.T, s store.Store, log string, position uint64) ([]store.Record, error) {
	t.Helper()
	var all []store.Record
	for {
		records, err := s.Read(t.Context(), log, position, 0)
		if err != nil || len(records) == 0 {
			return all, err
		}
		for _, r := range records {
			if r.Position <= position {
				t.Fatalf("Read returned position %d behind %d", r.Position, position)
			}
			position = r.Position
		}
		all = append(all, records...)
	}
}

func texts(records []store.Record) []string {
	var texts []string
	for _, r := range records {
		texts = append(texts, string(r.Data))
	}
	return texts
}

func testEmptyLog(t *testing.T, s store.Store) {
	log := newKey()
	checkRead(t, s, log, 0)
	_, err := s.Read(t.Context(), log, 1, 0)
	want(t, "Read from a position of an empty log", err, store.ErrTrimmed)
	want(t, "Drop of an empty log", s.Drop(t.Context(), log), nil)
}

func testRead(t *testing.T, s store.Store) {
	log := newKey()
	at := appendTo(t, s, log, store.Retention{}, "a", "", "c")
	appendTo(t, s, newKey(), store.Retention{}, "other")
	checkRead(t, s, log, 0, "a", "", "c")
	checkRead(t, s, log, at[0], "", "c")
	checkRead(t, s, log, at[2])
	records, err := s.Read(t.Context(), log, 0, 2)
	want(t, "Read", err, nil)
	if len(records) == 0 || len(records) > 2 || records[0].Position != at[0] {
		t.Fatalf("Read with a limit of 2 returned %v", records)
	}
}

func testTrimRecords(t *testing.T, s store.Store) {
	log, keep := newKey(), store.Retention{Records: 2}
	at := appendTo(t, s, log, keep, "a", "b")
	checkRead(t, s, log, 0, "a", "b")
	at = append(at, appendTo(t, s, log, keep, "c", "d")...)
	for _, position := range []uint64{0, at[0]} {
		_, err := s.Read(t.Context(), log, position, 0)
		want(t, "Read across trimmed records", err, store.ErrTrimmed)
	}
	checkRead(t, s, log, at[1], "c", "d")
	checkRead(t, s, log, at[2], "d")
}

func testTrimBytes(t *testing.T, s store.Store) {
	log, keep := newKey(), store.Retention{Bytes: 10}
	at := appendTo(t, s, log, keep, "12345", "67890")
	checkRead(t, s, log, 0, "12345", "67890")
	at = append(at, appendTo(t, s, log, keep, "x")...)
	_, err := s.Read(t.Context(), log, 0, 0)
	want(t, "Read across trimmed records", err, store.ErrTrimmed)
	checkRead(t, s, log, at[0], "67890", "x")
	at = append(at, appendTo(t, s, log, keep, "larger than 10 bytes")...)
	checkRead(t, s, log, at[2], "larger than 10 bytes")
	_, err = s.Read(t.Context(), log, at[1], 0)
	want(t, "Read across trimmed records", err, store.ErrTrimmed)
}

func testLogExpire(t *testing.T, s store.Store) {
	log, keep := newKey(), store.Retention{TTL: ttl}
	at := appendTo(t, s, log, keep, "a", "b")
	eventually(t, "expiry of a log", func() bool {
		_, err := s.Read(t.Context(), log, at[0], 0)
		return errors.Is(err, store.ErrTrimmed)
	})
	later := appendTo(t, s, log, store.Retention{TTL: lasting}, "c")
	if later[0] <= at[1] {
		t.Fatalf("position %d came after %d", later[0], at[1])
	}
	_, err := s.Read(t.Context(), log, at[0], 0)
	want(t, "Read from an expired position", err, store.ErrTrimmed)
}

func testForeignPositions(t *testing.T, s store.Store) {
	log := newKey()
	at := appendTo(t, s, log, store.Retention{}, "a")
	other := appendTo(t, s, newKey(), store.Retention{}, "x", "x", "x")
	for _, position := range []uint64{at[0] + 1000, other[2] + 1000} {
		_, err := s.Read(t.Context(), log, position, 0)
		want(t, "Read from a position that was never given out", err, store.ErrTrimmed)
	}
}

func testDrop(t *testing.T, s store.Store) {
	log := newKey()
	at := appendTo(t, s, log, store.Retention{}, "a", "b")
	want(t, "Drop", s.Drop(t.Context(), log), nil)
	checkRead(t, s, log, 0)
	appendTo(t, s, log, store.Retention{}, "c")
	checkRead(t, s, log, 0, "c")
	_, err := s.Read(t.Context(), log, at[0], 0)
	want(t, "Read from a position of a dropped log", err, store.ErrTrimmed)
}

func testLogOwnership(t *testing.T, s store.Store) {
	log, data := newKey(), []byte("data")
	_, err := s.Append(t.Context(), log, data, store.Retention{})
	want(t, "Append", err, nil)
	data[0] = 'X'
	records, err := s.Read(t.Context(), log, 0, 0)
	want(t, "Read", err, nil)
	records[0].Data[0] = 'X'
	checkRead(t, s, log, 0, "data")
}

func testConcurrentAppends(t *testing.T, s store.Store) {
	const workers, rounds = 4, 10
	log := newKey()
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for i := range rounds {
				if _, err := s.Append(t.Context(), log, []byte(strconv.Itoa(i)), store.Retention{}); err != nil {
					t.Errorf("Append: %v", err)
				}
			}
		})
	}
	group.Wait()
	records, err := readAll(t, s, log, 0)
	want(t, "Read", err, nil)
	if len(records) != workers*rounds {
		t.Fatalf("the log has %d records, want %d", len(records), workers*rounds)
	}
}
