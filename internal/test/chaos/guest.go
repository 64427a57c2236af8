// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
)

const (
	addressHeader = "Chaos-Address"         // of the guest, for the limits of a replica
	userHeader    = "Chaos-User"            // who logs in at the provider
	appURI        = "http://127.0.0.1:7/cb" // of a program whose consent is remembered
	retryTime     = 30 * time.Second        // how long package authserver lets a refresh token come again
)

// A guest is a visitor who logs in, with a program and a browser, uses the tokens, refreshes
// them, and ends the grant in one of several ways. Only a step that was sent again, because no
// replica answered, may make the guest start again.
type guest struct {
	*visitor

	client  *http.Client // keeps nothing, and follows nothing
	jar     http.CookieJar
	user    string
	address string
	program string // its client ID
}

// A way is what a guest does with one grant.
type way struct {
	twice     bool // a code comes twice at first
	refreshes int
	replays   bool // the guest ends the grant by replaying a refresh token, not by revoking it
	waits     bool // until refresh tokens cannot come again
}

func (g *guest) String() string { return fmt.Sprintf("guest %d", g.number) }

func newGuest(v *visitor, transport http.RoundTripper) *guest {
	return &guest{visitor: v, client: &http.Client{
		Transport: transport, Timeout: callTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// run logs in again and again until ctx is done.
func (g *guest) run(ctx context.Context) {
	for ctx.Err() == nil {
		waits := g.rng.IntN(8) == 0
		ways := make([]way, 1+g.rng.IntN(2))
		for i := range ways {
			ways[i] = way{twice: g.rng.IntN(5) == 0, refreshes: g.rng.IntN(4), replays: g.rng.IntN(2) == 0, waits: waits}
		}
		g.visit(ctx, ways...)
		sleep(ctx, time.Duration(g.rng.Int64N(int64(time.Second))))
	}
}

// A reply is what a request has led to.
type reply struct {
	status int
	next   *url.URL // of a redirect
	body   string
	again  bool // the request was sent more than once
}

// tokens are what the token endpoint answers.
type tokens struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
}

// send sends a request, and again while no replica answers. It returns nil if ctx is done.
func (g *guest) send(ctx context.Context, kind, method, to string, body any, header ...string) (r *reply) {
	tries := 0
	g.do(ctx, kind, func(ctx context.Context) (err error) {
		tries++
		if r, err = g.exchange(ctx, method, to, body, header); err == nil {
			r.again = tries > 1
		}
		return err
	})
	return r
}

func (g *guest) exchange(ctx context.Context, method, to string, body any, header []string) (*reply, error) {
	text, kind := "", "application/x-www-form-urlencoded"
	switch body := body.(type) {
	case url.Values:
		text = body.Encode()
	case string:
		text, kind = body, "application/json"
	}
	req, err := http.NewRequestWithContext(ctx, method, to, strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	if text != "" {
		req.Header.Set("Content-Type", kind)
	}
	req.Header.Set(addressHeader, g.address)
	req.Header.Set(userHeader, g.user)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	for _, c := range g.jar.Cookies(req.URL) {
		req.AddCookie(c)
	}
	res, err := g.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	page, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	if res.StatusCode >= http.StatusInternalServerError {
		return nil, fmt.Errorf("%s: status %d", req.URL.Path, res.StatusCode)
	}
	g.jar.SetCookies(req.URL, res.Cookies())
	r := &reply{status: res.StatusCode, body: string(page)}
	if next, err := res.Location(); err == nil {
		r.next = next
	}
	return r, nil
}

// visit is what one user does with one browser, grant after grant.
func (g *guest) visit(ctx context.Context, ways ...way) {
	g.jar, _ = cookiejar.New(nil) // it never fails
	g.user, g.address = rand.Text(), fmt.Sprintf("192.0.%d.%d:1", g.rng.IntN(256), g.rng.IntN(256))
	r := g.send(ctx, "register", http.MethodPost, g.url+"/register", fmt.Sprintf(`{"client_name":"chaos","redirect_uris":[%q]}`, appURI))
	var registered struct {
		ID string `json:"client_id"`
	}
	if r == nil {
		return
	}
	if json.Unmarshal([]byte(r.body), &registered) != nil || registered.ID == "" {
		g.wrong("no registration", r)
		return
	}
	g.program = registered.ID
	for _, w := range ways {
		if w.twice && !g.redeemTwice(ctx) {
			return
		}
		t := g.login(ctx)
		if t == nil {
			return
		}
		g.use(ctx, t)
		for range w.refreshes {
			if t = g.refresh(ctx, t); t == nil {
				return
			}
			g.use(ctx, t)
		}
		if w.replays {
			g.replay(ctx, t, w.waits)
		} else {
			g.revoke(ctx, t)
		}
	}
}

func (g *guest) wrong(what string, r *reply) {
	g.report.wrongf("%v: %s: status %d, sent again: %v, to %v: %.300s", g, what, r.status, r.again, r.next, r.body)
}

// errAskedAgain is why a login began again after a step that was sent again.
var errAskedAgain = errors.New("the user must start again")

// login returns the tokens of a login, or nil if ctx is done or something was wrong.
func (g *guest) login(ctx context.Context) *tokens {
	begun := time.Now()
	for ctx.Err() == nil {
		form := g.authorize(ctx)
		if form == nil {
			return nil
		}
		r := g.send(ctx, "code", http.MethodPost, g.url+"/token", form)
		switch {
		case r == nil:
			return nil
		case r.status == http.StatusOK:
			g.report.done("login", time.Since(begun))
			return g.parse(r)
		case r.status == http.StatusBadRequest && r.again:
			g.report.again("login", errAskedAgain)
		default:
			g.wrong("a login is lost", r)
			return nil
		}
	}
	return nil
}

var tokenField = regexp.MustCompile(`name="token" value="([^"]*)"`)

// authorize goes where the browser is sent, and returns the form by which the program exchanges
// the code that it gets, or nil.
func (g *guest) authorize(ctx context.Context) url.Values {
	verifier := oauth2.GenerateVerifier()
	link := g.url + "/authorize?" + url.Values{
		"response_type": {"code"}, "client_id": {g.program}, "redirect_uri": {appURI}, "state": {"its-state"}, "scope": {"read"},
		"code_challenge": {oauth2.S256ChallengeFromVerifier(verifier)}, "code_challenge_method": {"S256"}, "resource": {g.url + "/mcp"},
	}.Encode()
	method, to, form := http.MethodGet, link, url.Values(nil)
	for {
		u, _ := url.Parse(to) // a URL that was parsed before
		r := g.send(ctx, strings.TrimPrefix(u.Path, "/"), method, to, form)
		if r == nil {
			return nil
		}
		page := tokenField.FindStringSubmatch(r.body)
		switch {
		case r.next != nil && strings.HasPrefix(r.next.String(), appURI):
			if q := r.next.Query(); q.Get("code") != "" && q.Get("iss") == g.url && q.Get("state") == "its-state" {
				return url.Values{"grant_type": {"authorization_code"}, "code": {q.Get("code")}, "redirect_uri": {appURI}, "client_id": {g.program}, "code_verifier": {verifier}}
			}
			g.wrong("no code", r)
			return nil
		case r.next != nil:
			method, to, form = http.MethodGet, r.next.String(), nil
		case page != nil:
			method, to, form = http.MethodPost, g.url+"/consent", url.Values{"token": {html.UnescapeString(page[1])}, "answer": {"allow"}}
		case r.status == http.StatusBadRequest && r.again:
			g.report.again("login", errAskedAgain)
			method, to, form = http.MethodGet, link, nil
		default:
			g.wrong("a login cannot go on", r)
			return nil
		}
	}
}

func (g *guest) parse(r *reply) *tokens {
	t := &tokens{}
	if json.Unmarshal([]byte(r.body), t) != nil || t.Access == "" || t.Refresh == "" {
		g.wrong("no tokens", r)
		return nil
	}
	return t
}

// together sends a form several times at once.
func (g *guest) together(ctx context.Context, kind string, form url.Values, n int) []*reply {
	replies := make([]*reply, n)
	var all sync.WaitGroup
	for i := range replies {
		all.Go(func() { replies[i] = g.send(ctx, kind, http.MethodPost, g.url+"/token", form) })
	}
	all.Wait()
	return replies
}

// redeemTwice exchanges a code twice at once: it gives tokens once at most, and they end. It
// reports whether the guest can go on.
func (g *guest) redeemTwice(ctx context.Context) bool {
	form := g.authorize(ctx)
	if form == nil {
		return false
	}
	var got *tokens
	for _, r := range g.together(ctx, "code twice", form, 2) {
		switch {
		case r == nil:
			return false
		case r.status == http.StatusOK && got != nil:
			g.wrong("a code gives tokens twice", r)
		case r.status == http.StatusOK:
			got = g.parse(r)
		}
	}
	if got != nil {
		g.refused(ctx, "a code came twice", got)
	}
	return true
}

// use shows the access token to the MCP server, at one replica after the other.
func (g *guest) use(ctx context.Context, t *tokens) {
	for range size {
		if r := g.send(ctx, "use", http.MethodGet, g.url+"/mcp", nil, "Authorization", "Bearer "+t.Access); r != nil && r.body != g.user {
			g.wrong("a token is refused, or is of somebody else", r)
		}
	}
}

func (g *guest) refreshForm(t *tokens) url.Values {
	return url.Values{"grant_type": {"refresh_token"}, "refresh_token": {t.Refresh}, "client_id": {g.program}}
}

// refresh returns the next tokens, or nil.
func (g *guest) refresh(ctx context.Context, t *tokens) *tokens {
	begun := time.Now()
	r := g.send(ctx, "refresh", http.MethodPost, g.url+"/token", g.refreshForm(t))
	switch {
	case r == nil:
		return nil
	case r.status == http.StatusOK:
		return g.parse(r)
	case r.again && time.Since(begun) >= retryTime:
		g.report.again("login", errAskedAgain)
	default:
		g.wrong("a grant is lost", r)
	}
	return nil
}

// refused checks that a refresh token gives nothing.
func (g *guest) refused(ctx context.Context, after string, t *tokens) {
	if r := g.send(ctx, "refused", http.MethodPost, g.url+"/token", g.refreshForm(t)); r != nil && r.status != http.StatusBadRequest {
		g.wrong("after "+after+": a refresh token still works", r)
	}
}

// revoke ends the grant.
func (g *guest) revoke(ctx context.Context, t *tokens) {
	if r := g.send(ctx, "revoke", http.MethodPost, g.url+"/revoke", url.Values{"token": {t.Refresh}, "client_id": {g.program}}); r != nil && r.status == http.StatusOK {
		g.refused(ctx, "its revocation", t)
	} else if r != nil {
		g.wrong("a grant is not revoked", r)
	}
}

// replay refreshes several times at once, as programs do whose calls notice together that a
// token has expired. All get the same successor, also when one of them has moved on; a guest
// who waits until that moment is over loses the grant.
func (g *guest) replay(ctx context.Context, t *tokens, waits bool) {
	begun := time.Now()
	replies := g.together(ctx, "refresh together", g.refreshForm(t), 3)
	if slices.Contains(replies, nil) || time.Since(begun) >= retryTime {
		return
	}
	for _, r := range replies {
		if r.status != http.StatusOK {
			g.wrong("a refresh at the same time is refused", r)
			return
		}
	}
	next, sibling := g.parse(replies[0]), g.parse(replies[1])
	if next == nil || sibling == nil {
		return
	}
	if next = g.refresh(ctx, next); next == nil {
		return
	}
	if !waits {
		g.revoke(ctx, next)
		g.refused(ctx, "its successor was revoked", sibling)
		return
	}
	if sleep(ctx, retryTime); ctx.Err() == nil {
		g.refused(ctx, "its time", sibling)
		g.refused(ctx, "a replay", next)
	}
}
