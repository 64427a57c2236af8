// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package guide_test

import (
	"context"
	"log"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcpstdio"
	"github.com/go-psi/psi/middleware"
)

func newMux() *mcp.Mux {
	mux := mcp.NewMux("greeter", "v1.0.0", nil)
	mux.Tool("greet", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "Hello!", nil }, nil))
	return mux
}

// listenAndServe is the last part of a main function.
func listenAndServe() {
	server := &http.Server{
		Addr:              "127.0.0.1:8080",
		Handler:           mcphttp.NewHandler(newMux(), nil),
		ReadHeaderTimeout: 10 * time.Second,
	}
	log.Fatal(server.ListenAndServe())
}

var _ = listenAndServe

func TestServer(t *testing.T) {
	server := httptest.NewServer(mcphttp.NewHandler(newMux(), nil))
	t.Cleanup(server.Close)
	conn := mcptest.Dial(t, mcphttp.NewTransport(server.URL, nil), nil)
	if got, err := mcp.Call[string](t.Context(), conn, "greet", nil); err != nil || got != "Hello!" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestClientEnvironment(t *testing.T) {
	key := "secret"
	cmd := exec.Command("weather-server")
	cmd.Env = append(mcpstdio.Environ("LANG"), "API_KEY="+key)
	if env := strings.Join(cmd.Env, "\n"); !strings.Contains(env, "PATH=") || !strings.HasSuffix(env, "\nAPI_KEY=secret") {
		t.Errorf("the environment is %s", env)
	}
}

func askUser(_ context.Context, message string) (name string, ok bool) {
	return "Ada, who read " + message, message != "Who else?"
}

func TestClientElicit(t *testing.T) {
	client := mcp.NewClient("host", "v1.0.0", &mcp.ClientOptions{
		Elicit: func(ctx context.Context, _ *mcp.Conn, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			name, ok := askUser(ctx, p.Message) // p.RequestedSchema describes the form
			if !ok {
				return mcp.DeclineElicit(), nil
			}
			return mcp.AcceptElicit(map[string]string{"name": name})
		},
	})
	mux := mcp.NewMux("greeter", "v1.0.0", nil)
	mux.Tool("greet", mcp.ToolFunc(func(ctx context.Context, in struct {
		Question string `json:"question"`
	}) (string, error) {
		user, err := mcp.Elicit[struct {
			Name string `json:"name"`
		}](ctx, "name", in.Question)
		return user.Name, err
	}, nil))
	conn, err := client.Connect(t.Context(), mcp.InProcess(mux))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	got, err := mcp.Call[string](t.Context(), conn, "greet", map[string]string{"question": "Who are you?"})
	if err != nil || got != "Ada, who read Who are you?" {
		t.Errorf("got %q, %v", got, err)
	}
	_, err = mcp.Call[string](t.Context(), conn, "greet", map[string]string{"question": "Who else?"})
	if err == nil || !strings.Contains(err.Error(), "declined") {
		t.Errorf("got %v", err)
	}
}

func newNotes() *mcp.Mux {
	mux := mcp.NewMux("notes", "v1.0.0", nil)
	mux.With(middleware.RequireScopes("notes:write")).Tool("delete", mcp.ToolFunc(func(ctx context.Context, _ struct {
		ID int `json:"id"`
	}) (string, error) {
		_, err := mcp.Elicit[struct {
			Sure bool `json:"sure"`
		}](ctx, "sure", "Delete it?")
		return mcp.PrincipalFromContext(ctx).Subject + " has deleted note 1", err
	}, nil))
	return mux
}

func TestCaller(t *testing.T) {
	ada := &mcptest.Client{
		Principal: &mcp.Principal{Subject: "ada", Scopes: []string{"notes:write"}},
		Options: mcp.ClientOptions{
			Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
				return mcptest.Accept(map[string]bool{"sure": true}), nil
			},
		},
	}
	conn := ada.Connect(t, newNotes())
	got, err := mcp.Call[string](t.Context(), conn, "delete", map[string]int{"id": 1})
	if err != nil || got != "ada has deleted note 1" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestAs(t *testing.T) {
	ada := mcptest.As(&mcp.Principal{Subject: "ada", Scopes: []string{"notes:write"}})
	url := mcptest.Serve(t, mcphttp.NewHandler(ada(newNotes()), nil))
	conn := mcptest.Dial(t, mcphttp.NewTransport(url, nil), &mcp.ClientOptions{
		Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return mcptest.Accept(map[string]bool{"sure": true}), nil
		},
	})
	got, err := mcp.Call[string](t.Context(), conn, "delete", map[string]int{"id": 1})
	if err != nil || got != "ada has deleted note 1" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := mcp.NewMux("slow", "v1.0.0", nil)
		mux.With(middleware.Timeout(time.Minute)).Tool("wait", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
			<-ctx.Done()
			return "", context.Cause(ctx)
		}, nil))
		_, err := mcp.Call[string](t.Context(), mcptest.Connect(t, mux), "wait", nil)
		if mcp.CodeOf(err) != mcp.CodeTimeout {
			t.Errorf("got %v", err)
		}
	})
}

// Middleware can remove capabilities, for clients of all revisions.
func TestFindingRM12CapabilitiesTurnedOff(t *testing.T) {
	mux := newMux()
	mux.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			res, err := next.ServeMCP(ctx, req)
			d, ok := res.(*mcp.DiscoverResult)
			if !ok {
				return res, err
			}
			changed, declared := *d, *d.Capabilities // both are shared
			declared.Logging = nil
			declared.Tools = &mcp.ListCapability{} // without listChanged
			changed.Capabilities = &declared
			return &changed, nil
		})
	})
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		got := c.Server().Capabilities
		if got.Logging != nil || got.Tools == nil || got.Tools.ListChanged {
			t.Errorf("the server declares %+v", got)
		}
	})
}
