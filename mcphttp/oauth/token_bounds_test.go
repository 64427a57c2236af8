// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcphttp/oauth"
)

// A token is renewed ten seconds before it expires, or when a tenth of its lifetime is left
// if that is less. Without a lifetime, it is used until the server rejects it.
func TestTokenLifeBounds(t *testing.T) {
	for _, c := range []struct {
		expiresIn any
		life      time.Duration // 0 means forever
	}{
		{3600, 3590 * time.Second}, {"3600", 3590 * time.Second}, {100, 90 * time.Second}, {50, 45 * time.Second}, {0.5, 450 * time.Millisecond},
		{10 * 365 * 24 * 3600, 10*365*24*time.Hour - 10*time.Second}, {1e300, 10*365*24*time.Hour - 10*time.Second},
		{0, 0}, {-1, 0}, {"soon", 0}, {nil, 0}, {"NaN", 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.login.refresh, w.login.lifetime = "r", c.expiresIn
			rt := w.transport(nil)
			w.mustPost(rt, "", served)
			if c.life == 0 {
				<-time.After(time.Hour)
			} else {
				<-time.After(c.life - 1)
			}
			w.mustPost(rt, "", served)
			w.wantRefreshes(0)
			if c.life > 0 {
				<-time.After(1)
				w.mustPost(rt, "", served)
				w.wantRefreshes(1)
			}
			if t.Failed() {
				t.Errorf("that was with expires_in %v", c.expiresIn)
			}
			rt.Close()
		})
	}
}

// A token must fit in a header: 64 KiB of visible characters.
func TestAccessTokenBounds(t *testing.T) {
	for token, good := range map[string]bool{
		"!": true, "~": true, strings.Repeat("t", 64<<10): true, strings.Repeat("t", 64<<10+1): false,
		"": false, "a b": false, "a\x7f": false, "ä": false,
	} {
		w := newWorld(t)
		w.login.answers = func(_ url.Values, answer map[string]any) {
			answer["access_token"] = token
			w.login.valid[token] = ""
		}
		if got, err := post(t.Context(), w.transport(nil), "", "hello"); (err == nil && got == served) != good {
			t.Errorf("%.20q, %d bytes: %q, %v", token, len(token), got, err)
		}
	}
}

// At most 16 KiB of a challenge header are read, with at most 16 challenges and 64
// parameters for each.
func TestChallengeBounds(t *testing.T) {
	parse := func(lines ...string) []oauth.Challenge {
		return oauth.ParseChallenges(http.Header{"Www-Authenticate": lines})
	}
	for size, read := range map[int]int{16 << 10: 1, 16<<10 + 1: 0} {
		line := `Bearer a="` + strings.Repeat("x", size-len(`Bearer a=""`)) + `"`
		if got := parse(line); len(got) != read {
			t.Errorf("%d bytes: %d challenges", size, len(got))
		}
		if got := parse(line[:5000]+`"`, `Bearer a="`+strings.Repeat("x", size-5001-len(`Bearer a=""`))+`"`); len(got) != 1+read {
			t.Errorf("%d bytes in two lines: %d challenges", size, len(got))
		}
	}
	for n, read := range map[int]int{16: 16, 17: 16} {
		if got := parse(strings.TrimSuffix(strings.Repeat("Bearer a=b, ", n), ", ")); len(got) != read {
			t.Errorf("%d challenges: %d were read", n, len(got))
		}
	}
	for n, read := range map[int]int{64: 64, 65: 64} {
		var params []string
		for i := range n {
			params = append(params, fmt.Sprintf("p%d=x", i))
		}
		if got := parse("Bearer " + strings.Join(params, ", ")); len(got) != 1 || len(got[0].Params) != read {
			t.Errorf("%d parameters: %v", n, got)
		}
	}
}

// A scope has at most 256 visible characters and no quotation marks, and at most a hundred
// scopes are requested at once.
func TestScopeBounds(t *testing.T) {
	requested := func(scope string) []string {
		w := newWorld(t)
		w.server.challenge = `Bearer scope="` + scope + `", resource_metadata="` + origin(serverURL) + `/.well-known/oauth-protected-resource/mcp"`
		w.mustPost(w.transport(nil), "", served)
		return strings.Fields(w.login.authorizations()[0].Get("scope"))
	}
	for size, read := range map[int]int{256: 1, 257: 0} {
		if got := requested(strings.Repeat("s", size)); len(got) != read {
			t.Errorf("%d bytes: requested %q", size, got)
		}
	}
	for n, read := range map[int]int{100: 100, 101: 100} {
		var scopes []string
		for i := range n {
			scopes = append(scopes, fmt.Sprint("s", i))
		}
		if got := requested(strings.Join(scopes, " ")); len(got) != read {
			t.Errorf("%d scopes: requested %d", n, len(got))
		}
	}
	if got := requested("! ~ a\x7f ä a"); strings.Join(got, " ") != "! ~ a" {
		t.Errorf("requested %q", got)
	}
}

// The application type of a registration follows from its redirect URI.
func TestApplicationType(t *testing.T) {
	for uri, want := range map[string]string{
		"https://app.example/cb": "web", "https://localhost/cb": "native", "http://127.0.0.1:1/cb": "native", "http://localhost:1/cb": "native",
		"com.example.app:/cb": "native",
	} {
		w := newWorld(t)
		grant := &oauth.AuthorizationCode{Redirector: oauth.NewRedirector(uri, w.visit)}
		w.mustPost(w.transport(&oauth.Options{Grant: grant}), "", served)
		if got := w.login.clients[0]["application_type"]; got != want {
			t.Errorf("%s: %v, want %s", uri, got, want)
		}
	}
}

// A client without a key cannot sign, and fails before anything is sent.
func TestClientWithoutKey(t *testing.T) {
	for name, key := range map[string]*oauth.Key{"none": nil, "no signer": {}} {
		w := newWorld(t)
		w.login.metadata["token_endpoint_auth_methods_supported"] = []string{"private_key_jwt"}
		rt := w.transport(&oauth.Options{Grant: &oauth.ClientCredentials{Client: oauth.Client{ID: "id", Method: "private_key_jwt", Key: key}}})
		if got, err := post(t.Context(), rt, "", "hello"); err == nil || !strings.Contains(err.Error(), "key") || len(w.login.granted("")) != 0 {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// Closing a redirect before the user has returned frees its port.
func TestLoopbackCloses(t *testing.T) {
	way, err := (&oauth.Loopback{}).Open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(way.RedirectURI())
	if err != nil {
		t.Fatal(err)
	}
	way.Close()
	if conn, err := net.Dial("tcp", u.Host); err == nil {
		conn.Close()
		t.Error("it listens")
	}
}

// countedBody counts the bytes read from a body.
type countedBody struct {
	io.Reader
	read   int
	closed bool
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.read += n
	return n, err
}

func (b *countedBody) Close() error { b.closed = true; return nil }

// The body of a rejected request is drained if little of it is left, so that its connection
// can be reused. Otherwise it is closed unread.
func TestRejectedBodyBounds(t *testing.T) {
	for size, read := range map[int]int{64 << 10: 64 << 10, 64<<10 + 1: 0} {
		w := newWorld(t)
		var first *countedBody
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			res, err := w.RoundTrip(r)
			if err == nil && res.StatusCode == http.StatusUnauthorized && first == nil {
				first = &countedBody{Reader: strings.NewReader(strings.Repeat("x", size))}
				res.Body, res.ContentLength = first, int64(size)
			}
			return res, err
		})
		for _, fails := range []bool{false, true} {
			if first = nil; fails {
				w.login.metadata["token_endpoint"] = ""
				w.store = oauth.NewMemoryStore()
				w.mustFail(w.transport(&oauth.Options{Base: base}), oauth.ErrMetadata)
			} else {
				w.mustPost(w.transport(&oauth.Options{Base: base}), "", served)
			}
			if first == nil || first.read != read || !first.closed {
				t.Errorf("%d bytes: %+v", size, first)
			}
		}
	}
}

// A body without GetBody is buffered up to 1 MiB, to be sent again with a token. A longer
// one is sent once.
func TestReplayedBodyBounds(t *testing.T) {
	for size, again := range map[int]bool{1 << 20: true, 1<<20 + 1: false} {
		for _, known := range []bool{true, false} {
			w := newWorld(t)
			rt := w.transport(nil)
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, serverURL, io.NopCloser(strings.NewReader(strings.Repeat("x", size))))
			if err != nil {
				t.Fatal(err)
			}
			if known {
				req.ContentLength = int64(size)
			}
			res, err := rt.RoundTrip(req)
			if err == nil {
				body, readErr := io.ReadAll(res.Body)
				res.Body.Close()
				if ok := res.StatusCode == http.StatusOK && len(body) == len("POST /mcp ")+size; ok != again || readErr != nil {
					t.Errorf("%d bytes, known %t: %d, %d bytes, %v", size, known, res.StatusCode, len(body), readErr)
				}
			} else if again {
				t.Errorf("%d bytes, known %t: %v", size, known, err)
			}
		}
	}
}

// The error of an unauthorized request contains a readable reason.
func TestUnauthorizedReason(t *testing.T) {
	w := newWorld(t)
	w.login.token = func(rw http.ResponseWriter, _ *http.Request) bool {
		writeJSON(rw, 400, map[string]any{"error": "invalid_grant", "error_description": "no"})
		return true
	}
	_, err := post(t.Context(), w.transport(nil), "", "hello")
	if refusal, ok := errors.AsType[*oauth.Error](err); !ok || refusal.Code != "invalid_grant" || strings.Contains(err.Error(), "%!") {
		t.Errorf("got %v", err)
	}
}

// Tokens are requested only for the URL of an HTTP server without credentials.
func TestServerURL(t *testing.T) {
	for server, good := range map[string]bool{
		"https://mcp.example/mcp": true, "https://mcp.example/mcp#x": true,
		"ftp://mcp.example/mcp": false, "mcp.example/mcp": false, "https://": false, "https://:443/": false, "https://user@mcp.example/mcp": false, "https://[": false, "": false,
	} {
		w := newWorld(t)
		w.server.url = server
		got, err := post(t.Context(), w.transport(nil), "", "hello")
		if good != (err == nil && got == served) || !good && (!strings.HasPrefix(err.Error(), "oauth: ") || len(w.log) != 0) {
			t.Errorf("%s: %q, %v, after %q", server, got, err, w.log)
		}
	}
}
