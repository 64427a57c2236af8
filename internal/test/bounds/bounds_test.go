// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package bounds_test

import (
	"flag"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
)

var full = flag.Bool("bounds.full", false, "send as often as the defaults allow")

// times returns how often something is sent: a few times, or as often as the defaults allow.
func times(few, all int) int {
	if *full {
		return all
	}
	return few
}

// A store is something that keeps what a peer sends.
type store struct {
	name string
	// limit is the most memory that may be kept, in MiB, and atMost, unless it is 0, with
	// -bounds.full: what a caller keeps who opens five times as many connections.
	limit, atMost int
	// fill sends as much as it can, and returns while all that is kept is still kept. What it
	// leaves open is closed by functions passed to t.Cleanup.
	fill func(t *testing.T)
}

// TestBounds fills each store and measures what is kept.
func TestBounds(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes this slow, and there are no data to share")
	}
	for who, stores := range map[string][]store{"caller": callerStores, "server": serverStores} {
		for _, s := range stores {
			t.Run(who+"/"+s.name, func(t *testing.T) {
				if s.atMost > 0 {
					s.limit = times(s.limit, s.atMost)
				}
				before := liveMemory()
				s.fill(t)
				kept := float64(liveMemory()-before) / (1 << 20)
				t.Logf("%.1f MiB kept, of at most %d", kept, s.limit)
				if kept > float64(s.limit) {
					t.Errorf("%.1f MiB are kept, want at most %d", kept, s.limit)
				}
			})
		}
	}
}

// liveMemory returns the bytes of the heap and of stacks that are in use. What pools have
// dropped, finalizers and goroutines of an earlier test that are about to end take several
// collections.
func liveMemory() int64 {
	for least := int64(math.MaxInt64); ; {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		used := int64(m.HeapAlloc + m.StackInuse)
		if used > least-(64<<10) {
			return min(used, least)
		}
		least = used
	}
}

// text returns n bytes that differ from those of another call.
func text(n int) string {
	distinct++
	head := fmt.Sprintf("%d-", distinct)
	return head + strings.Repeat("x", max(0, n-len(head)))
}

var distinct int

var quiet = slog.New(slog.DiscardHandler)

func newMux() *mcp.Mux { return mcp.NewMux("m", "v1", &mcp.MuxOptions{Logger: quiet}) }

const (
	kib = 1 << 10
	mib = 1 << 20
)
