// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
)

// T53, for clients: any response counts as an answer, a single missed ping is ignored, and the
// connection to a server that does not answer is closed.
func TestClientKeepAlive(t *testing.T) {
	const discovered = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}`
	refuses := func(id string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32601,"message":"no"}}`
	}
	silent := func(string) string { return "" }
	for name, test := range map[string]struct {
		ping  func(n int64) func(id string) string
		alive bool
	}{
		"refuses": {func(int64) func(string) string { return refuses }, true},
		"misses two": {func(n int64) func(string) string {
			return map[bool]func(string) string{true: refuses, false: silent}[n%3 == 0]
		}, true},
		"silent": {func(int64) func(string) string { return silent }, false},
		"dies later on": {func(n int64) func(string) string {
			return map[bool]func(string) string{true: refuses, false: silent}[n < 10]
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var pings atomic.Int64
				server := fakeServer(func(method, id string) (string, bool) {
					if method != mcp.MethodDiscover {
						return "", true // a ping without an answer is cancelled
					}
					if n := pings.Add(1) - 1; n > 0 {
						return test.ping(n)(id), true
					}
					return `{"jsonrpc":"2.0","id":` + id + `,"result":` + discovered + `}`, true
				})
				opts := &mcp.ClientOptions{Version: mcp.LatestVersion, KeepAlive: time.Minute, Logger: quiet().Logger}
				c, err := mcp.NewClient("c", "v1", opts).Connect(t.Context(), server)
				if err != nil {
					t.Fatal(err)
				}
				<-time.After(time.Hour)
				if test.alive {
					if n := pings.Load(); n < 30 {
						t.Errorf("%d pings in an hour", n)
					}
					if err := c.Close(); err != nil {
						t.Error(err)
					}
					return
				}
				<-c.Done()
				if err := c.Err(); !errors.Is(err, mcp.ErrNoAnswer) {
					t.Errorf("it ended with %v", err)
				}
			})
		})
	}
}

// Conn.Ping has the timeout of calls. The pings of KeepAlive do not: a slow server may be
// alive.
func TestPingTimeout(t *testing.T) {
	for _, version := range []string{mcp.LatestVersion, mcp.LegacyVersions()[0]} {
		synctest.Test(t, func(t *testing.T) {
			var slow atomic.Bool
			opts := &mcp.ClientOptions{CallTimeout: 2 * time.Second, KeepAlive: time.Minute, Version: version, Logger: quiet().Logger}
			c, err := mcp.NewClient("c", "v1", opts).Connect(t.Context(), fakeServer(func(method, id string) (string, bool) {
				if id == "" {
					return "", true
				}
				if slow.Load() {
					<-time.After(10 * time.Second)
				}
				result := `{}`
				switch method {
				case mcp.MethodDiscover:
					result = fmt.Sprintf(`{"resultType":"complete","supportedVersions":[%q],"capabilities":{},"ttlMs":0,"cacheScope":"private"}`, version)
				case "initialize":
					result = fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{},"serverInfo":{"name":"old","version":"1"}}`, version)
				}
				return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result), true
			}))
			if err != nil {
				t.Fatal(err)
			}
			slow.Store(true)
			start := time.Now()
			var timeout *mcp.TimeoutError
			if err := c.Ping(t.Context()); !errors.As(err, &timeout) || time.Since(start) != 2*time.Second {
				t.Errorf("%s: %v after %v", version, err, time.Since(start))
			}
			<-time.After(10*time.Minute + 30*time.Second)
			slow.Store(false)
			if err := c.Ping(t.Context()); err != nil {
				t.Errorf("%s: the connection is gone: %v", version, err)
			}
			_ = c.Close()
			synctest.Wait()
		})
	}
}
