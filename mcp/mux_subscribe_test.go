// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

// heap returns the number of bytes in use after a garbage collection.
func heap() int64 {
	runtime.GC()
	runtime.GC() // also what pools kept over the first
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// listings returns n URIs of the given length.
func listings(n, length int) []string {
	uris := make([]string, n)
	for i := range uris {
		uri := fmt.Sprintf("notes://%d/", i)
		uris[i] = uri + strings.Repeat("x", length-len(uri))
	}
	return uris
}

// diary returns a mux with a template that matches the URIs of listings.
func diary(opts *mcp.MuxOptions, r *mcp.Resource, read func()) *mcp.Mux {
	mux := mcp.NewMux("m", "v1", opts)
	mux.Resource("notes://{id}/{text}", mcp.ResourceFunc(func(context.Context, map[string]string) (string, error) {
		read()
		return "note", nil
	}, r))
	return mux
}

// open lets every caller subscribe.
func open() *mcp.Resource {
	return &mcp.Resource{Subscribe: func(context.Context, string) error { return nil }}
}

// An open subscription keeps neither the message that opened it nor what the message contains
// beside the filter, directly and through a gateway.
func TestFindingX5OpenSubscriptionKeepsOnlyItsFilter(t *testing.T) {
	const size, streams, most = 1 << 20, 10, 4 << 20
	long := strings.Repeat("x", size)
	mux := diary(quiet(), open(), func() {})
	local, remote := mcp.NewMux("g", "v1", quiet()), mcp.NewMux("g", "v1", quiet())
	local.Mount("m_", mux)
	remote.Mount("m_", mcptest.Connect(t, mux))
	for name, members := range map[string]string{
		"a member":               fmt.Sprintf(`"member":%q,"notifications":{"toolsListChanged":true}`, long),
		"a URI that is accepted": fmt.Sprintf(`"member":%q,"notifications":{"resourceSubscriptions":["notes://1/2","mount:m_:notes://1/2"]}`, long),
		"a URI that is refused":  fmt.Sprintf(`"member":%q,"notifications":{"resourceSubscriptions":["other:%s"]}`, long, long[:8000]),
	} {
		for server, h := range map[string]mcp.Handler{"mux": mux, "mounted mux": local, "mounted connection": remote} {
			t.Run(name+" at a "+server, func(t *testing.T) {
				p := newPeer(t, h, eras[0])
				p.send(eras[0].request("0", mcp.MethodDiscover, ""))
				p.read()
				before := heap()
				for i := range streams {
					p.send(eras[0].request(fmt.Sprint(i+1), mcp.MethodListen, members))
					if got := p.receive(); !strings.Contains(got, mcp.NotificationAcknowledged) {
						t.Fatalf("got %.200s", got)
					}
				}
				if kept := heap() - before; kept > most {
					t.Errorf("%d streams, opened by messages of %d MiB, keep %d KiB", streams, size>>20, kept>>10)
				}
				runtime.KeepAlive(p)
			})
		}
	}
}

// The filter of a subscription, each URI in it and its metadata are bounded in bytes, before
// middleware sees them. The errors name the limit.
func TestFindingX5FilterIsBoundedInBytes(t *testing.T) {
	mux := diary(quiet(), open(), func() {})
	gateway := mcp.NewMux("g", "v1", quiet())
	gateway.Mount("m_", mcptest.Connect(t, mux))
	filter := func(uris ...string) string {
		raw, err := json.Marshal(uris)
		if err != nil {
			t.Fatal(err)
		}
		return `"notifications":{"resourceSubscriptions":` + string(raw) + `}`
	}
	filled := func(size int) string { // a filter of size bytes
		uris := listings(32, 8000)
		missing := size - len(strings.TrimPrefix(filter(append(uris, "notes://x/")...), `"notifications":`))
		return filter(append(uris, "notes://x/"+strings.Repeat("x", missing))...)
	}
	metadata := func(size int) string { // a _meta of size bytes
		meta := strings.TrimSuffix(eras[0].meta, "}") + `,"x":"`
		return meta + strings.Repeat("x", size+len(`"_meta":`)-len(meta)-len(`"}`)) + `"}`
	}
	for _, prefix := range []string{"", "mount:m_:"} {
		for name, test := range map[string]struct{ members, refused string }{
			"the longest URI":      {filter(prefix + listings(1, 8<<10-len(prefix))[0]), ""},
			"a longer URI":         {filter("notes://1/2", prefix+listings(1, 8<<10+1)[0]), "params.notifications.resourceSubscriptions[1] has"},
			"the largest filter":   {filled(256 << 10), ""},
			"a larger filter":      {filled(256<<10 + 1), "params.notifications has 262145 bytes; the limit is 262144"},
			"many members":         {`"notifications":{"other":"` + strings.Repeat("x", 256<<10) + `"}`, "params.notifications has"},
			"the largest metadata": {filter("notes://1/2") + "," + metadata(64<<10), ""},
			"larger metadata":      {filter("notes://1/2") + "," + metadata(64<<10+1), "params._meta of subscriptions/listen has 65537 bytes; the limit is 65536"},
		} {
			t.Run(prefix+name, func(t *testing.T) {
				h := map[string]mcp.Handler{"": mux, "mount:m_:": gateway}[prefix]
				p := newPeer(t, h, eras[0])
				request := eras[0].request("1", mcp.MethodListen, test.members)
				if strings.Contains(test.members, `"_meta"`) {
					request = `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{` + test.members + `}}`
				}
				p.send(request)
				got := p.receive()
				if test.refused == "" && !strings.Contains(got, mcp.NotificationAcknowledged) || test.refused != "" && !strings.Contains(got, test.refused) {
					t.Errorf("got %.300s, want %q", got, test.refused)
				}
			})
		}
	}
}

// The subscriptions of a session of the older revisions are bounded in bytes as well.
func TestFindingX5SessionIsBoundedInBytes(t *testing.T) {
	mux := diary(quiet(), open(), func() {})
	p := newPeer(t, mux, eras[1])
	accepted := 0
	for i, uri := range listings(40, 8000) {
		p.send(eras[1].request(fmt.Sprint(i), mcp.MethodSubscribe, fmt.Sprintf(`"uri":%q`, uri)))
		if got := p.read(); got.Error == nil {
			accepted++
		} else if !strings.Contains(got.Error.Message, "the limit is 262144") {
			t.Errorf("refused with %v", got.Error)
		}
	}
	if accepted != 256<<10/(8000+64) {
		t.Errorf("accepted %d URIs of 8000 bytes", accepted)
	}
}

// What a server acknowledges is kept by a gateway, and is bounded.
func TestFindingX5AcknowledgementIsBoundedInBytes(t *testing.T) {
	uris := listings(100, 8000)
	server := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if req.Method == mcp.MethodDiscover {
			return &mcp.DiscoverResult{SupportedVersions: mcp.ModernVersions(), Capabilities: &mcp.ServerCapabilities{Resources: &mcp.ResourcesCapability{Subscribe: true}}}, nil
		}
		ack := &mcp.AcknowledgedParams{Notifications: mcp.SubscriptionFilter{ResourceSubscriptions: uris}}
		ack.Meta.Set(mcp.MetaSubscriptionID, req.ID)
		_ = req.Notify(ctx, mcp.NotificationAcknowledged, ack)
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	gateway := mcp.NewMux("g", "v1", quiet())
	conn, err := mcp.NewClient("c", "v1", nil).Connect(t.Context(), mcp.InProcess(server))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	gateway.Mount("m_", conn)
	if got := acknowledged(t, gateway, "mount:m_:"+uris[0]); got != nil {
		t.Errorf("accepted %d URIs", len(got))
	}
}

// Updates that wait for a listener are bounded in bytes: beyond the bound, everything that is
// subscribed to is reported instead, here one directory.
func TestFindingX5PendingUpdatesAreBoundedInBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Resource("notes://{+path}", mcp.ResourceFunc(func(context.Context, map[string]string) (string, error) { return "", nil }, open()))
		ctx, cancel := context.WithCancel(t.Context())
		blocked, size, directory := make(chan struct{}), 0, 0
		listener := notifying(func(method string, params json.RawMessage) {
			<-blocked
			if method == mcp.NotificationResourceUpdated {
				size += len(params)
			}
			if strings.Contains(string(params), `"notes://0/"`) {
				directory++
			}
		})
		req := mcptest.NewRequest(mcp.MethodListen, &mcp.ListenParams{Notifications: mcp.SubscriptionFilter{ResourceSubscriptions: []string{"notes://0/"}}})
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = core.Serve(ctx, mux, req, listener, quiet().Logger)
		}()
		synctest.Wait() // for the acknowledgement to block
		for i := range 1000 {
			mux.ResourceUpdated(fmt.Sprintf("notes://0/%d%s", i, strings.Repeat("x", 8000)))
		}
		close(blocked)
		synctest.Wait()
		cancel()
		<-done
		if size > 300<<10 || directory == 0 {
			t.Errorf("%d bytes of updates waited, and %d of the directory", size, directory)
		}
	})
}

// Deciding who may subscribe runs a handler that reads at most 100 times for a request that
// the middleware of [mcp.Mux.Use] counts once. The log names the remedy, and the remedy works.
func TestFindingX12ReadsForASubscriptionAreBounded(t *testing.T) {
	var reads int
	var log bytes.Buffer
	mux := diary(&mcp.MuxOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))}, nil, func() { reads++ })
	mux.Use(middleware.RateLimit(middleware.ByPrincipal, middleware.NewTokenBucket(3, time.Hour, nil)))
	uris := listings(1000, 100)
	for range 5 {
		if got := len(acknowledged(t, mux, uris...)); got != 100 && got != 0 {
			t.Errorf("accepted %d resources", got)
		}
	}
	if reads != 300 {
		t.Errorf("3 requests were allowed; the handler ran %d times", reads)
	}
	if got := log.String(); strings.Count(got, "a subscription leaves out resources") != 3 || !strings.Contains(got, "Resource.Subscribe") {
		t.Errorf("logged %s", got)
	}
	if got := acknowledged(t, diary(quiet(), open(), t.FailNow), uris...); len(got) != len(uris) {
		t.Errorf("accepted %d resources with Resource.Subscribe", len(got))
	}
}

// Subscriptions run one handler at most 16 times at a time, whatever their number.
func TestFindingX12ReadsAtATimeAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most, reads atomic.Int64
		mux := diary(quiet(), nil, func() {
			reads.Add(1)
			if n := running.Add(1); n > most.Load() {
				most.Store(n)
			}
			<-time.After(time.Millisecond)
			running.Add(-1)
		})
		accepted := make(chan int)
		for range 50 {
			go func() { accepted <- len(acknowledged(t, mux, listings(10, 100)...)) }()
		}
		for range 50 {
			if n := <-accepted; n != 10 {
				t.Errorf("accepted %d resources", n)
			}
		}
		if most.Load() > 16 || reads.Load() != 500 {
			t.Errorf("%d handlers ran at a time, of %d", most.Load(), reads.Load())
		}
	})
}

// A handler that hangs delays a subscription by at most ten seconds. It prevents neither
// other subscriptions nor the rest of this one.
func TestFindingX12TimeForReadsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := diary(quiet(), nil, func() {})
		mux.Resource("slow:{id}", mcp.HandlerFunc(func(ctx context.Context, _ *mcp.Request) (mcp.Result, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}))
		done := make(chan struct{})
		for range 20 {
			go func() {
				acknowledged(t, mux, "slow:1", "slow:2")
				done <- struct{}{}
			}()
		}
		synctest.Wait()
		begun := time.Now()
		if got := acknowledged(t, mux, "notes://1/2"); len(got) != 1 || time.Since(begun) != 0 {
			t.Errorf("accepted %q after %v", got, time.Since(begun))
		}
		if got := acknowledged(t, mux, "notes://1/2", "slow:1", "notes://1/3"); len(got) != 1 || time.Since(begun) != 10*time.Second {
			t.Errorf("accepted %q after %v", got, time.Since(begun))
		}
		for range 20 {
			<-done
		}
	})
}

// The work of matching the URIs of a subscription is bounded by the size of the filter: a
// filter that is too large is refused before its URIs are matched, and each URI of another one
// is matched once. The test measures memory, which each match allocates.
func TestFindingX6MatchingIsBounded(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	for _, template := range []string{"repo://{owner}/{repo}/contents{/path*}", "repo://{owner}/{repo}/sha/{sha}/contents{/path*}", "repo://{owner}/{repo}/refs/heads/{branch}/contents{/path*}"} {
		mux.Resource(template, mcp.ResourceFunc(func(context.Context, map[string]string) (string, error) { return "", nil }, open()))
	}
	allocated := func(n int) (accepted int, size uint64) {
		uris := make([]string, n)
		for i := range uris {
			uris[i] = fmt.Sprintf("repo://o/r/contents/%%41/%d%s", i, strings.Repeat("/a", 4000))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		accepted = len(acknowledged(t, mux, uris...))
		runtime.ReadMemStats(&after)
		return accepted, after.TotalAlloc - before.TotalAlloc
	}
	for _, test := range []struct{ uris, accepted, most int }{{32, 32, 40 << 20}, {1000, 0, 400 << 20}} {
		accepted, size := allocated(test.uris)
		if accepted != test.accepted || size > uint64(test.most) {
			t.Errorf("%d URIs: accepted %d, allocating %d KiB", test.uris, accepted, size>>10)
		}
	}
}
