// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp/oauth"
)

// Tests of public advisories are named after them. docs/evidence/advisories.md lists them.

// browserOf puts a fake browser in the path. It writes down its arguments, one per line,
// after their number.
func browserOf(t *testing.T) (visited func() string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("a browser is started in another way here")
	}
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	script := "#!/bin/sh\n{ echo \"$#\"; printf '%s\\n' \"$@\"; } > " + log + ".new && mv " + log + ".new " + log + "\n"
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return func() string {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		for ticks := time.Tick(5 * time.Millisecond); ; {
			text, err := os.ReadFile(log)
			if err == nil && os.Remove(log) == nil {
				return string(text)
			}
			select {
			case <-ticks:
			case <-ctx.Done():
				return "nothing"
			}
		}
	}
}

// mcp-remote passed the URL of a login page, which is chosen by the server, to a shell.
func TestAdvisoryCVE_2025_6514(t *testing.T) {
	visited := browserOf(t)
	hit := filepath.Join(t.TempDir(), "hit")
	for _, part := range []string{"$(touch HIT)", "`touch HIT`", ";touch HIT;", "&touch HIT&", "|touch HIT", "' && touch HIT #", `" && touch HIT #`, "%0atouch HIT", "$IFS", "*"} {
		part = strings.ReplaceAll(part, "HIT", hit)
		for _, to := range []string{"https://login.example/authorize?x=" + part, "https://login.example/" + url.PathEscape(part)} {
			if err := oauth.OpenBrowser(t.Context(), to); err != nil {
				continue // the part is not a valid URL
			}
			got := visited()
			if lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n"); len(lines) != 2 || lines[0] != "1" || !strings.HasPrefix(lines[1], "https://login.example/") {
				t.Errorf("%s: the browser got %q", to, got)
			}
		}
	}
	for _, to := range []string{"--help", "-new-window", "file:///etc/passwd", "a:b", "calc.exe", "https:calc", "https://", "\\\\evil.example\\x", "cmd://x", "https://a b/$(x)"} {
		if err := oauth.OpenBrowser(t.Context(), to); !errors.Is(err, oauth.ErrUnsafeURL) {
			t.Errorf("%s: %v", to, err)
		}
	}
	if _, err := os.Stat(hit); err == nil {
		t.Error("a command ran")
	}
}

// The Inspector opened any URL that a server named as its login page: a script ran in the
// page that could start programs.
func TestAdvisoryCVE_2025_58444(t *testing.T) {
	for _, to := range []string{
		"javascript:alert(1)", "JavaScript:alert(1)//https://login.example", " javascript:alert(1)", "java\tscript:alert(1)", "data:text/html,<script>1</script>",
		"vbscript:x", "blob:https://login.example/x", "about:blank", "view-source:https://login.example", "https://login.example@evil.example/authorize",
	} {
		w := newWorld(t)
		w.login.metadata["authorization_endpoint"] = to
		w.receiver = oauth.NewRedirector("https://app.example/callback", func(_ context.Context, to string) (url.Values, error) {
			t.Errorf("the user was sent to %s", to)
			return nil, errors.New("no")
		})
		w.mustFail(w.transport(nil), oauth.ErrUnsafeURL)
	}
}

// within are URLs of internal hosts, which a server with a public address must not name.
var within = []string{
	"https://169.254.169.254", "http://169.254.169.254", "https://127.0.0.1", "http://127.0.0.1:6379", "https://localhost", "https://10.0.0.1",
	"https://192.168.1.1", "https://172.16.0.1", "https://[::1]", "https://[fd00:ec2::254]", "https://[::ffff:169.254.169.254]", "https://0.0.0.0",
	"https://100.100.100.200", "https://foo.localhost", "https://[::127.0.0.1]", "https://[::ffff:0:127.0.0.1]",
	"https://2130706433", "https://127.1", "https://0x7f.1", "https://0X7F000001", "https://0x7f.0.0.0x", "https://0177.0.0.1", "https://127.0.0.1.",
	"https://10.1.", "https://0xA9FEA9FE", "https://1.2.3.4.5", "https://\uff11\uff12\uff17.0.0.1", "https://\u24db\u24de\u24d2alhost",
}

// nobodyWithin fails the test if one of these hosts receives a request.
func nobodyWithin(t *testing.T, w *world) {
	t.Helper()
	for _, at := range within {
		w.hosts[at] = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Errorf("%s was asked", at) })
	}
}

// The Rust SDK fetched metadata from any URL in the challenge of a server.
func TestAdvisoryGHSA_c9xm_49cp_xcr9(t *testing.T) {
	for _, at := range within {
		w := newWorld(t)
		nobodyWithin(t, w)
		w.server.challenge = fmt.Sprintf(`Bearer resource_metadata="%s/latest/meta-data/"`, at)
		w.mustPost(w.transport(nil), "", served) // with the metadata at the well-known URL
		w.server.metadata, w.store = nil, oauth.NewMemoryStore()
		w.login.revoke()
		got, err := post(t.Context(), w.transport(nil), "", "hello")
		if err == nil || !errors.Is(err, mcp.ErrUnauthorized) {
			t.Errorf("%s: %q, %v", at, got, err)
		}
	}
	w := newWorld(t)
	w.mustPost(w.transport(nil), "", served)
}

// Spring AI's mcp-security requested every address named by the metadata of a server or
// authorization server.
func TestAdvisoryCVE_2026_45609(t *testing.T) {
	for _, at := range within {
		for _, name := range []string{"authorization_servers", "registration_endpoint", "token_endpoint", "issuer"} {
			w := newWorld(t)
			nobodyWithin(t, w)
			switch name {
			case "authorization_servers":
				w.server.metadata[name] = []string{at}
			default:
				w.login.metadata[name] = at
			}
			if got, err := post(t.Context(), w.transport(nil), "", "hello"); err == nil || !errors.Is(err, mcp.ErrUnauthorized) {
				t.Errorf("%s is %s: %q, %v", name, at, got, err)
			}
		}
	}
}

// The registry's check of addresses did not recognize IPv6 addresses that embed others.
func TestAdvisoryCVE_2026_44430(t *testing.T) {
	public := netip.MustParseAddr("203.0.113.7")
	for _, to := range []string{
		"2002:7f00:1::", "2002:a00:1::", "2002:a9fe:a9fe::", "64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::7f00:1",
		"fec0::1", "::ffff:10.0.0.1", "2001:0:7f00:1::", "fe80::1", "100::1", "::127.0.0.1", "::10.0.0.1", "::ffff:0:127.0.0.1", "::ffff:0:10.0.0.1",
	} {
		if err := oauth.Dial(public, netip.MustParseAddr(to), false); !errors.Is(err, oauth.ErrUnsafeURL) {
			t.Errorf("%s: %v", to, err)
		}
	}
	if err := oauth.Dial(public, netip.MustParseAddr("2606:4700::1111"), false); err != nil {
		t.Errorf("a public address: %v", err)
	}
}

// The Rust SDK did not compare the resource in the metadata with the server that sent it: a
// server that named another one received the tokens for that one.
func TestAdvisoryCVE_2026_63127(t *testing.T) {
	victim := "https://victim.example/mcp"
	w := newWorld(t)
	w.hosts[origin(victim)] = &resource{url: victim, issuer: w.login, metadata: map[string]any{"resource": victim, "authorization_servers": []string{loginURL}}}
	for _, id := range []string{victim, "https://victim.example", "https://mcp.example.victim.example/mcp", "", "https://mcp.example/mcp/../../victim"} {
		w.server.metadata["resource"] = id
		w.mustFail(w.transport(nil), oauth.ErrResource)
	}
	w.server.challenge = `Bearer resource_metadata="https://victim.example/.well-known/oauth-protected-resource/mcp"`
	if got, err := post(t.Context(), w.transport(nil), "", "hello"); err == nil {
		t.Errorf("metadata of the other server itself: %q", got)
	}
	if n := len(w.login.authorizations()); n != 0 || w.seen(origin(serverURL), "Bearer") {
		t.Errorf("%d authorizations, and the tokens %q", n, w.auth)
	}
}

// moved returns a world that has been set up at login.example, with a secret and a refresh
// token, and whose server then names evil.example.
func moved(t *testing.T, grant oauth.Grant) (w *world, rt *oauth.Transport, evil *issuer) {
	t.Helper()
	w = newWorld(t)
	w.login.refresh = "refresh-secret"
	w.login.register = func(map[string]any) (int, map[string]any) {
		return 201, map[string]any{"client_id": "id", "client_secret": "client-secret", "token_endpoint_auth_method": "client_secret_post"}
	}
	if code, ok := grant.(*oauth.AuthorizationCode); ok {
		code.Redirector = w.receiver
	}
	rt = w.transport(&oauth.Options{Grant: grant})
	w.mustPost(rt, "", served)
	w.login.revoke()
	evil = newIssuer("https://evil.example")
	evil.metadata["token_endpoint_auth_methods_supported"] = []string{"client_secret_post", "client_secret_basic", "none"}
	w.hosts["https://evil.example"] = evil
	w.server.issuer = evil
	return w, rt, evil
}

// keeps checks that nothing from login.example was sent to the other authorization server.
func keeps(t *testing.T, evil *issuer) {
	t.Helper()
	for _, g := range evil.granted("") {
		if text := g.form.Encode() + " " + g.basic + " " + g.proof; strings.Contains(text, "secret") {
			t.Errorf("the other authorization server got %s", text)
		}
	}
}

// The TypeScript SDK sent the refresh tokens and secrets of one authorization server to
// whichever one the MCP server named next.
func TestAdvisoryCVE_2026_104850(t *testing.T) {
	arranged := oauth.Client{Issuer: loginURL, ID: "id", Secret: "client-secret"}
	for name, grant := range map[string]oauth.Grant{
		"registered": &oauth.AuthorizationCode{},
		"arranged":   &oauth.AuthorizationCode{Clients: []oauth.Client{arranged}, NoRegistration: true},
		"a program":  &oauth.ClientCredentials{Client: arranged},
	} {
		t.Run(name, func(t *testing.T) {
			w, rt, evil := moved(t, grant)
			w.server.metadata["authorization_servers"] = []string{"https://evil.example"}
			_, err := post(t.Context(), rt, "", "hello")
			keeps(t, evil)
			if fixed := name != "registered"; fixed != errors.Is(err, oauth.ErrIssuer) {
				t.Errorf("with the other authorization server: %v", err)
			}
			again := w.transport(&oauth.Options{Grant: grant}) // after a restart, with the same store
			_, _ = post(t.Context(), again, "", "hello")
			keeps(t, evil)
			if name != "registered" && len(evil.granted("")) != 0 {
				t.Error("the other authorization server was asked for a token")
			}
		})
	}
}

// So did the Python SDK. Its fixed version still does if a server has no metadata, if it
// requires more scopes, and for credentials without an issuer.
func TestAdvisoryGHSA_qx49_fqc8_xw99(t *testing.T) {
	turns := map[string]func(w *world, evil *issuer){
		"by metadata": func(w *world, _ *issuer) {
			w.server.metadata["authorization_servers"] = []string{"https://evil.example"}
		},
		"by none": func(w *world, evil *issuer) {
			w.server.metadata, w.server.challenge = nil, "Bearer"
			server := w.server
			evil.url, evil.metadata = origin(serverURL), newIssuer(origin(serverURL)).metadata
			w.hosts[origin(serverURL)] = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/mcp" || strings.HasPrefix(r.URL.Path, "/.well-known/oauth-protected-resource") {
					server.ServeHTTP(rw, r)
					return
				}
				evil.ServeHTTP(rw, r) // the server is its own authorization server now
			})
		},
	}
	for turn, arrange := range turns {
		for name, grant := range map[string]oauth.Grant{
			"registered": &oauth.AuthorizationCode{},
			"arranged":   &oauth.AuthorizationCode{Clients: []oauth.Client{{Issuer: loginURL, ID: "id", Secret: "client-secret"}}, NoRegistration: true},
			"a program":  &oauth.ClientCredentials{Client: oauth.Client{Issuer: loginURL, ID: "id", Secret: "client-secret"}},
		} {
			for _, scope := range []string{"", "more"} {
				t.Run(strings.TrimSpace(turn+", "+name+" "+scope), func(t *testing.T) {
					w, rt, evil := moved(t, grant)
					arrange(w, evil)
					_, err := post(t.Context(), rt, scope, "hello")
					keeps(t, evil)
					if fixed := name != "registered"; fixed != errors.Is(err, oauth.ErrIssuer) {
						t.Errorf("with the other authorization server: %v", err)
					}
				})
			}
		}
	}
	afterRestart(t)
}

// afterRestart makes the hostile authorization server the first one that the client sees,
// for credentials without an issuer. The fixed version cannot detect that.
func afterRestart(t *testing.T) {
	t.Helper()
	for name, grant := range map[string]oauth.Grant{
		"a program": &oauth.ClientCredentials{Client: oauth.Client{ID: "id", Secret: "client-secret"}},
		"arranged":  &oauth.AuthorizationCode{Clients: []oauth.Client{{ID: "id", Secret: "client-secret"}}, NoRegistration: true},
	} {
		t.Run("after a restart, "+name, func(t *testing.T) {
			w, _, evil := moved(t, &oauth.AuthorizationCode{})
			w.server.metadata["authorization_servers"] = []string{"https://evil.example"}
			w.mustFail(w.transport(&oauth.Options{Grant: grant}), oauth.ErrIssuer)
			if n := w.asked("POST https://evil.example"); n != 0 {
				t.Errorf("the other authorization server got %d requests", n)
			}
			keeps(t, evil)
		})
	}
}
