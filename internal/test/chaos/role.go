// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"time"
)

// roleEnv is the environment variable that makes this program one of the processes to be
// killed.
const roleEnv = "PSI_CHAOS_ROLE"

// A role describes a process.
type role struct {
	Kind   string // "node" (NATS), "redis" or "replica"
	Number int
	Addr   string   // of a replica
	Store  string   // "nats" or "redis"
	Engine []string // addresses of the engine's nodes
	Routes []string // by which NATS nodes find each other
	Dir    string   // of a node
	Key    []byte   // state key of the replicas
	URL    string   // of the balancer
	Issuer string   // URL of the identity provider
}

// runRole runs the role of this process, if it has one, and then exits. The role ends when
// standard input is closed.
func runRole() {
	text := os.Getenv(roleEnv)
	if text == "" {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	var r role
	err := json.Unmarshal([]byte(text), &r)
	if err == nil {
		err = map[string]func(context.Context, *role) error{"node": runNode, "replica": runReplica}[r.Kind](ctx, &r)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "chaos: %s %d: %v\n", r.Kind, r.Number, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// A process is a child process that is killed and restarted.
type process struct {
	role
	log *os.File

	mu    sync.Mutex
	cmd   *exec.Cmd // nil while it is dead
	kills int
}

func (p *process) String() string { return fmt.Sprintf("%s %d", p.Kind, p.Number) }

func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	cmd, err := p.command()
	if err != nil {
		return err
	}
	cmd.Stderr = p.log
	if _, err := cmd.StdinPipe(); err != nil { // closed when this process exits
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.cmd = cmd
	return nil
}

func (p *process) command() (*exec.Cmd, error) {
	if p.Kind == "redis" {
		return redisCommand(&p.role)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(p.role)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self) //nolint:gosec,noctx // it is this program, and ends with its standard input
	cmd.Env = append(os.Environ(), roleEnv+"="+string(text))
	return cmd, nil
}

// kill ends the process with SIGKILL.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	p.cmd = nil
	p.kills++
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// freeAddrs returns addresses that were free a moment ago.
func freeAddrs(ctx context.Context, n int) (addrs []string, err error) {
	for range n {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		addrs = append(addrs, l.Addr().String())
	}
	return addrs, nil
}
