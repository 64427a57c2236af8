// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package peers_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-psi/psi/mcpstdio"
)

// serveEnv makes the test program the named server, on standard input and output.
const serveEnv = "PSI_PEERS_SERVE"

func TestMain(m *testing.M) {
	var err error
	switch peer := os.Getenv(serveEnv); peer {
	case "":
		os.Exit(m.Run())
	case "psi":
		err = mcpstdio.Serve(context.Background(), newMux(), nil)
	case "go-sdk":
		err = serveSDK()
	case "mcp-go":
		err = serveMark()
	default:
		err = fmt.Errorf("unknown server %q", peer)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// program returns a command that runs this program as a server.
func program(t *testing.T, peer string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), serveEnv+"="+peer)
	return cmd
}

// serve serves h over HTTP until the test ends, and returns the URL.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		server.CloseClientConnections() // for streams that the server keeps open
		server.Close()
	})
	return server.URL
}

// limited returns a context that ends before the test program times out.
func limited(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// logger returns a logger for all levels, whose output is shown if the test fails.
func logger(t *testing.T) *slog.Logger {
	t.Helper()
	l := &logBuffer{}
	t.Cleanup(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if t.Failed() {
			t.Logf("%s", l.text.String())
		}
	})
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logBuffer) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}
