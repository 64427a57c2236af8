// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcphttp"
)

// whoami adds a tool that returns what its handler sees of the request.
func whoami(mux *mcp.Mux) *mcp.Mux {
	mux.Tool("whoami", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		r, p := mcphttp.RequestFromContext(ctx), mcp.PrincipalFromContext(ctx)
		if p == nil {
			p = new(mcp.Principal)
		}
		return fmt.Sprintf("%s %s?%s from %s, tenant %s, user %s", r.Method, r.URL.Path, r.URL.RawQuery, r.RemoteAddr, r.Header.Get("Tenant"), p.Subject), nil
	}, nil))
	mux.Tool("restricted", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return nil, mcp.NewInsufficientScopeError("files:read")
	}))
	return mux
}

// A request that reaches a replica that does not have the session is served by the one that
// has it, as if the client had sent it there.
func TestForwardedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, nil)
		one, two := f.add(whoami(tools()), nil), f.add(tools(), nil)
		two.query = "a=b"
		h := one.tryOpen(header{"User": "alice"})
		for _, test := range []struct{ body, want string }{
			{call(1, "whoami"), "POST /mcp?a=b from 192.0.2.7:1, tenant acme, user alice"},
			{call(1, "steps"), `"progress":2`},
			{call(1, "restricted"), "files:read"},
		} {
			res := two.post(test.body, with(h, header{"Tenant": "acme", "Address": "192.0.2.7:1"}))
			if got := whole(t, res); !strings.Contains(got.body, test.want) {
				t.Errorf("got %d %s, want %s", got.status, got.body, test.want)
			}
			if got := res.Header.Get("Psi-Peer"); got != "" {
				t.Errorf("the client sees the header of a hop: %s", got)
			}
		}
		if n := count(two.handler); n != 0 {
			t.Errorf("the replica that passes requests on has %d sessions", n)
		}
	})
}

// The challenge for a caller that lacks scopes is that of the replica that has authenticated it.
func TestForwardedChallenge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, nil)
		f.wrap = func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				h.ServeHTTP(w, mcphttp.WithChallenge(r, func(scopes []string) string { return "Custom " + strings.Join(scopes, "+") }))
			})
		}
		one, two := f.add(whoami(tools()), nil), f.add(tools(), nil)
		h := one.open("2025-11-25")
		for _, s := range []*replica{one, two} {
			res := s.post(call(1, "restricted"), h)
			if got := res.Header.Get("WWW-Authenticate"); res.StatusCode != http.StatusForbidden || got != "Custom files:read" {
				t.Errorf("%d, challenge %q", res.StatusCode, got)
			}
		}
	})
}

// A question is asked and answered through whichever replica the client happens to reach,
// even in a batch.
func TestSharedAnswers(t *testing.T) {
	for version, form := range map[string]string{"2025-11-25": "%s", "2025-03-26": `[{"jsonrpc":"2.0","method":"notifications/progress"},%s]`} {
		bubble(t, version, func(t *testing.T) {
			f := newFleet(t, nil)
			one, two := f.pair()
			three := f.add(tools(), nil)
			h := one.open(version)
			asking := read(t, two.post(call(1, "ask"), h))
			for _, name := range []string{"Ada", "Lovelace"} {
				id := questionID(t, within(t, time.Minute, "a question", messages(asking)))
				three.post(fmt.Sprintf(form, answer(id, `{"action":"accept","content":{"name":"`+name+`"}}`)), h)
			}
			if got := within(t, time.Minute, "the result", messages(asking)); !strings.Contains(got, "Ada Lovelace") {
				t.Errorf("the answer is %s", got)
			}
		})
	}
}

// A cancellation reaches the call at another replica.
func TestForwardedCancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, nil)
		mux := tools()
		began, ended := waiting(mux)
		one, two := f.add(mux, nil), f.add(tools(), nil)
		h := one.open("2025-11-25")
		var calls sync.WaitGroup
		calls.Go(func() { _ = one.post(call(1, "wait"), h).Body.Close() })
		<-began
		two.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"enough"}}`, h)
		if got, ok := errors.AsType[*mcp.CancelError](within(t, time.Minute, "the cancellation", ended)); !ok || got.Reason != "enough" {
			t.Errorf("cancelled by %v", got)
		}
		calls.Wait()
		f.close()
	})
}

// The standalone stream of a session can be read and resumed through another replica. It
// ends when either of the two shuts down.
func TestForwardedStream(t *testing.T) {
	for _, ends := range []string{"the owner", "the other replica"} {
		bubble(t, ends, func(t *testing.T) {
			f := newFleet(t, nil)
			mux := tools()
			one, two := f.add(mux, nil), f.add(tools(), nil)
			h := one.open("2025-11-25")
			own := read(t, two.do(two.request(t.Context(), http.MethodGet, "", h)))
			primed, _ := own.next()
			mux.Tool("new", uncalled)
			if got := own.message(); !strings.Contains(got, "tools/list_changed") {
				t.Errorf("got %s", got)
			}
			again := two.comeBack(h, primed.LastEventID)
			if got := again.message(); !strings.Contains(got, "tools/list_changed") {
				t.Errorf("after resuming, got %s", got)
			}
			last := one
			if ends != "the owner" {
				last = two
			}
			if err := last.handler.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			if _, ended := again.hears(); !ended {
				t.Error("the stream goes on")
			}
			f.close()
		})
	}
}

// C-M10: a client that reconnects to another replica gets the rest of its call.
func TestFindingCM10ResumeAtAnotherReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, nil)
		mux := tools()
		step := polling(mux)
		one, two := f.add(mux, nil), f.add(tools(), nil)
		h := one.open("2025-11-25")
		ctx, leave := context.WithCancel(t.Context())
		primed, _ := read(t, two.do(two.request(ctx, http.MethodPost, call(1, "poll"), h))).next()
		leave()
		synctest.Wait()
		rest := two.comeBack(h, primed.LastEventID)
		rest.message()
		close(step)
		if got := rest.message(); !strings.Contains(got, "polled") {
			t.Errorf("got %s", got)
		}
		if got := two.do(two.request(t.Context(), http.MethodGet, "", with(h, header{"Last-Event-ID": "1.UNKNOWN-1"}))).StatusCode; got != http.StatusNotFound {
			t.Errorf("a stream of a process that is unknown: %d", got)
		}
		f.close()
	})
}

// If the owner is gone, the replica that notices it continues the session: with its version,
// level and subscriptions. Its client is told that everything may have changed.
func TestOwnerGone(t *testing.T) {
	for name, leave := range map[string]func(f *fleet, r *replica){
		"killed":   func(_ *fleet, r *replica) { r.kill() },
		"drained":  func(f *fleet, r *replica) { _ = r.handler.Shutdown(f.t.Context()) },
		"silent":   func(f *fleet, r *replica) { f.cut(r, true) },
		"replaced": func(_ *fleet, r *replica) { r.host = "another process at the same URL" },
	} {
		bubble(t, name, func(t *testing.T) {
			f := newFleet(t, nil)
			mux := reporting()
			one := f.add(reporting(), nil)
			h := one.open("2025-06-18")
			whole(t, one.post(setLevel("error"), h))
			whole(t, one.post(subscribe("test://doc"), h))
			leave(f, one)
			two := f.add(mux, nil)
			if name == "replaced" {
				two.host = "replica-0"
				f.all["replica-0"] = two
			}
			began := time.Now()
			if got := whole(t, two.post(call(1, "report"), h)); !strings.Contains(got.body, "error, 2025-06-18") {
				t.Errorf("got %s", got.body)
			}
			if took := time.Since(began); took > 6*time.Second {
				t.Errorf("it took %v", took)
			}
			own := read(t, two.do(two.request(t.Context(), http.MethodGet, "", with(h, header{"Last-Event-ID": "0.OTHER-7"}))))
			var missed []string
			for range 4 {
				missed = append(missed, own.message())
			}
			for _, want := range []string{"tools/list_changed", "prompts/list_changed", "resources/list_changed", "test://doc"} {
				if !strings.Contains(strings.Join(missed, "\n"), want) {
					t.Errorf("the client was told %q, want %s", missed, want)
				}
			}
			mux.ResourceUpdated("test://doc")
			if got := own.message(); !strings.Contains(got, "test://doc") {
				t.Errorf("got %s", got)
			}
			f.close()
		})
	}
}

// reporting returns a mux with a tool that reports the level and version of its session.
func reporting() *mcp.Mux {
	mux := tools()
	mux.Prompt("p", mcp.PromptFunc(func(context.Context, struct{}) (string, error) { return "", nil }, nil))
	mux.Tool("report", mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		return mcp.TextResult(fmt.Sprintf("%s, %s", req.LogLevel(), req.Version())), nil
	}))
	return mux
}

func setLevel(level string) string {
	return `{"jsonrpc":"2.0","id":4,"method":"logging/setLevel","params":{"level":"` + level + `"}}`
}

// A call that asks completes on an owner that shuts down, although another replica has taken
// over its session in the meantime: answers find their way, and so do cancellations.
func TestOwnerDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, nil)
		mux := tools()
		began, cancelled := waiting(mux)
		one, two := f.add(mux, nil), f.add(tools(), nil)
		three := f.add(tools(), nil)
		h := one.open("2025-11-25")
		asking := read(t, one.post(call(1, "ask"), h))
		id := questionID(t, asking.message())
		go func() { _ = one.post(call(2, "wait"), h).Body.Close() }()
		<-began
		ended := make(chan error, 1)
		go func() { ended <- one.handler.Shutdown(context.Background()) }()
		synctest.Wait()
		if got := answersHello(t, two.site, h); got != http.StatusOK {
			t.Errorf("a call during the shutdown: %d", got)
		}
		three.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`, h)
		within(t, time.Minute, "the cancellation", cancelled)
		two.post(answer(id, `{"action":"accept","content":{"name":"Ada"}}`), h)
		id = questionID(t, within(t, time.Minute, "the second question", messages(asking)))
		three.post(answer(id, `{"action":"accept","content":{"name":"Lovelace"}}`), h)
		if got := within(t, time.Minute, "the result", messages(asking)); !strings.Contains(got, "Ada Lovelace") {
			t.Errorf("the answer is %s", got)
		}
		if err := within(t, time.Minute, "the end of the shutdown", ended); err != nil {
			t.Error(err)
		}
		f.close()
	})
}

// If several replicas notice at once that the owner is gone, one of them takes over the
// session, and the others pass their requests on to it.
func TestTwoAdopt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, nil)
		one := f.add(tools(), nil)
		h := one.open("2025-11-25")
		one.kill()
		others := []*replica{f.add(tools(), nil), f.add(tools(), nil), f.add(tools(), nil)}
		var all sync.WaitGroup
		for i := range 12 {
			all.Go(func() {
				if got := whole(t, others[i%3].post(call(1+i, "hello"), h)); got.status != http.StatusOK || !strings.Contains(got.body, "hello") {
					t.Errorf("a call: %d %s", got.status, got.body)
				}
			})
		}
		all.Wait()
		owners := 0
		for _, r := range others {
			owners += count(r.handler)
		}
		if owners != 1 {
			t.Errorf("%d replicas have the session", owners)
		}
		f.close()
	})
}

// An owner that others cannot reach goes on with what it serves. It lets the session go when
// it writes its record, or when the client opens its stream.
func TestPartition(t *testing.T) {
	for name, learns := range map[string]func(one *replica, h header) int{
		"by a change": func(one *replica, h header) int { return one.post(setLevel("error"), h).StatusCode },
		"by a stream": func(one *replica, h header) int {
			return one.do(one.request(one.t.Context(), http.MethodGet, "", h)).StatusCode
		},
	} {
		bubble(t, name, func(t *testing.T) {
			f := newFleet(t, nil)
			one, two := f.pair()
			h := one.open("2025-11-25")
			asking := read(t, one.post(call(9, "ask"), h))
			id := questionID(t, asking.message())
			f.cut(one, true)
			if got := two.post(answer(id, `{"action":"decline"}`), h).StatusCode; got != http.StatusServiceUnavailable {
				t.Errorf("an answer that cannot be passed on: %d", got)
			}
			if got := answersHello(t, two.site, h); got != http.StatusOK {
				t.Errorf("a call at the other replica: %d", got)
			}
			if got := answersHello(t, one.site, h); got != http.StatusOK {
				t.Errorf("a call at the former owner: %d", got)
			}
			if got := learns(one, h); got != http.StatusServiceUnavailable {
				t.Errorf("what the former owner cannot do: %d", got)
			}
			f.cut(one, false)
			if got := two.post(answer(id, `{"action":"decline"}`), h).StatusCode; got != http.StatusAccepted {
				t.Errorf("an answer after the partition: %d", got)
			}
			if got := within(t, time.Minute, "the end of the call", messages(asking)); !strings.Contains(got, `"id":9`) {
				t.Errorf("the call ends with %s", got)
			}
			synctest.Wait()
			if n := count(one.handler); n != 0 {
				t.Errorf("the former owner has %d sessions", n)
			}
			if got := answersHello(t, one.site, h); got != http.StatusOK {
				t.Errorf("a call at the former owner, passed on: %d", got)
			}
			f.close()
		})
	}
}

// A former owner can become the owner again.
func TestOwnerComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, nil)
		one, two := f.pair()
		h := one.open("2025-11-25")
		asking := read(t, one.post(call(9, "ask"), h)) // keeps the session at its former owner
		id := questionID(t, asking.message())
		f.cut(one, true)
		whole(t, two.post(setLevel("error"), h))
		if got := one.post(setLevel("debug"), h).StatusCode; got != http.StatusServiceUnavailable {
			t.Errorf("a change at the former owner: %d", got)
		}
		two.kill()
		if got := answersHello(t, one.site, h); got != http.StatusOK {
			t.Errorf("a call: %d", got)
		}
		one.post(answer(id, `{"action":"decline"}`), h)
		if got := within(t, time.Minute, "the end of the call", messages(asking)); !strings.Contains(got, `"id":9`) {
			t.Errorf("the call ends with %s", got)
		}
		f.close()
	})
}

// A replica that is lost while it serves a request is not replaced by another that would
// execute the request again.
func TestOwnerLostDuringCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, nil)
		var runs atomic.Int32
		mux := func() *mcp.Mux {
			mux := tools()
			mux.Tool("once", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
				runs.Add(1)
				<-ctx.Done()
				return "", context.Cause(ctx)
			}, nil))
			return mux
		}
		one, two := f.add(mux(), nil), f.add(mux(), nil)
		h := one.open("2025-11-25")
		lost := make(chan reply, 1)
		go func() { lost <- whole(t, two.post(call(1, "once"), h)) }()
		pass(time.Minute) // longer than a replica may take to acknowledge
		one.kill()
		if got := <-lost; got.status != http.StatusBadGateway || !strings.Contains(got.body, "may have been executed") {
			t.Errorf("got %d %s", got.status, got.body)
		}
		if n := runs.Load(); n != 1 {
			t.Errorf("it was executed %d times", n)
		}
		if got := answersHello(t, two.site, h); got != http.StatusOK {
			t.Errorf("the next call: %d", got)
		}
		f.close()
	})
}

// A session can be used at every replica by the caller that opened it, and by no other,
// whether its owner is there or gone.
func TestFindingS3SessionAtAnotherReplica(t *testing.T) {
	for _, isGone := range []bool{false, true} {
		bubble(t, fmt.Sprint("gone: ", isGone), func(t *testing.T) {
			f := newFleet(t, nil)
			for owner, caller := range map[string]header{"alice": {"User": "alice"}, "nobody": {}} {
				one := f.add(tools(), nil)
				session := one.tryOpen(caller)
				if isGone {
					one.kill()
				}
				for _, other := range []header{{"User": "mallory"}, {}, {"User": "alice"}} {
					want := http.StatusNotFound
					if other["User"] == caller["User"] {
						want = http.StatusOK
					}
					theirs := with(other, header{"Mcp-Session-Id": session["Mcp-Session-Id"]})
					for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
						two, body := f.add(tools(), nil), ""
						switch {
						case method == http.MethodDelete && want == http.StatusOK:
							continue // it would end the session for the other callers
						case method == http.MethodPost:
							body = call(1, "hello")
						}
						if got := two.do(two.request(t.Context(), method, body, theirs)).StatusCode; got != want {
							t.Errorf("%s by %q of a session of %s: %d, want %d", method, other["User"], owner, got, want)
						}
					}
				}
			}
			f.close()
		})
	}
}

// S8: a session that was taken over counts, too.
func TestFindingS8RestoredSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, nil)
		two := f.add(tools(), &mcphttp.Options{Sessions: mcphttp.SessionOptions{MaxPerCaller: 3}})
		for range 10 {
			one := f.add(tools(), nil)
			session := one.tryOpen(header{"User": "mallory"})
			one.kill()
			if got := answersHello(t, two.site, session); got != http.StatusOK {
				t.Errorf("at the other replica: %d", got)
			}
			pass(time.Second)
		}
		if got := count(two.handler); got != 3 {
			t.Errorf("there are %d sessions, want 3", got)
		}
		f.close()
	})
}

// A session in use remains in the store, and an idle one does not, whichever replica its
// requests reach.
func TestSharedSessionLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, nil)
		opts := &mcphttp.Options{Sessions: mcphttp.SessionOptions{Idle: 10 * time.Minute}}
		one, two := f.add(tools(), opts), f.add(tools(), opts)
		h, idle := one.open("2025-11-25"), one.open("2025-11-25")
		for range 30 {
			pass(7 * time.Minute)
			if got := answersHello(t, two.site, h); got != 200 {
				t.Fatalf("at the other replica: %d", got)
			}
		}
		for _, s := range []*replica{one, two} {
			if got := answersHello(t, s.site, idle); got != 404 {
				t.Errorf("a session that was idle for hours: %d", got)
			}
		}
		f.close()
	})
}

// Once a session has ended, at whichever replica, all of them reject it.
func TestSharedSessionEnds(t *testing.T) {
	for name, end := range map[string]func(one, two *replica, h header){
		"DELETE":           func(one, _ *replica, h header) { one.do(one.request(one.t.Context(), http.MethodDelete, "", h)) },
		"DELETE elsewhere": func(_, two *replica, h header) { two.do(two.request(two.t.Context(), http.MethodDelete, "", h)) },
		"Close": func(one, _ *replica, _ header) {
			for session := range one.handler.Sessions() {
				session.Close()
			}
		},
	} {
		bubble(t, name, func(t *testing.T) {
			f := newFleet(t, nil)
			one, two := f.pair()
			h := one.open("2025-11-25")
			end(one, two, h)
			synctest.Wait()
			for _, s := range []*replica{one, two} {
				if got := answersHello(t, s.site, h); got != 404 {
					t.Errorf("a call: %d", got)
				}
			}
			f.close()
		})
	}
}

// A replica that has made room for another session lets any replica continue the one it has
// ended.
func TestEvictedSessionGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, nil)
		one, two := f.add(tools(), &mcphttp.Options{Sessions: mcphttp.SessionOptions{Max: 1}}), f.add(tools(), nil)
		for _, s := range []*replica{one, two} {
			evicted := one.open("2025-11-25")
			one.open("2025-11-25")
			synctest.Wait()
			if got := answersHello(t, s.site, evicted); got != 200 {
				t.Errorf("after it had to make room: %d", got)
			}
		}
		f.close()
	})
}

// A handshake that names a session of another replica is refused, like a second handshake.
func TestForwardedHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := newFleet(t, nil).pair()
		h := one.open("2025-11-25")
		var want string
		for _, s := range []*replica{one, two} {
			got := whole(t, s.post(initialize("2025-11-25"), h))
			if want == "" {
				want = got.body
			}
			if got.body != want || !strings.Contains(got.body, "initialized already") {
				t.Errorf("got %d %s", got.status, got.body)
			}
		}
	})
}

// S30: logs identify sessions by a digest.
func TestFindingS30LogsWithoutSessionIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logged
		shared := &faulty{Values: store.NewMemory(nil)}
		f := newFleet(t, shared)
		opts := &mcphttp.Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Sessions: mcphttp.SessionOptions{Idle: time.Hour, KeepAlive: time.Minute, Replay: 300}}
		one, two := f.add(chatty(tools(), 1000), opts), f.add(tools(), opts)
		session, lost := one.open("2025-11-25"), one.open("2025-11-25")
		read(t, one.do(one.request(t.Context(), http.MethodGet, "", session))).next()
		down := fail(errors.New("the store is down"))
		shared.read.Store(down)
		shared.write.Store(down)
		whole(t, one.post(setLevel("error"), session))
		whole(t, one.post(call(4, "chatty"), session))
		whole(t, two.post(call(5, "hello"), session))
		one.do(one.request(t.Context(), http.MethodDelete, "", lost))
		pass(45 * time.Minute) // the sessions are kept alive, but the client answers no ping
		shared.read.Store(nil)
		f.cut(one, true)
		whole(t, two.post(call(5, "hello"), lost))
		synctest.Wait()
		for _, want := range []string{
			"a session was not saved", "an event was not kept", "a session was not found", "a session was not kept alive", "a session was not removed",
			"the client does not answer", "a replica cannot be reached", "a session was not taken over",
		} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("no line says %q", want)
			}
		}
		if got := log.String(); strings.Contains(got, session["Mcp-Session-Id"]) || strings.Contains(got, lost["Mcp-Session-Id"]) || !strings.Contains(got, "session=") {
			t.Errorf("the log has the session's id, or none:\n%s", got)
		}
		shared.write.Store(nil)
		f.close()
	})
}

// A request in flight does not store its session again after the session has ended.
func TestSharedSessionStaysEnded(t *testing.T) {
	for _, body := range []string{subscribe("test://doc"), "[" + subscribe("test://doc") + "]"} {
		bubble(t, body[:1], func(t *testing.T) {
			mux, hold := tools(), make(chan struct{})
			mux.Use(func(next mcp.Handler) mcp.Handler {
				return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
					if req.Method == mcp.MethodListen {
						<-hold
					}
					return next.ServeMCP(ctx, req)
				})
			})
			f := newFleet(t, nil)
			one, two := f.add(mux, nil), f.add(tools(), nil)
			h := one.open("2025-03-26")
			var subscribing sync.WaitGroup
			subscribing.Go(func() { one.post(body, h) })
			synctest.Wait()
			if got := two.do(two.request(t.Context(), http.MethodDelete, "", h)).StatusCode; got != http.StatusNoContent {
				t.Errorf("DELETE: %d", got)
			}
			close(hold)
			subscribing.Wait()
			for _, s := range []*replica{one, two} {
				if got := answersHello(t, s.site, h); got != http.StatusNotFound {
					t.Errorf("a call of a session that has ended: %d", got)
				}
			}
			f.close()
		})
	}
}

// A slow handshake is not mistaken for a session that another replica has ended.
func TestSlowHandshakeIsNoEndedSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := tools()
		mux.Use(func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				if req.Method == mcp.MethodDiscover {
					pass(6 * time.Minute) // longer than a sweep interval
				}
				return next.ServeMCP(ctx, req)
			})
		})
		f := newFleet(t, nil)
		one, two := f.add(mux, &mcphttp.Options{Sessions: mcphttp.SessionOptions{Idle: 10 * time.Minute}}), f.add(tools(), nil)
		h := one.open("2025-11-25")
		for _, s := range []*replica{one, two} {
			if got := answersHello(t, s.site, h); got != 200 {
				t.Errorf("after a slow handshake: %d", got)
			}
		}
		f.close()
	})
}

// T53: a client whose standalone stream has broken cannot be pinged and is not considered
// dead, neither while it stays away nor after it has come back through another replica.
func TestKeepAliveWithoutClient(t *testing.T) {
	for name, comesBack := range map[string]bool{"it stays away": false, "it comes back through another replica": true} {
		bubble(t, name, func(t *testing.T) {
			f := newFleet(t, nil)
			opts := &mcphttp.Options{Heartbeat: -1, Sessions: mcphttp.SessionOptions{KeepAlive: 10 * time.Second}}
			mux := tools()
			began, ended := waiting(mux)
			one, two := f.add(mux, opts), f.add(tools(), opts)
			h := one.open("2025-11-25")
			ctx, leave := context.WithCancel(t.Context())
			own := read(t, one.do(one.request(ctx, http.MethodGet, "", h)))
			first, _ := own.next()
			send := func(s *replica, body string) { _, _ = s.client.Do(s.request(t.Context(), http.MethodPost, body, h)) } // may fail at the end
			go send(one, call(1, "wait"))
			<-began
			leave()
			synctest.Wait()
			if comesBack {
				back := two.comeBack(h, first.LastEventID)
				go func() {
					for e, ok := back.next(); ok; e, ok = back.next() {
						if strings.Contains(e.Data, `"ping"`) {
							send(two, answer(questionID(t, e.Data), "{}"))
						}
					}
				}()
			}
			select {
			case err := <-ended:
				t.Errorf("its call has ended: %v", err)
			case <-time.After(10 * time.Minute):
			}
			f.close()
		})
	}
}

// C-M3, mutation 61: a GET that is starting while Shutdown ends the streams ends, too.
func TestFindingCM3ShutdownSeesEveryGET(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &faulty{Values: store.NewMemory(nil)}
		f := newFleet(t, shared)
		one, two := f.pair()
		session := one.open("2025-11-25")
		one.kill()
		held := make(chan struct{})
		hold := func(context.Context) error { <-held; return nil }
		shared.read.Store(&hold)
		get := two.get(session) // is looking up its session
		ended := make(chan time.Duration, 1)
		go func() {
			begin := time.Now()
			if err := two.handler.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			ended <- time.Since(begin)
		}()
		synctest.Wait()
		close(held)
		if got := within(t, time.Minute, "the end of Shutdown", ended); got != 0 {
			t.Errorf("Shutdown took %v", got)
		}
		if r := <-get.opened; r != nil {
			if _, ok := r.hears(); !ok {
				t.Error("the GET goes on")
			}
		}
		f.close()
	})
}
