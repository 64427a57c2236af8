// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package browser_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/go-psi/psi/examples/login/provider"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/auth"
	"github.com/go-psi/psi/mcphttp/authserver"
	"github.com/go-psi/psi/middleware"
)

// startInspector starts the web pages of the MCP Inspector, and returns their URL.
func startInspector(t *testing.T, server, era string) string {
	t.Helper()
	browser(t)
	const launcher = "../interop/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
	if _, err := os.Stat(launcher); err != nil && os.Getenv("PSI_INTEROP") == "" { // set by run.sh there
		t.Skip("the Inspector is not installed; see internal/test/interop/run.sh")
	}
	cmd := exec.Command("node", launcher, "--web", "--transport", "http", "--server-url", server, "--protocol-era", era)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "MCP_AUTO_OPEN_ENABLED=false", "CLIENT_PORT="+freePort(t), "MCP_SANDBOX_PORT="+freePort(t), "MCP_INSPECTOR_SECRET_STORE=memory")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if text := strings.TrimSpace(lines.Text()); strings.HasPrefix(text, "http://") && strings.Contains(text, "TOKEN") {
			return text
		}
	}
	t.Fatal("the Inspector does not start")
	return ""
}

// freePort returns a port that was free a moment ago.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// A strictServer refuses an access token when it is told to, as if it had expired.
type strictServer struct {
	auth.Verifier

	seen, refused atomic.Pointer[string]
}

func (s *strictServer) Verify(r *http.Request) (*mcp.Principal, error) {
	token := r.Header.Get("Authorization")
	if refused := s.refused.Load(); refused != nil && *refused == token {
		return nil, auth.NewInvalidTokenError("the token has expired")
	}
	s.seen.Store(&token)
	return s.Verifier.Verify(r)
}

// serveNotes returns the URL of a server behind package authserver.
func serveNotes(t *testing.T, strict *strictServer) string {
	t.Helper()
	issuer := mcptest.ServeFunc(t, provider.New)
	return mcptest.ServeFunc(t, func(base string) http.Handler {
		front, err := authserver.New(base+"/mcp", &authserver.Options{
			Provider: authserver.OIDC(issuer, provider.ClientID, provider.ClientSecret), Scopes: []string{"notes:read", "notes:write"}, Logger: slog.New(slog.DiscardHandler),
			Identify: func(_ context.Context, claims map[string]any) (*mcp.Principal, error) {
				return &mcp.Principal{Subject: claims["email"].(string)}, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		strict.Verifier = front.Verifier()
		mux := mcp.NewMux("notes", "v1", nil)
		mux.Tool("whoami", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
			return "you are " + mcp.PrincipalFromContext(ctx).Subject, nil
		}, nil))
		mux.With(middleware.RequireScopes("notes:write")).Tool("keep", mcp.ToolFunc(func(context.Context, struct{}) (string, error) {
			return "it is written", nil
		}, nil))
		metadata := front.Metadata()
		metadata.ScopesSupported = []string{"notes:read"}
		routes := http.NewServeMux()
		routes.Handle("/", front)
		routes.Handle("/mcp", auth.Require(strict, &auth.Options{Metadata: metadata, Scopes: []string{"notes:read"}})(mcphttp.NewHandler(mux, nil)))
		return routes
	}) + "/mcp"
}

// The MCP Inspector logs in at the front door, refreshes its token, and steps up. Its user
// sees what it asks for.
func TestInspectorLogsIn(t *testing.T) {
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) { inspectorLogsIn(t, era) })
	}
}

func inspectorLogsIn(t *testing.T, era string) {
	strict := &strictServer{}
	page := startInspector(t, serveNotes(t, strict), era)
	ctx := open(t)
	click := func(text string) {
		t.Helper()
		found := fmt.Sprintf(`[...document.querySelectorAll("button, label, span, p")].find(e => e.textContent.trim() === %q)`, text)
		waitFor(t, ctx, found+" !== undefined")
		run(t, ctx, found+".click()")
	}
	login := func() {
		t.Helper()
		waitFor(t, ctx, says("It calls itself MCP Inspector."))
		clickAllow(t, ctx)
		waitFor(t, ctx, `document.querySelector("input[name=user]") !== null`)
		do(t, ctx, chromedp.Click(chromedp.CSS("button")))
	}
	do(t, ctx, chromedp.Navigate(page))
	waitFor(t, ctx, `document.querySelector("[role=switch]") !== null`)
	run(t, ctx, `document.querySelector("[role=switch]").click()`)
	login()
	click("Tools")
	click("whoami")
	click("Execute Tool")
	waitFor(t, ctx, says("you are ada"))

	strict.refused.Store(strict.seen.Load())
	click("keep")
	click("whoami")
	click("Execute Tool")
	waitFor(t, ctx, says("you are ada"))

	click("keep")
	click("Execute Tool")
	waitFor(t, ctx, says("This operation needs additional scope: notes:write."))
	click("Authorize")
	login()
	click("Tools")
	click("keep")
	click("Execute Tool")
	waitFor(t, ctx, says("it is written"))
}
