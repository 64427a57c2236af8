// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcphttp"
)

// mortalStore is the store of a replica that can be killed: afterwards, nothing it does
// reaches the other replicas. While it is full, it rejects records.
type mortalStore struct {
	store.Store

	dead       atomic.Bool
	full       atomic.Bool
	mute       atomic.Bool // publishes nothing
	leaderless atomic.Bool // values and logs fail, but topics work
	longer     int         // records of this length or longer are rejected; 0 means no limit
}

var (
	errDead       = errors.New("the replica is dead")
	errLeaderless = errors.New("the store has no leader")
)

func (s *mortalStore) check() error {
	switch {
	case s.dead.Load():
		return errDead
	case s.leaderless.Load():
		return errLeaderless
	}
	return nil
}

func (s *mortalStore) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	if err := s.check(); err != nil {
		return nil, 0, err
	}
	return s.Store.Get(ctx, key)
}

func (s *mortalStore) Append(ctx context.Context, log string, data []byte, keep store.Retention) (uint64, error) {
	switch err := s.check(); {
	case err != nil:
		return 0, err
	case s.full.Load():
		return 0, store.ErrFull
	case s.longer > 0 && len(data) >= s.longer:
		return 0, store.ErrTooLarge
	}
	return s.Store.Append(ctx, log, data, keep)
}

func (s *mortalStore) Publish(ctx context.Context, topic string, message []byte) error {
	if s.dead.Load() || s.mute.Load() {
		return errDead
	}
	return s.Store.Publish(ctx, topic, message)
}

// A duo is a session on two replicas. The first serves calls of "work" and may be killed;
// the client resumes their streams at the second.
type duo struct {
	t             *testing.T
	first, second *mortalStore
	one, two      *site
	session       header
	step          chan string // sent by work as a progress notification; "" ends the call
	result        string      // the result of work
}

func newDuo(t *testing.T, version string) *duo {
	shared := store.NewMemory(nil)
	p := &duo{t: t, first: &mortalStore{Store: shared}, second: &mortalStore{Store: shared}, step: make(chan string), result: "done"}
	mux := tools()
	mux.Tool("work", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		for n := 1.0; ; n++ {
			text := <-p.step
			if text == "" {
				break
			}
			mcp.Progress(ctx, n, 0, text)
		}
		return p.result, nil
	}, nil))
	p.one = serve(t, newHandler(t, mux, &mcphttp.Options{Store: p.first}))
	p.two = serve(t, newHandler(t, tools(), &mcphttp.Options{Store: p.second}))
	p.session = p.one.open(version)
	answersHello(t, p.two, p.session) // the second replica has the session, too
	<-time.After(10 * time.Second)
	return p
}

// work makes a call or a batch of calls, sends progress, and returns the ID of the last
// event.
func (p *duo) work(body string, progress ...string) (lastID string) {
	p.t.Helper()
	stream := read(p.t, p.one.post(body, p.session))
	for _, text := range progress {
		p.step <- text
		for {
			e, ok := stream.next()
			if !ok {
				p.t.Fatal("the stream has ended")
			}
			lastID = e.LastEventID
			if strings.Contains(e.Data, text) {
				break
			}
		}
	}
	return lastID
}

// end ends the call in flight.
func (p *duo) end() {
	p.step <- ""
	synctest.Wait()
}

// resumed returns the message that ends the stream at the second replica, or "" if none
// arrives soon. The result may also be an HTTP status.
func (p *duo) resumed(lastID string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 10*time.Second)
	defer cancel()
	res := p.two.do(p.two.request(ctx, http.MethodGet, "", with(p.session, header{"Last-Event-ID": lastID})))
	if res.StatusCode != http.StatusOK {
		return res.Status
	}
	last := ""
	for e := range read(p.t, res).events {
		if strings.Contains(e.Data, `"id"`) || strings.Contains(e.Data, `"error"`) {
			last = e.Data
		}
	}
	return last
}

const gone = "the replica that served the request is gone; the request may have been executed"

// If a replica is killed, its calls fail soon after the client resumes their streams at
// another replica, whatever happened to earlier events.
func TestKilledReplicaFailsItsCalls(t *testing.T) {
	many := make([]string, 300) // more than are stored
	for i := range many {
		many[i] = fmt.Sprint("step ", i)
	}
	for name, c := range map[string]struct {
		body     string
		progress []string
		want     []string
	}{
		"a call":                        {call(7, "work"), []string{"half"}, []string{`"id":7`, gone}},
		"a batch":                       {"[" + call(7, "work") + "," + call(8, "hello") + "]", []string{"half"}, []string{`"id":7`, `"id":8`, gone}},
		"a call with more than is kept": {call(7, "work"), many, []string{gone}},
	} {
		for _, version := range []string{"2025-03-26", "2025-11-25"} {
			if strings.HasPrefix(c.body, "[") && version != "2025-03-26" {
				continue
			}
			t.Run(name+" of "+version, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := newDuo(t, version)
					lastID := p.work(c.body, c.progress...)
					p.first.dead.Store(true)
					got := p.resumed(lastID)
					for _, want := range c.want {
						if !strings.Contains(got, want) {
							t.Errorf("the stream ends with %q, want %q", got, want)
						}
					}
					close(p.step)
				})
			})
		}
	}
}

// An event has an ID only if its stream can be resumed from it, that is, once its log
// exists.
func TestEventsWithoutLogHaveNoID(t *testing.T) {
	for _, version := range []string{"2025-03-26", "2025-11-25"} {
		synctest.Test(t, func(t *testing.T) {
			p := newDuo(t, version)
			p.first.full.Store(true)
			stream := read(t, p.one.post(call(7, "work"), p.session))
			p.step <- "first"
			if e, _ := stream.next(); e.LastEventID != "" || !strings.Contains(e.Data, "first") {
				t.Errorf("%s: an event that is not kept is %+v", version, e)
			}
			p.first.full.Store(false)
			p.step <- "second"
			e, _ := stream.next()
			for e.Data == "" {
				e, _ = stream.next()
			}
			p.first.dead.Store(true)
			if got := p.resumed(e.LastEventID); !strings.Contains(got, gone) || !strings.Contains(got, `"id":7`) {
				t.Errorf("%s: the stream ends with %q", version, got)
			}
			close(p.step)
		})
	}
}

// The calls of a live replica continue, even after a store outage during which no replica
// could be heard.
func TestLivingReplicaKeepsItsCalls(t *testing.T) {
	for name, outage := range map[string]bool{"alive": false, "alive after an outage": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newDuo(t, "2025-11-25")
				lastID := p.work(call(7, "work"), "half")
				p.first.dead.Store(outage)
				p.second.dead.Store(outage)
				<-time.After(10 * time.Second)
				p.first.dead.Store(false)
				p.second.dead.Store(false)
				if got := p.resumed(lastID); got != "" {
					t.Errorf("the stream ends with %q", got)
				}
				p.end()
				if got := p.resumed(lastID); !strings.Contains(got, "done") {
					t.Errorf("the stream ends with %q", got)
				}
			})
		})
	}
}

// A response that the store rejects is stored once the store accepts it. If it is too long
// for the store, an error is stored instead.
func TestEndIsKeptLater(t *testing.T) {
	for name, c := range map[string]struct {
		full, isLong bool
		want         string
	}{"full": {full: true, want: "done"}, "too long": {isLong: true, want: "too long to be kept"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newDuo(t, "2025-03-26")
				lastID := p.work(call(7, "work"), "half")
				p.first.full.Store(c.full)
				if c.isLong {
					p.first.longer, p.result = 1000, strings.Repeat("done", 250)
				}
				p.end()
				if got := p.resumed(lastID); c.full && got != "" {
					t.Errorf("the stream ends with %q", got)
				}
				p.first.full.Store(false)
				<-time.After(10 * time.Second)
				if got := p.resumed(lastID); !strings.Contains(got, c.want) || !strings.Contains(got, `"id":7`) {
					t.Errorf("the stream ends with %.200q", got)
				}
			})
		})
	}
}

// A replica that has listened for five seconds knows which other replicas are gone, even if
// the store had no leader meanwhile: calls of those replicas fail immediately.
func TestGoneReplicaIsKnown(t *testing.T) {
	for name, leaderless := range map[string]bool{"the store works": false, "the store has no leader meanwhile": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newDuo(t, "2025-03-26")
				lastID := p.work(call(7, "work"), "half")
				p.first.dead.Store(true)
				p.second.leaderless.Store(leaderless)
				<-time.After(9 * time.Second)
				p.second.leaderless.Store(false)
				began := time.Now()
				if got := p.resumed(lastID); !strings.Contains(got, gone) || time.Since(began) > 2*time.Second {
					t.Errorf("after %v: %q", time.Since(began), got)
				}
				close(p.step)
			})
		})
	}
}
