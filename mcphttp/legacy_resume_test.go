// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

// polling adds a tool that closes its stream when the test tells it to.
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

// comeBack resumes the stream of a request after an event.
func (s *site) comeBack(h header, id string) *reader {
	s.t.Helper()
	return read(s.t, s.do(s.request(s.t.Context(), http.MethodGet, "", with(h, header{"Last-Event-ID": id}))))
}

// A resumed stream can be closed again: its GET ends, and nothing of it is left behind.
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

// A client that is told to reconnect before the response has begun is also told not to reuse
// the network connection, which the server closes.
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

// A client that resumes a stream takes it over from the GET that had it. That GET ends, and
// nothing more is sent on it: its client may have disconnected silently.
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

// Shutdown does not exceed the deadline of its context, whatever is listening.
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

// The stream of an SSEHandler ends when the authentication of its caller expires, like other
// streams.
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

// chatty adds a tool that sends progress of a given size before its result.
func chatty(mux *mcp.Mux, size int) *mcp.Mux {
	mux.Tool("chatty", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		mcp.Progress(ctx, 1, 2, strings.Repeat("x", size))
		return "said", nil
	}, nil))
	return mux
}

// firstID makes a call and returns the ID of the first event of its stream.
func (s *site) firstID(id int, tool string, h header) string {
	s.t.Helper()
	return events(s.t, s.post(call(id, tool), h), 0)[0].LastEventID
}

// S29: the stored events of one caller do not prevent those of others from being stored.
func TestFindingS29OthersCanResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logged
		h := newHandler(t, chatty(tools(), 40_000), &mcphttp.Options{
			Logger: slog.New(slog.NewTextHandler(&log, nil)), Sessions: mcphttp.SessionOptions{Replay: 400_000},
		})
		s := serve(t, identified(h))
		alice := s.tryOpen(header{"User": "alice"})
		first := s.firstID(1, "steps", alice)
		var sessions []header
		var ids []string
		for i := range 30 {
			if i%10 == 0 {
				sessions = append(sessions, s.tryOpen(header{"User": "mallory"}))
			}
			ids = append(ids, s.firstID(i, "chatty", sessions[len(sessions)-1]))
		}
		if got := s.comeBack(alice, first).message(); !strings.Contains(got, "progress") {
			t.Errorf("alice comes back and gets %s", got)
		}
		second := s.firstID(2, "steps", alice)
		if got := s.comeBack(alice, second).message(); !strings.Contains(got, "progress") {
			t.Errorf("alice comes back again and gets %s", got)
		}
		comeBack := func(id string) int {
			return s.do(s.request(t.Context(), http.MethodGet, "", with(sessions[len(sessions)-1], header{"Last-Event-ID": id}))).StatusCode
		}
		if got := comeBack(ids[29]); got != http.StatusOK {
			t.Errorf("mallory's last stream: %d", got)
		}
		if got := comeBack(ids[20]); got != http.StatusNotFound {
			t.Errorf("an old stream of mallory's: %d", got)
		}
		if got := log.String(); got != "" {
			t.Errorf("the operator is told: %s", got)
		}
		s.close()
	})
}

// S29: an event that is too large to be kept is logged once, not for every event.
func TestFindingS29OneWarning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logged
		h := newHandler(t, chatty(tools(), 1000), &mcphttp.Options{
			Logger: slog.New(slog.NewTextHandler(&log, nil)), Sessions: mcphttp.SessionOptions{Replay: 1000},
		})
		s := serve(t, h)
		session := s.open("2025-11-25")
		for i := range 100 {
			events(t, s.post(call(i, "chatty"), session), 0)
		}
		if got := strings.Count(log.String(), "an event was not kept"); got != 1 {
			t.Errorf("the operator is told %d times, want once", got)
		}
		<-time.After(10 * time.Minute)
		for i := range 100 {
			events(t, s.post(call(i, "chatty"), session), 0)
		}
		if got := strings.Count(log.String(), "an event was not kept"); got != 2 {
			t.Errorf("ten minutes later the operator was told %d times, want twice", got)
		}
		s.close()
	})
}

// TestFindingV12ClientLeavesMidCall checks that a client that ends its session during a call, as
// it does when it closes its connection, is no reason for a warning.
func TestFindingV12ClientLeavesMidCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logged
		mux, left := tools(), make(chan struct{})
		mux.Tool("slow", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
			mcp.Progress(ctx, 1, 2, "")
			<-left
			mcp.Progress(ctx, 2, 2, "")
			return "done", nil
		}, nil))
		s := serve(t, newHandler(t, mux, &mcphttp.Options{Heartbeat: -1, Logger: slog.New(slog.NewTextHandler(&log, nil))}))
		session := s.open("2025-11-25")
		ctx, leave := context.WithCancel(t.Context())
		res := s.do(s.request(ctx, http.MethodPost, call(1, "slow"), session))
		synctest.Wait()
		s.do(s.request(t.Context(), http.MethodDelete, "", session))
		leave()
		_ = res.Body.Close()
		close(left)
		synctest.Wait()
		if got := log.String(); strings.Contains(got, "WARN") {
			t.Errorf("the operator is told %s", got)
		}
		s.close()
	})
}

// S29: streams that have been silent for long do not count, because their events have
// expired.
func TestFindingS29ExpiredEventsDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, newHandler(t, chatty(tools(), 1000), &mcphttp.Options{Heartbeat: -1, Sessions: mcphttp.SessionOptions{Replay: 100_000}}))
		session := s.open("2025-11-25")
		status := func(id string) int {
			return s.do(s.request(t.Context(), http.MethodGet, "", with(session, header{"Last-Event-ID": id}))).StatusCode
		}
		var ids []string
		for i := range 100 {
			ids = append(ids, s.firstID(i, "chatty", session))
		}
		if got := status(ids[0]); got != http.StatusNotFound {
			t.Errorf("a stream beyond the limit: %d", got)
		}
		if got := status(ids[99]); got != http.StatusOK {
			t.Errorf("the last stream: %d", got)
		}
		<-time.After(6 * time.Minute)
		if got := status(ids[99]); got != http.StatusNotFound {
			t.Errorf("a stream that has been silent for six minutes: %d", got)
		}
		s.close()
	})
}

// Mutation 52: a resumed stream ends when the server stops waiting for its call.
func TestFindingM52ResumedStreamEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := tools()
		mux.Tool("stubborn", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
			mcp.Progress(ctx, 1, 2, "")
			<-time.After(time.Hour) // ignores ctx
			return "", nil
		}, nil))
		h := newHandler(t, mux, nil)
		s := serve(t, h)
		session := s.open("2025-11-25")
		first, _ := read(t, s.post(call(1, "stubborn"), session)).next()
		rest := s.comeBack(session, first.LastEventID)
		rest.message()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = h.Shutdown(ctx)
		if _, ended := rest.hears(); !ended {
			t.Error("the stream goes on")
		}
		<-time.After(time.Hour)
		s.close()
	})
}

// A client that resumes a stream at the moment when its last message is written gets that
// message and the end of the stream: nothing more would come.
func TestFindingK55ResumeWhileTheStreamEnds(t *testing.T) {
	const attach = "mcphttp.(*stream).attach"
	h := newHandler(t, tools(), nil)
	s := serve(t, h)
	session := s.open("2025-11-25")
	first, release := make(chan string, 1), make(chan struct{})
	var once sync.Once
	w := &hooked{httptest.NewRecorder(), func(part string) {
		id, _, _ := strings.Cut(strings.TrimPrefix(part, "id: "), "\n")
		once.Do(func() { first <- id })
		if strings.Contains(part, `"result"`) {
			<-release
		}
	}}
	var serving sync.WaitGroup
	r := s.request(t.Context(), http.MethodPost, call(1, "steps"), session)
	serving.Go(func() { h.ServeHTTP(w, r) })
	id := <-first
	resumed := make(chan string, 1)
	serving.Go(func() {
		resumed <- whole(t, s.do(s.request(t.Context(), http.MethodGet, "", with(session, header{"Last-Event-ID": id})))).body
	})
	waitFor(attach, false)
	close(release)
	if got := <-resumed; !strings.Contains(got, `"result"`) {
		t.Errorf("the client got %s", got)
	}
	serving.Wait()
}
