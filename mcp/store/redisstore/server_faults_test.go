// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build unix

package redisstore_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/store/redisstore"
	"github.com/go-psi/psi/mcp/store/storetest"
	"github.com/go-psi/psi/mcphttp"
)

// logged collects log output.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// If its engine is down, full, slow or read-only, an MCP server rejects requests that need
// the store with 503, logs the failure, and serves everything else.
func TestFaultyEngine(t *testing.T) {
	const handshake = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`
	for name, begin := range map[string]func(*testing.T) store.Store{
		"down": func(t *testing.T) store.Store {
			srv := start(t)
			s := open(t, connect(t, srv.address()), &redisstore.Options{Timeout: time.Second})
			srv.kill()
			return s
		},
		"slow": func(t *testing.T) store.Store {
			srv := start(t)
			s := open(t, connect(t, srv.address()), &redisstore.Options{Timeout: time.Second})
			suspend(t, srv.process.Process)
			return s
		},
		"full": func(t *testing.T) store.Store {
			srv := start(t)
			s := open(t, connect(t, srv.address()), &redisstore.Options{Timeout: time.Second})
			srv.command("CONFIG", "SET", "maxmemory", "1")
			return s
		},
		"read-only": func(t *testing.T) store.Store {
			srv := start(t)
			s := open(t, connect(t, srv.address()), &redisstore.Options{Timeout: time.Second})
			srv.command("REPLICAOF", "127.0.0.1", "1")
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			shared, log := begin(t), new(logged)
			mux := mcp.NewMux("test", "v1", &mcp.MuxOptions{StateStore: shared, Bus: shared, Logger: slog.New(slog.DiscardHandler)})
			mux.Tool("hello", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "hello", nil }, nil))
			endpoint := mcphttp.NewHandler(mux, &mcphttp.Options{Logger: slog.New(slog.NewTextHandler(log, nil)), Sessions: mcphttp.SessionOptions{
				Shared: &mcphttp.SharedSessions{Values: shared, URL: "http://only.one/", Keys: [][]byte{make([]byte, 32)}},
			}})
			srv := httptest.NewServer(endpoint)
			res, err := http.Post(srv.URL, "application/json", strings.NewReader(handshake))
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(res.Body) // the body is compared below
			res.Body.Close()
			if res.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(body), "try again later") {
				t.Errorf("a handshake: %d %s", res.StatusCode, body)
			}
			c, err := mcp.NewClient("test", "v1", &mcp.ClientOptions{Version: mcp.LatestVersion}).Connect(t.Context(), mcphttp.NewTransport(srv.URL, nil))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := mcp.Call[string](t.Context(), c, "hello", struct{}{}); got != "hello" || err != nil {
				t.Errorf("a call of the newest revision: %q, %v", got, err)
			}
			_ = c.Close() // the connection ends with the server
			srv.Close()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := endpoint.Shutdown(ctx); err != nil {
				t.Error(err)
			}
			if !strings.Contains(log.String(), "a session was not saved") {
				t.Errorf("the log is %s", log)
			}
		})
	}
}

// TLS is configured through the client's own options.
func TestTLS(t *testing.T) {
	srv := httptest.NewTLSServer(nil) // for its certificate
	defer srv.Close()
	own := srv.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(own.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "server.pem")
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: own.Certificate[0]}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	start(t, "--tls-port", strconv.Itoa(port), "--tls-cert-file", path, "--tls-key-file", path, "--tls-auth-clients", "no")
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	client := connectAs(t, rueidis.ClientOption{InitAddress: []string{"127.0.0.1:" + strconv.Itoa(port)}, TLSConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}})
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, client, nil) })
}

// suspend stops a process and returns once it has stopped.
func suspend(t *testing.T, p *os.Process) {
	t.Helper()
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if _, err := syscall.Wait4(p.Pid, nil, syscall.WUNTRACED, nil); err != nil {
		t.Fatal(err)
	}
}
