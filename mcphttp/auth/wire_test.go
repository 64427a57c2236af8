// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth_test

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/internal/test/memnet"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/auth"
)

// The errors that clients of package mcp receive, in both eras.
func TestClientIsTold(t *testing.T) {
	l := memnet.Listen()
	server := &http.Server{Handler: protected(newJWT(auth.JWTOptions{}))}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	legacy := mcp.LegacyVersions()
	for _, version := range []string{mcp.LatestVersion, legacy[0]} {
		connect := func(token string) (*mcp.Conn, error) {
			header := http.Header{}
			if token != "" {
				header.Set("Authorization", "Bearer "+token)
			}
			transport := mcphttp.NewTransport("http://localhost/mcp", &mcphttp.TransportOptions{Client: l.Client(), Header: header, Logger: quiet})
			return mcp.NewClient("test", "v1", &mcp.ClientOptions{Version: version}).Connect(t.Context(), transport)
		}
		for _, tok := range []string{"", token(claims{"exp": 1})} {
			_, err := connect(tok)
			status, ok := errors.AsType[*mcphttp.StatusError](err)
			if !errors.Is(err, mcp.ErrUnauthorized) || !ok || status.Status != 401 || status.Header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s: %v", version, err)
			}
		}
		conn, err := connect(token(nil))
		if err != nil {
			t.Fatal(version, err)
		}
		if text, err := mcp.Call[string](t.Context(), conn, "whoami", nil); err != nil || text != "alice" {
			t.Errorf("%s: %q, %v", version, text, err)
		}
		_, err = conn.CallTool(t.Context(), &mcp.CallToolParams{Name: "write"})
		status, ok := errors.AsType[*mcphttp.StatusError](err)
		if !ok || status.Status != 403 || mcp.CodeOf(err) != mcp.CodeInsufficientScope || errors.Is(err, mcp.ErrUnauthorized) || !strings.Contains(status.Header.Get("WWW-Authenticate"), "files:lock") {
			t.Errorf("%s: %v", version, err)
		}
		_ = conn.Close()
	}
}

// A client certificate on a real connection, including a resumed one.
func TestMutualTLSOverTheWire(t *testing.T) {
	later := time.Now().Add(time.Hour)
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: later,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der := must(x509.CreateCertificate(rand.Reader, authority, authority, otherKey().Public(), otherKey()))
	authorities := x509.NewCertPool()
	authorities.AddCert(must(x509.ParseCertificate(der)))

	server := httptest.NewUnstartedServer(auth.Require(auth.MutualTLS(nil), &auth.Options{Logger: quiet})(handler(files())))
	server.TLS = &tls.Config{ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: authorities}
	server.StartTLS()
	t.Cleanup(server.Close)
	call := func(client *http.Client) (status int, resumed bool) {
		r := modern("whoami")
		r.URL, r.RequestURI, r.Host = must(r.URL.Parse(server.URL)), "", ""
		res := must(client.Do(r))
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		client.CloseIdleConnections()
		return res.StatusCode, res.TLS.DidResume
	}
	nobody := server.Client()
	if status, _ := call(nobody); status != http.StatusUnauthorized {
		t.Errorf("nobody: got %d", status)
	}
	transport := nobody.Transport.(*http.Transport).Clone()
	transport.TLSClientConfig.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	transport.TLSClientConfig.Certificates = []tls.Certificate{{Certificate: [][]byte{certificate("alice", "", later).Raw}, PrivateKey: ecKey()}}
	for i := range 2 {
		if status, resumed := call(&http.Client{Transport: transport}); status != http.StatusOK || resumed != (i == 1) {
			t.Errorf("connection %d: got %d, taken up again: %v", i, status, resumed)
		}
	}
}
