// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"time"
)

// A member is a process of the cluster, as seen by the process that starts and kills it.
type member struct {
	role
	log *os.File // receives its standard error; may be nil

	mu     sync.Mutex
	cmd    *exec.Cmd // nil while it is not running
	input  io.Closer
	kills  int
	status []byte // JSON; nil if it does not answer
}

// String returns the kind and the key of the member on the keyboard, a digit or a letter.
func (m *member) String() string {
	if m.Kind == "node" {
		return fmt.Sprintf("node %c", 'a'+m.Number)
	}
	return fmt.Sprintf("%s %d", m.Kind, m.Number+1)
}

func (m *member) start() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cmd != nil {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	text, err := json.Marshal(m.role)
	if err != nil {
		return err
	}
	cmd := exec.Command(self) //nolint:gosec,noctx // it is this program, and ends with its standard input
	cmd.Env = append(os.Environ(), roleEnv+"="+string(text))
	if m.log != nil {
		cmd.Stderr = m.log
	}
	if m.input, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	m.cmd = cmd
	return nil
}

// kill kills the process with SIGKILL, and reports whether it was running.
func (m *member) kill() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cmd == nil {
		return false
	}
	_ = m.cmd.Process.Kill()
	_ = m.cmd.Wait()
	m.cmd, m.status = nil, nil
	m.kills++
	return true
}

// stop stops the process gracefully.
func (m *member) stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cmd == nil {
		return
	}
	_ = m.input.Close()
	defer time.AfterFunc(8*time.Second, func() { _ = m.cmd.Process.Kill() }).Stop()
	_ = m.cmd.Wait()
	m.cmd = nil
}

// state returns "up", "starting" or "killed", and the number of kills. If the member is up,
// state decodes its status into status.
func (m *member) state(status any) (state string, kills int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.cmd == nil:
		return "killed", m.kills
	case m.status == nil || json.Unmarshal(m.status, status) != nil:
		return "starting", m.kills
	}
	return "up", m.kills
}

// watch polls the status of the process until ctx is done.
func (m *member) watch(ctx context.Context) {
	client := &http.Client{Timeout: time.Second}
	for ctx.Err() == nil {
		status := ask(ctx, client, "http://"+m.Addr+"/status")
		m.mu.Lock()
		m.status = status
		m.mu.Unlock()
		sleep(ctx, 300*time.Millisecond)
	}
}

func ask(ctx context.Context, client *http.Client, url string) []byte {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil
	}
	res, err := client.Do(req)
	if err != nil {
		return nil
	}
	defer res.Body.Close()
	status, err := io.ReadAll(res.Body)
	if err != nil {
		return nil
	}
	return status
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
