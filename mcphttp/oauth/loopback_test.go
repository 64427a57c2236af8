// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/mcphttp/oauth"
)

// visitReally acts as a user at a real server.
func visitReally(ctx context.Context, to string) (url.Values, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, to, nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	res.Body.Close()
	back, err := res.Location()
	if err != nil {
		return nil, err
	}
	return back.Query(), nil
}

// browse requests a page and returns its status and text.
func browse(t *testing.T, method, to string) (int, string) {
	t.Helper()
	req, _ := http.NewRequest(method, to, nil)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	for name, want := range map[string]string{
		"Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
		"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
	} {
		if got := res.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if res.StatusCode == http.StatusBadRequest && string(text) != "This is not the expected response.\n" {
		t.Errorf("the page says %q", text)
	}
	return res.StatusCode, string(text)
}

func TestLoopback(t *testing.T) {
	var way oauth.Redirect
	opened := 0
	l := &oauth.Loopback{OpenBrowser: func(_ context.Context, to string) error {
		opened++
		if to != "https://login.example/authorize?state=s1" {
			t.Errorf("opened %q", to)
		}
		back := way.RedirectURI()
		go func() {
			for _, wrong := range []struct {
				method, to string
				status     int
			}{
				{"GET", back + "?state=s2&code=evil", 400},
				{"GET", back + "?code=evil", 400},
				{"GET", back, 400},
				{"POST", back + "?state=s1&code=evil", 405},
				{"GET", strings.Replace(back, "/callback", "/", 1) + "?state=s1&code=evil", 404},
			} {
				if status, text := browse(t, wrong.method, wrong.to); status != wrong.status || strings.Contains(text, "evil") {
					t.Errorf("%s %s: %d %q", wrong.method, wrong.to, status, text)
				}
			}
			if status, text := browse(t, "GET", back+"?state=s1&code=c&iss=i"); status != 200 || !strings.Contains(text, "close this page") {
				t.Errorf("%d %q", status, text)
			}
		}()
		return nil
	}}
	var err error
	if way, err = l.Open(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(way.RedirectURI(), "http://127.0.0.1:") || !strings.HasSuffix(way.RedirectURI(), "/callback") {
		t.Errorf("redirect URI %q", way.RedirectURI())
	}
	params, err := way.Authorize(t.Context(), "https://login.example/authorize?state=s1")
	if err != nil || params.Get("code") != "c" || params.Get("iss") != "i" || opened != 1 {
		t.Errorf("%v, %v", params, err)
	}
	before := way.RedirectURI()
	way.Close()

	// The next one listens at the registered port.
	again, err := l.Open(t.Context(), before)
	if err != nil || again.RedirectURI() != before {
		t.Errorf("%v, %v; want %q", again, err, before)
	}
	// Unless the port is taken.
	third, err := l.Open(t.Context(), before)
	if err != nil || third.RedirectURI() == before {
		t.Errorf("%v, %v", third, err)
	}
	again.Close()
	third.Close()
	// Or belongs to another URI.
	for _, other := range []string{
		strings.Replace(before, "http:", "https:", 1), strings.Replace(before, "127.0.0.1", "localhost", 1), strings.Replace(before, "/callback", "/other", 1), "http://[",
	} {
		fourth, err := l.Open(t.Context(), other)
		if err != nil || fourth.RedirectURI() == before {
			t.Fatalf("%s: %v, %v", other, fourth, err)
		}
		fourth.Close()
	}
}

// An authorization ends if its redirect is closed, or if there is no browser.
func TestLoopbackEnds(t *testing.T) {
	var way oauth.Redirect
	l := &oauth.Loopback{OpenBrowser: func(context.Context, string) error { return way.Close() }}
	way, err := l.Open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := way.Authorize(t.Context(), "https://login.example/"); !errors.Is(err, net.ErrClosed) || !strings.HasPrefix(err.Error(), "oauth: wait for the browser: ") {
		t.Errorf("closed: %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if way, err = (&oauth.Loopback{}).Open(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	defer way.Close()
	if _, err := way.Authorize(t.Context(), "https://login.example/"); !errors.Is(err, exec.ErrNotFound) || !strings.HasPrefix(err.Error(), "oauth: open the browser: ") {
		t.Errorf("without a browser: %v", err)
	}
}

func TestLoopbackUnsafe(t *testing.T) {
	for _, to := range []string{"javascript:alert(1)", "file:///etc/passwd", "http://login.example/", "data:text/html,x", "vbscript:x", "-h", "", "https://"} {
		l := &oauth.Loopback{OpenBrowser: func(context.Context, string) error { t.Errorf("opened %q", to); return nil }}
		way, err := l.Open(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := way.Authorize(t.Context(), to); !errors.Is(err, oauth.ErrUnsafeURL) {
			t.Errorf("%q: %v", to, err)
		}
		way.Close()
		if err := oauth.OpenBrowser(t.Context(), to); !errors.Is(err, oauth.ErrUnsafeURL) {
			t.Errorf("OpenBrowser %q: %v", to, err)
		}
	}
}

func TestLoopbackFails(t *testing.T) {
	for _, uri := range []string{"https://127.0.0.1/", "http://app.example/", "http://0.0.0.0/", "http://127.0.0.1/?x", "::", "http://127.0.0.1:99999/"} {
		if way, err := (&oauth.Loopback{RedirectURI: uri}).Open(t.Context(), ""); err == nil {
			t.Errorf("%q: %v", uri, way.RedirectURI())
		}
	}
	l := &oauth.Loopback{RedirectURI: "http://localhost:0/", OpenBrowser: func(context.Context, string) error { return errors.New("no browser") }}
	way, err := l.Open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer way.Close()
	if _, err := way.Authorize(t.Context(), "https://login.example/"); err == nil || !strings.Contains(err.Error(), "no browser") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	l = &oauth.Loopback{OpenBrowser: func(context.Context, string) error { cancel(); return nil }}
	second, err := l.Open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if _, err := second.Authorize(ctx, "https://login.example/"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// Authorizations that share a port take turns, even if they are for different transports.
func TestLoopbackPortIsShared(t *testing.T) {
	free, err := (&oauth.Loopback{}).Open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	uri := free.RedirectURI()
	free.Close()
	first, err := (&oauth.Loopback{RedirectURI: uri}).Open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := (&oauth.Loopback{RedirectURI: uri}).Open(ctx, ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the second has not waited: %v", err)
	}
	waiting := make(chan error)
	go func() {
		second, err := (&oauth.Loopback{RedirectURI: uri}).Open(t.Context(), "")
		if err == nil {
			err = second.Close()
		}
		waiting <- err
	}()
	first.Close()
	first.Close() // does nothing
	if err := <-waiting; err != nil {
		t.Error(err)
	}
}
