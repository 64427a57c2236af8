// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package network_test

import (
	"testing"

	"github.com/go-psi/psi/internal/network"
)

func TestCallerPrefix(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1:80":              "192.0.2.1",
		"192.0.2.1":                 "192.0.2.1",
		"[::ffff:192.0.2.1]:80":     "192.0.2.1",
		"[2001:db8::1]:80":          "2001:db8::/64",
		"2001:db8:0:1:ffff::1%eth0": "2001:db8:0:1::/64",
		"/run/socket":               "/run/socket",
		"":                          "",
	} {
		if got := network.CallerPrefix(address); got != want {
			t.Errorf("%q: got %q, want %q", address, got, want)
		}
	}
}

func TestIsLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost": true, "127.0.0.1": true, "127.1.2.3": true, "::1": true, "::ffff:127.0.0.1": true,
		"": false, "localhost.": false, "a.localhost": false, "127.1": false, "localhost.example.com": false, "192.0.2.1": false, "::": false,
	} {
		if got := network.IsLoopback(host); got != want {
			t.Errorf("%q: got %t", host, got)
		}
	}
}
