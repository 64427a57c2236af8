// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/oauth2"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcphttp/auth/authtest"
	"github.com/go-psi/psi/mcphttp/authserver"
)

// byTeam admits the members of a team, by the claim teams, with the scopes that it has.
func byTeam(_ context.Context, claims map[string]any) (*mcp.Principal, error) {
	team, _ := claims["team"].(string)
	p := &mcp.Principal{Subject: claims["sub"].(string), Claims: map[string]any{"team": team}}
	switch team {
	case "writers":
	case "readers":
		p.Scopes = []string{"read"}
	case "renamed":
		p.Subject = "somebody else"
	case "unreachable":
		return nil, fmt.Errorf("the directory: %w", &net.DNSError{Err: "no such host"})
	default:
		return nil, errors.New("not in a team")
	}
	claims["team"] = "changed by Identify" // which must change nothing
	return p, nil
}

// gitHubLike makes a provider without ID tokens of the OIDC one.
func gitHubLike(o *authserver.Options) {
	base, client := o.Provider.Issuer, o.Provider.Client
	o.Provider = authserver.GitHub("psi", "secret")
	o.Provider.AuthURL, o.Provider.TokenURL, o.Provider.UserInfoURL, o.Provider.Client = base+"/auth", base+"/token", base+"/user", client
}

// With each refresh, Identify is asked about the user as the provider describes it now: by
// the ID token that comes with the provider's own refresh, or by the user info.
func TestIdentifyAgain(t *testing.T) {
	for name, provider := range map[string]func(*authserver.Options){
		"ID tokens": func(*authserver.Options) {},
		"user info": gitHubLike,
		"both":      func(o *authserver.Options) { o.Provider.UserInfoURL = o.Provider.Issuer + "/user" },
	} {
		for _, step := range []struct {
			team, scope string // "" means that the grant ends
			status      int
		}{
			{"writers", "read write", http.StatusOK}, {"readers", "read", http.StatusOK}, {"none", "", http.StatusBadRequest}, {"renamed", "", http.StatusBadRequest}, {"unreachable", "", http.StatusServiceUnavailable},
		} {
			t.Run(name+"/"+step.team, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newQuietWorld(t, provider, func(o *authserver.Options) { o.Identify = byTeam })
					tell := func(team string) {
						w.idp.mu.Lock()
						defer w.idp.mu.Unlock()
						w.idp.info = map[string]any{"sub": "ada", "id": 7, "team": team}
						w.idp.fresh = authtest.Claims{"sub": "ada", "team": team}
						w.idp.change = func(c authtest.Claims) { c["team"] = team }
					}
					tell("writers")
					id := w.register("app", appURI)
					status, tokens := w.redeem(id, w.browser().visit(w.link(id, "scope", "read write")).Get("code"))
					if status != http.StatusOK || tokens["scope"] != "read write" {
						t.Fatalf("%d %v", status, tokens)
					}
					<-time.After(time.Hour) // the provider's token has expired
					tell(step.team)
					status, answer := w.refresh(id, tokens)
					if scope, _ := answer["scope"].(string); status != step.status || scope != step.scope {
						t.Errorf("%d %v", status, answer)
					}
					tell("writers")
					switch step.status {
					case http.StatusOK: // scopes that the user has again come back
						<-time.After(time.Hour)
						if status, answer := w.refresh(id, answer); status != http.StatusOK || answer["scope"] != "read write" {
							t.Errorf("later: %d %v", status, answer)
						}
					case http.StatusServiceUnavailable:
						<-time.After(time.Hour)
						if status, answer := w.refresh(id, tokens); status != http.StatusOK {
							t.Errorf("the same token later: %d %v", status, answer)
						}
					default:
						if status, answer := w.refresh(id, tokens); status != http.StatusBadRequest || answer["error"] != "invalid_grant" {
							t.Errorf("after the end: %d %v", status, answer)
						}
					}
				})
			})
		}
	}
}

// Between the provider's refreshes, Identify is asked with the claims that were kept: what it
// decides may change, too.
func TestIdentifyChangesItsMind(t *testing.T) {
	asked, allowed := 0, true
	w := newWorld(t, func(o *authserver.Options) {
		o.Identify = func(_ context.Context, claims map[string]any) (*mcp.Principal, error) {
			if asked++; !allowed {
				return nil, errors.New("closed")
			}
			if claims["sub"] != "ada" || claims["email"] != "ada@example.com" {
				t.Errorf("%v", claims)
			}
			return &mcp.Principal{Subject: "ada", Claims: map[string]any{"round": asked}}, nil
		}
	})
	w.idp.change = func(c authtest.Claims) { c["email"] = "ada@example.com" }
	id := w.register("app", appURI)
	_, tokens := w.redeem(id, w.code(id))
	_, tokens = w.refresh(id, tokens)
	if round := claimsOf(tokens)["round"]; asked != 2 || round != 2.0 || w.idp.refreshes != 0 {
		t.Errorf("asked %d times, the claims are of round %v, the provider was asked %d times", asked, round, w.idp.refreshes)
	}
	allowed = false
	if status, answer := w.refresh(id, tokens); status != http.StatusBadRequest || answer["error"] != "invalid_grant" {
		t.Errorf("%d %v", status, answer)
	}
	if !strings.Contains(w.logs.String(), "closed") {
		t.Errorf("log %s", w.logs)
	}
}

// A claim that is missing in the user info is gone: a provider may omit the groups of a user who is
// in none any more.
func TestClaimThatIsGone(t *testing.T) {
	for name, provider := range map[string]func(*authserver.Options){
		"user info": gitHubLike,
		"both":      func(o *authserver.Options) { o.Provider.UserInfoURL = o.Provider.Issuer + "/user" },
	} {
		w := newWorld(t, provider, func(o *authserver.Options) { o.Identify = byTeam })
		w.idp.info = map[string]any{"sub": "ada", "id": 7, "team": "writers"}
		id := w.register("app", appURI)
		_, tokens := w.redeem(id, w.code(id))
		w.idp.mu.Lock()
		delete(w.idp.info, "team")
		w.idp.mu.Unlock()
		if status, answer := w.refresh(id, tokens); status != http.StatusBadRequest || answer["error"] != "invalid_grant" {
			t.Errorf("%s: %d %v %v", name, status, answer, claimsOf(answer))
		}
	}
}

// When the provider's token has ended, a user is who the last user info has said, and not who the
// login has: rights that were lost in between do not come back.
func TestLastUserInfoIsKept(t *testing.T) {
	for name, provider := range map[string]func(*authserver.Options){
		"user info": gitHubLike,
		"both":      func(o *authserver.Options) { o.Provider.UserInfoURL = o.Provider.Issuer + "/user" },
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newQuietWorld(t, provider, func(o *authserver.Options) { o.Identify = byTeam })
			w.idp.once = true
			w.idp.info = map[string]any{"sub": "ada", "id": 7, "team": "writers"}
			id := w.register("app", appURI)
			_, tokens := w.redeem(id, w.browser().visit(w.link(id, "scope", "read write")).Get("code"))
			w.idp.info["team"] = "readers"
			for range 3 {
				<-time.After(30 * time.Minute)
				var status int
				if status, tokens = w.refresh(id, tokens); status != http.StatusOK || tokens["scope"] != "read" {
					t.Fatalf("%s: %d %v", name, status, tokens)
				}
				w.idp.withdrawn = true // the token ends
			}
		})
	}
}

// A provider that suddenly speaks of another user, or does not accept its token any more,
// ends the grant; one that does not answer does not.
func TestChangedProvider(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*idp)
		status int
	}{
		"another user": {func(p *idp) { p.info = map[string]any{"id": 4712} }, http.StatusBadRequest}, "no user": {func(p *idp) { p.info = map[string]any{} }, http.StatusServiceUnavailable},
		"withdrawn": {func(p *idp) { p.withdrawn = true }, http.StatusBadRequest}, "broken": {func(p *idp) { p.info = nil }, http.StatusServiceUnavailable},
	} {
		w := newWorld(t, gitHubLike)
		id := w.register("app", appURI)
		_, tokens := w.redeem(id, w.code(id))
		w.idp.mu.Lock()
		c.change(w.idp)
		w.idp.mu.Unlock()
		if status, answer := w.refresh(id, tokens); status != c.status {
			t.Errorf("%s: %d %v", name, status, answer)
		}
	}
	for name, c := range map[string]struct {
		fresh  authtest.Claims
		status int
	}{
		"another user's ID token": {authtest.Claims{"sub": "eve"}, http.StatusBadRequest},
		"a wrong ID token":        {authtest.Claims{"sub": "ada", "aud": "other"}, http.StatusOK}, // is not used
		"another party's":         {authtest.Claims{"sub": "ada", "azp": "other"}, http.StatusOK},
		"no ID token":             {nil, http.StatusOK},
	} {
		w := newWorld(t)
		w.idp.lifetime, w.idp.fresh = 1, c.fresh
		id := w.register("app", appURI)
		_, tokens := w.redeem(id, w.code(id))
		if status, answer := w.refresh(id, tokens); status != c.status {
			t.Errorf("%s: %d %v", name, status, answer)
		}
	}
}

// A provider ends an access token when it refreshes it. A request that was asking about the user
// with the old one asks again with the new one: it does not end the grant.
func TestRefreshedMeanwhile(t *testing.T) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		synctest.Test(t, func(t *testing.T) {
			w := newQuietWorld(t, func(o *authserver.Options) { o.Provider.UserInfoURL = o.Provider.Issuer + "/user" })
			w.idp.refusal = status
			w.idp.info = map[string]any{"sub": "ada"}
			id := w.register("app", appURI)
			_, tokens := w.redeem(id, w.code(id))
			<-time.After(59*time.Minute - time.Second) // in a second, the provider's token is refreshed
			w.idp.onInfo = func() {
				w.idp.onInfo = nil
				<-time.After(2 * time.Second)
				if status, answer := w.refresh(id, tokens); status != http.StatusOK || w.idp.refreshes != 1 {
					t.Errorf("the other request: %d %v, %d refreshes", status, answer, w.idp.refreshes)
				}
			}
			status, tokens := w.refresh(id, tokens)
			if status != http.StatusOK || w.idp.refreshes != 1 {
				t.Errorf("%d %v, %d refreshes", status, tokens, w.idp.refreshes)
			}
			w.idp.refuseOnce = true
			begun := time.Now()
			if status, answer := w.refresh(id, tokens); status != http.StatusOK || time.Since(begun) != 0 {
				t.Errorf("later: %d %v, after %v", status, answer, time.Since(begun))
			}
		})
	}
}

// If the provider does not accept its access token any more, its refresh token decides whether the
// user has left: the grant goes on with a new access token, or ends.
func TestRefusedToken(t *testing.T) {
	for _, refusal := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		for name, c := range map[string]struct {
			change func(*idp)
			status int
		}{
			"only the access token": {func(p *idp) { p.last = "another" }, http.StatusOK}, "the session": {func(p *idp) { p.withdrawn = true }, http.StatusBadRequest},
		} {
			w := newWorld(t, func(o *authserver.Options) { o.Provider.UserInfoURL = o.Provider.Issuer + "/user" })
			w.idp.refusal, w.idp.info = refusal, map[string]any{"sub": "ada"}
			id := w.register("app", appURI)
			_, tokens := w.redeem(id, w.code(id))
			w.idp.mu.Lock()
			c.change(w.idp)
			w.idp.mu.Unlock()
			if status, answer := w.refresh(id, tokens); status != c.status || w.idp.refreshes != 1 {
				t.Errorf("%s, %d: %d %v, %d refreshes", name, refusal, status, answer, w.idp.refreshes)
			}
		}
	}
}

// The user info is of the user of the ID token, or the login is denied.
func TestUserInfoOfAnother(t *testing.T) {
	for subject, ok := range map[string]bool{"ada": true, "eve": false, "": false} {
		w := newWorld(t, func(o *authserver.Options) { o.Provider.UserInfoURL = o.Provider.Issuer + "/user" })
		w.idp.info = map[string]any{"sub": subject}
		if back := newBrowser(t).visit(w.link(w.register("app", appURI))); back.Has("code") != ok {
			t.Errorf("%q: %v", subject, back)
		}
	}
}

// That the address of the ID token was verified says nothing about another one in the user info.
func TestVerifiedAddress(t *testing.T) {
	for name, c := range map[string]struct {
		info map[string]any
		want map[string]any
	}{
		"no address":       {map[string]any{"sub": "ada"}, map[string]any{"email": "ada@example.com", "email_verified": true}},
		"the same address": {map[string]any{"sub": "ada", "email": "ada@example.com"}, map[string]any{"email": "ada@example.com", "email_verified": true}},
		"another address":  {map[string]any{"sub": "ada", "email": "root@example.com"}, map[string]any{"email": "root@example.com", "email_verified": nil}},
		"verified":         {map[string]any{"sub": "ada", "email": "ada@example.org", "email_verified": true}, map[string]any{"email": "ada@example.org", "email_verified": true}},
		"a list":           {map[string]any{"sub": "ada", "email": []string{"ada@example.com"}}, map[string]any{"email_verified": nil}},
		"only that it is":  {map[string]any{"sub": "ada", "email_verified": false}, map[string]any{"email": "ada@example.com", "email_verified": false}},
	} {
		w := newWorld(t, func(o *authserver.Options) {
			o.Provider.UserInfoURL = o.Provider.Issuer + "/user"
			o.Identify = func(_ context.Context, claims map[string]any) (*mcp.Principal, error) {
				for claim, want := range c.want {
					if claims[claim] != want {
						t.Errorf("%s: %s is %v, want %v", name, claim, claims[claim], want)
					}
				}
				return &mcp.Principal{Subject: "ada"}, nil
			}
		})
		w.idp.info = c.info
		w.idp.change = func(c authtest.Claims) { c["email"], c["email_verified"] = "ada@example.com", true }
		_ = w.code(w.register("app", appURI))
	}
}

// Identify can use the provider's API while it decides, and nobody else can that way.
func TestTokenFromContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		w := newQuietWorld(t, func(o *authserver.Options) {
			o.Identify = func(ctx context.Context, claims map[string]any) (*mcp.Principal, error) {
				token := authserver.TokenFromContext(ctx)
				if token == nil {
					seen = append(seen, "")
				} else {
					seen = append(seen, token.AccessToken)
				}
				return &mcp.Principal{Subject: "ada"}, nil
			}
		})
		id := w.register("app", appURI)
		_, tokens := w.redeem(id, w.code(id))
		<-time.After(time.Minute)
		_, tokens = w.refresh(id, tokens)
		<-time.After(time.Hour)
		_, _ = w.refresh(id, tokens)
		if len(seen) != 3 || !strings.HasPrefix(seen[0], "upstream-") || seen[1] != seen[0] || seen[2] == seen[0] || seen[2] == "" {
			t.Errorf("%q", seen)
		}
		if token := authserver.TokenFromContext(t.Context()); token != nil {
			t.Errorf("%v", token)
		}
	})
}

// A provider's tokens are bounded.
func TestLongTokens(t *testing.T) {
	for size, ok := range map[int]bool{63 << 10: true, 65 << 10: false} {
		w := newWorld(t)
		w.idp.padding = strings.Repeat("x", size)
		if back := newBrowser(t).visit(w.link(w.register("app", appURI))); back.Has("code") != ok {
			t.Errorf("%d bytes: %v", size, back)
		}
	}
}

// A provider's claims are bounded.
func TestLongClaims(t *testing.T) {
	for size, ok := range map[int]bool{31 << 10: true, 33 << 10: false} {
		w := newWorld(t, gitHubLike)
		w.idp.info["groups"] = strings.Repeat("x", size)
		if back := newBrowser(t).visit(w.link(w.register("app", appURI))); back.Has("code") != ok {
			t.Errorf("%d bytes: %v", size, back)
		}
	}
}

// A handler that wants the provider's token learns when there will be none any more.
func TestTokenSourceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &failing{}
		f.fails.Store("")
		w := newQuietWorld(t, func(o *authserver.Options) { f.Values = o.Values; o.Values = f })
		token := func(tokens map[string]any) error {
			source := w.sourceFor(&mcp.Principal{Subject: "ada", Issuer: w.url, Claims: claimsOf(tokens)})
			if source == nil {
				t.Fatal("no source")
			}
			_, err := source.Token()
			return err
		}
		id := w.register("app", appURI)
		_, tokens := w.redeem(id, w.code(id))
		f.fails.Store("Get grant")
		if err := token(tokens); err == nil || errors.Is(err, authserver.ErrWithdrawn) {
			t.Errorf("a store that fails: %v", err)
		}
		f.fails.Store("")
		if err := token(tokens); err != nil {
			t.Error(err)
		}
		<-time.After(time.Hour)
		f.fails.Store("Put lock")
		if err := token(tokens); err == nil || errors.Is(err, authserver.ErrWithdrawn) {
			t.Errorf("a lock that fails: %v", err)
		}
		f.fails.Store("")
		w.idp.withdrawn = true
		for range 2 {
			if err := token(tokens); !errors.Is(err, authserver.ErrWithdrawn) {
				t.Errorf("withdrawn: %v", err)
			}
		}
		if status, _ := w.refresh(id, tokens); status != http.StatusBadRequest {
			t.Errorf("the client goes on: status %d", status)
		}
		for name, p := range map[string]*mcp.Principal{"nobody": nil, "another issuer's": {Subject: "ada", Issuer: "https://other.example", Claims: claimsOf(tokens)}, "without a grant": {Subject: "ada", Issuer: w.url}} {
			if source := w.sourceFor(p); source != nil {
				t.Errorf("%s: %v", name, source)
			}
		}
	})
}

// A grant that is revoked while the provider's token is refreshed stays revoked.
func TestRevokedWhileRefreshed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newQuietWorld(t)
		id := w.register("app", appURI)
		_, tokens := w.redeem(id, w.code(id))
		<-time.After(time.Hour)
		w.idp.slow = 2 * time.Second
		source := w.sourceFor(&mcp.Principal{Subject: "ada", Issuer: w.url, Claims: claimsOf(tokens)})
		done := make(chan error)
		go func() { _, err := source.Token(); done <- err }()
		<-time.After(time.Second)
		if status, _ := w.post("/revoke", url.Values{"token": {tokens["refresh_token"].(string)}, "client_id": {id}}); status != http.StatusOK {
			t.Errorf("status %d", status)
		}
		for what, err := range map[string]error{"the one who refreshes": <-done, "later": func() error { _, err := source.Token(); return err }()} {
			if !errors.Is(err, authserver.ErrWithdrawn) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if status, answer := w.refresh(id, tokens); status != http.StatusBadRequest {
			t.Errorf("%d %v", status, answer)
		}
	})
}

// sourceFor returns the source that a handler gets when p calls.
func (w *world) sourceFor(p *mcp.Principal) (source oauth2.TokenSource) {
	handler := mcp.HandlerFunc(func(ctx context.Context, _ *mcp.Request) (mcp.Result, error) {
		source = w.replicas[0].TokenSource(ctx)
		return &mcp.CallToolResult{}, nil
	})
	if _, _, err := mcptest.Do(w.t, mcptest.As(p)(handler), mcptest.NewRequest(mcp.MethodCallTool, &mcp.CallToolParams{Name: "t"})); err != nil {
		w.t.Error(err)
	}
	return source
}

// A token that cannot be refreshed ends, but not the grant: the client goes on with the
// claims of its login.
func TestTokenWithoutRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newQuietWorld(t)
		id := w.register("app", appURI)
		if _ = w.code(id); strings.Contains(w.logs.String(), "offline_access") {
			t.Errorf("with a refresh token: log %s", w.logs)
		}
		w.idp.once = true
		_, tokens := w.redeem(id, w.code(id))
		if !strings.Contains(w.logs.String(), "offline_access") { // the owner may want to know
			t.Errorf("log %s", w.logs)
		}
		<-time.After(time.Hour)
		source := w.sourceFor(&mcp.Principal{Subject: "ada", Issuer: w.url, Claims: claimsOf(tokens)})
		if _, err := source.Token(); !errors.Is(err, authserver.ErrWithdrawn) {
			t.Errorf("%v", err)
		}
		status, answer := w.refresh(id, tokens)
		if status != http.StatusOK {
			t.Errorf("%d %v", status, answer)
		}
		_, _ = w.post("/revoke", url.Values{"token": {answer["refresh_token"].(string)}, "client_id": {id}})
		if _, err := source.Token(); !errors.Is(err, authserver.ErrWithdrawn) {
			t.Errorf("revoked: %v", err)
		}
	})
}
