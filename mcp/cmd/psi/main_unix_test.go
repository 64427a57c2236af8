// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build unix && !aix

package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/go-psi/psi/internal/strictjson"
)

// If a signal is sent twice, as timeout(1) does, psi still stops its server before it
// exits, even if the server ignores the end of its input.
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
	defer syscall.Kill(pid, syscall.SIGKILL) // if psi left it behind
	for range 2 {
		if err := psi.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		_, _ = server.ReadString('\n') // first, psi handles the signal; then, the server has exited
	}
	if err := psi.Wait(); psi.ProcessState.ExitCode() != exitInterrupted {
		t.Errorf("psi ended with %v", err)
	}
}

// A gateway stops its commands concurrently. If it stopped them one after the other, some
// could be left behind when the host kills the gateway before it is done. Each of these
// commands waits until the other is being stopped, too.
func TestGatewayEndsCommandsTogether(t *testing.T) {
	dir := t.TempDir()
	const script = `trap ': > "$0/$1.terminated"; exit' TERM; exec 3>"$0/$1.fifo"; cat >/dev/null; : > "$0/$1"
		while ! [ -e "$0/a" ] || ! [ -e "$0/b" ]; do sleep 0.05; done`
	servers := map[string]any{}
	for _, name := range []string{"a", "b"} {
		servers[name] = map[string]any{"command": "sh", "args": []string{"-c", script, dir, name}}
		if err := syscall.Mkfifo(filepath.Join(dir, name+".fifo"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "servers.json")
	if err := os.WriteFile(file, strictjson.MustMarshal(map[string]any{"mcpServers": servers}), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"gateway", "-http", "127.0.0.1:0", file}, strings.NewReader(""), io.Discard, io.Discard)
	}()
	for name := range servers {
		f, err := os.Open(filepath.Join(dir, name+".fifo")) // waits for the server
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
	}
	stop()
	if code := <-ended; code != exitOK {
		t.Errorf("psi ended with %d", code)
	}
	for name := range servers {
		if _, err := os.Stat(filepath.Join(dir, name+".terminated")); err == nil {
			t.Errorf("the server %s was told to end before the other, and was terminated", name)
		}
	}
}
