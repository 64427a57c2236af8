// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build unix

package mcpstdio

import (
	"os"
	"sync"
	"syscall"
)

// setGroup makes a process the leader of a group of its own, which that of a
// session is already.
func setGroup(attr *syscall.SysProcAttr) {
	attr.Setpgid, attr.Pgid = !attr.Setsid, 0
}

// A group is the process group of a server: itself and what it started.
type group struct {
	mu sync.Mutex
	id int // 0 when the group is over: then another may get the id
}

func newGroup(leader *os.Process) *group { return &group{id: leader.Pid} }

// terminate asks all to exit, and reports whether it could.
func (g *group) terminate() bool { return g.signal(syscall.SIGTERM) }

func (g *group) kill() { g.signal(syscall.SIGKILL) }

func (g *group) signal(sig syscall.Signal) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.id != 0 && syscall.Kill(-g.id, sig) == nil
}

// release is called before the leader is reaped, where that is possible: its id
// and the group's are not given to others before.
func (g *group) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.id = 0
}
