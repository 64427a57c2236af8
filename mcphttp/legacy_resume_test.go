// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcphttp"
)

// polling adds a tool that closes its stream whenever the test says so.
func polling(mux *mcp.Mux) (step chan bool) {
	step = make(chan bool)
	mux.Tool("poll", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		mcp.Progress(ctx, 1, 0, "")
		for n := 2.0; <-step; n++ {
			if err := mcphttp.CloseStream(ctx); err != nil {
				return "", err
			}
			mcp.Progress(ctx, n, 0, "")
		}
		return "polled", nil
	}, nil))
	return step
}

// comeBack resumes the stream of a request from an event on.
func (s *site) comeBack(h header, id string) *reader {
	s.t.Helper()
	return read(s.t, s.do(s.request(s.t.Context(), http.MethodGet, "", with(h, header{"Last-Event-ID": id}))))
}

// A stream that was come back to can be closed again: the GET that had it ends, and
// nothing of it stays behind.
func TestCloseStreamAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := tools()
		step := polling(mux)
		h := newHandler(t, mux, nil)
		s := serve(t, h)
		session := s.open("2025-11-25")
		first := read(t, s.post(call(1, "poll"), session))
		primed, _ := first.next()
		for range 3 {
			step <- true
			for range first.events {
			}
			first = s.comeBack(session, primed.LastEventID)
			synctest.Wait()
		}
		close(step)
		for got := first.message(); !strings.Contains(got, "polled"); got = first.message() {
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := h.Shutdown(ctx); err != nil {
			t.Errorf("something waits for ever: %v", err)
		}
		s.close()
	})
}

// A client that is told to come back before the response has begun is told not to use the
// network connection again, which the server closes.
func TestCloseStreamAtOnce(t *testing.T) {
	mux := tools()
	closed := make(chan error, 1)
	goOn := make(chan struct{})
	mux.Tool("long", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		closed <- mcphttp.CloseStream(ctx)
		<-goOn
		return "done", nil
	}, nil))
	s := serve(t, newHandler(t, mux, nil))
	session := s.open("2025-11-25")
	res := s.post(call(1, "long"), session)
	all := events(t, res, 0)
	if err := <-closed; err != nil || !res.Close || len(all) != 1 {
		t.Fatalf("%v; the connection is closed: %t; events %+v", err, res.Close, all)
	}
	close(goOn)
	if got := s.comeBack(session, all[0].LastEventID).message(); !strings.Contains(got, "done") {
		t.Errorf("the answer is %s", got)
	}
}

// Shutdown ends a stream that another replica writes.
func TestShutdownEndsFollowing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := tools()
		step := polling(mux)
		one, two, first := twins(t, store.NewMemory(nil), func() *mcp.Mux { return mux })
		session := two.open("2025-11-25")
		primed, _ := read(t, two.post(call(1, "poll"), session)).next()
		followed := one.comeBack(session, primed.LastEventID)
		followed.message()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := first.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if e, ok := followed.next(); ok {
			t.Errorf("after Shutdown came %+v", e)
		}
		close(step)
	})
}

// Who comes back for a stream takes it from the GET that had it, which ends: its client
// may have gone without a word, and nothing more is said there.
func TestComeBackTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := tools()
		step := polling(mux)
		s := serve(t, newHandler(t, mux, nil))
		session := s.open("2025-11-25")
		primed, _ := read(t, s.post(call(1, "poll"), session)).next()
		before := s.comeBack(session, primed.LastEventID)
		before.message()
		after := s.comeBack(session, primed.LastEventID)
		after.message()
		synctest.Wait()
		select {
		case e, ok := <-before.events:
			if ok {
				t.Errorf("the GET before was told %+v", e)
			}
		default:
			t.Error("the GET before goes on")
		}
		close(step)
		if got := after.message(); !strings.Contains(got, "polled") {
			t.Errorf("the GET after it was told %s", got)
		}
		s.close()
	})
}

// Shutdown takes no longer than it may, whatever listens.
func TestShutdownIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := tools()
		release := make(chan struct{})
		mux.Use(func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				if req.Method == mcp.MethodListen {
					defer func() { <-release }()
				}
				return next.ServeMCP(ctx, req)
			})
		})
		h := newHandler(t, mux, nil)
		s := serve(t, h)
		read(t, s.do(s.request(t.Context(), http.MethodGet, "", s.open("2025-11-25")))).next()
		time.AfterFunc(time.Hour, func() { close(release) })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if err := h.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > time.Minute {
			t.Errorf("Shutdown returned %v after %v", err, time.Since(start))
		}
		<-release
		s.close()
	})
}

// The stream of an SSEHandler ends with the authentication of its caller, as other
// streams do.
func TestSSEEndsWithItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newSSEHandler(t, tools())
		expiry := time.Now().Add(time.Hour)
		s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(w, mcphttp.WithPrincipal(r, &mcp.Principal{Subject: "ann", Expiry: expiry}))
		}))
		stream := read(t, s.do(s.request(t.Context(), http.MethodGet, "", nil)))
		for range stream.events {
		}
		if now := time.Now(); now.Before(expiry) || now.After(expiry.Add(time.Minute)) {
			t.Errorf("the stream ended %v after the authentication", now.Sub(expiry))
		}
		s.close()
	})
}
