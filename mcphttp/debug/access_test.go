// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package debug_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp/debug"
)

// arrival describes how a request arrives.
type arrival struct {
	local, remote, host, method string
	header                      map[string]string
}

// status returns the status of the response to a request.
func (a arrival) status(t *testing.T, h http.Handler) int {
	t.Helper()
	method := a.method
	if method == "" {
		method = http.MethodGet
	}
	r := httptest.NewRequestWithContext(t.Context(), method, "http://"+a.host+"/debug/mcp", nil)
	r.RemoteAddr = a.remote
	for k, v := range a.header {
		r.Header.Set(k, v)
	}
	if a.local != "" {
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.ParseIP(a.local), Port: 80})))
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

func TestAccess(t *testing.T) {
	const local, here, there = "127.0.0.1", "127.0.0.1:4711", "192.0.2.7:4711"
	refused, badAction := http.StatusForbidden, http.StatusBadRequest
	own := map[string]string{"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"}
	h := debug.NewHandler(newMux(t), &debug.Options{Logger: quiet})
	for what, test := range map[string]struct {
		arrival

		want int
	}{
		"this machine":                      {arrival{local, here, "localhost", "", nil}, 200},
		"this machine, IPv6":                {arrival{"::1", "[::1]:4711", "[::1]:8080", "", nil}, 200},
		"a script of the page":              {arrival{local, here, "localhost", "", own}, 200},
		"an address in the bar":             {arrival{local, here, "localhost", "", map[string]string{"Sec-Fetch-Site": "none"}}, 200},
		"a form of the page":                {arrival{local, here, "localhost", "POST", own}, badAction},
		"a program":                         {arrival{local, here, "localhost", "POST", nil}, badAction},
		"another machine":                   {arrival{"192.0.2.1", there, "localhost", "", nil}, refused},
		"another machine, says middleware":  {arrival{local, there, "localhost", "", nil}, refused},
		"this machine, says middleware":     {arrival{"192.0.2.1", here, "localhost", "", nil}, refused},
		"an unknown connection":             {arrival{"", here, "localhost", "", nil}, refused},
		"forwarded":                         {arrival{local, here, "localhost", "", map[string]string{"X-Forwarded-For": "127.0.0.1"}}, refused},
		"a name that was rebound":           {arrival{local, here, "evil.example", "", nil}, refused},
		"a name that was rebound, own page": {arrival{local, here, "evil.example", "", map[string]string{"Origin": "http://evil.example", "Sec-Fetch-Site": "same-origin"}}, refused},
		"another site":                      {arrival{local, here, "localhost", "", map[string]string{"Sec-Fetch-Site": "cross-site"}}, refused},
		"another site, a form":              {arrival{local, here, "localhost", "POST", map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}}, refused},
		"another port":                      {arrival{local, here, "localhost", "POST", map[string]string{"Sec-Fetch-Site": "same-site", "Origin": "http://localhost:81"}}, refused},
		"another port, an old browser":      {arrival{local, here, "localhost", "POST", map[string]string{"Origin": "http://localhost:81"}}, refused},
		"another origin, an old browser":    {arrival{local, here, "localhost", "", map[string]string{"Origin": "https://evil.example"}}, refused},
		"no origin":                         {arrival{local, here, "localhost", "POST", map[string]string{"Origin": "null"}}, refused},
		"another method":                    {arrival{local, here, "localhost", "DELETE", nil}, http.StatusMethodNotAllowed},
	} {
		t.Run(what, func(t *testing.T) {
			if got := test.status(t, h); got != test.want {
				t.Errorf("%d, want %d", got, test.want)
			}
		})
	}
}

// If set, Options.Authorize replaces the check of the address, and names the caller.
func TestAuthorize(t *testing.T) {
	called := make(chan *mcp.Principal, 1)
	mux := newMux(t)
	mux.Tool("who", mcp.ToolFunc(func(ctx context.Context, _ empty) (string, error) {
		called <- mcp.PrincipalFromContext(ctx)
		return "", nil
	}, nil))
	h := debug.NewHandler(mux, &debug.Options{Logger: quiet, AllowedHosts: []string{"mcp.example.com"}, Authorize: func(r *http.Request) (*mcp.Principal, error) {
		if user, _, ok := r.BasicAuth(); ok {
			return &mcp.Principal{Issuer: "https://id.example.com", Subject: user}, nil
		}
		return nil, errors.New("nobody")
	}})
	if got := (arrival{"192.0.2.1", "192.0.2.7:4711", "mcp.example.com", "", nil}).status(t, h); got != http.StatusForbidden {
		t.Error(got)
	}
	form := url.Values{"action": {"call"}, "kind": {"tool"}, "name": {"who"}}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "https://mcp.example.com/debug/mcp", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth("ada", "")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if p := <-called; w.Code != http.StatusSeeOther || p.Subject != "ada" {
		t.Error(w.Code, p)
	}
}

// By default, calls of the page have their own principal, which appears in logs.
func TestPagePrincipal(t *testing.T) {
	called := make(chan *mcp.Principal, 1)
	mux := newMux(t)
	mux.Tool("who", mcp.ToolFunc(func(ctx context.Context, _ empty) (string, error) {
		called <- mcp.PrincipalFromContext(ctx)
		return "", nil
	}, nil))
	serve(t, mux, nil).post(url.Values{"action": {"call"}, "kind": {"tool"}, "name": {"who"}})
	if p := <-called; p == nil || p.Issuer != "psi/debug" || p.Subject != "debug page" {
		t.Error(p)
	}
}

func TestHeaders(t *testing.T) {
	s := serve(t, newMux(t), nil)
	for _, query := range []string{"", "?static=page.js", "?view=nothing", "?format=json"} {
		res, body := s.do(s.request(http.MethodGet, query, nil))
		policy := res.Header.Get("Content-Security-Policy")
		wantIn(t, policy, "default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'")
		if strings.Contains(policy, "unsafe") {
			t.Error(policy)
		}
		if res.Header.Get("X-Content-Type-Options") != "nosniff" || res.Header.Get("Cache-Control") != "no-store" {
			t.Error(res.Header)
		}
		if query == "" && (strings.Contains(body, "<style") || strings.Count(body, "<script") != 1) {
			t.Error("there are scripts or styles in the page")
		}
	}
	for _, name := range []string{"", "page.html", "../debug.go", "overview.html", "static/page.js"} {
		if res, _ := s.do(s.request(http.MethodGet, "?static="+url.QueryEscape(name), nil)); res.StatusCode != http.StatusNotFound {
			t.Errorf("%q: %s", name, res.Status)
		}
	}
}

// Text from a server never becomes part of the page's markup.
func TestEscaped(t *testing.T) {
	const evil = `"><script>alert(1)</script><img src=x onerror=alert(1)>`
	mux := mcp.NewMux(evil, evil, &mcp.MuxOptions{Logger: quiet, Title: evil, Instructions: evil})
	mux.Tool("evil", mcp.ToolFunc(func(ctx context.Context, _ struct {
		A string `json:"a,omitempty"`
	}) (*mcp.CallToolResult, error) {
		if err := mcp.ElicitURL(ctx, "url", evil, "https://example.com/?"+url.QueryEscape(evil)); err != nil {
			return nil, fmt.Errorf("%s: %w", evil, err)
		}
		return &mcp.CallToolResult{Content: mcp.Contents{
			mcp.Text(evil), &mcp.ImageContent{Data: []byte(evil), MIMEType: "image/svg+xml"}, &mcp.ImageContent{Data: []byte(evil), MIMEType: evil},
			&mcp.ImageContent{Data: []byte(evil), MIMEType: "image/png"},
			&mcp.ResourceLink{Resource: mcp.Resource{URI: "javascript:alert(1)", Name: evil}},
		}}, nil
	}, &mcp.Tool{Title: evil, Description: evil, Meta: mcp.Meta{"evil": []byte(`"<script>"`)}}))
	s := serve(t, mux, &debug.Options{Values: true})
	s.page("")
	r := s.post(url.Values{"action": {"call"}, "kind": {"tool"}, "name": {"evil"}, "f.a": {evil}})
	asking := s.page("?view=run&id=" + s.wait(r.ID, "asking").ID)
	r = s.post(url.Values{"action": {"answer"}, "id": {r.ID}, "question": {"1"}, "answer": {"accept"}})
	s.wait(r.ID, "ok")
	for _, body := range []string{s.page(""), s.page("?view=registered"), s.page("?view=item&kind=tool&name=evil"), asking, s.page("?view=run&id=" + r.ID), s.page("?view=request&number=1")} {
		for _, bad := range []string{"<script>alert", "<img src=x", `href="javascript:`, "image/svg+xml;base64"} {
			if strings.Contains(body, bad) {
				t.Errorf("there is %q in\n%s", bad, body)
			}
		}
	}
	wantIn(t, s.page("?view=run&id="+r.ID), `src="data:image/png;base64,`)
}

func TestReadOnly(t *testing.T) {
	s := serve(t, newMux(t), &debug.Options{ReadOnly: true})
	if strings.Contains(s.page("?view=item&kind=tool&name=add"), "<form") {
		t.Error("there is a form")
	}
	if res, _ := s.do(s.request(http.MethodPost, "", url.Values{"action": {"call"}, "kind": {"tool"}, "name": {"add"}})); res.StatusCode != http.StatusForbidden {
		t.Error(res.Status)
	}
}
