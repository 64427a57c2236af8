// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

// refusals returns a mux with tools that reject calls, immediately or after streaming
// something.
func refusals() *mcp.Mux {
	mux := tools()
	scope := mcp.NewInsufficientScopeError("files:read", "files:write")
	mux.Tool("scope", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return nil, scope }))
	mux.Tool("late", mcp.HandlerFunc(func(ctx context.Context, _ *mcp.Request) (mcp.Result, error) {
		mcp.Progress(ctx, 1, 2, "")
		return nil, scope
	}))
	mux.Tool("busy", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return nil, mcp.NewRateLimitedError(11100*time.Millisecond, "not so fast")
	}))
	return mux
}

// A rejection with an HTTP equivalent also gets that HTTP status, in both eras, unless
// something else was sent before.
func TestRefusals(t *testing.T) {
	s := serve(t, newHandler(t, refusals(), nil))
	session := s.open("2025-11-25")
	const challenge = `Bearer error="insufficient_scope", scope="files:read files:write"`
	for _, c := range []struct {
		tool                  string
		modern, legacy        int
		challenge, retryAfter string
		code                  int
	}{
		{"scope", 403, 403, challenge, "", mcp.CodeInsufficientScope},
		{"busy", 429, 200, "", "12", mcp.CodeRateLimited},
		{"hello", 200, 200, "", "", 0},
	} {
		check := func(t *testing.T, got reply, status int) {
			t.Helper()
			if got.status != status || got.code(t) != c.code {
				t.Errorf("status %d, want %d: %s", got.status, status, got.body)
			}
			if got.header.Get("WWW-Authenticate") != c.challenge || got.header.Get("Retry-After") != c.retryAfter {
				t.Errorf("the header is %v", got.header)
			}
		}
		t.Run("modern/"+c.tool, func(t *testing.T) {
			body, h := callModern(c.tool)
			check(t, whole(t, s.post(body, h)), c.modern)
		})
		t.Run("legacy/"+c.tool, func(t *testing.T) {
			check(t, whole(t, s.post(call(1, c.tool), session)), c.legacy)
		})
	}
	t.Run("only event streams are accepted", func(t *testing.T) {
		body, h := callModern("scope")
		for _, got := range []reply{
			whole(t, s.post(body, with(h, header{"Accept": "text/event-stream"}))),
			whole(t, s.post(call(1, "scope"), with(session, header{"Accept": "text/event-stream"}))),
		} {
			if got.status != http.StatusForbidden || got.header.Get("WWW-Authenticate") != challenge {
				t.Errorf("%d %v %s", got.status, got.header, got.body)
			}
		}
	})
	t.Run("too late for a status", func(t *testing.T) {
		res := s.post(call(1, "late"), session)
		if all := events(t, res, 0); res.StatusCode != http.StatusOK || len(all) == 0 {
			t.Errorf("%d %v", res.StatusCode, all)
		}
	})
}

// The rejection of one message in a batch does not determine the status of the batch.
func TestRefusalInBatch(t *testing.T) {
	s := serve(t, newHandler(t, refusals(), nil))
	h := s.open("2025-03-26")
	if got := whole(t, s.post("["+call(1, "scope")+","+call(2, "hello")+"]", h)); got.status != http.StatusOK {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestWithChallenge(t *testing.T) {
	inner := newHandler(t, refusals(), nil)
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(w, mcphttp.WithChallenge(r, func(scopes []string) string { return fmt.Sprintf("Test scopes=%q", scopes) }))
	}))
	body, h := callModern("scope")
	if got := s.post(body, h).Header.Get("WWW-Authenticate"); got != `Test scopes=["files:read" "files:write"]` {
		t.Errorf("the challenge is %s", got)
	}
}

func TestRetryAfterSurvivesTheWire(t *testing.T) {
	s := serve(t, newHandler(t, refusals(), nil))
	for _, version := range []string{mcp.LatestVersion, mcp.LegacyVersions()[0]} {
		transport := mcphttp.NewTransport("http://localhost/mcp", &mcphttp.TransportOptions{Client: s.client, Logger: quiet})
		conn, err := mcp.NewClient("test", "v1", &mcp.ClientOptions{Version: version}).Connect(t.Context(), transport)
		if err != nil {
			t.Fatal(err)
		}
		_, err = conn.CallTool(t.Context(), &mcp.CallToolParams{Name: "busy"})
		if after, ok := mcp.RetryAfter(err); !ok || after != 11100*time.Millisecond {
			t.Errorf("%s: %v, %v from %v", version, after, ok, err)
		}
		_ = conn.Close()
	}
}

// A long-lived stream ends when the authentication of its caller expires. The caller resumes
// it with new credentials and misses nothing.
func TestListenEndsWithAuthentication(t *testing.T) {
	for _, version := range []string{mcp.LatestVersion, mcp.LegacyVersions()[0]} {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mux := tools()
				inner := newHandler(t, mux, nil)
				var streams atomic.Int64
				s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodGet || r.Header.Get("Mcp-Method") == mcp.MethodListen {
						streams.Add(1)
					}
					inner.ServeHTTP(w, mcphttp.WithPrincipal(r, &mcp.Principal{Subject: "ann", Expiry: time.Now().Add(time.Minute)}))
				}))
				transport := mcphttp.NewTransport("http://localhost/mcp", &mcphttp.TransportOptions{Client: s.client, Logger: quiet})
				conn, err := mcp.NewClient("test", "v1", &mcp.ClientOptions{Version: version, Logger: quiet}).Connect(t.Context(), transport)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				heard := make(chan mcp.Change, 100)
				sub, err := conn.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(c mcp.Change) { heard <- c })
				if err != nil {
					t.Fatal(err)
				}
				<-time.After(10*time.Minute + 30*time.Second)
				if n := streams.Load(); n < 8 || n > 14 {
					t.Errorf("there were %d streams in ten minutes and a half, of a minute each", n)
				}
				for len(heard) > 0 {
					<-heard
				}
				mux.Tool("new", uncalled)
				<-heard
				sub.Close()
				<-sub.Done()
			})
		})
	}
}

// A rejected page gets no reason from its browser, so the server logs the reason. A page
// cannot flood the log.
func TestFindingI10RefusalsAreLogged(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	before := slog.Default()
	slog.SetDefault(logger)
	defer slog.SetDefault(before)
	s := serve(t, mcphttp.CORS(app)(mcphttp.NewHandler(refusals(), &mcphttp.Options{Logger: logger})))
	preflight := func(origin, method string) {
		s.do(s.request(t.Context(), http.MethodOptions, "", header{"Origin": origin, "Access-Control-Request-Method": method}))
	}
	for _, tt := range []struct {
		send func()
		want string // "" for nothing
	}{
		{func() { preflight(app, "POST") }, ""},
		{func() { preflight("https://evil.example", "POST") }, `the origin \"https://evil.example\" is not one of CORS`},
		{func() { preflight(app, "PUT") }, `the method \"PUT\" is not one of the protocol`},
		{func() { s.post(initialize("2025-11-25"), header{"Origin": "https://evil.example"}) }, "is not allowed (Options.AllowedOrigins)"},
		{func() { s.post(initialize("2025-11-25"), header{"Origin": app}) }, ""},
		{func() { preflight("https://evil.example", "") }, "is not allowed (Options.AllowedOrigins)"}, // not a preflight
		{func() { s.post("{}", header{"Origin": app, "Access-Control-Request-Method": "PUT"}) }, ""},
	} {
		log.Reset()
		tt.send()
		if got := log.String(); !strings.Contains(got, tt.want) || tt.want == "" && strings.Contains(got, "refused") {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
	log.Reset()
	for range 62 {
		preflight("https://evil.example", "POST")
	}
	counts := regexp.MustCompile(`refused=\d+`).FindAllString(log.String(), -1)
	if got := strings.Join(counts, " "); got != "refused=3 refused=4 refused=5 refused=6 refused=7 refused=8 refused=9 refused=10 refused=11 refused=12 refused=13 refused=14 refused=15 refused=16 refused=32 refused=64" {
		t.Errorf("the refusals that are logged are %s", got)
	}
}

// If nothing can be sent to a client before the response, because it accepts only JSON or
// the response writer cannot flush, the call says that the client could not be asked, not
// that it did not answer.
func TestFindingZ6ClientCouldNotBeAsked(t *testing.T) {
	h := newHandler(t, tools(), nil)
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Dull") != "" {
			w = dullWriter{w}
		}
		h.ServeHTTP(w, r)
	}))
	session := s.open("2025-11-25")
	for name, more := range map[string]header{"only JSON": {"Accept": "application/json"}, "a writer without Flush": {"X-Dull": "true"}} {
		res := whole(t, s.post(call(1, "ask"), with(session, more)))
		if !strings.Contains(res.body, "the client could not be asked a question") || !strings.Contains(res.body, `"isError":true`) {
			t.Errorf("%s: %s", name, res.body)
		}
	}
}
