// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package natsstore_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// The servers are separate processes of the test binary, so they can be killed and cannot
// harm a test when they exit.

// nodeOptions holds the options of a server.
type nodeOptions struct {
	Name, StoreDir    string // without a StoreDir, JetStream is disabled
	Port, ClusterPort int    // 0 means any port, or no cluster
	Routes            []string
	MaxPayload        int32
	Users             []*server.User
}

const nodeEnv = "NATSSTORE_TEST_NODE"

func TestMain(m *testing.M) {
	if text := os.Getenv(nodeEnv); text != "" {
		if err := serveNode(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// serveNode runs a server until stdin is closed, at the latest when the parent process
// exits. It prints the URL of the server.
func serveNode(text string) error {
	var o nodeOptions
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	opts := &server.Options{
		ServerName: o.Name, StoreDir: o.StoreDir, Host: "127.0.0.1", Port: o.Port, JetStream: o.StoreDir != "", NoLog: true, NoSigs: true,
		MaxPayload: o.MaxPayload, Users: o.Users,
	}
	if opts.Port == 0 {
		opts.Port = server.RANDOM_PORT
	}
	if o.ClusterPort != 0 {
		opts.Cluster = server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: o.ClusterPort}
	}
	for _, route := range o.Routes {
		u, err := url.Parse(route)
		if err != nil {
			return err
		}
		opts.Routes = append(opts.Routes, u)
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return err
	}
	s.Start()
	if !s.ReadyForConnections(patience) {
		return fmt.Errorf("the server does not accept connections")
	}
	fmt.Println(s.ClientURL())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// A node is a server process.
type node struct {
	command *exec.Cmd
	stdin   io.Closer
	url     string
}

// start starts a server and waits until it accepts connections.
func start(t testing.TB, o nodeOptions) *node {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	n := &node{command: exec.Command(os.Args[0])}
	n.command.Env = append(os.Environ(), nodeEnv+"="+string(text))
	n.command.Stderr = os.Stderr
	if n.stdin, err = n.command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := n.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := n.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.kill)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal("the server does not start: ", err)
	}
	n.url = strings.TrimSpace(line)
	return n
}

// kill kills a server immediately. It may be called more than once.
func (n *node) kill() {
	_ = n.command.Process.Kill()
	_ = n.command.Wait()
	_ = n.stdin.Close()
}

func (n *node) ClientURL() string { return n.url }

func single(t testing.TB) *node {
	t.Helper()
	return start(t, nodeOptions{StoreDir: t.TempDir()})
}
