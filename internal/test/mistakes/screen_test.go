// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mistakes_test

import (
	"context"
	"io/fs"
	"iter"
	"net/http"
	"os/exec"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/auth"
	"github.com/go-psi/psi/mcpstdio"
)

// The API in one screen: nearly every program uses nothing else. The declarations are assigned
// from the packages, so what changes here changes for users; see docs/stability.md.
var (
	_ interface {
		ServeMCP(ctx context.Context, req *mcp.Request) (mcp.Result, error)
	} = mcp.Handler(nil)
	_ func(ctx context.Context, req *mcp.Request) (mcp.Result, error) = mcp.HandlerFunc(nil)
	_ func(mcp.Handler) mcp.Handler                                   = mcp.Middleware(nil)
	_ func(h mcp.Handler, mw ...mcp.Middleware) mcp.Handler           = mcp.Chain

	_ func(name, version string, opts *mcp.MuxOptions) *mcp.Mux = mcp.NewMux
	_ func(m *mcp.Mux, name string, h mcp.Handler)              = (*mcp.Mux).Tool
	_ func(m *mcp.Mux, name string, h mcp.Handler)              = (*mcp.Mux).Prompt
	_ func(m *mcp.Mux, pattern string, h mcp.Handler)           = (*mcp.Mux).Resource
	_ func(m *mcp.Mux, method string, h mcp.Handler)            = (*mcp.Mux).Handle
	_ func(m *mcp.Mux, prefix string, h mcp.Handler)            = (*mcp.Mux).Mount
	_ func(m *mcp.Mux, mw ...mcp.Middleware)                    = (*mcp.Mux).Use
	_ func(m *mcp.Mux, mw ...mcp.Middleware) *mcp.Mux           = (*mcp.Mux).With
	_ func(m *mcp.Mux, fn func(m *mcp.Mux)) error               = (*mcp.Mux).Update
	_ func(m *mcp.Mux, uri string)                              = (*mcp.Mux).ResourceUpdated

	_ func(fn func(ctx context.Context, in none) (none, error), t *mcp.Tool) mcp.Handler     = mcp.ToolFunc[none, none]
	_ func(fn func(ctx context.Context, in none) (none, error), p *mcp.Prompt) mcp.Handler   = mcp.PromptFunc[none, none]
	_ func(fn func(ctx context.Context, in none) (none, error), r *mcp.Resource) mcp.Handler = mcp.ResourceFunc[none, none]
	_ func(fsys fs.FS, opts *mcp.FileServerOptions) mcp.Handler                              = mcp.FileServerFS
	_ func(value none, content ...mcp.Content) mcp.Output[none]                              = mcp.WithContent[none]
	_ func(template string, vars any) (string, error)                                        = mcp.ExpandURI

	_ func(ctx context.Context, key, message string) (none, error)                                          = mcp.Elicit[none]
	_ func(ctx context.Context, questions ...mcp.Question) error                                            = mcp.Ask
	_ func(ctx context.Context, key string, fn func(ctx context.Context) (none, error)) (none, error)       = mcp.Once[none]
	_ func(ctx context.Context, done, total float64, message string)                                        = mcp.Progress
	_ func(ctx context.Context) *mcp.Request                                                                = mcp.RequestFromContext
	_ func(ctx context.Context) *mcp.Principal                                                              = mcp.PrincipalFromContext
	_ func(ctx context.Context, c *mcp.Conn, p *mcp.ElicitParams) (*mcp.ElicitResult, error)                = mcp.ClientOptions{}.Elicit
	_ func(name, version string, opts *mcp.ClientOptions) *mcp.Client                                       = mcp.NewClient
	_ func(c *mcp.Client, ctx context.Context, t transport.Transport) (*mcp.Conn, error)                    = (*mcp.Client).Connect
	_ func(c *mcp.Client, ctx context.Context, t transport.Transport, o *mcp.UpstreamOptions) *mcp.Upstream = (*mcp.Client).Maintain
	_ func(ctx context.Context, c mcp.ToolCaller, tool string, args any) (none, error)                      = mcp.Call[none]

	_ func(c *mcp.Conn, ctx context.Context, p *mcp.CallToolParams) (*mcp.CallToolResult, error)                       = (*mcp.Conn).CallTool
	_ func(c *mcp.Conn, ctx context.Context, p *mcp.ListParams) iter.Seq2[*mcp.Tool, error]                            = (*mcp.Conn).Tools
	_ func(c *mcp.Conn, ctx context.Context, f mcp.SubscriptionFilter, fn func(mcp.Change)) (*mcp.Subscription, error) = (*mcp.Conn).Listen
	_ func(c *mcp.Conn) error                                                                                          = (*mcp.Conn).Close
	_ func(h mcp.Handler) transport.Transport                                                                          = mcp.InProcess
	_ func(method string, params any) (*mcp.Request, error)                                                            = mcp.NewRequest
	_ func(code int, format string, args ...any) *mcp.Error                                                            = mcp.Errorf
	_ func(err error) int                                                                                              = mcp.CodeOf
	_ func(s string) *mcp.TextContent                                                                                  = mcp.Text

	_ func(h mcp.Handler, opts *mcphttp.Options) *mcphttp.Handler                   = mcphttp.NewHandler
	_ func(url string, opts *mcphttp.TransportOptions) transport.Transport          = mcphttp.NewTransport
	_ func(ctx context.Context, h mcp.Handler, opts *mcpstdio.Options) error        = mcpstdio.Serve
	_ func(cmd *exec.Cmd, opts *mcpstdio.CommandOptions) transport.Transport        = mcpstdio.NewCommand
	_ func(v auth.Verifier, opts *auth.Options) func(http.Handler) http.Handler     = auth.Require
	_ func(issuer, audience string, opts *auth.JWTOptions) (*auth.JWT, error)       = auth.NewJWT
	_ func(t *testing.T, h mcp.Handler, fn func(t *testing.T, c *mcp.Conn))         = mcptest.Run
	_ func(tb testing.TB, t transport.Transport, opts *mcp.ClientOptions) *mcp.Conn = mcptest.Dial
)

// TestScreen checks that the two interfaces that nearly every program implements or is given
// have not grown: a wrapper with these methods is still complete.
func TestScreen(*testing.T) {
	var _ mcp.Handler = mcp.HandlerFunc(nil)
	var _ mcp.ToolCaller = (*mcp.Conn)(nil)
	var _ mcp.ToolCaller = (*mcp.Upstream)(nil)
	var _ transport.Conn = struct {
		transport.Conn
	}{}
}
