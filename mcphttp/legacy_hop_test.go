// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcphttp"
)

// A tap records the hops that a replica receives.
type tap struct {
	http.Handler

	mu   sync.Mutex
	hops []recordedHop
}

type recordedHop struct {
	header http.Header
	body   string
}

func (p *tap) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	p.mu.Lock()
	p.hops = append(p.hops, recordedHop{r.Header.Clone(), string(body)})
	p.mu.Unlock()
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	p.Handler.ServeHTTP(w, r)
}

// send sends a recorded hop again, changed.
func (p *tap) send(n int, change func(r *http.Request, h *recordedHop)) *httptest.ResponseRecorder {
	p.mu.Lock()
	h := recordedHop{p.hops[n].header.Clone(), p.hops[n].body}
	p.mu.Unlock()
	r := httptest.NewRequest(http.MethodPost, "/peers", nil)
	change(r, &h)
	r.Body, r.ContentLength, r.Header = io.NopCloser(strings.NewReader(h.body)), int64(len(h.body)), h.header
	w := httptest.NewRecorder()
	p.Handler.ServeHTTP(w, r)
	return w
}

// tapped returns two replicas of which the first has a session, and the hops that it receives.
func tapped(t *testing.T) (one, two *replica, hops *tap, session header) {
	t.Helper()
	f := newFleet(t, nil)
	one, two = f.add(whoami(tools()), nil), f.add(tools(), nil)
	hops = &tap{Handler: one.handler.PeerHandler()}
	f.cut(one, true)
	one.wrapPeers = func(http.Handler) http.Handler { return hops }
	f.cut(one, false)
	t.Cleanup(f.close)
	return one, two, hops, one.tryOpen(header{"User": "alice"})
}

// What does not come from a replica that has the keys, comes too late or was changed is
// refused with 403: nobody can use the peer handler to be somebody else.
func TestHopsAreChecked(t *testing.T) {
	for name, test := range map[string]struct {
		change func(r *http.Request, h *recordedHop)
		want   string
	}{
		"no seal":        {func(_ *http.Request, h *recordedHop) { h.header.Del("Psi-Peer") }, "only replicas"},
		"an empty seal":  {func(_ *http.Request, h *recordedHop) { h.header.Set("Psi-Peer", "") }, "only replicas"},
		"forged":         {func(_ *http.Request, h *recordedHop) { h.header.Set("Psi-Peer", strings.Repeat("A", 400)) }, "not sealed with a key"},
		"cut off":        {func(_ *http.Request, h *recordedHop) { h.header.Set("Psi-Peer", h.header.Get("Psi-Peer")[:200]) }, "not sealed with a key"},
		"replayed":       {func(*http.Request, *recordedHop) {}, "used before"},
		"another method": {func(r *http.Request, _ *recordedHop) { r.Method = http.MethodGet }, "is a POST"},
		"too late":       {func(*http.Request, *recordedHop) { pass(31 * time.Second) }, "too old"},
		"much too late":  {func(*http.Request, *recordedHop) { pass(time.Hour) }, "too old"},
	} {
		bubble(t, name, func(t *testing.T) {
			_, two, hops, session := tapped(t)
			whole(t, two.post(call(1, "whoami"), session))
			got := hops.send(0, test.change)
			if got.Code != http.StatusForbidden || !strings.Contains(got.Body.String(), test.want) {
				t.Errorf("got %d %s, want 403 and %q", got.Code, got.Body, test.want)
			}
		})
	}
}

// The seal binds the body: another one is refused, although the hop has not been used.
func TestHopBindsItsBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two, hops, session := tapped(t)
		hops.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }) // withholds it
		ctx, leave := context.WithCancel(t.Context())
		go func() {
			if res, err := two.client.Do(two.request(ctx, http.MethodPost, call(1, "whoami"), session)); err == nil {
				_ = res.Body.Close()
			}
		}()
		synctest.Wait()
		leave()
		hops.Handler = one.handler.PeerHandler()
		if got := hops.send(0, func(_ *http.Request, h *recordedHop) { h.body = call(1, "hello") }); got.Code != http.StatusForbidden {
			t.Errorf("with another body: %d %s", got.Code, got.Body)
		}
		if got := hops.send(0, func(*http.Request, *recordedHop) {}); !strings.Contains(got.Body.String(), "used before") {
			t.Errorf("a second try: %d %s", got.Code, got.Body)
		}
	})
}

// A hop for a process that is gone is not served by its successor, and a hop is never passed
// on a second time.
func TestHopsGoOneWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two, hops, session := tapped(t)
		whole(t, two.post(call(1, "whoami"), session))
		successor := &tap{Handler: one.fleet.add(tools(), nil).handler.PeerHandler(), hops: hops.hops}
		if got := successor.send(0, func(*http.Request, *recordedHop) {}); got.Code != http.StatusMisdirectedRequest {
			t.Errorf("at another process: %d %s", got.Code, got.Body)
		}
		// The owner has lost the session, and the record names another one by now.
		one.fleet.cut(one, true)
		whole(t, two.post(call(2, "hello"), session))
		whole(t, one.post(setLevel("error"), session)) // lets the session go
		three := one.fleet.add(tools(), nil)
		one.fleet.cut(one, false)
		if got := answersHello(t, three.site, session); got != http.StatusOK {
			t.Errorf("a call: %d", got)
		}
		if got := len(hops.hops); got != 1 {
			t.Errorf("the former owner received %d hops, want none after the first", got-1)
		}
	})
}

// Hops carry the headers of the client under the seal only.
func TestHopsHideHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, two, hops, session := tapped(t)
		whole(t, two.post(call(1, "whoami"), with(session, header{"Authorization": "Bearer of-alice", "Cookie": "a=b"})))
		for _, key := range []string{"Authorization", "Cookie", "User", "Mcp-Session-Id"} {
			if got := hops.hops[0].header.Get(key); got != "" {
				t.Errorf("%s is sent in the open: %s", key, got)
			}
		}
	})
}

// Keys can be replaced one replica at a time. Replicas without a common key do not serve each
// other, which is logged.
func TestPeerKeys(t *testing.T) {
	older, newer := []byte("the older secret of all"), []byte("the newer secret of all")
	for name, test := range map[string]struct {
		one, two [][]byte
		known    bool
	}{
		"the new one is known":     {[][]byte{older, newer}, [][]byte{older}, true},
		"the new one is used":      {[][]byte{newer, older}, [][]byte{older, newer}, true},
		"the old one is forgotten": {[][]byte{newer}, [][]byte{newer, older}, true},
		"different keys":           {[][]byte{newer}, [][]byte{older}, false},
	} {
		bubble(t, name, func(t *testing.T) {
			f := newFleet(t, nil)
			f.keys = test.one
			one := f.add(tools(), nil)
			f.keys = test.two
			two := f.add(tools(), nil)
			h := one.open("2025-11-25")
			want := http.StatusOK
			if !test.known {
				want = http.StatusNotFound
			}
			if got := answersHello(t, two.site, h); got != want {
				t.Errorf("a call: %d, want %d", got, want)
			}
			if n := count(one.handler) + count(two.handler); n != 1 {
				t.Errorf("there are %d sessions", n)
			}
			f.close()
		})
	}
}

// A URL at which something else answers is reported, and the session goes on without its
// owner.
func TestPeerHandlerIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logged
		f := newFleet(t, nil)
		one := f.add(tools(), nil)
		f.cut(one, true)
		one.wrapPeers = func(http.Handler) http.Handler { return http.NotFoundHandler() }
		f.cut(one, false)
		two := f.add(tools(), &mcphttp.Options{Logger: logger(&log)})
		h := one.open("2025-11-25")
		if got := answersHello(t, two.site, h); got != http.StatusOK {
			t.Errorf("a call: %d", got)
		}
		if got := log.String(); !strings.Contains(got, "its PeerHandler must be at the URL") || !strings.Contains(got, "404 page not found") {
			t.Errorf("the log is %s", got)
		}
		f.close()
	})
}

// A request whose headers do not fit into a hop is refused.
func TestHopOfLargeHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, nil)
		one, two := f.pair()
		h := one.open("2025-11-25")
		for size, want := range map[int]int{100_000: http.StatusOK, 600_000: http.StatusRequestHeaderFieldsTooLarge} {
			if got := answersHello(t, two.site, with(h, header{"Large": strings.Repeat("x", size)})); got != want {
				t.Errorf("a header of %d bytes: %d, want %d", size, got, want)
			}
		}
		f.close()
	})
}

// The claims of a caller reach the owner with the types that package auth gives them. A claim
// that cannot be passed on fails the request.
func TestHopCarriesClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, nil)
		claims := map[string]any{"list": []any{"a", 1.5}, "large": 12.0}
		f.wrap = func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				h.ServeHTTP(w, mcphttp.WithPrincipal(r, &mcp.Principal{Subject: "alice", Scopes: []string{"x"}, Claims: claims, Expiry: time.Now().Add(time.Hour)}))
			})
		}
		mux, seen := tools(), make(chan *mcp.Principal, 1)
		mux.Tool("seen", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
			seen <- mcp.PrincipalFromContext(ctx)
			return "", nil
		}, nil))
		one, two := f.add(mux, nil), f.add(tools(), nil)
		h := one.open("2025-11-25")
		whole(t, two.post(call(1, "seen"), h))
		p := within(t, time.Minute, "the caller", seen)
		if !p.HasScope("x") || p.Expiry.IsZero() || p.Claims["large"] != 12.0 || p.Claims["list"].([]any)[1] != 1.5 {
			t.Errorf("the handler sees %+v", p)
		}
		claims["bad"] = func() {}
		if got := whole(t, two.post(call(1, "seen"), h)); got.status != http.StatusInternalServerError || !strings.Contains(got.body, "cannot be passed on") {
			t.Errorf("got %d %s", got.status, got.body)
		}
		f.close()
	})
}

// Options that cannot work panic with the remedy.
func TestSharedSessionsAreComplete(t *testing.T) {
	complete := mcphttp.SharedSessions{Values: store.NewMemory(nil), URL: "http://10.1.2.3/", Keys: [][]byte{sharedKey}}
	for want, change := range map[string]func(s *mcphttp.SharedSessions){
		"values are missing":  func(s *mcphttp.SharedSessions) { s.Values = nil },
		"keys are missing":    func(s *mcphttp.SharedSessions) { s.Keys = nil },
		"want at least 16":    func(s *mcphttp.SharedSessions) { s.Keys = [][]byte{[]byte("short")} },
		`the URL is ""`:       func(s *mcphttp.SharedSessions) { s.URL = "" },
		`the URL is "/peers"`: func(s *mcphttp.SharedSessions) { s.URL = "/peers" },
		"ftp":                 func(s *mcphttp.SharedSessions) { s.URL = "ftp://10.1.2.3/" },
	} {
		t.Run(want, func(t *testing.T) {
			shared := complete
			change(&shared)
			defer func() {
				if got, _ := recover().(string); !strings.Contains(got, want) || !strings.HasPrefix(got, "mcphttp: Options.Sessions.Shared: ") {
					t.Errorf("the panic is %q", got)
				}
			}()
			mcphttp.NewHandler(tools(), &mcphttp.Options{Sessions: mcphttp.SessionOptions{Shared: &shared}})
		})
	}
}

// Without shared sessions, the peer handler refuses everything.
func TestPeerHandlerWithoutPeers(t *testing.T) {
	w := httptest.NewRecorder()
	newHandler(t, tools(), nil).PeerHandler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", nil))
	if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "Options.Sessions.Shared") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}
