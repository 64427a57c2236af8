// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth_test

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp/auth"
)

// certificate returns a client certificate.
func certificate(name, uri string, end time.Time) *x509.Certificate {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: end,
	}
	if uri != "" {
		template.URIs = []*url.URL{must(url.Parse(uri))}
	}
	parent := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "authority"}}
	der := must(x509.CreateCertificate(rand.Reader, template, parent, ecKey().Public(), otherKey()))
	return must(x509.ParseCertificate(der))
}

// over returns r as received on a connection with a certificate.
func over(r *http.Request, cert *x509.Certificate, verified bool) *http.Request {
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}
	if verified {
		r.TLS.VerifiedChains = [][]*x509.Certificate{{cert}}
	}
	return r
}

func TestMutualTLS(t *testing.T) {
	later := time.Now().Add(time.Hour)
	alice := certificate("alice", "", later)
	robot := certificate("robot", "spiffe://example.com/robot", later)
	late := certificate("late", "", time.Now().Add(-time.Minute))
	nobody := certificate("", "", later)
	noCert := request()
	noCert.TLS = &tls.ConnectionState{}
	for _, c := range []struct {
		name    string
		r       *http.Request
		status  int
		subject string
	}{
		{"a name", over(request(), alice, true), 200, "CN=alice"},
		{"a URI", over(request(), robot, true), 200, "spiffe://example.com/robot"},
		{"not verified", over(request(), alice, false), 401, ""},
		{"expired since", over(request(), late, true), 401, ""},
		{"names nobody", over(request(), nobody, true), 401, ""},
		{"no certificate", noCert, 401, ""},
		{"no TLS", request(), 401, ""},
		{"no TLS, but a header", request("Client-Cert", ":AAAA:", "X-Client-Cert", "CN=alice"), 401, ""},
	} {
		a := ask(auth.MutualTLS(nil), nil, c.r)
		if a.Code != c.status || (a.Code == 200) != (a.caller != nil) {
			t.Errorf("%s: got %d %s", c.name, a.Code, a.challenge())
		}
		if a.caller != nil && (a.caller.Subject != c.subject || a.caller.Issuer != "CN=authority" || a.caller.Expiry.IsZero()) {
			t.Errorf("%s: the caller is %+v", c.name, a.caller)
		}
		if a.Code == 401 && a.challenge() == "" {
			t.Errorf("%s: a 401 without a challenge", c.name)
		}
	}
	own := auth.MutualTLS(func(cert *x509.Certificate) (*mcp.Principal, error) {
		if cert.Subject.CommonName != "alice" {
			return nil, errors.New("the directory is down")
		}
		return &mcp.Principal{Subject: "a"}, nil
	})
	if a := ask(own, nil, over(request(), alice, true)); a.caller == nil || a.caller.Subject != "a" {
		t.Errorf("got %d", a.Code)
	}
	if a := ask(own, nil, over(request(), robot, true)); a.Code != 503 {
		t.Errorf("got %d", a.Code)
	}
}

// RFC 8705: a token bound to a certificate is valid only with that certificate.
func TestCertificateBound(t *testing.T) {
	later := time.Now().Add(time.Hour)
	alice, mallory := certificate("alice", "", later), certificate("mallory", "", later)
	sum := sha256.Sum256(alice.Raw)
	bound := token(claims{"cnf": claims{"x5t#S256": encode(sum[:])}})
	for _, c := range []struct {
		name   string
		r      *http.Request
		status int
	}{
		{"hers", over(bearing(bound), alice, true), 200},
		{"hers, which nobody vouches for", over(bearing(bound), alice, false), 200},
		{"another's", over(bearing(bound), mallory, true), 401},
		{"none", bearing(bound), 401},
		{"not bound", over(bearing(token(nil)), mallory, true), 200},
		{"bound to nothing", over(bearing(token(claims{"cnf": claims{"x5t#S256": ""}})), mallory, true), 401},
		{"bound to no text", over(bearing(token(claims{"cnf": claims{"x5t#S256": 7}})), mallory, true), 401},
		{"bound to what is not known", over(bearing(token(claims{"cnf": claims{"kid": "x"}})), mallory, true), 401},
		{"no object", over(bearing(token(claims{"cnf": "x"})), mallory, true), 401},
	} {
		if a := ask(newJWT(auth.JWTOptions{}), nil, c.r); a.Code != c.status {
			t.Errorf("%s: got %d %s", c.name, a.Code, a.challenge())
		}
	}
}
