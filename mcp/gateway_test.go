// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/internal/async"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcpstdio"
	"github.com/go-psi/psi/middleware"
)

// bothEras contains one version of each era.
var bothEras = []string{"2026-07-28", "2025-11-25"}

// gateway returns a mux with a connection to server mounted under "b_".
func gateway(t *testing.T, server mcp.Handler, version string) *mcp.Mux {
	t.Helper()
	gw := mcp.NewMux("gateway", "v1", nil)
	gw.Mount("b_", connect(t, server, &mcp.ClientOptions{Version: version, Forward: true}))
	return gw
}

// A chain of client, gateway and server behaves like a client and a server, in all
// combinations of eras: questions and progress pass through.
func TestGatewayEras(t *testing.T) {
	for _, back := range bothEras {
		for _, front := range bothEras {
			t.Run(front+" in front of "+back, func(t *testing.T) {
				c := connect(t, gateway(t, welcoming(), back), &mcp.ClientOptions{Version: front, Elicit: answering})
				var progress []float64
				ctx := mcp.WithProgress(t.Context(), func(p *mcp.ProgressParams) { progress = append(progress, p.Progress) })
				if got, err := mcp.Call[string](ctx, c, "b_greet", nil); err != nil || got != "Ada Lovelace" {
					t.Errorf("greet: %q, %v", got, err)
				}
				if !slices.Equal(progress, []float64{1, 2, 3}) {
					t.Errorf("progress %v, want 1, 2, 3", progress)
				}
				bare := connect(t, gateway(t, welcoming(), back), &mcp.ClientOptions{Version: front})
				res, err := bare.CallTool(t.Context(), &mcp.CallToolParams{Name: "b_greet"})
				if err == nil && !res.IsError {
					t.Errorf("a client that cannot be asked got %+v", res)
				}
			})
		}
	}
}

// If a server asks for something that the caller did not declare, the call fails.
func TestGatewayUndeclaredQuestion(t *testing.T) {
	server := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if req.Method == mcp.MethodCallTool {
			return &mcp.InputRequired{ResultBase: mcp.ResultBase{ResultType: mcp.ResultInputRequired}, InputRequests: map[string]mcp.InputRequest{"k": {Method: mcp.MethodListRoots}}}, nil
		}
		return hello().ServeMCP(ctx, req)
	})
	gw := mcp.NewMux("gateway", "v1", quiet())
	gw.Mount("b_", connectTo(t, mcp.InProcess(server), &mcp.ClientOptions{Forward: true}))
	for _, declared := range []bool{false, true} {
		caps := new(mcp.ClientCapabilities)
		if declared {
			caps.Roots = new(mcp.RootsCapability)
		}
		_, err := connectTo(t, mcp.InProcess(gw), &mcp.ClientOptions{Capabilities: caps}).CallTool(t.Context(), tool("b_hello", ""))
		if _, asked := errors.AsType[*mcp.InputRequiredError](err); asked != declared || !declared && mcp.CodeOf(err) != mcp.CodeMissingCapability {
			t.Errorf("declared: %t: %v", declared, err)
		}
	}
}

// A cancellation reaches the server behind the gateway.
func TestGatewayCancel(t *testing.T) {
	for _, back := range bothEras {
		for _, front := range bothEras {
			server := mcp.NewMux("waits", "v1", nil)
			began, ended := make(chan struct{}), make(chan error, 1)
			server.Tool("wait", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
				close(began)
				<-ctx.Done()
				ended <- context.Cause(ctx)
				return "", context.Cause(ctx)
			}, nil))
			c := connect(t, gateway(t, server, back), &mcp.ClientOptions{Version: front})
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-began; cancel() }()
			if _, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "b_wait"}); !errors.Is(err, context.Canceled) {
				t.Errorf("%s in front of %s: the call returned %v", front, back, err)
			}
			var cancelled *mcp.CancelError
			if err := <-ended; !errors.As(err, &cancelled) {
				t.Errorf("%s in front of %s: the handler's cause is %v", front, back, err)
			}
		}
	}
}

// T38: a gateway forwards unchanged what it does not know.
func TestGatewayPassesThrough(t *testing.T) {
	const big = "9007199254740993"
	server := mcp.NewMux("server", "v1", nil)
	server.Tool("echo", mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		if !strings.Contains(string(req.Params()), `"vendor":{"n":`+big+`}`) || req.Meta()["example.com/x"] == nil {
			t.Errorf("the server got %s", req.Params())
		}
		res := &mcp.CallToolResult{
			Content:           mcp.Contents{&mcp.TextContent{Text: "x", Extra: mcp.Extra{"vendor": []byte(big)}}, &mcp.UnknownContent{Type: "hologram", Raw: []byte(`{"type":"hologram","n":` + big + `}`)}},
			StructuredContent: req.Arguments(),
		}
		res.Meta.Set("example.com/y", json.RawMessage(big))
		res.Extra = mcp.Extra{"vendor": []byte(big)}
		return res, nil
	}))
	server.Tool("fail", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return nil, mcp.Errorf(7, "seven").WithData(json.RawMessage(big))
	}))
	for _, back := range bothEras {
		c := connect(t, gateway(t, server, back), nil)
		var meta mcp.Meta
		meta.Set("example.com/x", true)
		res, err := c.CallTool(t.Context(), &mcp.CallToolParams{
			Name: "b_echo", Arguments: []byte(`{"n":` + big + `}`), Meta: meta, Extra: mcp.Extra{"vendor": []byte(`{"n":` + big + `}`)},
		})
		if err != nil {
			t.Fatal(err)
		}
		text, ok := res.Content[0].(*mcp.TextContent)
		if !ok || string(text.Extra["vendor"]) != big || string(res.StructuredContent) != `{"n":`+big+`}` ||
			string(res.Extra["vendor"]) != big || string(res.Meta["example.com/y"]) != big {
			t.Errorf("%s: the client got %+v", back, res)
		}
		if unknown, ok := res.Content[1].(*mcp.UnknownContent); !ok || string(unknown.Raw) != `{"type":"hologram","n":`+big+`}` {
			t.Errorf("%s: unknown content became %+v", back, res.Content[1])
		}
		_, err = c.CallTool(t.Context(), &mcp.CallToolParams{Name: "b_fail"})
		var coded *mcp.Error
		if !errors.As(err, &coded) || coded.Code != 7 || coded.Message != "seven" || string(coded.Data) != big {
			t.Errorf("%s: an error became %v", back, err)
		}
	}
}

// A served connection supports the newest revision, whatever the server behind it speaks,
// and declares so. Otherwise clients that speak nothing else would not connect.
func TestServedConnectionSpeaksTheNewestRevision(t *testing.T) {
	for _, back := range bothEras {
		behind := connect(t, welcoming(), &mcp.ClientOptions{Version: back, Forward: true})
		c := connect(t, behind, &mcp.ClientOptions{Elicit: answering})
		if d, err := c.Discover(t.Context()); err != nil || !slices.Equal(d.SupportedVersions, mcp.ModernVersions()) {
			t.Errorf("in front of %s: discovered %+v, %v", back, d, err)
		}
		if got, err := mcp.Call[string](t.Context(), c, "greet", nil); err != nil || got != "Ada Lovelace" || c.Version() != mcp.LatestVersion {
			t.Errorf("in front of %s, in %s: %q, %v", back, c.Version(), got, err)
		}
	}
}

// An Upstream serves requests as a Conn does: it names the versions that the sender can use,
// and passes on no members of older revisions.
func TestFindingK10Z2ServedUpstreamSpeaksTheNewestRevision(t *testing.T) {
	server := stranger(map[string]string{
		mcp.MethodListTools: `{"tools":[{"name":"either","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}}]}`,
	})
	for _, back := range bothEras {
		r := &restless{handler: server}
		upstream := maintain(t, r, back, nil)
		if _, err := upstream.Conn(t.Context()); err != nil {
			t.Fatal(err)
		}
		c := connect(t, upstream, nil) // in process, where nothing but the newest revision is spoken
		if d, err := c.Discover(t.Context()); err != nil || !slices.Equal(d.SupportedVersions, mcp.ModernVersions()) {
			t.Errorf("in front of %s: discovered %+v, %v", back, d, err)
		}
		list, err := c.ListTools(t.Context(), nil)
		if err != nil || len(list.Tools) != 1 || len(list.Tools[0].Extra) != 0 || c.Version() != mcp.LatestVersion {
			t.Errorf("in front of %s, in %s: listed %+v, %v", back, c.Version(), list, err)
		}
	}
}

// The lists of a gateway contain the mounted items, and its subscriptions deliver their
// changes.
func TestGatewayChanges(t *testing.T) {
	for _, back := range bothEras {
		server := welcoming()
		server.Resource("test://doc", mcp.ResourceFunc(func(context.Context, struct{}) (string, error) { return "text", nil }, nil))
		gw := gateway(t, server, back)
		for _, front := range bothEras {
			c := connect(t, gw, &mcp.ClientOptions{Version: front})
			uri := "mount:b_:test://doc"
			changes := make(chan mcp.Change, 8)
			s, err := c.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{uri}}, func(ch mcp.Change) { changes <- ch })
			if err != nil {
				t.Fatal(err)
			}
			server.Tool("new"+front, uncalled)
			if got := <-changes; got.Method != mcp.NotificationToolsListChanged {
				t.Errorf("%s in front of %s: heard %+v", front, back, got)
			}
			server.ResourceUpdated("test://doc")
			if got := <-changes; got.URI != uri {
				t.Errorf("%s in front of %s: heard %+v", front, back, got)
			}
			s.Close()
			r, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
			if err != nil || r.Contents[0].URI != uri {
				t.Errorf("%s in front of %s: %+v, %v", front, back, r, err)
			}
		}
	}
}

// lastWords is the stream of a process that has ended and printed a reason.
type lastWords struct{ transport.Stream }

var errLastWords = errors.New("the server ended: exit status 2; its last words:\npostgres://admin:hunter2@10.0.0.5/prod")

func (s lastWords) Read(ctx context.Context) ([]byte, error) {
	data, err := s.Stream.Read(ctx)
	if err != nil {
		return nil, errLastWords
	}
	return data, nil
}

// dying returns a transport to a server that ends at the first tool call.
func dying() transport.Transport {
	return transport.FromStream(func(context.Context) (transport.Stream, error) {
		client, server := transport.Pipe()
		go func() {
			h := failsTools(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
				return nil, server.Close()
			}))
			_ = mcpstdio.ServeStream(context.Background(), h, server, nil)
		}()
		return lastWords{client}, nil
	})
}

// Callers of a gateway learn only that the server behind it is not available. The operator
// finds the reason in the log, and a program that calls its own connection gets the whole
// error.
func TestFindingI3U1GatewayKeepsTransportErrorsToItself(t *testing.T) {
	for _, back := range bothEras {
		for _, front := range bothEras {
			t.Run(front+" in front of "+back, func(t *testing.T) {
				endpoint := mcphttp.NewHandler(hello(), nil)
				web := httptest.NewServer(endpoint)
				overHTTP := connectTo(t, mcphttp.NewTransport(web.URL+"?exaApiKey=SECRET-KEY", nil), &mcp.ClientOptions{Version: back, Logger: quiet().Logger})
				overStdio := connectTo(t, dying(), &mcp.ClientOptions{Version: back, Forward: true})
				web.CloseClientConnections()
				web.Close()
				_ = endpoint.Shutdown(t.Context())
				log := new(bytes.Buffer)
				gw := mcp.NewMux("gateway", "v1", quiet())
				gw.Use(middleware.Logger(slog.New(slog.NewTextHandler(log, nil))))
				gw.Mount("x_", overHTTP)
				gw.Mount("y_", overStdio)
				c := connect(t, gw, &mcp.ClientOptions{Version: front})
				for name, secret := range map[string]string{"x_hello": "SECRET-KEY", "y_hello": "hunter2"} {
					_, err := c.CallTool(t.Context(), tool(name, ""))
					coded, ok := errors.AsType[*mcp.Error](err)
					if !ok || coded.Code != mcp.CodeInternalError || coded.Message != "the server behind this one is not available" || coded.Data != nil {
						t.Errorf("%s: the caller is told %v", name, err)
					}
					if !strings.Contains(log.String(), secret) {
						t.Errorf("%s: the operator is not told why:\n%s", name, log)
					}
				}
				if _, err := overHTTP.CallTool(t.Context(), tool("hello", "")); err == nil || !strings.Contains(err.Error(), "SECRET-KEY") {
					t.Errorf("the program itself got %v", err)
				}
				if _, err := overStdio.CallTool(t.Context(), tool("hello", "")); !errors.Is(err, errLastWords) {
					t.Errorf("the program itself got %v", err)
				}
			})
		}
	}
}

// A connection served without a mux hides the error, too. A timeout is distinguished from a
// server that is not available.
func TestFindingI3ServedConn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := failsTools(mcp.HandlerFunc(func(ctx context.Context, _ *mcp.Request) (mcp.Result, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}))
		up := connect(t, slow, &mcp.ClientOptions{CallTimeout: time.Second, Version: mcp.LatestVersion})
		c := connect(t, up, &mcp.ClientOptions{Version: mcp.LatestVersion})
		_, err := c.CallTool(t.Context(), tool("hello", ""))
		if coded, ok := errors.AsType[*mcp.Error](err); !ok || coded.Message != "the server behind this one did not answer in time" {
			t.Errorf("the caller is told %v", err)
		}
		req, err := mcp.NewRequest(mcp.MethodCallTool, tool("hello", ""))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := up.ServeMCP(t.Context(), req); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("middleware sees %v", err)
		}
		c.Close()
		up.Close()
	})
}

// manual calls the tool as who, like a client that returns questions to its program.
func manual(t *testing.T, h mcp.Handler, who string, retry mcp.Resume) (mcp.Result, error) {
	t.Helper()
	p := tool("b_greet", "")
	p.Resume = retry
	req, err := mcp.NewRequest(mcp.MethodCallTool, p)
	if err != nil {
		t.Fatal(err)
	}
	var meta mcp.Meta
	meta.Set(mcp.MetaProtocolVersion, mcp.LatestVersion)
	meta.Set(mcp.MetaClientCapabilities, map[string]any{"elicitation": map[string]any{}})
	p.Meta = meta
	if req, err = req.WithParams(p); err != nil {
		t.Fatal(err)
	}
	req.ID = mcp.IntID(1)
	req.Principal = &mcp.Principal{Subject: who}
	return h.ServeMCP(t.Context(), req)
}

// The state of a server behind a gateway is valid only for the caller that received it,
// although the server cannot tell callers apart.
func TestFindingS23ForwardedStateIsBoundToItsCaller(t *testing.T) {
	for _, back := range bothEras {
		gw := gateway(t, welcoming(), back)
		res, err := manual(t, gw, "alice", mcp.Resume{})
		asked, ok := res.(*mcp.InputRequired)
		if err != nil || !ok || asked.RequestState == nil || len(asked.InputRequests) != 1 {
			t.Fatalf("%s: got %+v, %v", back, res, err)
		}
		retry := mcp.Resume{RequestState: asked.RequestState, InputResponses: map[string]json.RawMessage{}}
		for key := range asked.InputRequests {
			retry.InputResponses[key] = json.RawMessage(`{"action":"accept","content":{"name":"Ada"}}`)
		}
		if res, err := manual(t, gw, "bob", retry); mcp.CodeOf(err) != mcp.CodeInvalidParams {
			t.Errorf("%s: bob goes on with alice's call: %+v, %v", back, res, err)
		}
		forged := "x" + *asked.RequestState
		if res, err := manual(t, gw, "alice", mcp.Resume{RequestState: &forged}); mcp.CodeOf(err) != mcp.CodeInvalidParams {
			t.Errorf("%s: a forged state: %+v, %v", back, res, err)
		}
		if res, err := manual(t, gw, "alice", retry); err != nil {
			t.Errorf("%s: alice's retry: %+v, %v", back, res, err)
		} else if next, ok := res.(*mcp.InputRequired); !ok || fmt.Sprint(next.InputRequests) == fmt.Sprint(asked.InputRequests) {
			t.Errorf("%s: alice's retry: %+v", back, res)
		}
	}
}

// chatty returns a server with a tool that logs at several levels.
func chatty() *mcp.Mux {
	mux := mcp.NewMux("chatty", "v1", quiet())
	mux.Tool("talk", mcp.ToolFunc(func(ctx context.Context, in struct {
		As string `json:"as,omitempty"`
	}) (string, error) {
		for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
			mcp.ClientLogger(ctx).Log(ctx, level, in.As+" says "+level.String())
		}
		return "done", nil
	}, nil))
	return mux
}

// listener records log messages.
type listener struct{ heard chan string }

func newListener() *listener { return &listener{make(chan string, 100)} }

func (l *listener) take(_ context.Context, _ *mcp.Conn, p *mcp.LoggingMessageParams) {
	l.heard <- fmt.Sprint(p.Level, " ", p.Data.(map[string]any)["msg"])
}

// first waits for n messages, and returns them and any others already received.
func (l *listener) first(n int) (heard []string) {
	for range n {
		heard = append(heard, <-l.heard)
	}
	for len(l.heard) > 0 {
		heard = append(heard, <-l.heard)
	}
	return heard
}

// Log messages pass through a gateway, at the level of the caller, in every combination of
// eras and on every path to the server behind it.
func TestFindingI5LogMessagesGoThroughAGateway(t *testing.T) {
	for _, path := range mcptest.Paths() {
		for _, back := range path.Versions() {
			t.Run("to "+back+" over "+path.Name, func(t *testing.T) {
				gw := mcp.NewMux("gateway", "v1", quiet())
				own := newListener()
				gw.Mount("b_", connectTo(t, path.Serve(t, chatty()), &mcp.ClientOptions{Version: back, Forward: true, Logger: quiet().Logger, Log: own.take}))
				for _, test := range []struct {
					level mcp.LoggingLevel
					want  []string
				}{
					{mcp.LoggingLevelError, []string{"error ada says ERROR"}},
					{mcp.LoggingLevelInfo, []string{"info ada says INFO", "warning ada says WARN", "error ada says ERROR"}},
					{mcp.LoggingLevelWarning, []string{"warning ada says WARN", "error ada says ERROR"}},
					{"", nil},
				} {
					for _, front := range bothEras {
						if test.level == "" && front != mcp.LatestVersion {
							continue // without a level, a server of the legacy era decides
						}
						heard := newListener()
						c := connect(t, gw, &mcp.ClientOptions{Version: front, LogLevel: test.level, Log: heard.take})
						if _, err := mcp.Call[string](t.Context(), c, "b_talk", map[string]string{"as": "ada"}); err != nil {
							t.Fatal(err)
						}
						if got := heard.first(len(test.want)); !slices.Equal(got, test.want) {
							t.Errorf("in front %s, at %q: heard %q, want %q", front, test.level, got, test.want)
						}
						c.Close()
					}
				}
			})
		}
	}
}

// Each of several concurrent callers gets only the log messages of its own call, even if
// the path to the server does not relate messages to calls.
func TestFindingI5LogMessagesAreTheCallers(t *testing.T) {
	for _, back := range bothEras {
		synctest.Test(t, func(t *testing.T) {
			server := mcp.NewMux("server", "v1", quiet())
			both := make(chan struct{}, 1)
			var ready sync.WaitGroup
			ready.Add(2)
			server.Tool("talk", mcp.ToolFunc(func(ctx context.Context, in struct {
				As string `json:"as"`
			}) (string, error) {
				ready.Done()
				ready.Wait()
				both <- struct{}{}
				mcp.ClientLogger(ctx).Info("of " + in.As)
				<-both
				return "done", nil
			}, nil))
			gw := gateway(t, server, back)
			var calls sync.WaitGroup
			for _, who := range []string{"ada", "bob"} {
				heard := newListener()
				c := connect(t, gw, &mcp.ClientOptions{Version: mcp.LatestVersion, LogLevel: mcp.LoggingLevelDebug, Log: heard.take})
				calls.Go(func() {
					ctx := mcp.WithProgress(t.Context(), func(*mcp.ProgressParams) {})
					if _, err := mcp.Call[string](ctx, c, "b_talk", map[string]string{"as": who}); err != nil {
						t.Error(err)
					}
					if got := heard.first(1); !slices.Equal(got, []string{"info of " + who}) {
						t.Errorf("%s: %s heard %q", back, who, got)
					}
				})
			}
			calls.Wait()
		})
	}
}

// A message that may be about another caller's call is not delivered to any caller. The
// gateway itself gets it if it logs at that level.
func TestFindingI5S5UnclearMessagesGoToNoCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := newListener()
		conn := connectTo(t, newOldServer(func(s *oldServer, m oldMessage) {
			if m.Method == "logging/setLevel" {
				s.sayf(`"id":%s,"result":{}`, m.ID)
			}
			if m.Method == mcp.MethodCallTool && m.Params.Name == "talks" {
				s.sayf(`"method":"notifications/message","params":{"level":"error","data":{"msg":"alice's password is hunter2"}}`)
				s.sayf(`"method":"notifications/message","params":{"level":"debug","data":{"msg":"detail"}}`)
				s.answer(m.ID, "done")
			}
		}), &mcp.ClientOptions{Version: "2025-11-25", Forward: true, LogLevel: mcp.LoggingLevelWarning, Log: own.take, Logger: quiet().Logger})
		gw := mcp.NewMux("gateway", "v1", quiet())
		gw.Mount("b_", conn)
		heard := newListener()
		c := connect(t, gw, &mcp.ClientOptions{Version: mcp.LatestVersion, LogLevel: mcp.LoggingLevelDebug, Log: heard.take})
		ctx, leave := context.WithCancel(t.Context())
		go func() { _, _ = core.Serve(ctx, gw, receivedFrom(t, "alice", "b_waits"), nil, nil) }()
		synctest.Wait()
		leave()
		synctest.Wait()
		if _, err := mcp.Call[string](t.Context(), c, "b_talks", nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := heard.first(0); len(got) != 0 {
			t.Errorf("the caller heard %q", got)
		}
		if got := strings.Join(own.first(0), ","); got != "error alice's password is hunter2" {
			t.Errorf("the gateway heard %q", got)
		}
	})
}

// A site is a server in a random tree of muxes and other handlers. Every listed item and
// every answer contains the ID of the site and the name of the item there.
type site struct {
	id    int
	names []string
}

func (s *site) says(name string) string { return fmt.Sprintf("%d:%s", s.id, name) }

func (s *site) asMux() *mcp.Mux {
	mux := mcp.NewMux(fmt.Sprint("site", s.id), "v1", quiet())
	for _, name := range s.names {
		text := s.says(name)
		mux.Tool(name, mcp.ToolFunc(func(context.Context, none) (string, error) { return text, nil }, &mcp.Tool{Description: text}))
		mux.Prompt(name, mcp.PromptFunc(func(context.Context, none) (string, error) { return text, nil }, &mcp.Prompt{Description: text}))
		mux.Resource("r:"+name, mcp.ResourceFunc(func(context.Context, none) (string, error) { return text, nil }, &mcp.Resource{Description: text}))
	}
	return mux
}

// asStranger returns a handler with faulty lists: items appear twice or without a name.
func (s *site) asStranger() mcp.Handler {
	answer := func(name string) (string, bool) { return s.says(name), slices.Contains(s.names, name) }
	return mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		text, known := answer(strings.TrimPrefix(req.Name(), "r:"))
		switch req.Method {
		case mcp.MethodListTools:
			res := &mcp.ListToolsResult{}
			for _, name := range append(slices.Clone(s.names), s.names[0], "") {
				res.Tools = append(res.Tools, &mcp.Tool{Name: name, Description: s.says(name), InputSchema: []byte(`{}`)})
			}
			return res, nil
		case mcp.MethodListPrompts:
			res := &mcp.ListPromptsResult{}
			for _, name := range append(slices.Clone(s.names), s.names[0], "") {
				res.Prompts = append(res.Prompts, &mcp.Prompt{Name: name, Description: s.says(name)})
			}
			return res, nil
		case mcp.MethodListResources:
			res := &mcp.ListResourcesResult{}
			for _, name := range append(slices.Clone(s.names), s.names[0]) {
				res.Resources = append(res.Resources, &mcp.Resource{URI: "r:" + name, Name: name, Description: s.says(name)})
			}
			return res, nil
		case mcp.MethodCallTool:
			if known {
				return mcp.TextResult(text), nil
			}
			return nil, mcp.NewUnknownNameError("tool", req.Name())
		case mcp.MethodGetPrompt:
			if known {
				return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{mcp.UserMessage(mcp.Text(text))}}, nil
			}
			return nil, mcp.NewUnknownNameError("prompt", req.Name())
		case mcp.MethodReadResource:
			if known {
				return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Name(), Text: text}}}, nil
			}
			return nil, mcp.NewResourceNotFoundError(req.Name())
		}
		return nil, mcp.NewMethodNotFoundError(req.Method)
	})
}

// randomTree mounts sites under prefixes that often overlap. Mounts that panic are left
// out.
func randomTree(r *rand.Rand, depth int, id *int) mcp.Handler {
	names := []string{"x", "y", "a_x", "b_x", "b_a_x", "ab_x", "a_b_x", "_x", "a", "mount:a_:r:x"}
	prefixes := []string{"a_", "b_", "a_b_", "ab_", "a", "b", "_", "b_a_"}
	pick := func(from []string) (picked []string) {
		for _, i := range r.Perm(len(from))[:1+r.IntN(4)] {
			picked = append(picked, from[i])
		}
		return picked
	}
	*id++
	s := &site{*id, pick(names)}
	if depth == 0 || r.IntN(4) == 0 {
		return s.asStranger()
	}
	mux := s.asMux()
	for _, prefix := range pick(prefixes) {
		child := randomTree(r, depth-1, id)
		func() {
			defer func() { _ = recover() }()
			mux.Mount(prefix, child)
		}()
	}
	func() { // a name registered after the mounts
		defer func() { _ = recover() }()
		late := &site{*id * 1000, nil}
		mux.Tool("a_x", mcp.ToolFunc(func(context.Context, none) (string, error) { return late.says("a_x"), nil }, &mcp.Tool{Description: late.says("a_x")}))
	}()
	return mux
}

// Whatever is mounted where, each listed item is listed once, can be called, and answers as
// the server that described it. A listed name never reaches an item that its mount does not
// list.
func TestFindingS15CM13WhatIsListedAnswers(t *testing.T) {
	for seed := range uint64(100) {
		id := 0
		top := randomTree(rand.New(rand.NewPCG(seed, 1)), 3, &id)
		if _, isMux := top.(*mcp.Mux); !isMux {
			continue
		}
		c := connect(t, top, &mcp.ClientOptions{Version: bothEras[seed%2], Logger: quiet().Logger})
		seen := map[string]bool{}
		check := func(kind, name, described, got string, err error) {
			t.Helper()
			if seen[kind+name] {
				t.Errorf("seed %d: the %s %q is listed twice", seed, kind, name)
			}
			seen[kind+name] = true
			inner := described[strings.Index(described, ":")+1:]
			if err != nil || got != described || !strings.HasSuffix(name, inner) {
				t.Errorf("seed %d: the %s %q, described by %q, answers %q, %v", seed, kind, name, described, got, err)
			}
		}
		for tool, err := range c.Tools(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			got, err := mcp.Call[string](t.Context(), c, tool.Name, nil)
			check("tool", tool.Name, tool.Description, got, err)
		}
		for prompt, err := range c.Prompts(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			res, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: prompt.Name})
			if err == nil {
				got = res.Messages[0].Content.(*mcp.TextContent).Text
			}
			check("prompt", prompt.Name, prompt.Description, got, err)
		}
		for resource, err := range c.Resources(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			res, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: resource.URI})
			if err == nil {
				got = res.Contents[0].Text
			}
			check("resource", resource.URI, resource.Description, got, err)
		}
		c.Close()
	}
}

// A gateway acknowledges only subscriptions to resources that the server behind it accepts.
func TestFindingI10SubscriptionsThatTheServerRefuses(t *testing.T) {
	server := hello()
	server.Resource("test://known", reads(""))
	for _, back := range bothEras {
		inFront(t, gateway(t, server, back), func(t *testing.T, c *mcp.Conn) {
			s, err := c.Listen(t.Context(), mcp.SubscriptionFilter{ResourceSubscriptions: []string{"mount:b_:test://known", "mount:b_:test://none", "mount:c_:test://known"}}, func(mcp.Change) {})
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Accepted().ResourceSubscriptions; !slices.Equal(got, []string{"mount:b_:test://known"}) {
				t.Errorf("in front of %s: accepted %q", back, got)
			}
			s.Close()
		})
	}
}

// If a server keeps ending subscriptions and never accepts a resource, the gateway does not
// send updates for it.
func TestGatewayTellsOfNothingThatTheServerRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var listened atomic.Int32
		gw := mcp.NewMux("gateway", "v1", quiet())
		gw.Mount("b_", mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method != mcp.MethodListen {
				return &mcp.DiscoverResult{Capabilities: &mcp.ServerCapabilities{Resources: &mcp.ResourcesCapability{Subscribe: true}}}, nil
			}
			listened.Add(1)
			return &mcp.ListenResult{}, req.Notify(ctx, mcp.NotificationAcknowledged, &mcp.AcknowledgedParams{})
		}))
		c := connect(t, gw, nil)
		filter := mcp.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{"mount:b_:test://doc"}}
		s, err := c.Listen(t.Context(), filter, func(ch mcp.Change) {
			if ch.URI != "" {
				t.Errorf("heard of %s", ch.URI)
			}
		})
		if err != nil || len(s.Accepted().ResourceSubscriptions) != 0 {
			t.Fatalf("accepted %+v, %v", s, err)
		}
		if err := async.Sleep(t.Context(), 10*time.Second); err != nil || listened.Load() < 3 {
			t.Errorf("it listened %d times, %v", listened.Load(), err)
		}
		s.Close()
	})
}

// The reference of a forwarded completion is unambiguous, however the server behind the
// gateway decodes it.
func TestFindingS2CompletionsThroughAGateway(t *testing.T) {
	var got string
	gw := mcp.NewMux("gateway", "v1", quiet())
	gw.Mount("b_", mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		got = string(req.Params())
		return &mcp.CompleteResult{Completion: mcp.Completion{Values: []string{}}}, nil
	}))
	for params, want := range map[string]string{
		`{"ref":{"type":"ref/prompt","name":"b_p","uri":"secret://","Name":"q","NAME":"q","Type":"ref/resource"},"Ref":{"type":"ref/prompt","name":"q"},"argument":{"name":"a","Name":"q","value":"","VALUE":"q"},"context":{"Arguments":{"q":"q"}}}`: `{"ref":{"name":"p","type":"ref/prompt"},"argument":{"name":"a","value":""},"context":{}}`,
		`{"ref":{"type":"ref/resource","uri":"mount:b_:r:{x}","name":"q","Uri":"q"},"argument":{"name":"a","value":""}}`:                                                                                                                              `{"ref":{"type":"ref/resource","uri":"r:{x}"},"argument":{"name":"a","value":""}}`,
	} {
		if _, _, err := mcptest.Do(t, gw, mcptest.NewRequest(mcp.MethodComplete, json.RawMessage(params))); err != nil {
			t.Error(err)
		}
		var a, b any
		if json.Unmarshal([]byte(got), &a) != nil || json.Unmarshal([]byte(want), &b) != nil {
			t.Fatalf("got %s", got)
		}
		if m, ok := a.(map[string]any); ok {
			delete(m, "_meta")
		}
		if fmt.Sprint(a) != fmt.Sprint(b) {
			t.Errorf("the server got %s, want %s", got, want)
		}
	}
}

// Capabilities that end at the gateway are not forwarded. The tasks extension is one of
// them, unless a mount seals the task IDs.
func TestFindingI10CapabilitiesThatDoNotTravel(t *testing.T) {
	seen := make(chan *mcp.ClientCapabilities, 8)
	server := failsTools(mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		seen <- req.ClientCapabilities()
		return mcp.TextResult("done"), nil
	}))
	mux := gateway(t, server, mcp.LatestVersion)
	mux.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			declared := req.ClientCapabilities() // shared with copies of the request from now on
			res, err := next.ServeMCP(ctx, req)
			if req.Method == mcp.MethodCallTool && !declared.HasExtension("io.modelcontextprotocol/tasks") {
				t.Error("what was left out for the server is gone from the request of the client")
			}
			return res, err
		})
	})
	c := connect(t, mux, &mcp.ClientOptions{Version: mcp.LatestVersion, Elicit: answering, Capabilities: &mcp.ClientCapabilities{
		Extensions: mcp.Extensions{"io.modelcontextprotocol/tasks": []byte("{}"), "io.modelcontextprotocol/ui": []byte("{}")},
	}})
	if _, err := c.CallTool(t.Context(), tool("b_hello", "")); err != nil {
		t.Fatal(err)
	}
	caps := <-seen
	if caps.Elicitation == nil || !caps.HasExtension("io.modelcontextprotocol/tasks") || !caps.HasExtension("io.modelcontextprotocol/ui") {
		t.Errorf("the server was told %+v", caps)
	}
	proxy := connect(t, server, &mcp.ClientOptions{Version: mcp.LatestVersion, Forward: true})
	_, _, err := mcptest.Do(t, proxy, mcptest.NewRequest(mcp.MethodCallTool, map[string]any{
		"name": "hello", "_meta": map[string]any{mcp.MetaClientCapabilities: map[string]any{
			"elicitation": map[string]any{}, "extensions": map[string]any{"io.modelcontextprotocol/tasks": map[string]any{}},
		}},
	}))
	if caps := <-seen; err != nil || caps.Elicitation == nil || caps.HasExtension("io.modelcontextprotocol/tasks") {
		t.Errorf("without a mount, the server was told %+v, %v", caps, err)
	}
}

// A server that asks callers of a gateway what they cannot be asked does not fill its log.
func TestFindingX14RefusedQuestionsAreLoggedSparsely(t *testing.T) {
	var log lockedBuffer
	flood := "[" + strings.Repeat(`{"jsonrpc":"2.0","id":"x","method":"roots/list"},`, 500) + `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}]`
	behind := connectTo(t, answeringWith(flood), &mcp.ClientOptions{Version: "2025-11-25", Forward: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	caller := &mcptest.Client{Options: mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}}} // cannot be asked
	if _, _, err := mcptest.Do(t, behind, caller.NewRequest(mcp.MethodCallTool, tool("x", ""))); err != nil {
		t.Fatal(err)
	}
	if got := log.String(); !strings.Contains(got, "cannot be passed on") || strings.Count(got, "\n") > 40 {
		t.Errorf("%d lines are logged, beginning with %.300s", strings.Count(got, "\n"), got)
	}
}
