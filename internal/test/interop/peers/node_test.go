// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package peers_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp/transport"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcpstdio"
)

// needEnv makes missing npm packages an error. It is set by internal/test/interop/run.sh.
const needEnv = "PSI_INTEROP"

// node returns a command that runs a file below internal/test/interop with node.
func node(t *testing.T, file string, args ...string) *exec.Cmd {
	t.Helper()
	if _, err := os.Stat("../node_modules"); err != nil {
		if os.Getenv(needEnv) != "" {
			t.Fatal("internal/test/interop/node_modules is missing")
		}
		t.Skip("internal/test/interop/node_modules is missing: run internal/test/interop/run.sh")
	}
	path, err := filepath.Abs(filepath.Join("..", file))
	if err != nil {
		t.Fatal(err)
	}
	return exec.Command("node", append([]string{path}, args...)...)
}

// nodeStdio returns a function that returns psi's transport to a server run by node.
func nodeStdio(file string, args ...string) func(t *testing.T) transport.Transport {
	return func(t *testing.T) transport.Transport {
		return mcpstdio.NewCommand(node(t, file, args...), &mcpstdio.CommandOptions{Logger: logger(t)})
	}
}

// start starts a command and kills it when the test ends. The first line of its output, if
// any, is sent on the channel; the rest is discarded.
func start(t *testing.T, cmd *exec.Cmd) <-chan string {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	first := make(chan string, 1)
	go func() {
		defer close(first)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			put(first, lines.Text())
		}
	}()
	return first
}

// freePort returns a port that was free a moment ago.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// listening waits until a server listens at an address.
func listening(t *testing.T, address string) {
	t.Helper()
	ctx := limited(t)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err == nil {
			_ = conn.Close()
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("nothing listens at %s: %v", address, err)
		}
	}
}

// TestTypeScript tries psi's client with a server made with the TypeScript SDK. Over HTTP,
// that server supports the legacy era only without sessions, so it cannot send requests or
// notifications.
func TestTypeScript(t *testing.T) {
	const file = "server.mjs"
	legs := []leg{
		{
			name: "psi to typescript over http", versions: []string{"", mcp.LatestVersion}, found: mcp.LatestVersion,
			connect: connectPsi(func(t *testing.T) transport.Transport {
				return mcphttp.NewTransport(<-start(t, node(t, file, "http")), nil)
			}),
		},
		{
			name: "psi to typescript over stdio", versions: overStdio, found: mcp.LatestVersion,
			connect: connectPsi(nodeStdio(file)),
		},
	}
	checkLacks(t, legs, demoFeatures)
	for _, l := range legs {
		l.run(t, demoFeatures)
	}
}

// TestTmcp tries psi's client with a server made with tmcp, which shares no code with the
// SDKs.
func TestTmcp(t *testing.T) {
	const file = "tmcp.mjs"
	lacks := []lack{
		{feature: "roots", era: "modern", why: "tmcp does not ask for them, because they are deprecated"},
		{feature: "unknown names", why: "tmcp has the model know that a tool does not exist"},
	}
	legs := []leg{
		{
			name: "psi to tmcp over http", versions: []string{"", "2025-06-18", "2025-03-26"}, found: mcp.LatestVersion, lacks: lacks,
			connect: connectPsi(func(t *testing.T) transport.Transport {
				return mcphttp.NewTransport(<-start(t, node(t, file, "http")), nil)
			}),
		},
		{
			name: "psi to tmcp over stdio", versions: []string{"", "2025-06-18", "2024-11-05"}, found: mcp.LatestVersion,
			lacks:   append(lacks, lack{feature: "cancellation", sometimes: true, why: "tmcp does not cancel over stdio, where a call that waits holds up the others"}),
			connect: connectPsi(nodeStdio(file)),
		},
	}
	checkLacks(t, legs, demoFeatures)
	for _, l := range legs {
		l.run(t, demoFeatures)
	}
}

// TestAISDK tries the client of Vercel's AI SDK with psi's server.
func TestAISDK(t *testing.T) {
	for kind, serve := range map[string]func(t *testing.T) string{"http": servePsi, "sse": servePsiSSE} {
		t.Run(kind, func(t *testing.T) {
			if out, err := node(t, "aisdk.mjs", kind, serve(t)).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// everything serves the reference server over HTTP in one of its two modes.
func everything(t *testing.T, mode string) string {
	t.Helper()
	port := freePort(t)
	cmd := node(t, everythingFile, mode)
	cmd.Env = append(os.Environ(), "PORT="+port)
	start(t, cmd)
	address := net.JoinHostPort("127.0.0.1", port)
	listening(t, address)
	return fmt.Sprintf("http://%s", address)
}
