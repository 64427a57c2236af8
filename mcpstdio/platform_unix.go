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

// setGroup makes a process the leader of a new process group. The leader of a session is
// that already.
func setGroup(attr *syscall.SysProcAttr) {
	attr.Setpgid, attr.Pgid = !attr.Setsid, 0
}

// A group is the process group of a server: the server and the processes it started.
type group struct {
	mu sync.Mutex
	id int // 0 after release: another group may have the ID then
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

// release forgets the group. It is called before the leader is reaped, where that is
// possible: until then no other process or group gets its ID.
func (g *group) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.id = 0
}

// ignoreBrokenPipes makes writing to a broken pipe an error, until restore is called. On
// standard output and standard error it would end the process otherwise.
func ignoreBrokenPipes() (restore func()) {
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, syscall.SIGPIPE)
	return func() { signal.Stop(ignored) }
}
