// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
)

// T53, the client's half: any answer is a sign of life, one that is missed is not the
// end, and a server that is dead is left.
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
				if err := c.Wait(); !errors.Is(err, mcp.ErrNoAnswer) {
					t.Errorf("it ended with %v", err)
				}
			})
		})
	}
}
