// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build unix

package mcpstdio

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// setGroup makes a process the leader of a new process group. With Setsid, it already is one.
func setGroup(attr *syscall.SysProcAttr) {
	attr.Setpgid, attr.Pgid = !attr.Setsid, 0
}

// A group is the process group of a server: the server and the processes it started.
type group struct {
	mu sync.Mutex
	id int // 0 after release, when another group may have the ID
}

func newGroup(leader *os.Process) *group { return &group{id: leader.Pid} }

// terminate asks all processes to exit, and reports whether the signal could be sent.
func (g *group) terminate() bool { return g.signal(syscall.SIGTERM) }

func (g *group) kill() { g.signal(syscall.SIGKILL) }

func (g *group) signal(sig syscall.Signal) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.id != 0 && syscall.Kill(-g.id, sig) == nil
}

// release forgets the group. Where possible, it is called before the leader is reaped:
// until then no other process or group gets its ID.
func (g *group) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.id = 0
}

// ignoreBrokenPipes makes a write to a broken pipe return an error until restore is called.
// Otherwise, such a write to standard output or standard error would end the process.
func ignoreBrokenPipes() (restore func()) {
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, syscall.SIGPIPE)
	return func() { signal.Stop(ignored) }
}
