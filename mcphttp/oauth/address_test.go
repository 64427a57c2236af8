// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcphttp/oauth"
)

// The address decides what may be dialled, whatever the name: a name may resolve to another
// address at any time.
func TestDial(t *testing.T) {
	servers := map[string]string{ // address of the server: kinds that it may name
		"203.0.113.7": "public", "127.0.0.1": "public loopback private", "::1": "public loopback private",
		"10.0.0.1": "public private", "fd00::1": "public private", "169.254.1.1": "public link-local",
	}
	addresses := map[string]string{
		"8.8.8.8": "public", "2606:4700::1111": "public", "64:ff9b::8.8.8.8": "public",
		"127.0.0.1": "loopback", "127.255.0.9": "loopback", "::1": "loopback", "::ffff:127.0.0.1": "loopback", "64:ff9b::127.0.0.1": "loopback",
		"10.1.2.3": "private", "172.16.0.1": "private", "192.168.1.1": "private", "100.64.0.1": "private", "198.18.0.1": "private", "fd12::1": "private",
		"::ffff:10.0.0.1": "private", "::ffff:100.64.0.1": "private", "64:ff9b::10.0.0.1": "private", "fec0::1": "private", "192.0.0.1": "private",
		"169.254.169.254": "link-local", "fe80::1": "link-local", "::ffff:169.254.169.254": "link-local", "64:ff9b::169.254.169.254": "link-local",
		"0.0.0.0": "none", "::": "none", "255.255.255.255": "none", "224.0.0.1": "none", "ff02::1": "none", "240.0.0.1": "none", "2002:7f00:1::": "none", "0.1.2.3": "none",
	}
	for server, kinds := range servers {
		for to, kind := range addresses {
			err := oauth.Dial(netip.MustParseAddr(server), netip.MustParseAddr(to), false)
			if want := strings.Contains(kinds, kind); (err == nil) != want || err != nil && !errors.Is(err, oauth.ErrUnsafeURL) {
				t.Errorf("a server at %s names %s (%s): %v", server, to, kind, err)
			}
			// Only this machine may be reached without encryption.
			err = oauth.Dial(netip.MustParseAddr(server), netip.MustParseAddr(to), true)
			if want := kind == "loopback" && strings.Contains(kinds, kind); (err == nil) != want {
				t.Errorf("a server at %s names %s (%s) in the clear: %v", server, to, kind, err)
			}
		}
	}
}

// The connection over which a server requires authorization determines how near the server
// is.
func TestReachOfServer(t *testing.T) {
	as, login := localIssuer()
	defer login.Close()
	server := &resource{issuer: as, url: "https://example.com/mcp", challenge: "Bearer", metadata: map[string]any{
		"resource": "https://example.com/mcp", "authorization_servers": []string{login.URL},
	}}
	tls := httptest.NewTLSServer(server)
	defer tls.Close()
	base := tls.Client().Transport.(*http.Transport).Clone()
	defer base.CloseIdleConnections()
	base.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, tls.Listener.Addr().String())
	}
	grant := &oauth.AuthorizationCode{Redirector: oauth.NewRedirector("https://app.example/callback", visitReally)}

	// A server at a loopback address, whatever its name, may name others there. The
	// transport's own dialer enforces that.
	get := func(base http.RoundTripper) (string, error) {
		rt := oauth.NewTransport(server.url, &oauth.Options{Base: base, Grant: grant, Logger: slog.New(slog.DiscardHandler)})
		defer rt.Close()
		req, _ := http.NewRequest(http.MethodPost, server.url, strings.NewReader("hello"))
		res, err := rt.RoundTrip(req)
		if err != nil {
			return "", err
		}
		defer res.Body.Close()
		return res.Status, nil
	}
	if got, err := get(base); err != nil || got != "200 OK" {
		t.Errorf("found at a loopback address: %q, %v", got, err)
	}
	// Without an address, the server counts as public.
	hidden := roundTripper(func(req *http.Request) (*http.Response, error) {
		return base.RoundTrip(req.WithContext(context.Background()))
	})
	if got, err := get(hidden); !errors.Is(err, oauth.ErrUnsafeURL) {
		t.Errorf("found somewhere: %q, %v", got, err)
	}
	// The name does not matter: its current address counts.
	name, _ := os.Hostname()
	addresses, err := net.LookupHost(name)
	if err != nil || name == "localhost" || oauth.Dial(netip.MustParseAddr("8.8.8.8"), netip.MustParseAddr(addresses[0]), false) == nil {
		t.Skip("this machine has no name for an address of its own")
	}
	if proxy, err := http.ProxyFromEnvironment(httptest.NewRequest(http.MethodGet, "https://"+name, nil)); err != nil || proxy != nil {
		t.Skip("there is a proxy")
	}
	server.metadata["authorization_servers"] = []string{"https://" + name}
	if got, err := get(hidden); !errors.Is(err, oauth.ErrUnsafeURL) {
		t.Errorf("found by the name %s of %s: %q, %v", name, addresses[0], got, err)
	}
}

// Options.PrivateNetworks is for public servers that name private addresses.
func TestPrivateNetworks(t *testing.T) {
	for _, allowed := range []bool{false, true} {
		w := newWorld(t)
		near := newIssuer("https://10.0.0.1")
		w.hosts["https://10.0.0.1"] = near
		w.server.issuer = near
		w.server.metadata["authorization_servers"] = []string{"https://10.0.0.1"}
		got, err := post(t.Context(), w.transport(&oauth.Options{PrivateNetworks: allowed}), "", "hello")
		if (err == nil) != allowed {
			t.Errorf("allowed %v: %q, %v", allowed, got, err)
		}
		if err != nil && !strings.Contains(err.Error(), "PrivateNetworks") {
			t.Errorf("the error does not say what would help: %v", err)
		}
	}
}

// A name may contain numbers, unless its last label is a number.
func TestNamesWithNumbers(t *testing.T) {
	for _, host := range []string{"127.0.0.1.example", "1.2.3.4x", "0x7g", "10.a0x1", "xn--1-7sb.example", "4.example."} {
		w := newWorld(t)
		at := "https://" + host
		as := newIssuer(at)
		w.hosts[at] = as
		w.server.issuer = as
		w.server.metadata["authorization_servers"] = []string{at}
		w.mustPost(w.transport(nil), "", served)
	}
}

// Behind a proxy, the proxy's address is dialed, wherever it is. net/http reads the
// environment once, so a separate process requests the metadata.
func TestProxy(t *testing.T) {
	if os.Getenv("PSI_TEST_PROXIED") != "" {
		w := newWorld(t)
		rt := oauth.NewTransport(serverURL, &oauth.Options{Base: w.network, Grant: &oauth.AuthorizationCode{Redirector: w.receiver}, Logger: slog.New(slog.DiscardHandler)})
		defer rt.Close()
		_, _ = post(t.Context(), rt, "", "hello")
		return
	}
	asked := make(chan string, 10)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Method + " " + r.Host
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer proxy.Close()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestProxy$")
	cmd.Env = append(os.Environ(), "PSI_TEST_PROXIED=1", "HTTPS_PROXY="+proxy.URL, "NO_PROXY=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	select {
	case got := <-asked:
		if got != "CONNECT login.example:443" {
			t.Errorf("the proxy was asked for %s", got)
		}
	default:
		t.Error("the proxy was not asked")
	}
}
