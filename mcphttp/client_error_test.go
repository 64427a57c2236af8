// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/middleware"
)

// T61, for the transport: which responses come from a server that does not support the
// modern era, and which are responses to the call.
func TestTransportRefusals(t *testing.T) {
	problem := func(code int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":"no"}}`, code)
	}
	tests := []struct {
		status       int
		body         string
		modern       error // nil is a response, or an error that is none of these
		code, legacy int   // of the response; 0 if there is none
	}{
		{400, "", transport.ErrNotUnderstood, 0, 0},
		{400, "Bad Request", transport.ErrNotUnderstood, 0, 0},
		{400, problem(-32000), transport.ErrNotUnderstood, 0, -32000},
		{400, problem(-32600), transport.ErrNotUnderstood, 0, -32600},
		{400, problem(-32602), transport.ErrNotUnderstood, 0, -32602},
		{400, problem(-32020), nil, -32020, -32020},
		{400, problem(-32021), nil, -32021, -32021},
		{400, problem(-32022), nil, -32022, -32022},
		{400, `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32022,"message":"no"}}`, nil, -32022, -32022},
		{400, problem(-32601), transport.ErrNotUnderstood, 0, -32601},
		{404, problem(-32601), nil, -32601, -32601},
		{404, problem(-32600), transport.ErrNotUnderstood, 0, -32600},
		{404, "404 page not found", transport.ErrNotUnderstood, 0, 0},
		{405, "", transport.ErrNotUnderstood, 0, 0},
		{406, "", transport.ErrNotUnderstood, 0, 0},
		{415, "", transport.ErrNotUnderstood, 0, 0},
		{401, "", mcp.ErrUnauthorized, 0, 0},
		{401, problem(-32001), mcp.ErrUnauthorized, 0, 0},
		{403, "", mcp.ErrUnauthorized, 0, 0},
		{403, problem(-32600), nil, -32600, -32600},
		{408, "", nil, 0, 0},
		{429, "", nil, 0, 0},
		{500, "oops", mcp.ErrUnreadable, 0, 0},
		{500, problem(-32603), nil, -32603, -32603},
		{503, problem(-32603), nil, -32603, -32603},
		{502, "Bad Gateway", nil, 0, 0},
		{200, "", mcp.ErrUnreadable, 0, 0},
		{200, "<html>", mcp.ErrUnreadable, 0, 0},
		{200, problem(-32601), nil, -32601, -32601},
		{202, "", mcp.ErrUnreadable, 0, 0},
		{204, "", mcp.ErrUnreadable, 0, 0},
	}
	kinds := []error{transport.ErrNotUnderstood, mcp.ErrUnauthorized, mcp.ErrSessionLost, mcp.ErrUnreadable}
	for _, test := range tests {
		t.Run(fmt.Sprint(test.status, test.body), func(t *testing.T) {
			l := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("WWW-Authenticate", map[int]string{401: `Bearer scope="a"`}[test.status])
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			})).link(nil)
			check := func(version string, code int, kind error) {
				r, err := l.Call(t.Context(), toolCall(7, version, "a"))
				switch {
				case code != 0 && (err != nil || r.Error == nil || r.Error.Code != code || r.ID != mcp.IntID(7)):
					t.Errorf("%s: %+v, %v; want the code %d", version, r, err, code)
				case code == 0 && err == nil:
					t.Errorf("%s: %+v; want an error", version, r)
				}
				for _, k := range kinds {
					if is, want := errors.Is(err, k), errors.Is(kind, k); is != want {
						t.Errorf("%s: errors.Is(%v, %v) is %t", version, err, k, is)
					}
				}
				var status *mcphttp.StatusError
				if err != nil && test.status >= 300 && (!errors.As(err, &status) || status.Status != test.status || status.Body != test.body) {
					t.Errorf("%s: %v has no status", version, err)
				}
			}
			check(mcp.LatestVersion, test.code, test.modern)
			kind := test.modern
			if errors.Is(kind, transport.ErrNotUnderstood) || test.status == 500 {
				kind = nil
			}
			check("2025-11-25", test.legacy, kind)
		})
	}
}

// The text of a StatusError contains the status, and its name if it has one.
func TestStatusErrorText(t *testing.T) {
	for want, e := range map[string]*mcphttp.StatusError{
		"mcphttp: the server answered 502 Bad Gateway":         {Status: 502},
		"mcphttp: the server answered 599":                     {Status: 599},
		`mcphttp: the server answered 599: "busy"`:             {Status: 599, Body: " busy\n"},
		`mcphttp: the server answered 502 Bad Gateway: "busy"`: {Status: 502, Body: "busy"},
	} {
		if got := e.Error(); got != want {
			t.Errorf("%d: %s, want %s", e.Status, got, want)
		}
	}
}

// The error contains the server's challenge. A long body is truncated.
func TestTransportUnauthorized(t *testing.T) {
	l := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope"`)
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, strings.Repeat("x", 1<<20))
	})).link(nil)
	for _, version := range both {
		_, callErr := l.Call(t.Context(), toolCall(1, version, "a"))
		sendErr := l.Send(t.Context(), &transport.Outgoing{Method: "notifications/initialized", Version: version, Body: []byte("{}")})
		for _, err := range []error{callErr, sendErr} {
			var status *mcphttp.StatusError
			if !errors.Is(err, mcp.ErrUnauthorized) || !errors.As(err, &status) {
				t.Fatalf("%s: %v", version, err)
			}
			if !strings.Contains(status.Header.Get("WWW-Authenticate"), "insufficient_scope") || len(status.Body) > 4<<10 || len(err.Error()) > 500 {
				t.Errorf("%s: %.600s", version, err)
			}
		}
	}
}

// Any 2xx status accepts a notification.
func TestTransportSend(t *testing.T) {
	for _, version := range both {
		for status, fine := range map[int]bool{200: true, 202: true, 204: true, 400: false, 500: false, 302: false} {
			l := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(status) })).link(nil)
			err := l.Send(t.Context(), &transport.Outgoing{Method: "notifications/progress", Version: version, Body: []byte("{}")})
			var refusal *mcphttp.StatusError
			if (err == nil) != fine || (!fine && (!errors.As(err, &refusal) || refusal.Status != status)) {
				t.Errorf("%s: after %d: %v", version, status, err)
			}
		}
	}
}

// A redirect within the server's origin is followed if it preserves the method. No message
// and no header is sent elsewhere.
func TestTransportRedirects(t *testing.T) {
	var leaked []string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leaked = append(leaked, r.Method+" "+r.Header.Get("X-Secret"))
	}))
	t.Cleanup(elsewhere.Close)
	home := http.NewServeMux()
	home.Handle("/mcp", newHandler(t, tools(), nil))
	home.HandleFunc("/moved/{status}/{to...}", func(w http.ResponseWriter, r *http.Request) {
		var status int
		_, _ = fmt.Sscan(r.PathValue("status"), &status)
		to, err := url.PathUnescape(r.PathValue("to"))
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Location", to)
		w.WriteHeader(status)
	})
	server := httptest.NewServer(home)
	t.Cleanup(server.Close)
	tests := []struct {
		status int
		to     string
		fine   bool
	}{
		{307, "/mcp", true}, {308, server.URL + "/mcp", true},
		{301, "/mcp", false}, {302, "/mcp", false}, {303, "/mcp", false},
		{307, elsewhere.URL, false}, {308, elsewhere.URL, false}, {302, elsewhere.URL, false},
	}
	for _, test := range tests {
		opts := &mcphttp.TransportOptions{Header: http.Header{"X-Secret": {"secret"}}, Logger: quiet}
		at := fmt.Sprintf("%s/moved/%d/%s", server.URL, test.status, url.PathEscape(test.to))
		w, err := mcphttp.NewTransport(at, opts).Connect(t.Context(), func(*transport.Message) {})
		if err != nil {
			t.Fatal(err)
		}
		r, err := w.Call(t.Context(), toolCall(1, mcp.LatestVersion, "hello"))
		if (err == nil) != test.fine || (err == nil && r.Error != nil) {
			t.Errorf("%d to %s: %+v, %v", test.status, test.to, r, err)
		}
		var status *mcphttp.StatusError
		if !test.fine && (!errors.As(err, &status) || !strings.Contains(err.Error(), test.to) || errors.Is(err, transport.ErrNotUnderstood)) {
			t.Errorf("%d to %s: the error is %v", test.status, test.to, err)
		}
		_ = w.Close()
	}
	if len(leaked) > 0 {
		t.Errorf("another origin got %v", leaked)
	}
}

// The client's own CheckRedirect applies within the origin. Without one, a redirect loop
// ends.
func TestTransportRedirectRule(t *testing.T) {
	s := serve(t, http.RedirectHandler("/mcp", http.StatusTemporaryRedirect))
	if _, err := s.link(nil).Call(t.Context(), toolCall(1, mcp.LatestVersion, "a")); err == nil || !strings.Contains(err.Error(), "10 redirects") {
		t.Errorf("a circle: %v", err)
	}
	never := errors.New("never")
	client := *s.client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return never }
	if _, err := s.link(&mcphttp.TransportOptions{Client: &client}).Call(t.Context(), toolCall(1, mcp.LatestVersion, "a")); !errors.Is(err, never) {
		t.Errorf("a rule: %v", err)
	}
}

// Invalid server URLs are rejected before anything is sent.
func TestTransportURL(t *testing.T) {
	for _, bad := range []string{"", "localhost:8080/mcp", "/mcp", "ftp://localhost/mcp", "http://", "http://a b/"} {
		for _, to := range []transport.Transport{mcphttp.NewTransport(bad, nil), mcphttp.NewSSETransport(bad, nil)} {
			if _, err := to.Connect(t.Context(), nil); err == nil {
				t.Errorf("%q was taken", bad)
			}
		}
	}
}

// A proxy or rate limiter says in Retry-After when to try again: in seconds or with a date, and
// with or without a JSON-RPC error. middleware.Retry follows it.
func TestFindingY16RetryAfterOfAStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		date := func(after time.Duration) string { return time.Now().Add(after).UTC().Format(http.TimeFormat) }
		for header, want := range map[string]time.Duration{
			"7": 7 * time.Second, "0": 0, "99999999999999999999": 24 * time.Hour, "86401": 24 * time.Hour,
			date(time.Minute): time.Minute, date(-time.Minute): 0, date(48 * time.Hour): 24 * time.Hour,
			"": -1, "soon": -1, "-1": -1, "1.5": -1,
		} {
			for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusInternalServerError} {
				for _, body := range []string{"busy", `{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"busy"}}`} {
					l := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
						w.Header().Set("Retry-After", header)
						answers(status, body)(w, nil)
					})).link(nil)
					for _, version := range []string{mcp.LatestVersion, "2025-11-25"} {
						r, err := l.Call(t.Context(), toolCall(1, version, "hello"))
						if err == nil {
							err = r.Error
						}
						after, ok := mcp.RetryAfter(err)
						if says := want >= 0 && (status == 429 || status == 503); ok != says || says && after != want {
							t.Errorf("%s, %d with %q and %s: %v, %t", version, status, header, body, after, ok)
						}
					}
				}
			}
		}
	})
}

// The client waits as long as the server demands, and no longer than its caller allows.
func TestFindingY16RetryWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		endpoint, busy := newHandler(t, tools(), nil), 2
		s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if strings.Contains(string(body), "tools/list") && busy > 0 {
				busy--
				w.Header().Set("Retry-After", "3")
				answers(http.StatusTooManyRequests, "slow down")(w, r)
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			endpoint.ServeHTTP(w, r)
		}))
		c, err := mcp.NewClient("test", "v1", &mcp.ClientOptions{Logger: quiet}).Connect(t.Context(), mcphttp.NewTransport("http://localhost/mcp", s.options(nil)))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.Use(middleware.Retry(nil))
		start := time.Now()
		if _, err := c.ListTools(t.Context(), nil); err != nil || time.Since(start) < 6*time.Second || time.Since(start) > 8*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}

// A gateway whose upstream is limited does not tell its caller that the caller is.
func TestFindingY16LimitOfAnUpstream(t *testing.T) {
	for code, want := range map[int]int{mcp.CodeInternalError: http.StatusOK, mcp.CodeRateLimited: http.StatusTooManyRequests} {
		mux := tools()
		mux.Tool("limited", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
			limited := &mcphttp.StatusError{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"3"}}}
			return nil, mcp.Errorf(code, "no: %w", limited)
		}))
		body, h := modern("tools/call", "limited", `"name":"limited"`)
		res := serve(t, newHandler(t, mux, &mcphttp.Options{Logger: quiet})).post(body, h)
		if after := res.Header.Get("Retry-After"); res.StatusCode != want || (after == "3") != (want == http.StatusTooManyRequests) {
			t.Errorf("%d: status %d, Retry-After %q", code, res.StatusCode, after)
		}
	}
}
