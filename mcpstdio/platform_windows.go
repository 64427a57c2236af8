// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio

import (
	"os"
	"sync"
	"syscall"
	"unsafe"
)

// setGroup makes a process the root of a console process group, to which CTRL_BREAK can be sent.
func setGroup(attr *syscall.SysProcAttr) { attr.CreationFlags |= syscall.CREATE_NEW_PROCESS_GROUP }

var (
	kernel32                 = syscall.NewLazyDLL("kernel32.dll")
	createJobObject          = kernel32.NewProc("CreateJobObjectW")
	setInformationJobObject  = kernel32.NewProc("SetInformationJobObject")
	assignProcessToJobObject = kernel32.NewProc("AssignProcessToJobObject")
	terminateJobObject       = kernel32.NewProc("TerminateJobObject")
	generateConsoleCtrlEvent = kernel32.NewProc("GenerateConsoleCtrlEvent")
)

// A group is the job of a server: the server and the processes it started. Windows ends
// them when the last handle of the job is closed, even if this process dies.
type group struct {
	leader   *os.Process
	mu       sync.Mutex
	job      syscall.Handle // 0 if there is none
	released bool
}

// newGroup puts a process that has just been started into a job. If the system does not
// allow that, the group is the process alone.
func newGroup(leader *os.Process) *group {
	g := &group{leader: leader}
	job, _, _ := createJobObject.Call(0, 0)
	if job == 0 {
		return g
	}
	assigned := false
	if killOnClose(job) {
		_ = leader.WithHandle(func(process uintptr) {
			ok, _, _ := assignProcessToJobObject.Call(job, process)
			assigned = ok != 0
		})
	}
	if !assigned {
		_ = syscall.CloseHandle(syscall.Handle(job))
		return g
	}
	g.job = syscall.Handle(job)
	return g
}

// terminate asks all processes to exit, and reports whether the signal could be sent: only
// processes that share our console can receive it.
func (g *group) terminate() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.released {
		return false
	}
	const ctrlBreak = 1
	ok, _, _ := generateConsoleCtrlEvent.Call(ctrlBreak, uintptr(g.leader.Pid))
	return ok != 0
}

func (g *group) kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.job != 0 {
		_, _, _ = terminateJobObject.Call(uintptr(g.job), 1)
	} else if !g.released {
		_ = g.leader.Kill()
	}
}

// release frees the job.
func (g *group) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.job != 0 {
		_ = syscall.CloseHandle(g.job)
	}
	g.job, g.released = 0, true
}

// killOnClose makes Windows end the processes of a job when its last handle is closed.
func killOnClose(job uintptr) bool {
	const (
		extendedLimitInformation = 9
		limitKillOnJobClose      = 0x2000
	)
	info := jobLimits{flags: limitKillOnJobClose}
	ok, _, _ := setInformationJobObject.Call(job, extendedLimitInformation, uintptr(unsafe.Pointer(&info)), unsafe.Sizeof(info))
	return ok != 0
}

// jobLimits is JOBOBJECT_EXTENDED_LIMIT_INFORMATION.
type jobLimits struct {
	_     [2]int64 // times
	flags uint32
	_     [2]uintptr // working set
	_     uint32     // active processes
	_     uintptr    // affinity
	_     [2]uint32  // priority, scheduling
	_     [8 - unsafe.Sizeof(uintptr(0))]byte
	_     [6]uint64  // I/O counters
	_     [4]uintptr // memory
}

// ignoreBrokenPipes does nothing, because writing to a broken pipe only returns an error on
// this platform.
func ignoreBrokenPipes() (restore func()) { return func() {} }
