// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package storetest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp/store"
)

var logsTests = []test{
	{"LogsEmpty", testEmptyLog},
	{"LogsRead", testRead},
	{"LogsTrimRecords", testTrimRecords},
	{"LogsTrimBytes", testTrimBytes},
	{"LogsNames", testLogNames},
	{"LogsLarge", testLargeRecord},
	{"LogsExpire", testLogExpire},
	{"LogsExpireInPart", testLogExpireInPart},
	{"LogsForeignPositions", testForeignPositions},
	{"LogsDrop", testDrop},
	{"LogsOwnership", testLogOwnership},
	{"LogsConcurrentAppends", testConcurrentAppends},
	{"LogsFollow", testFollow},
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

// checkRead checks the records after a position.
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
	log, keep, began := newKey(), store.Retention{TTL: ttl}, time.Now()
	at := appendTo(t, s, log, keep, "a", "b")
	eventually(t, "expiry of a log", func() bool {
		records, err := s.Read(t.Context(), log, 0, 0)
		return len(records) == 0 && err == nil
	})
	notEarly(t, began, ttl)
	checkTrimmed(t, s, log, at...)
	later := appendTo(t, s, log, store.Retention{TTL: lasting}, "c")
	if later[0] <= at[1] {
		t.Fatalf("position %d came after %d", later[0], at[1])
	}
	checkTrimmed(t, s, log, at...)
	checkRead(t, s, log, 0, "c")
}

// checkTrimmed checks that positions are no longer in a log.
func checkTrimmed(t *testing.T, s store.Store, log string, positions ...uint64) {
	t.Helper()
	for _, position := range positions {
		_, err := s.Read(t.Context(), log, position, 0)
		want(t, "Read from an expired position", err, store.ErrTrimmed)
	}
}

// testLogExpireInPart appends a record that may expire before the ones around it, or stay as
// long as they do.
func testLogExpireInPart(t *testing.T, s store.Store) {
	log, keep := newKey(), store.Retention{TTL: lasting}
	appendTo(t, s, log, store.Retention{TTL: ttl}, "a")
	at := appendTo(t, s, log, keep, "b", "c")
	waitForExpiry()
	records, err := readAll(t, s, log, 0)
	if !errors.Is(err, store.ErrTrimmed) && !slices.Equal(texts(records), []string{"a", "b", "c"}) {
		t.Fatalf("the log has %q, %v, want all records or ErrTrimmed", texts(records), err)
	}
	checkRead(t, s, log, at[0], "c")
}

func testLogNames(t *testing.T, s store.Store) {
	names := oddKeys()
	for i, name := range names {
		appendTo(t, s, name, store.Retention{}, strconv.Itoa(i))
	}
	for i, name := range names {
		records, err := readAll(t, s, name, 0)
		if err != nil || !slices.Equal(texts(records), []string{strconv.Itoa(i)}) {
			t.Errorf("log %q has %q, %v, want %d", name, texts(records), err, i)
		}
	}
}

func testLargeRecord(t *testing.T, s store.Store) {
	log, data := newKey(), strings.Repeat("r", largest)
	appendTo(t, s, log, store.Retention{Bytes: 2 * largest}, data, "b")
	checkRead(t, s, log, 0, data, "b")
}

func testForeignPositions(t *testing.T, s store.Store) {
	log := newKey()
	at := appendTo(t, s, log, store.Retention{}, "a")
	other := appendTo(t, s, newKey(), store.Retention{}, "x", "x", "x")
	at = append(at, appendTo(t, s, log, store.Retention{}, "b")...)
	for _, position := range []uint64{other[1], at[0] + 1000, other[2] + 1000, math.MaxUint64} {
		if slices.Contains(at, position) {
			continue // each log has its own numbers
		}
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
	appendTo(t, s, log, store.Retention{}, "more")
	checkRead(t, s, log, 0, "data", "more")
	records, err := readAll(t, s, log, 0)
	want(t, "Read", err, nil)
	records[0].Data[0] = 'X'
	_ = append(records[0].Data, 'X')
	if got := string(records[1].Data); got != "more" {
		t.Fatalf("appending to a record changed the next one to %q", got)
	}
	checkRead(t, s, log, 0, "data", "more")
}

func testConcurrentAppends(t *testing.T, s store.Store) {
	log := newKey()
	positions := appendConcurrently(t, s, log)
	records, err := readAll(t, s, log, 0)
	want(t, "Read", err, nil)
	if len(records) != len(positions) {
		t.Fatalf("the log has %d records, want %d", len(records), len(positions))
	}
	for _, r := range records {
		if positions[string(r.Data)] != r.Position {
			t.Errorf("record %s is at position %d, Append returned %d", r.Data, r.Position, positions[string(r.Data)])
		}
	}
}

// appendConcurrently appends different records and returns their positions.
func appendConcurrently(t *testing.T, s store.Store, log string) map[string]uint64 {
	t.Helper()
	const workers, rounds = 4, 10
	var mu sync.Mutex
	positions := map[string]uint64{}
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			for i := range rounds {
				data := fmt.Sprint(worker, ".", i)
				position, err := s.Append(t.Context(), log, []byte(data), store.Retention{})
				if err != nil {
					t.Errorf("Append: %v", err)
				}
				mu.Lock()
				positions[data] = position
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return positions
}

// testFollow reads a log while several callers append to it. If a record can be read before
// an earlier one, the reader misses the earlier one.
func testFollow(t *testing.T, s store.Store) {
	log, read, appended := newKey(), 0, make(chan int, 1)
	go func() { appended <- len(appendConcurrently(t, s, log)) }()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for position, total := uint64(0), -1; read != total; <-ticker.C {
		select {
		case total = <-appended:
		default:
		}
		last := total >= 0
		records, err := s.Read(t.Context(), log, position, 0)
		want(t, "Read", err, nil)
		for _, r := range records {
			read, position = read+1, r.Position
		}
		if last && len(records) == 0 && read != total {
			t.Fatalf("a reader has seen %d of %d records", read, total)
		}
	}
}
