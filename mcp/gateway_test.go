// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
)

// bothEras are one version of each era.
var bothEras = []string{"2026-07-28", "2025-11-25"}

// gateway returns a mux with a connection to a server mounted under "b_".
func gateway(t *testing.T, server mcp.Handler, version string) *mcp.Mux {
	t.Helper()
	gw := mcp.NewMux("gateway", "v1", nil)
	gw.Mount("b_", connect(t, server, &mcp.ClientOptions{Version: version, Forward: true}))
	return gw
}

// A chain of client, gateway and server gives what client and server give, whatever
// bothEras they speak: the question travels, and so does progress.
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

// A server that asks what the sender of a call did not declare fails the call.
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

// T38: a gateway passes on unchanged what it does not know.
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

// A connection that is served has clients of the newest revision, whatever the server behind it
// speaks. It must say so, because a client that speaks nothing else would not connect otherwise.
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

// The gateway's lists contain what is mounted, and its subscriptions the changes.
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
