// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcphttp"
)

// chatty adds a tool that says something of a size before its answer.
func chatty(mux *mcp.Mux, size int) *mcp.Mux {
	mux.Tool("chatty", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		mcp.Progress(ctx, 1, 2, strings.Repeat("x", size))
		return "said", nil
	}, nil))
	return mux
}

// firstID makes a call, and returns the id of the first event of its stream.
func (s *site) firstID(id int, tool string, h header) string {
	s.t.Helper()
	return events(s.t, s.post(call(id, tool), h), 0)[0].LastEventID
}

// S29: what one caller has kept does not keep anything from being kept of others.
func TestFindingS29OthersCanResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logged
		h := newHandler(t, chatty(tools(), 40_000), &mcphttp.Options{
			ReplayPerCaller: 400_000, Store: store.NewMemory(&store.MemoryOptions{MaxBytes: 800_000}),
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
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

// S29: a store that is full is reported once, not with each event.
func TestFindingS29OneWarning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logged
		h := newHandler(t, chatty(tools(), 1000), &mcphttp.Options{
			Store: store.NewMemory(&store.MemoryOptions{MaxBytes: 4000}), Logger: slog.New(slog.NewTextHandler(&log, nil)),
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

// S29: streams that say nothing for long do not count, for their events have expired.
func TestFindingS29ExpiredEventsDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := newWatched()
		s := serve(t, newHandler(t, chatty(tools(), 1000), &mcphttp.Options{
			Store: shared, ReplayPerCaller: 100_000, Replay: store.Retention{TTL: time.Minute}, Heartbeat: -1,
		}))
		session := s.open("2025-11-25")
		for i := range 100 {
			s.firstID(i, "chatty", session)
			<-time.After(time.Second)
		}
		<-time.After(2 * time.Minute)
		dropped := shared.dropped()
		if dropped == 0 {
			t.Error("nothing was forgotten")
		}
		for i := range 100 {
			s.firstID(i, "chatty", session)
			<-time.After(10 * time.Second)
		}
		if got := shared.dropped(); got != dropped {
			t.Errorf("%d streams were forgotten although there was room", got-dropped)
		}
		<-time.After(2 * time.Minute)
		s.do(s.request(t.Context(), http.MethodDelete, "", session)) // drops what is known of
		synctest.Wait()
		if got := shared.dropped() - dropped; got > 7 {
			t.Errorf("the session knew of %d streams, most of which have expired", got)
		}
		s.close()
	})
}

// C-M10: a client that comes back to another replica is served the rest of its call,
// however long that takes.
func TestFindingCM10ResumeAtAnotherReplica(t *testing.T) {
	for _, patience := range []time.Duration{0, time.Second, 4 * time.Minute} {
		bubble(t, patience.String(), func(t *testing.T) {
			mux := tools()
			mux.Tool("long", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
				for i := range 3 {
					mcp.Progress(ctx, float64(i), 3, fmt.Sprint("step ", i))
					<-time.After(patience)
				}
				return "in the end", nil
			}, nil))
			shared := store.NewMemory(nil)
			opts := &mcphttp.Options{Store: shared}
			one, two := serve(t, newHandler(t, mux, opts)), serve(t, newHandler(t, tools(), &mcphttp.Options{Store: shared}))
			session := one.open("2025-11-25")
			ctx, cancel := context.WithCancel(t.Context())
			res := one.do(one.request(ctx, http.MethodPost, call(1, "long"), session))
			first, _ := read(t, res).next()
			cancel()
			rest := two.comeBack(session, first.LastEventID)
			var got []string
			for e, ok := rest.next(); ok; e, ok = rest.next() {
				if e.Data != "" {
					got = append(got, e.Data)
				}
			}
			if len(got) != 4 || !strings.Contains(got[3], "in the end") {
				t.Errorf("the rest of the stream is %q", got)
			}
			one.close()
		})
	}
}

// C-M10: a stream of which nothing more comes is not followed for ever, and neither one
// whose session ends, or when the server shuts down.
func TestFindingCM10FollowingEnds(t *testing.T) {
	for name, end := range map[string]func(s *site, h *mcphttp.Handler, session header){
		"nothing comes": func(*site, *mcphttp.Handler, header) { <-time.After(10 * time.Minute) },
		"the session ends": func(s *site, _ *mcphttp.Handler, session header) {
			s.do(s.request(s.t.Context(), http.MethodDelete, "", session))
		},
		"the server ends":   func(s *site, h *mcphttp.Handler, _ header) { _ = h.Shutdown(s.t.Context()) },
		"the client leaves": nil,
	} {
		bubble(t, name, func(t *testing.T) {
			mux := tools()
			step := polling(mux)
			shared := store.NewMemory(nil)
			one := serve(t, newHandler(t, mux, &mcphttp.Options{Store: shared}))
			h := newHandler(t, tools(), &mcphttp.Options{Store: shared})
			two := serve(t, h)
			session := one.open("2025-11-25")
			first, _ := read(t, one.post(call(1, "poll"), session)).next()
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			rest := read(t, two.do(two.request(ctx, http.MethodGet, "", with(session, header{"Last-Event-ID": first.LastEventID}))))
			rest.message()
			if end == nil {
				leave()
			} else {
				end(two, h, session)
			}
			if _, ended := rest.hears(); !ended {
				t.Error("the stream goes on")
			}
			if err := h.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			close(step)
			one.close()
			two.close()
		})
	}
}

// Mutation 52: a stream that a client has come back to ends when the server does not wait
// for its call any more.
func TestFindingM52ResumedStreamEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := tools()
		mux.Tool("stubborn", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
			mcp.Progress(ctx, 1, 2, "")
			<-time.After(time.Hour) // without a look at ctx
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
