// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcphttp/authserver"
)

// failing fails the operations that are named, such as "Put grant", or one of those that follow.
type failing struct {
	store.Values
	fails atomic.Value // string
	next  atomic.Int64 // 1 means the next one
}

func (f *failing) err(op, key string) error {
	if f.next.Add(-1) == 0 {
		return errors.New("no connection to a secret host")
	}
	_, kind, _ := strings.Cut(key, "authserver/")
	kind, _, _ = strings.Cut(kind, "/")
	if f.fails.Load() == op+" "+kind {
		return errors.New("no connection to a secret host")
	}
	return nil
}

func (f *failing) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	if err := f.err("Put", key); err != nil {
		return 0, err
	}
	return f.Values.Put(ctx, key, value, version, ttl)
}

func (f *failing) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	if err := f.err("Get", key); err != nil {
		return nil, 0, err
	}
	return f.Values.Get(ctx, key)
}

func (f *failing) Take(ctx context.Context, key string) ([]byte, error) {
	if err := f.err("Take", key); err != nil {
		return nil, err
	}
	return f.Values.Take(ctx, key)
}

// newFailing returns a world whose store can fail.
func newFailing(t *testing.T) (*world, *failing) {
	f := &failing{}
	f.fails.Store("")
	return newWorld(t, func(o *authserver.Options) { f.Values = o.Values; o.Values = f }), f
}

// A store that fails admits nobody, ends nothing and tells nothing: the same request
// succeeds later.
func TestStoreFails(t *testing.T) {
	w, f := newFailing(t)
	id := w.register("app", appURI)
	fail := func(op string) func() { f.fails.Store(op); return func() { f.fails.Store("") } }

	for _, op := range []string{"Put login", "Take login", "Put grant", "Get record", "Put record"} {
		restore := fail(op)
		b := newBrowser(t)
		if back := b.visit(w.link(id)); back != nil || b.status != http.StatusServiceUnavailable || strings.Contains(b.page, "secret") {
			t.Errorf("%s: %v, status %d, page %s", op, back, b.status, b.page)
		}
		restore()
	}
	code := w.code(id)
	for _, op := range []string{"Get grant", "Put grant"} {
		restore := fail(op)
		if status, answer := w.redeem(id, code); status != http.StatusServiceUnavailable || answer["error"] != "temporarily_unavailable" || strings.Contains(answer["error_description"].(string), "secret") {
			t.Errorf("%s: %d %v", op, status, answer)
		}
		restore()
	}
	status, tokens := w.redeem(id, code)
	if status != http.StatusOK {
		t.Fatalf("the same code later: %d %v", status, tokens)
	}
	for _, op := range []string{"Get grant", "Put grant"} {
		restore := fail(op)
		if status, answer := w.refresh(id, tokens); status != http.StatusServiceUnavailable || answer["error"] != "temporarily_unavailable" {
			t.Errorf("%s: %d %v", op, status, answer)
		}
		restore()
	}
	if status, tokens = w.refresh(id, tokens); status != http.StatusOK {
		t.Fatalf("the same refresh token later: %d %v", status, tokens)
	}
	for _, op := range []string{"Get grant", "Take grant"} {
		restore := fail(op)
		if status, _ := w.post("/revoke", url.Values{"token": {tokens["refresh_token"].(string)}, "client_id": {id}}); status != http.StatusServiceUnavailable {
			t.Errorf("%s: a revocation that failed has status %d", op, status)
		}
		restore()
	}
	if status, tokens = w.refresh(id, tokens); status != http.StatusOK {
		t.Fatalf("not revoked: %d %v", status, tokens)
	}
	if !strings.Contains(w.logs.String(), "no connection") {
		t.Error("the owner learns nothing")
	}
}

// Whichever operation fails while a refresh also refreshes the provider's token and asks again
// about the user, the grant stays, and the same request succeeds later.
func TestStoreFailsAnywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &failing{}
		f.fails.Store("")
		w := newQuietWorld(t, func(o *authserver.Options) {
			f.Values, o.Values = o.Values, f
			o.Provider.UserInfoURL = o.Provider.Issuer + "/user"
		})
		w.idp.info = map[string]any{"sub": "ada"}
		id := w.register("app", appURI)
		_, tokens := w.redeem(id, w.code(id))
		refresh := func(want int) {
			t.Helper()
			status, answer := w.refresh(id, tokens)
			if claims := claimsOf(answer); status != want || status == http.StatusOK && (claims["sub"] != "ada" || claims["scope"] != "read") {
				t.Errorf("%d %v %v", status, answer, claims)
			}
			if status == http.StatusOK {
				tokens = answer
			}
		}
		failed, locked := 0, 0
		for n := int64(1); ; n++ {
			<-time.After(2 * time.Hour) // the provider's token has expired
			w.idp.refuseOnce = true
			f.next.Store(n)
			status, answer := w.refresh(id, tokens)
			if reached := f.next.Swap(0) <= 0; !reached {
				break
			}
			if status == http.StatusOK { // a lock was not released
				tokens = answer
				locked++
			} else if failed++; status != http.StatusServiceUnavailable {
				t.Errorf("operation %d: %d %v", n, status, answer)
			}
			<-time.After(time.Minute)
			refresh(http.StatusOK)
		}
		if failed < 10 || locked != 2 {
			t.Errorf("%d operations failed, and %d locks were not released", failed, locked)
		}
	})
}

// The same for a user who is asked after having logged in.
func TestStoreFailsBetweenPages(t *testing.T) {
	w, f := newFailing(t)
	b, link := newBrowser(t), w.link(w.register("app", localURI), "redirect_uri", localURI)
	b.visit(link)
	w.idp.login("bob") // in the browser of ada, who has agreed
	for _, op := range []string{"Put pending", "Take pending"} {
		f.fails.Store(op)
		if back := b.visit(link); back != nil || b.status != http.StatusServiceUnavailable {
			t.Errorf("%s: %v, status %d", op, back, b.status)
		}
	}
	f.fails.Store("")
	if back := b.visit(link); back.Get("code") == "" {
		t.Errorf("%v", back)
	}
}

// A remembered consent that cannot be read asks again.
func TestStoreForgetsConsent(t *testing.T) {
	w, f := newFailing(t)
	b, link := newBrowser(t), w.link(w.register("app", localURI), "redirect_uri", localURI)
	b.visit(link)
	f.next.Store(1)
	if back := b.visit(link); back.Get("code") == "" || b.asked != 2 {
		t.Errorf("%v, asked %d times", back, b.asked)
	}
}

// What is in the store is of one server and one purpose: a value that was moved there is none.
func TestMovedValues(t *testing.T) {
	values := &moving{}
	w := newWorld(t, func(o *authserver.Options) { values.Values = o.Values; o.Values = values })
	id := w.register("app", appURI)
	code := w.code(id)
	values.from = values.last // the grant of this code
	values.on = true
	w.code(id)
	values.on = false
	if status, answer := w.redeem(id, code); status != http.StatusBadRequest || answer["access_token"] != nil {
		t.Errorf("%d %v", status, answer)
	}
}

// moving writes, while it is on, the grants that it is given over the one at from.
type moving struct {
	store.Values
	on         bool
	from, last string
}

func (m *moving) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	if strings.HasPrefix(key, "authserver/grant/") {
		m.last = key
		if m.on {
			_, _ = m.Take(ctx, m.from)
			_, _ = m.Values.Put(ctx, m.from, value, 0, ttl)
		}
	}
	return m.Values.Put(ctx, key, value, version, ttl)
}
