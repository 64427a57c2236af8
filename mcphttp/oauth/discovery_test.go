// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp/oauth"
)

// Metadata is looked up in these places, in this order.
func TestPlaces(t *testing.T) {
	const well = "/.well-known/"
	for name, test := range map[string]struct {
		server, challenge, issuer string
		want                      []string // paths; the last has the authorization server's metadata
	}{
		"advertised": {
			serverURL, `Bearer resource_metadata="https://mcp.example/here"`, loginURL,
			[]string{"/here", well + "oauth-authorization-server"},
		},
		"advertised with another scheme, among others": {
			serverURL, `Negotiate YWJj, Basic realm="x, y", bearer error=invalid_token , resource_metadata = "https://mcp.example/here"`, loginURL,
			[]string{"/here", well + "oauth-authorization-server"},
		},
		"by path": {
			serverURL, "Bearer", loginURL,
			[]string{well + "oauth-protected-resource/mcp", well + "oauth-authorization-server"},
		},
		"by path with a slash": {
			serverURL + "/", "Bearer", loginURL,
			[]string{well + "oauth-protected-resource/mcp/", well + "oauth-authorization-server"},
		},
		"without path": {
			"https://mcp.example", "Bearer", loginURL,
			[]string{well + "oauth-protected-resource", well + "oauth-authorization-server"},
		},
		"without path, with a slash": {
			"https://mcp.example/", "Bearer", loginURL,
			[]string{well + "oauth-protected-resource", well + "oauth-authorization-server"},
		},
		"at the root": {
			serverURL, "Bearer", loginURL,
			[]string{well + "oauth-protected-resource/mcp", well + "oauth-protected-resource", well + "oauth-authorization-server"},
		},
		"OpenID": {
			serverURL, "Bearer", loginURL,
			[]string{well + "oauth-protected-resource/mcp", well + "oauth-authorization-server", well + "openid-configuration"},
		},
		"issuer with a path": {
			serverURL, "Bearer", loginURL + "/t1",
			[]string{well + "oauth-protected-resource/mcp", well + "oauth-authorization-server/t1"},
		},
		"issuer with a path, OpenID": {
			serverURL, "Bearer", loginURL + "/t1",
			[]string{well + "oauth-protected-resource/mcp", well + "oauth-authorization-server/t1", well + "openid-configuration/t1"},
		},
		"issuer with a path, OpenID appended": {
			serverURL, "Bearer", loginURL + "/t1",
			[]string{well + "oauth-protected-resource/mcp", well + "oauth-authorization-server/t1", well + "openid-configuration/t1", "/t1" + well + "openid-configuration"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.server.url = test.server
			w.login.metadata["issuer"], w.login.url = test.issuer, test.issuer
			documents := map[string]any{}
			last := slices.IndexFunc(test.want, func(p string) bool {
				return strings.Contains(p, "authorization-server") || strings.Contains(p, "openid")
			})
			documents["mcp.example"+test.want[last-1]] = map[string]any{"resource": strings.TrimSuffix(test.server, "/"), "authorization_servers": []string{test.issuer}}
			documents["login.example"+test.want[len(test.want)-1]] = w.login.metadata
			var got []string
			serve := func(rw http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodGet || r.URL.Path == "/authorize" {
					return false
				}
				got = append(got, r.URL.Path)
				if d, ok := documents[r.URL.Host+r.URL.Path]; ok {
					writeJSON(rw, 200, d)
				} else {
					http.NotFound(rw, r)
				}
				return true
			}
			w.server.challenge = test.challenge
			for at, next := range map[string]http.Handler{"https://mcp.example": w.server, loginURL: w.login} {
				w.hosts[at] = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					if !serve(rw, r) {
						next.ServeHTTP(rw, r)
					}
				})
			}
			req, _ := http.NewRequest(http.MethodPost, test.server, nil)
			res, err := w.transport(nil).RoundTrip(req)
			if err != nil || res.StatusCode != http.StatusOK {
				t.Errorf("%v, %v", res, err)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("looked at\n%q, want\n%q", got, test.want)
			}
		})
	}
}

// An HTML page, which some servers return for every unknown path, is not metadata.
func TestPageForPeople(t *testing.T) {
	w := newWorld(t)
	w.hosts[origin(serverURL)] = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/.well-known/oauth-protected-resource/mcp" {
			rw.Header().Set("Content-Type", "text/html")
			rw.Write([]byte("<!doctype html>"))
			return
		}
		w.server.ServeHTTP(rw, r)
	})
	w.mustPost(w.transport(nil), "", served)
}

// A metadata file may begin with a byte order mark.
func TestByteOrderMark(t *testing.T) {
	w := newWorld(t)
	for at, next := range map[string]http.Handler{origin(serverURL): w.server, loginURL: w.login} {
		w.hosts[at] = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/.well-known/") || r.URL.Path == "/token" || r.URL.Path == "/register" {
				io.WriteString(rw, "\ufeff")
			}
			next.ServeHTTP(rw, r)
		})
	}
	w.mustPost(w.transport(nil), "", served)
}

// A server error, or a request to retry later, does not mean that there is no metadata.
func TestMetadataUnavailable(t *testing.T) {
	for _, status := range []int{http.StatusServiceUnavailable, http.StatusTooManyRequests} {
		w := newWorld(t)
		w.hosts[origin(serverURL)] = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/.well-known/") {
				rw.WriteHeader(status)
				return
			}
			w.server.ServeHTTP(rw, r)
		})
		w.mustFail(w.transport(nil), oauth.ErrMetadata)
		if n := w.asked("GET https://mcp.example/authorize") + w.asked("POST https://mcp.example/register"); n != 0 {
			t.Errorf("%d: fell back to endpoints of 2025-03-26", status)
		}
	}
}

// The root of a host, where metadata is looked up first, may be down or know only its own
// issuer, while the authorization server at a path below it works.
func TestMetadataBehindGateway(t *testing.T) {
	const issuer = loginURL + "/realms/a"
	for _, status := range []int{http.StatusBadGateway, http.StatusInternalServerError, http.StatusTooManyRequests, http.StatusOK} {
		w := newWorld(t)
		w.login.metadata["issuer"], w.login.url = issuer, issuer
		w.server.metadata["authorization_servers"] = []string{issuer}
		w.hosts[loginURL] = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			switch {
			case strings.HasPrefix(r.URL.Path, "/.well-known/"):
				writeJSON(rw, status, newIssuer(loginURL).metadata)
			case r.URL.Path == "/realms/a/.well-known/openid-configuration":
				writeJSON(rw, 200, w.login.metadata)
			default:
				w.login.ServeHTTP(rw, r)
			}
		})
		w.mustPost(w.transport(nil), "", served)
	}
}

func TestDamagedMetadata(t *testing.T) {
	for _, text := range []string{`{`, `{"resource":1}`, `{"resource":"a","resource":"b"}`, `{"authorization_servers":{}}`} {
		w := newWorld(t)
		w.hosts[origin(serverURL)] = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/.well-known/") {
				rw.Write([]byte(text))
				return
			}
			w.server.ServeHTTP(rw, r)
		})
		w.mustFail(w.transport(nil), oauth.ErrMetadata)
	}
}

// Servers of 2025-03-26 are their own authorization servers.
func TestOldServer(t *testing.T) {
	const home = "https://mcp.example"
	for name, metadata := range map[string]map[string]any{
		"no metadata": nil,
		"metadata":    {"issuer": home, "authorization_endpoint": home + "/authorize", "token_endpoint": home + "/token", "registration_endpoint": home + "/register"},
		"with slash":  {"issuer": home + "/", "authorization_endpoint": home + "/authorize", "token_endpoint": home + "/token", "registration_endpoint": home + "/register"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			old := newIssuer(home)
			old.noIss = true
			w.server.metadata, w.server.issuer, w.server.challenge = nil, old, "Bearer"
			w.hosts[home] = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/mcp":
					w.server.ServeHTTP(rw, r)
				case strings.HasPrefix(r.URL.Path, "/.well-known/"):
					if metadata == nil || r.URL.Path != "/.well-known/oauth-authorization-server" {
						http.NotFound(rw, r)
						return
					}
					writeJSON(rw, 200, metadata)
				default:
					old.ServeHTTP(rw, r)
				}
			})
			w.mustPost(w.transport(nil), "", served)
			if q := old.authorizations(); q[0].Get("code_challenge_method") != "S256" || q[0].Get("resource") != serverURL {
				t.Errorf("asked for %v", q)
			}
		})
	}
}

// Of several authorization servers, the one with a configured client is used.
func TestSeveralIssuers(t *testing.T) {
	w := newWorld(t)
	w.server.metadata["authorization_servers"] = []string{"https://first.example", loginURL}
	grant := &oauth.AuthorizationCode{Redirector: w.receiver, Clients: []oauth.Client{{Issuer: loginURL, ID: "arranged"}}}
	w.mustPost(w.transport(&oauth.Options{Grant: grant}), "", served)
	if got := w.login.authorizations()[0].Get("client_id"); got != "arranged" {
		t.Errorf("client_id is %q", got)
	}
}

// A resource identifier that is a parent of the server's URL is sent unchanged.
func TestParentResource(t *testing.T) {
	for _, id := range []string{"https://mcp.example", "https://mcp.example/", "https://MCP.example:443/mcp/"} {
		w := newWorld(t)
		w.server.metadata["resource"] = id
		w.mustPost(w.transport(nil), "", served)
		if got := w.login.authorizations()[0].Get("resource"); got != id {
			t.Errorf("resource is %q, want %q", got, id)
		}
	}
}

// shared returns a host with one path per tenant. Documents are served at their paths; all
// other paths are the server of the tenant at /mcp.
func shared(t *testing.T, challenge string, documents map[string]string) *world {
	t.Helper()
	w := newWorld(t)
	w.server.challenge = challenge
	w.hosts[origin(serverURL)] = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if id, ok := documents[r.URL.Path]; ok {
			writeJSON(rw, 200, map[string]any{"resource": id, "authorization_servers": []string{loginURL}})
			return
		}
		if r.URL.Path != "/mcp" {
			http.NotFound(rw, r)
			return
		}
		w.server.ServeHTTP(rw, r)
	})
	return w
}

const (
	wellKnownRoot = "/.well-known/oauth-protected-resource"
	advertise     = `Bearer resource_metadata="https://mcp.example`
)

// A tenant of a shared host cannot get tokens that are valid for the whole host: only the
// host can say, at its own well-known URL, that its tenants are one resource.
func TestFindingS7ParentResource(t *testing.T) {
	const host = "https://mcp.example"
	for name, test := range map[string]struct {
		challenge string
		documents map[string]string // resources by the path of their metadata
		want      string            // the resource of the requested token; "" for none
	}{
		"the server's own, advertised":         {advertise + `/mcp/prm.json"`, map[string]string{"/mcp/prm.json": serverURL}, serverURL},
		"the host, advertised by the tenant":   {advertise + `/mcp/prm.json"`, map[string]string{"/mcp/prm.json": host}, ""},
		"the host, with a slash":               {advertise + `/mcp/prm.json"`, map[string]string{"/mcp/prm.json": host + "/"}, ""},
		"the host, at the tenant's well-known": {"Bearer", map[string]string{wellKnownRoot + "/mcp": host}, ""},
		"the host, at its own well-known":      {"Bearer", map[string]string{wellKnownRoot: host}, host},
		"the host's own, advertised":           {advertise + wellKnownRoot + `"`, map[string]string{wellKnownRoot: host}, host},
		"the tenant's, at the host's":          {"Bearer", map[string]string{wellKnownRoot: serverURL}, serverURL},
		"a query makes another place":          {advertise + wellKnownRoot + `?tenant=evil"`, map[string]string{wellKnownRoot: host}, host}, // without the query
		"wrong, then right":                    {advertise + `/mcp/prm.json"`, map[string]string{"/mcp/prm.json": host, wellKnownRoot + "/mcp": serverURL}, serverURL},
		"one document in all places":           {advertise + wellKnownRoot + `/mcp"`, map[string]string{wellKnownRoot + "/mcp": host, wellKnownRoot: host}, host},
	} {
		t.Run(name, func(t *testing.T) {
			w := shared(t, test.challenge, test.documents)
			if test.want == "" {
				w.mustFail(w.transport(nil), oauth.ErrResource)
				w.wantAuthorizations(0)
				return
			}
			w.mustPost(w.transport(nil), "", served)
			if got := w.login.authorizations()[0].Get("resource"); got != test.want {
				t.Errorf("a token for %q, want %q", got, test.want)
			}
		})
	}
}

// ExactResource is for hosts whose tenants are separate resources, whatever the host's
// metadata says.
func TestFindingS7ExactResource(t *testing.T) {
	w := shared(t, "Bearer", map[string]string{wellKnownRoot: "https://mcp.example"})
	w.mustFail(w.transport(&oauth.Options{ExactResource: true}), oauth.ErrResource)
	w.mustFail(w.transport(&oauth.Options{ExactResource: true}), mcp.ErrUnauthorized)
	w.wantAuthorizations(0)

	w = shared(t, "Bearer", map[string]string{wellKnownRoot + "/mcp": serverURL + "/"}) // the trailing slash is ignored
	w.mustPost(w.transport(&oauth.Options{ExactResource: true}), "", served)
}

// A server identified by its query does not get the tokens of other servers.
func TestFindingS7Query(t *testing.T) {
	w := shared(t, advertise+`/mcp/prm.json"`, map[string]string{"/mcp/prm.json": serverURL})
	w.server.url = serverURL + "?tenant=evil"
	w.mustFail(w.transport(nil), oauth.ErrResource)
	w.wantAuthorizations(0)
}

// The slash at the root, the case of the host and the default port do not make another
// issuer: all of these spellings name the same metadata.
func TestFindingR3SpellingOfIssuer(t *testing.T) {
	const host = "https://login.example"
	for _, test := range []struct {
		named, metadata string // by the MCP server and by the authorization server
		same            bool
	}{
		{host, host, true},
		{host, host + "/", true},
		{host + "/", host, true},
		{"https://LOGIN.example", host, true},
		{host, "https://Login.Example:443/", true},
		{host + ":443", host, true},
		{host + ":443/", "HTTPS://login.example", true},
		{host + "/t1", host + "/t1", true},
		{"https://LOGIN.example:443/t1", host + "/t1", true},

		{host + "/t1", host + "/t1/", false},
		{host + "/t1/", host + "/t1", false},
		{host + "/t1", host + "/T1", false},
		{host + "/t1", host, false},
		{host, host + "/t1", false},
		{host, host + "//", false},
		{host, host + "/?", false},
		{host, host + "/#", false},
		{host, "https://login.example.", false},
		{host, "https://login.example:8443", false},
		{host, "http://login.example", false},
		{host, "https://u@login.example", false},
		{host, "https://evil.example", false},
		{host, "login.example", false},
		{host, "", false},
	} {
		w := newWorld(t)
		w.server.metadata["authorization_servers"] = []string{test.named}
		w.login.metadata["issuer"], w.login.iss = test.metadata, test.metadata
		login := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			r.URL.Path = strings.TrimSuffix(r.URL.Path, "/t1") // the metadata of that path
			w.login.ServeHTTP(rw, r)
		})
		for _, at := range []string{host, host + ":443", "https://LOGIN.example", "https://LOGIN.example:443"} {
			w.hosts[at] = login
		}
		if !test.same {
			w.mustFail(w.transport(nil), oauth.ErrIssuer)
			continue
		}
		w.mustPost(w.transport(nil), "", served)
		// The store is keyed by the spelling in the metadata, to which iss must be identical.
		for _, key := range []oauth.StoreKey{{Issuer: test.metadata}, {Issuer: test.metadata, Resource: serverURL}} {
			if value, err := w.store.Load(t.Context(), key); value == nil || err != nil {
				t.Errorf("%+v: nothing is stored under %+v", test, key)
			}
		}
		if test.named != test.metadata {
			w.store, w.login.iss = oauth.NewMemoryStore(), test.named
			w.mustFail(w.transport(nil), oauth.ErrIssuer)
		}
	}
}

// The issuer of a configured client may be spelled differently, too.
func TestFindingR3SpellingOfClients(t *testing.T) {
	for _, configured := range []string{loginURL + "/", "https://LOGIN.example", loginURL + ":443"} {
		client := oauth.Client{Issuer: configured, ID: "arranged", Secret: "s", Method: "client_secret_post"}
		for _, named := range []string{loginURL, loginURL + "/"} {
			for name, grant := range map[string]oauth.Grant{
				"code":        &oauth.AuthorizationCode{Clients: []oauth.Client{client}, NoRegistration: true},
				"credentials": &oauth.ClientCredentials{Client: client},
				"workload": &oauth.WorkloadIdentity{Issuer: configured, Assertion: func(context.Context, oauth.AuthorizationServer) (string, error) {
					return "jwt", nil
				}},
			} {
				w := newWorld(t)
				if code, ok := grant.(*oauth.AuthorizationCode); ok {
					code.Redirector = w.receiver
				}
				w.server.metadata["authorization_servers"] = []string{"https://first.example", named}
				got, err := post(t.Context(), w.transport(&oauth.Options{Grant: grant}), "", "hello")
				if err != nil || got != served {
					t.Errorf("%s at %s, named %s: %q, %v", name, configured, named, got, err)
				}
			}
		}
	}
	w := newWorld(t)
	w.mustFail(w.transport(&oauth.Options{Grant: &oauth.ClientCredentials{Client: oauth.Client{Issuer: loginURL + "/t1", ID: "id", Secret: "s"}}}), oauth.ErrIssuer)
}

// A server of 2025-03-26 is compared in the same way.
func TestFindingR3SpellingOfOldServer(t *testing.T) {
	for issuer, same := range map[string]bool{
		"https://mcp.example/": true, "https://MCP.example:443": true, "https://mcp.example//": false, "https://mcp.example/mcp": false,
	} {
		w, old := oldWorld(t)
		old.metadata["issuer"] = issuer
		got, err := post(t.Context(), w.transport(nil), "", "hello")
		if same && (err != nil || got != served) || !same && !errors.Is(err, oauth.ErrIssuer) {
			t.Errorf("%s: %q, %v", issuer, got, err)
		}
	}
}

// oldWorld returns a world whose server is of revision 2025-03-26, and is its own
// authorization server.
func oldWorld(t *testing.T) (w *world, old *issuer) {
	t.Helper()
	w, old = newWorld(t), newIssuer("https://mcp.example")
	old.noIss = true
	delete(old.metadata, "authorization_response_iss_parameter_supported")
	w.server.metadata, w.server.issuer, w.server.challenge = nil, old, "Bearer"
	w.hosts[old.url] = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/mcp" || strings.HasPrefix(r.URL.Path, wellKnownRoot) {
			w.server.ServeHTTP(rw, r)
			return
		}
		old.ServeHTTP(rw, r)
	})
	return w, old
}

// A resource_metadata that cannot be used is skipped with a warning: behind a proxy that
// ends TLS, many servers advertise a URL in the clear.
func TestFindingR11UnusableResourceMetadata(t *testing.T) {
	for name, test := range map[string]struct {
		advertised string
		answer     http.HandlerFunc // at mcp.example/here
	}{
		"in the clear":         {advertised: "http://mcp.example/.well-known/oauth-protected-resource/mcp"},
		"relative":             {advertised: "/.well-known/oauth-protected-resource/mcp"},
		"not a URL":            {advertised: "https://["},
		"of a private network": {advertised: "https://10.0.0.1/m"},
		"of a missing host":    {advertised: "https://nowhere.example/m"},
		"missing":              {advertised: "https://mcp.example/here", answer: http.NotFound},
		"down":                 {"https://mcp.example/here", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }},
		"damaged":              {"https://mcp.example/here", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "{") }},
		"of another resource": {"https://mcp.example/here", func(w http.ResponseWriter, _ *http.Request) {
			writeJSON(w, 200, map[string]any{"resource": "https://other.example", "authorization_servers": []string{loginURL}})
		}},
		"redirected away": {"https://mcp.example/here", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://evil.example/m", http.StatusFound)
		}},
	} {
		arrange := func() (w *world, log *strings.Builder, rt *oauth.Transport) {
			w, log = newWorld(t), new(strings.Builder)
			w.server.challenge = `Bearer resource_metadata="` + test.advertised + `"`
			w.hosts[origin(serverURL)] = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/here" {
					test.answer(rw, r)
					return
				}
				w.server.ServeHTTP(rw, r)
			})
			return w, log, w.transport(&oauth.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
		}
		w, log, rt := arrange()
		if got, err := post(t.Context(), rt, "", "hello"); err != nil || got != served {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if text := log.String(); !strings.Contains(text, "level=WARN") || !strings.Contains(text, test.advertised) {
			t.Errorf("%s: logged %s", name, text)
		}
		if n := w.asked("GET https://10.0.0.1") + w.asked("GET https://evil.example") + w.asked("GET http://"); n != 0 {
			t.Errorf("%s: %d requests that must not be sent", name, n)
		}
		if test.answer != nil && name == "missing" {
			continue // as servers of 2025-03-26 may be
		}
		// If there is no metadata elsewhere either, the login fails with the first problem. The
		// client does not fall back to the endpoints of 2025-03-26.
		w, _, rt = arrange()
		w.server.metadata = nil
		if got, err := post(t.Context(), rt, "", "hello"); err == nil {
			t.Errorf("%s: %q", name, got)
		}
		if n := w.asked("POST https://mcp.example/register"); n != 0 {
			t.Errorf("%s: registered with the MCP server", name)
		}
	}
}

// Of several authorization servers, the first that has metadata is used.
func TestFindingR14SecondAuthorizationServer(t *testing.T) {
	const first = "https://first.example"
	status := func(code int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
	}
	for name, down := range map[string]http.Handler{
		"unreachable": nil,
		"down":        status(http.StatusServiceUnavailable),
		"without":     status(http.StatusNotFound),
		"damaged":     http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "{") }),
		"of another":  newIssuer("https://other.example"),
	} {
		w := newWorld(t)
		if down != nil {
			w.hosts[first] = down
		}
		w.server.metadata["authorization_servers"] = []string{first, loginURL}
		rt := w.transport(nil)
		if got, err := post(t.Context(), rt, "", "hello"); err != nil || got != served {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		// If all are down, the error names each.
		w.login.revoke()
		delete(w.hosts, loginURL)
		w.store = oauth.NewMemoryStore()
		_, err := post(t.Context(), w.transport(nil), "", "hello")
		if err == nil || !strings.Contains(err.Error(), first) || !strings.Contains(err.Error(), loginURL) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A grant with credentials for an authorization server uses no other, even if that one is
// down. A grant without remains with the one that it has used.
func TestFindingR14OnlyTheConfiguredServer(t *testing.T) {
	w := newWorld(t)
	second := newIssuer("https://second.example")
	w.hosts[second.url] = second
	w.server.metadata["authorization_servers"] = []string{loginURL, second.url}
	for _, grant := range []oauth.Grant{
		&oauth.AuthorizationCode{Redirector: w.receiver, Clients: []oauth.Client{{Issuer: loginURL, ID: "arranged"}}},
		&oauth.ClientCredentials{Client: oauth.Client{Issuer: loginURL, ID: "id", Secret: "s"}},
	} {
		down := w.hosts[loginURL]
		delete(w.hosts, loginURL)
		_, err := post(t.Context(), w.transport(&oauth.Options{Grant: grant}), "", "hello")
		if n := w.asked("GET https://second.example"); err == nil || n != 0 || !strings.Contains(err.Error(), loginURL) {
			t.Errorf("%T: %v, and %d requests to another authorization server", grant, err, n)
		}
		w.hosts[loginURL] = down
	}

	rt := w.transport(&oauth.Options{Grant: &oauth.AuthorizationCode{Redirector: w.receiver, Clients: []oauth.Client{{ID: "anywhere"}}}})
	first := w.hosts[loginURL]
	delete(w.hosts, loginURL)
	w.server.issuer = second
	w.mustPost(rt, "", served)
	w.hosts[loginURL] = first // it is back
	second.revoke()
	w.mustPost(rt, "", served)
	if n := len(second.authorizations()); n != 2 {
		t.Errorf("%d authorizations by the second server, want 2", n)
	}
}

// A server that names many authorization servers does not cause many requests.
func TestFindingR14ManyAuthorizationServers(t *testing.T) {
	w := newWorld(t)
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprintf("https://as%d.example", i))
	}
	w.server.metadata["authorization_servers"] = many
	w.mustFail(w.transport(nil), mcp.ErrUnauthorized)
	if n := w.asked("GET https://as"); n < 2 || n > 12 {
		t.Errorf("%d requests", n)
	}
}
