// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/go-psi/psi/mcphttp/auth/authtest"
	"github.com/go-psi/psi/mcphttp/authserver"
)

// A registration is bounded, and says what is wrong.
func TestRegistrationBounds(t *testing.T) {
	w := newWorld(t)
	uris := func(n, size int) (list []string) {
		for i := range n {
			uri := "https://app.example/" + strconv.Itoa(i) + "/"
			list = append(list, uri+strings.Repeat("x", max(0, size-len(uri))))
		}
		return list
	}
	for name, c := range map[string]struct {
		body map[string]any
		code string // "" means success
	}{
		"one":                  {map[string]any{"redirect_uris": uris(1, 0)}, ""},
		"16":                   {map[string]any{"redirect_uris": uris(16, 0)}, ""},
		"17":                   {map[string]any{"redirect_uris": uris(17, 0)}, "invalid_redirect_uri"},
		"none":                 {map[string]any{"redirect_uris": []string{}}, "invalid_redirect_uri"},
		"missing":              {map[string]any{}, "invalid_redirect_uri"},
		"1 KiB":                {map[string]any{"redirect_uris": uris(1, 1<<10)}, ""},
		"more than 1 KiB":      {map[string]any{"redirect_uris": uris(1, 1<<10+1)}, "invalid_redirect_uri"},
		"2 KiB":                {map[string]any{"redirect_uris": uris(2, 1<<10)}, ""},
		"more than 2 KiB":      {map[string]any{"redirect_uris": append(uris(2, 1<<10), appURI)}, "invalid_redirect_uri"},
		"one wrong":            {map[string]any{"redirect_uris": append(uris(1, 0), "javascript:x")}, "invalid_redirect_uri"},
		"another kind":         {map[string]any{"redirect_uris": appURI}, "invalid_client_metadata"},
		"too long":             {map[string]any{"redirect_uris": uris(1, 0), "x": strings.Repeat("x", 32<<10)}, "invalid_client_metadata"},
		"a key as secret":      {map[string]any{"redirect_uris": uris(1, 0), "token_endpoint_auth_method": "private_key_jwt"}, "invalid_client_metadata"},
		"refresh only":         {map[string]any{"redirect_uris": uris(1, 0), "grant_types": []string{"refresh_token"}}, "invalid_client_metadata"},
		"no grants":            {map[string]any{"redirect_uris": uris(1, 0), "grant_types": []string{}}, "invalid_client_metadata"},
		"codes":                {map[string]any{"redirect_uris": uris(1, 0), "grant_types": []string{"authorization_code"}}, ""},
		"members of no intent": {map[string]any{"redirect_uris": uris(1, 0), "logo_uri": "javascript:x", "jwks": map[string]any{}}, ""},
	} {
		status, answer := w.post("/register", c.body)
		code, _ := answer["error"].(string)
		if code != c.code || (status == http.StatusCreated) != (c.code == "") || status != http.StatusCreated && answer["error_description"] == nil {
			t.Errorf("%s: %d %v", name, status, answer)
		}
		if status == http.StatusCreated && (answer["logo_uri"] != nil || answer["client_secret"] != nil || answer["token_endpoint_auth_method"] != "none") {
			t.Errorf("%s: %v", name, answer)
		}
	}
}

// A long name is cut between characters.
func TestLongName(t *testing.T) {
	w := newWorld(t)
	for name, want := range map[string]string{
		strings.Repeat("x", 100): strings.Repeat("x", 100), strings.Repeat("x", 101): strings.Repeat("x", 100) + "…",
		"x" + strings.Repeat("é", 50): "x" + strings.Repeat("é", 49) + "…", "  App\n": "App",
	} {
		_, answer := w.post("/register", map[string]any{"client_name": name, "redirect_uris": []string{appURI}})
		if got, _ := answer["client_name"].(string); got != want || !utf8.ValidString(got) {
			t.Errorf("%q: %q", name, got)
		}
	}
}

// Strangers do not fill the store with used proofs either: those of a request without a code or token
// of ours are not kept.
func TestProofFlood(t *testing.T) {
	values := &counting{}
	w := newWorld(t, func(o *authserver.Options) { values.Values = o.Values; o.Values = values })
	id := w.register("app", appURI)
	for _, form := range []url.Values{
		{"grant_type": {"authorization_code"}, "code": {"x"}}, {"grant_type": {"refresh_token"}, "refresh_token": {"x"}}, {"grant_type": {"authorization_code"}, "code": {id}}, {"grant_type": {"password"}}, {},
	} {
		form.Set("client_id", id)
		r := httptest.NewRequest(http.MethodPost, w.url+"/token", strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("DPoP", authtest.NewProofKey().Proof(http.MethodPost, w.url+"/token", "", authtest.Claims{"ath": nil}))
		rec := httptest.NewRecorder()
		if w.replicas[0].ServeHTTP(rec, r); rec.Code != http.StatusBadRequest || values.puts.Load() != 0 {
			t.Errorf("%v: status %d %s, %d values stored", form, rec.Code, rec.Body, values.puts.Load())
		}
	}
}

// An address that has spent its minute waits for the next one, and others do not.
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newQuietWorld(t)
		front := w.replicas[0]
		post := func(from string) int {
			r := httptest.NewRequest(http.MethodPost, "/token", strings.NewReader("grant_type=x"))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.RemoteAddr = from
			rec := httptest.NewRecorder()
			front.ServeHTTP(rec, r)
			return rec.Code
		}
		for i := range 300 {
			if status := post("192.0.2.1:" + strconv.Itoa(i)); status == http.StatusTooManyRequests {
				t.Fatalf("request %d is refused", i)
			}
		}
		<-time.After(time.Minute - 1)
		for from, want := range map[string]int{"192.0.2.1:1": http.StatusTooManyRequests, "192.0.2.2:1": http.StatusUnauthorized, "[2001:db8::1]:1": http.StatusUnauthorized} {
			if status := post(from); status != want {
				t.Errorf("%s: status %d, want %d", from, status, want)
			}
		}
		for range 299 { // of one network
			post("[2001:db8::" + strconv.Itoa(2) + "]:1")
		}
		if status := post("[2001:db8::ffff]:1"); status != http.StatusTooManyRequests {
			t.Errorf("another address of the network: status %d", status)
		}
		for _, path := range []string{"/callback?state=x&code=y", w.link("x")[len(w.url):]} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.RemoteAddr = "192.0.2.1:1"
			rec := httptest.NewRecorder()
			if front.ServeHTTP(rec, r); rec.Code != http.StatusTooManyRequests {
				t.Errorf("%s: status %d", path, rec.Code)
			}
		}
		r := httptest.NewRequest(http.MethodPost, "/consent", nil)
		r.RemoteAddr = "192.0.2.1:1"
		rec := httptest.NewRecorder()
		if front.ServeHTTP(rec, r); rec.Code != http.StatusTooManyRequests {
			t.Errorf("/consent: status %d", rec.Code)
		}
		long := strings.Repeat("x", 64) // what middleware took for an address
		for i := range 300 {
			post(long + strconv.Itoa(i))
		}
		if status := post(long + "y"); status != http.StatusTooManyRequests {
			t.Errorf("long addresses that begin alike: status %d", status)
		}
		// The owner learns it once for each address: behind a proxy, all users may have the same one.
		if n := strings.Count(w.logs.String(), "address=192.0.2.1\n"); n != 1 || !strings.Contains(w.logs.String(), "set RemoteAddr") {
			t.Errorf("logged %d times: %s", n, w.logs)
		}
		<-time.After(time.Nanosecond)
		if status := post("192.0.2.1:1"); status != http.StatusUnauthorized {
			t.Errorf("a minute later: status %d", status)
		}
	})
}

// A flood of logins that nobody finishes stores nine values a minute for an address.
func TestLoginFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		values := &counting{}
		w := newQuietWorld(t, func(o *authserver.Options) { values.Values = o.Values; o.Values = values })
		b := w.browser()
		id := w.register("app", appURI)
		b.step(http.MethodGet, w.link(id), nil)
		form := url.Values{"token": {b.form()}, "answer": {"allow"}} // which can be posted again and again
		for range 50 {
			b.step(http.MethodPost, w.url+"/consent", form)
		}
		// Each replica counts for itself.
		if n := values.puts.Load(); n != 18 || b.status != http.StatusTooManyRequests {
			t.Errorf("%d values stored, status %d", n, b.status)
		}
	})
}

// A program that logs in again and again, and throws its tokens away, is bounded for each of its
// users: the oldest grants end. Those of others stay.
func TestGrantsOfOneUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newQuietWorld(t)
		id := w.register("app", appURI)
		w.idp.login("bob")
		_, others := w.redeem(id, w.code(id))
		w.idp.login("ada")
		var first, second map[string]any
		for i := range 257 {
			_, tokens := w.redeem(id, w.code(id))
			switch i {
			case 0:
				first = tokens
			case 1:
				second = tokens
			}
			if tokens["access_token"] == nil {
				t.Fatalf("login %d: %v", i, tokens)
			}
			<-time.After(10 * time.Second)
		}
		for name, c := range map[string]struct {
			tokens map[string]any
			status int
		}{"the first": {first, http.StatusBadRequest}, "the second": {second, http.StatusOK}, "another user's": {others, http.StatusOK}} {
			if status, answer := w.refresh(id, c.tokens); status != c.status {
				t.Errorf("%s: %d %v", name, status, answer)
			}
		}
		if n := strings.Count(w.logs.String(), "the oldest ends"); n != 1 {
			t.Errorf("logged %d times", n)
		}
	})
}

// The consents that are kept for a user are bounded, too. The oldest are asked for again.
func TestConsentsOfOneUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newQuietWorld(t)
		b := w.browser()
		var links []string
		for range 65 {
			links = append(links, w.link(w.register("app", localURI), "redirect_uri", localURI))
			_ = b.visit(links[len(links)-1])
			<-time.After(10 * time.Second)
		}
		for i, asked := range map[int]int{0: 1, 2: 0, 64: 0} {
			before := b.asked
			<-time.After(time.Minute)
			if back := b.visit(links[i]); back.Get("code") == "" || b.asked-before != asked {
				t.Errorf("program %d: %v, asked %d times", i, back, b.asked-before)
			}
		}
	})
}

// What has an age ends: registrations after a year, the page after ten minutes, the login at
// the provider after ten, codes after one, grants thirty days after the last refresh.
func TestAges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newQuietWorld(t)
		id := w.register("app", appURI)
		for age, ok := range map[time.Duration]bool{10*time.Minute - time.Second: true, 10 * time.Minute: false} {
			b := w.browser()
			b.step(http.MethodGet, w.link(id), nil)
			<-time.After(age)
			if to := b.step(http.MethodPost, w.url+"/consent", url.Values{"token": {b.form()}, "answer": {"allow"}}); (to != nil) != ok {
				t.Errorf("the page after %v: %d", age, b.status)
			}
			b = w.browser()
			callback := w.toCallback(b, w.link(id))
			<-time.After(age)
			if to := b.step(http.MethodGet, callback.String(), nil); (to != nil) != ok {
				t.Errorf("the login after %v: %d", age, b.status)
			}
		}
		for age, ok := range map[time.Duration]bool{time.Minute - time.Second: true, time.Minute: false} {
			code := w.code(id)
			<-time.After(age)
			if status, answer := w.redeem(id, code); (status == http.StatusOK) != ok {
				t.Errorf("the code after %v: %d %v", age, status, answer)
			}
			<-time.After(time.Minute)
		}
		var status int
		_, tokens := w.redeem(id, w.code(id))
		for _, step := range []struct {
			age time.Duration
			ok  bool
		}{{30*24*time.Hour - time.Minute, true}, {30*24*time.Hour - time.Minute, true}, {30*24*time.Hour + time.Minute, false}} {
			<-time.After(step.age)
			if status, tokens = w.refresh(id, tokens); (status == http.StatusOK) != step.ok {
				t.Errorf("the grant after %v: status %d %v", step.age, status, tokens)
			}
		}
		<-time.After(365 * 24 * time.Hour)
		if b := w.browser(); b.step(http.MethodGet, w.link(id), nil) != nil || b.status != http.StatusBadRequest || b.form() != "" {
			t.Errorf("after a year: status %d", b.status)
		}
		if status, answer := w.redeem(id, "x"); status != http.StatusUnauthorized || answer["error"] != "invalid_client" {
			t.Errorf("after a year: %d %v", status, answer)
		}
	})
}

// A user may use up the time of each page.
func TestSlowUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newQuietWorld(t)
		link := w.link(w.register("app", localURI), "redirect_uri", localURI)
		for _, user := range []string{"ada", "bob"} { // bob is asked after having logged in, in the browser of ada
			w.idp.login(user)
			b := w.browser()
			if user == "bob" {
				w.idp.login("ada")
				b.visit(link)
				w.idp.login("bob")
			}
			next := b.step(http.MethodGet, link, nil)
			for range 6 {
				switch {
				case next == nil && b.form() != "":
					<-time.After(9 * time.Minute)
					next = b.step(http.MethodPost, w.url+"/consent", url.Values{"token": {b.form()}, "answer": {"allow"}})
				case next != nil && next.Path == "/auth":
					<-time.After(9 * time.Minute)
					next = b.step(http.MethodGet, next.String(), nil)
				case next != nil && next.Path == "/callback":
					next = b.step(http.MethodGet, next.String(), nil)
				}
			}
			if next == nil || next.Path != "/cb" || !next.Query().Has("code") {
				t.Errorf("%s: %v, status %d %s", user, next, b.status, b.page)
			}
		}
	})
}

// An access token is valid for five minutes, and a consent is remembered for ninety days.
func TestLongAges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newQuietWorld(t)
		b := w.browser()
		id := w.register("app", localURI)
		link := w.link(id, "redirect_uri", localURI)
		_, tokens := w.redeem(id, b.visit(link).Get("code"), "redirect_uri", localURI)
		if tokens["expires_in"] != 300.0 {
			t.Errorf("%v", tokens["expires_in"])
		}
		<-time.After(5*time.Minute - time.Second)
		if status := w.status(tokens["access_token"]); status == http.StatusUnauthorized {
			t.Error("the token does not last for five minutes")
		}
		<-time.After(time.Minute + 2*time.Second) // of which one minute is for clocks that differ
		if status := w.status(tokens["access_token"]); status != http.StatusUnauthorized {
			t.Errorf("after five minutes: status %d", status)
		}
		for _, step := range []struct {
			days, asked int
		}{{89, 1}, {2, 2}} {
			<-time.After(time.Duration(step.days) * 24 * time.Hour)
			if b.visit(link); b.asked != step.asked {
				t.Errorf("after %d days: asked %d times, want %d", step.days, b.asked, step.asked)
			}
		}
	})
}

// deadlines records the deadlines that a handler sets.
type deadlines struct {
	*httptest.ResponseRecorder
	read time.Time
}

func (d *deadlines) SetReadDeadline(at time.Time) error { d.read = at; return nil }

// A body that does not arrive keeps a request for ten seconds.
func TestSlowBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newQuietWorld(t)
		for _, path := range []string{"/register", "/token", "/revoke", "/consent"} {
			d := &deadlines{ResponseRecorder: httptest.NewRecorder()}
			w.replicas[0].ServeHTTP(d, httptest.NewRequest(http.MethodPost, path, strings.NewReader("")))
			if time.Until(d.read) != 10*time.Second {
				t.Errorf("%s: the deadline is %v", path, d.read)
			}
		}
	})
}

// A body of more than 32 KiB, of another type or with a parameter twice is refused.
func TestWrongForms(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct{ kind, body, code string }{
		"JSON": {"application/json", "{}", "invalid_request"}, "no type": {"", "grant_type=x", "invalid_request"}, "too long": {"application/x-www-form-urlencoded", "grant_type=" + strings.Repeat("x", 32<<10), "invalid_request"},
		"malformed": {"application/x-www-form-urlencoded", "grant_type=%zz", "invalid_request"}, "twice": {"application/x-www-form-urlencoded", "client_id=a&client_id=b", "invalid_request"},
		"two resources": {"application/x-www-form-urlencoded", "resource=a&resource=b", "invalid_target"},
	} {
		for _, path := range []string{"/token", "/revoke"} {
			r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(c.body))
			r.Header.Set("Content-Type", c.kind)
			rec := httptest.NewRecorder()
			w.replicas[0].ServeHTTP(rec, r)
			if rec.Code != http.StatusBadRequest || !strings.Contains(rec.Body.String(), `"`+c.code+`"`) {
				t.Errorf("%s at %s: %d %s", name, path, rec.Code, rec.Body)
			}
		}
	}
	id := w.register("app", appURI)
	if status, answer := w.post("/token", url.Values{"grant_type": {"password"}, "client_id": {id}}); answer["error"] != "unsupported_grant_type" {
		t.Errorf("%d %v", status, answer)
	}
}
