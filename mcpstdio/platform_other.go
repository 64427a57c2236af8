// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build !unix && !windows

package mcpstdio

import (
	"os"
	"syscall"
)

func setGroup(*syscall.SysProcAttr) {}

// A group is the server process alone, because this platform has no process groups.
type group struct{ leader *os.Process }

func newGroup(leader *os.Process) *group { return &group{leader} }

func (g *group) terminate() bool { return g.leader.Signal(os.Interrupt) == nil }

func (g *group) kill() { _ = g.leader.Kill() }

func (g *group) release() {}

// ignoreBrokenPipes does nothing, because writing to a broken pipe only returns an error on
// this platform.
func ignoreBrokenPipes() (restore func()) { return func() {} }
