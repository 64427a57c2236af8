// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcpstdio"
)

// listing is a stream that asks for the tools many times, and counts what it is told.
type listing struct {
	asked, times int
	answered     chan int // bytes
}

func (l *listing) Read(context.Context) ([]byte, error) {
	if l.asked++; l.asked > l.times {
		return nil, io.EOF
	}
	return []byte(eras[0].request(fmt.Sprint(l.asked), "tools/list", "")), nil
}

func (l *listing) Write(_ context.Context, message []byte) error {
	l.answered <- len(message)
	return nil
}

func (l *listing) Close() error { return nil }

func manyTools() *mcp.Mux {
	mux := mcp.NewMux("m", "v1", quiet())
	for i := range 1000 {
		opts := &mcp.Tool{Description: strings.Repeat("words ", 50)}
		mux.Tool(fmt.Sprintf("tool%03d", i), mcp.ToolFunc(func(context.Context, sumIn) (sumOut, error) { return sumOut{}, nil }, opts))
	}
	return mux
}

// allocated returns how many bytes something allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// An answer of half a megabyte is written into memory that is kept for the next one. Where
// there is none yet, it is allocated once, and not a quarter more each time.
func TestFindingCM9LargeAnswers(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector keeps no memory")
	}
	mux := manyTools()
	list := func(times int) (size int) {
		s := &listing{times: times, answered: make(chan int, times)}
		if err := mcpstdio.ServeStream(t.Context(), mux, s, nil); err != nil {
			t.Fatal(err)
		}
		for range times {
			size = <-s.answered
		}
		return size
	}
	size := list(10)
	if size < 500_000 {
		t.Fatalf("the list has %d bytes", size)
	}
	const times = 200
	each := allocated(func() { list(times) }) / times
	t.Logf("%d bytes of %d are allocated for each", each, size)
	if each > uint64(size)/4 {
		t.Errorf("each list of %d bytes takes %d bytes of new memory", size, each)
	}

	message := []byte(eras[0].request("1", "tools/list", ""))
	fresh := allocated(func() { serveBytes(t, mux, nil, message) })
	if fresh > 2*uint64(size) {
		t.Errorf("the first list of %d bytes takes %d bytes of memory", size, fresh)
	}
}
