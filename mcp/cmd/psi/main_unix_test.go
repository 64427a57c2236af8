// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build unix && !aix

package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// A signal that is sent twice, as timeout(1) does, does not end psi before it has ended its
// server, even if that ignores the end of its input.
func TestInterruptedTwice(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	psi := exec.CommandContext(t.Context(), self, "list", "--",
		"sh", "-c", `exec 3>"$0"; echo $$ >&3; cat >/dev/null; echo no more input >&3; exec sleep 20`, path)
	psi.Env = append(os.Environ(), isPsi+"=1")
	if err := psi.Start(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path) // waits for the server
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	server := bufio.NewReader(f)
	first, _ := server.ReadString('\n')
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // if psi left it behind
	for range 2 {
		if err := psi.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		_, _ = server.ReadString('\n') // psi is handling the first signal, and then the server has ended
	}
	if err := psi.Wait(); psi.ProcessState.ExitCode() != exitInterrupted {
		t.Errorf("psi ended with %v", err)
	}
}
