// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// A usage holds the resources a process has used since it started.
type usage struct {
	CPU      time.Duration // user and system
	Mallocs  uint64
	Bytes    uint64 // allocated
	Resident int64  // bytes, currently

	Goroutines int // currently
}

// used returns the usage of this process.
func used() (usage, error) {
	var u usage
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return u, err
	}
	u.CPU = time.Duration(r.Utime.Nano() + r.Stime.Nano())
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u.Mallocs, u.Bytes, u.Goroutines = m.Mallocs, m.TotalAlloc, runtime.NumGoroutine()
	statm, err := os.ReadFile("/proc/self/statm") // in pages: total, resident, ...
	if err != nil {
		return u, err
	}
	if fields := bytes.Fields(statm); len(fields) > 1 {
		pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
		u.Resident = pages * int64(os.Getpagesize())
		return u, err
	}
	return u, nil
}
