// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package redisstore_test

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/store/redisstore"
)

// patience is the maximum wait for something that should happen soon.
const patience = 20 * time.Second

func wait(d time.Duration) { <-time.After(d) }

// A server is a local Redis or Valkey process with its own port.
type server struct {
	t       testing.TB
	program string
	port    int
	args    []string
	process *exec.Cmd
}

// start starts a server that is killed when the test ends. If no server program is
// installed, the test is skipped.
func start(t testing.TB, args ...string) *server {
	t.Helper()
	s := &server{t: t, port: freePort(t), args: append([]string{"--save", "", "--dir", t.TempDir()}, args...)}
	for _, name := range []string{"valkey-server", "redis-server"} {
		if path, err := exec.LookPath(name); err == nil {
			s.program = path
			break
		}
	}
	if s.program == "" {
		t.Skip("there is neither valkey-server nor redis-server: install one of them (apt-get install redis-server)")
	}
	s.run()
	t.Cleanup(s.kill)
	return s
}

func freePort(t testing.TB) int {
	t.Helper()
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		l.Close()
		if port <= 55535 { // a cluster also uses the port 10000 above it
			return port
		}
	}
}

func (s *server) address() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// run starts the program and waits until it accepts connections.
func (s *server) run() {
	s.t.Helper()
	s.process = exec.Command(s.program, append([]string{"--bind", "127.0.0.1", "--port", fmt.Sprint(s.port)}, s.args...)...)
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
	for giveUp := time.Now().Add(patience); ; wait(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", s.address())
		if err == nil {
			conn.Close()
			return
		}
		if time.Now().After(giveUp) {
			s.t.Fatal(err)
		}
	}
}

// kill kills the server if it is running.
func (s *server) kill() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
}

func connect(t testing.TB, address ...string) rueidis.Client {
	t.Helper()
	return connectAs(t, rueidis.ClientOption{InitAddress: address})
}

func connectAs(t testing.TB, opts rueidis.ClientOption) rueidis.Client {
	t.Helper()
	for giveUp := time.Now().Add(patience); ; wait(50 * time.Millisecond) {
		client, err := rueidis.NewClient(opts)
		if err == nil {
			t.Cleanup(client.Close)
			return client
		}
		if time.Now().After(giveUp) {
			t.Fatal(err)
		}
	}
}

func open(t testing.TB, client rueidis.Client, opts *redisstore.Options) *redisstore.Store {
	t.Helper()
	s, err := redisstore.Open(t.Context(), client, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// newCluster returns the addresses of three servers that share the slots.
func newCluster(t testing.TB) (addresses []string) {
	t.Helper()
	var servers []*server
	for i := range 3 {
		s := start(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000")
		servers, addresses = append(servers, s), append(addresses, s.address())
		s.command("CLUSTER", "ADDSLOTSRANGE", fmt.Sprint(i*5500), fmt.Sprint(min(i*5500+5499, 16383)))
		if i > 0 {
			s.command("CLUSTER", "MEET", "127.0.0.1", fmt.Sprint(servers[0].port))
		}
	}
	for _, s := range servers {
		s.until("cluster_state:ok", "CLUSTER", "INFO")
		s.until("cluster_known_nodes:3", "CLUSTER", "INFO")
	}
	return addresses
}

// command sends a command to the server and returns the answer.
func (s *server) command(args ...string) string {
	s.t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.address()}, ForceSingleClient: true})
	if err != nil {
		s.t.Fatal(err)
	}
	defer client.Close()
	answer, err := client.Do(s.t.Context(), client.B().Arbitrary(args...).Build()).ToString()
	if err != nil {
		s.t.Fatalf("%q: %v", args, err)
	}
	return answer
}

// steps returns all operations of a store.
func steps(ctx context.Context, s store.Store) map[string]func() error {
	return map[string]func() error{
		"Get":     func() error { _, _, err := s.Get(ctx, "key"); return err },
		"Put":     func() error { _, err := s.Put(ctx, "key", nil, 0, 0); return err },
		"Take":    func() error { _, err := s.Take(ctx, "key"); return err },
		"Publish": func() error { return s.Publish(ctx, "topic", nil) },
		"Subscribe": func() error {
			sub, err := s.Subscribe(ctx, "topic")
			if err == nil {
				err = sub.Close()
			}
			return err
		},
	}
}

// until repeats a command until its answer contains text.
func (s *server) until(text string, args ...string) {
	s.t.Helper()
	for giveUp := time.Now().Add(patience); ; wait(20 * time.Millisecond) {
		answer := s.command(args...)
		if strings.Contains(answer, text) {
			return
		}
		if time.Now().After(giveUp) {
			s.t.Fatalf("%q does not answer %q: %s", args, text, answer)
		}
	}
}
