// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package recording_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/recording"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
)

// subscribe subscribes to the tools of a server, waits until they have changed, cancels a
// call once it reports progress, and ends the subscription.
func subscribe(ctx context.Context, c *mcp.Conn, change func()) error {
	changed := make(chan mcp.Change, 10)
	sub, err := c.Listen(ctx, mcp.SubscriptionFilter{ToolsListChanged: true}, func(m mcp.Change) { changed <- m })
	if err != nil {
		return err
	}
	change()
	<-changed
	calling, cancel := context.WithCancel(ctx)
	defer cancel()
	_, err = mcp.Call[string](mcp.WithProgress(calling, func(*mcp.ProgressParams) { cancel() }), c, "wait", nil)
	if !errors.Is(err, context.Canceled) {
		return errors.Join(errors.New("the call is not cancelled"), err)
	}
	sub.Close()
	return nil
}

func newChangingMux() *mcp.Mux {
	mux := mcp.NewMux("changing", "v1", nil)
	mux.Tool("wait", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		mcp.Progress(ctx, 1, 2, "")
		<-ctx.Done()
		return "", context.Cause(ctx)
	}, nil))
	return mux
}

// A recording includes subscriptions and cancelled calls.
func TestSubscriptions(t *testing.T) {
	for _, anyOrder := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var file lockedBuffer
			mux := newChangingMux()
			c := mcptest.Dial(t, mcptest.Record(mcptest.Paths()[0].Serve(t, mux), &file), nil)
			add := func() {
				mux.Tool("new", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "", nil }, nil))
			}
			if err := subscribe(t.Context(), c, add); err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // until the end of the subscription is recorded
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			replay := mcptest.Replay(t, strings.NewReader(file.String()), &recording.ReplayOptions{AnyOrder: anyOrder})
			again := mcptest.Dial(t, replay.Transport(), nil)
			if err := subscribe(t.Context(), again, func() {}); err != nil {
				t.Errorf("any order: %v: %v\n%s", anyOrder, err, file.String())
			}
		})
	}
}

// oldOverHTTP returns a transport to a server that does not support the newest revision.
func oldOverHTTP(t *testing.T) transport.Transport {
	h := mcphttp.NewHandler(newMux(), nil)
	t.Cleanup(func() { _ = h.Shutdown(context.WithoutCancel(t.Context())) })
	url := mcptest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") == mcp.LatestVersion {
			http.Error(w, "token=hunter2 is no version", http.StatusBadRequest)
			return
		}
		h.ServeHTTP(w, r)
	}))
	return mcphttp.NewTransport(url, nil)
}

// Failures in the recording occur again in the replay, in the form that a client relies on.
func TestFailures(t *testing.T) {
	var file lockedBuffer
	talkTo := func(to transport.Transport) string {
		opts := ada("")
		c, err := mcp.NewClient("ada", "v1", &opts).Connect(t.Context(), to)
		if err != nil {
			t.Fatalf("%v\n%s", err, file.String())
		}
		defer c.Close()
		return c.Version() + "\n" + talk(t.Context(), c)
	}
	live := talkTo(mcptest.Record(oldOverHTTP(t), &file))
	if recorded := file.String(); !strings.Contains(recorded, `"kind":"not-understood"`) || strings.Contains(recorded, "hunter2") {
		t.Errorf("the recording is\n%s", recorded)
	}
	if got := talkTo(mcptest.Replay(t, strings.NewReader(file.String()), nil).Transport()); got != live {
		t.Errorf("the replay comes to\n%s, not to\n%s", got, live)
	}
	if err := mcptest.Replay(t, strings.NewReader(file.String()), nil).Drive(t.Context(), oldOverHTTP(t)); err != nil {
		t.Error(err)
	}
	err := mcptest.Replay(t, strings.NewReader(file.String()), nil).Drive(t.Context(), mcp.InProcess(newMux()))
	if err == nil || !strings.HasPrefix(err.Error(), "recording: line 2: the server answers request 1, which failed in the recording") {
		t.Errorf("a server that understands: got %v", err)
	}
}

// A recording includes failed attempts to connect.
func TestNotConnected(t *testing.T) {
	var file lockedBuffer
	down := transport.FromStream(func(context.Context) (transport.Stream, error) { return nil, errors.New("no route") })
	connect := func(to transport.Transport) string {
		_, err := mcp.NewClient("ada", "v1", nil).Connect(t.Context(), to)
		if err == nil {
			t.Fatal("the server is connected to")
		}
		return err.Error()
	}
	live := connect(mcptest.Record(down, &file))
	if got := connect(mcptest.Replay(t, strings.NewReader(file.String()), nil).Transport()); got != live {
		t.Errorf("got %q, want %q", got, live)
	}
	if err := mcptest.Replay(t, strings.NewReader(file.String()), nil).Drive(t.Context(), down); err != nil {
		t.Error(err)
	}
	if err := mcptest.Replay(t, strings.NewReader(file.String()), nil).Drive(t.Context(), mcp.InProcess(newMux())); err == nil {
		t.Error("a server that can be connected to is no difference")
	}
}

// Requests recorded at the server, from clients of any era and on any path, can be replayed
// against it as requests of the newest revision.
func TestMiddleware(t *testing.T) {
	everyPath(t, func(t *testing.T, p mcptest.Path, version string) {
		var file lockedBuffer
		mux := newMux()
		mux.Use(recording.NewRecorder(&file, nil).Middleware())
		opts := ada(version)
		c, err := mcp.NewClient("ada", "v1", &opts).Connect(t.Context(), p.Serve(t, mux))
		if err != nil {
			t.Fatal(err)
		}
		talk(t.Context(), c)
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		recorded := file.String()
		for _, s := range []string{`"method":"tools/call"`, "notifications/progress", "input_required", `"error":{`, "(redacted)"} {
			if !strings.Contains(recorded, s) {
				t.Errorf("the recording lacks %s:\n%s", s, recorded)
			}
		}
		if strings.Contains(recorded, "hunter2") {
			t.Error("the recording has a secret")
		}
		if err := mcptest.Replay(t, strings.NewReader(recorded), nil).Drive(t.Context(), mcp.InProcess(newMux())); err != nil {
			t.Errorf("%v\n%s", err, recorded)
		}
	})
}

// An argument that is mirrored in a header is redacted there, too, whatever the name of the
// header.
func TestHeaders(t *testing.T) {
	var file lockedBuffer
	conn, err := mcptest.Record(mcp.InProcess(newMux()), &file).Connect(t.Context(), func(*transport.Message) {})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	arguments := `{"name":"echo","arguments":{"apiKey":"hunter2","region":"eu \"west\"","shard":42}}`
	m := &transport.Outgoing{
		ID: transport.IntID(1), Method: mcp.MethodCallTool, Version: mcp.LatestVersion, Body: transport.AppendRequest(nil, transport.IntID(1), mcp.MethodCallTool, []byte(arguments)),
		Headers: []transport.HeaderParam{{Key: "Mcp-Param-Account", Value: "hunter2"}, {Key: "Mcp-Param-Region", Value: `eu "west"`}, {Key: "Mcp-Param-Shard", Value: "42"}},
	}
	if _, err := conn.Call(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	want := `"header":{"Mcp-Param-Account":"(redacted)","Mcp-Param-Region":"eu \"west\"","Mcp-Param-Shard":"42"}`
	if recorded := file.String(); !strings.Contains(recorded, want) || strings.Contains(recorded, "hunter2") {
		t.Errorf("the recording is\n%s", recorded)
	}
}

// A session that, according to the recording, was not connected cannot continue. This
// occurs if a file contains two recordings with sessions of the same name.
func TestNotConnectedGoesOn(t *testing.T) {
	const failed = `{"time":"2026-11-23T12:00:00Z","direction":"to-client","era":"modern","session":"1","failure":{"kind":"failed"}}`
	for _, next := range []string{
		`"direction":"to-server","message":{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`"direction":"to-server","message":{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
		`"direction":"to-server","failure":{"id":1,"kind":"closed"}`,
	} {
		line := `{"time":"2026-11-23T12:00:01Z","era":"modern","session":"1",` + next + "}"
		rec, err := recording.Read(strings.NewReader(failed + "\n" + line))
		if err != nil {
			t.Fatal(err)
		}
		err = recording.NewReplay(rec, nil).Drive(t.Context(), noServer{})
		if err == nil || !strings.Contains(err.Error(), "line 2: ") {
			t.Errorf("%s: %v", next, err)
		}
	}
}

// noServer is a transport to a server that cannot be reached.
type noServer struct{}

func (noServer) Connect(context.Context, transport.Receiver) (transport.Conn, error) {
	return nil, errors.New("there is no server")
}

// An update that a server of the legacy era sends before its response to resources/subscribe is
// not lost.
func TestUpdateWhileSubscribing(t *testing.T) {
	const recorded = `{"time":"2026-11-23T00:00:00Z","direction":"to-server","era":"legacy","session":"1","message":{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"v1"}}}}
{"time":"2026-11-23T00:00:00Z","direction":"to-client","era":"legacy","session":"1","message":{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"resources":{"subscribe":true}},"serverInfo":{"name":"s","version":"v1"}}}}
{"time":"2026-11-23T00:00:00Z","direction":"to-server","era":"legacy","session":"1","message":{"jsonrpc":"2.0","method":"notifications/initialized"}}
{"time":"2026-11-23T00:00:00Z","direction":"to-server","era":"legacy","session":"1","message":{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"a://b"}}}
{"time":"2026-11-23T00:00:00Z","direction":"to-client","era":"legacy","session":"1","message":{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a://b"}}}
{"time":"2026-11-23T00:00:00Z","direction":"to-client","era":"legacy","session":"1","message":{"jsonrpc":"2.0","id":2,"result":{}}}
`
	synctest.Test(t, func(t *testing.T) {
		server := recording.NewReplay(read(t, recorded), &recording.ReplayOptions{AnyOrder: true}).Transport()
		c, err := mcp.NewClient("c", "v1", &mcp.ClientOptions{Version: "2025-11-25"}).Connect(t.Context(), server)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		changes := make(chan mcp.Change, 10)
		sub, err := c.Listen(t.Context(), mcp.SubscriptionFilter{ResourceSubscriptions: []string{"a://b"}}, func(m mcp.Change) { changes <- m })
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Close()
		synctest.Wait()
		if len(changes) != 1 {
			t.Errorf("%d changes, want 1", len(changes))
		}
	})
}
