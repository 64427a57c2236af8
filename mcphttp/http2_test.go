// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/tmaxmax/go-sse"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

// serveHTTP2 serves h over HTTP/2 on a loopback port.
func serveHTTP2(t *testing.T, h http.Handler) *site {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	client := srv.Client()
	to, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	client.Transport = elsewhere{to, client.Transport}
	return &site{t: t, client: client, server: srv.Config}
}

// elsewhere sends all requests to a single server.
type elsewhere struct {
	to   *url.URL
	next http.RoundTripper
}

func (e elsewhere) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host = e.to.Scheme, e.to.Host
	return e.next.RoundTrip(r)
}

// T23: a proxy that forwards a response's header only with its first byte, as HTTP/2 proxies
// do, does not delay a stream that has nothing to send yet.
func TestIdleStreamThroughProxy(t *testing.T) {
	backend := httptest.NewServer(newHandler(t, tools(), nil))
	t.Cleanup(backend.Close)
	to, err := url.Parse(backend.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		FlushInterval: -1,
		ModifyResponse: func(res *http.Response) error {
			body := bufio.NewReader(res.Body)
			if res.Header.Get("Content-Type") == "text/event-stream" {
				if _, err := body.Peek(1); err != nil { // holds back the header until then
					return err
				}
			}
			res.Body = struct {
				io.Reader
				io.Closer
			}{body, res.Body}
			return nil
		},
	}
	s := serveHTTP2(t, proxy)
	h := s.open("2025-11-25")
	res := s.do(s.request(t.Context(), http.MethodGet, "", h))
	if res.StatusCode != http.StatusOK || res.ProtoMajor != 2 {
		t.Fatalf("GET: %d %s", res.StatusCode, res.Proto)
	}
	if e, ok := read(t, res).next(); !ok || e.LastEventID == "" {
		t.Errorf("the stream begins with %+v", e)
	}
	body, listen := modern("subscriptions/listen", "", `"notifications":{"toolsListChanged":true}`)
	if got := read(t, s.post(body, listen)).message(); !strings.Contains(got, "acknowledged") {
		t.Errorf("the subscription begins with %s", got)
	}
}

// T17: over HTTP/2, too, a client can close a stream while reading it, and the server
// notices.
func TestHTTP2Disconnect(t *testing.T) {
	mux := tools()
	began, ended := waiting(mux)
	s := serveHTTP2(t, newHandler(t, mux, nil))
	ctx, cancel := context.WithCancel(t.Context())
	body, h := callModern("wait")
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = s.client.Do(s.request(ctx, http.MethodPost, body, h))
	}()
	<-began
	cancel()
	<-done
	<-ended

	body, listen := modern("subscriptions/listen", "", `"notifications":{"toolsListChanged":true}`)
	res := s.post(body, listen)
	reading := make(chan struct{})
	go func() {
		defer close(reading)
		_, _ = io.Copy(io.Discard, res.Body)
	}()
	if err := res.Body.Close(); err != nil {
		t.Error(err)
	}
	<-reading
}

// T26: event streams as specified for server-sent events.
func TestEventStreams(t *testing.T) {
	for in, want := range map[string][]string{
		"data: a\n\n":                        {"a"},
		"data: a\r\n\r\n":                    {"a"},
		"data: a\r\r":                        {"a"},
		"data:a\ndata: b\n\n":                {"a\nb"},
		": comment\n\ndata: a\n\n":           {"a"},
		"id: 1\ndata:\n\ndata: a\n\n":        {"", "a"},
		"event: other\ndata: a\n\n":          {"a"},
		"retry: 10\n\ndata: a\n\n":           {"a"},
		"data: " + strings.Repeat("x", 1000): nil, // not terminated by a blank line
	} {
		var got []string
		for e, err := range sse.Read(strings.NewReader(in), nil) {
			if err != nil {
				break
			}
			got = append(got, e.Data)
		}
		if strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("%.40q is read as %q, want %q", in, got, want)
		}
	}
}

// CloseStream returns an error if there is no stream to close.
func TestCloseStreamNeedsAStream(t *testing.T) {
	mux := tools()
	mux.Tool("close", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) { return "", mcphttp.CloseStream(ctx) }, nil))
	s := serve(t, newHandler(t, mux, nil))
	body, h := callModern("close")
	for name, res := range map[string]*http.Response{"modern": s.post(body, h), "old": s.post(call(1, "close"), s.open("2025-06-18"))} {
		if got := whole(t, res).body; !strings.Contains(got, "no stream") {
			t.Errorf("%s: %s", name, got)
		}
	}
}
