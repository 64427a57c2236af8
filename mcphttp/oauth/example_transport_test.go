// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/oauth"
)

// protected returns an MCP server that requires tokens of its own authorization server. Both
// run on this machine.
func protected() (server, login *httptest.Server) {
	as, login := localIssuer()
	mux := mcp.NewMux("clock", "v1.0.0", nil)
	mux.Tool("greet", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "hello, whoever you are", nil }, nil))
	handler := mcphttp.NewHandler(mux, nil)
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/mcp" {
			writeJSON(w, 200, map[string]any{"resource": server.URL + "/mcp", "authorization_servers": []string{login.URL}})
			return
		}
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if _, ok := as.scopesOf(token); !ok || scheme != "Bearer" {
			w.Header().Set("WWW-Authenticate", "Bearer")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	return server, login
}

// A command line program needs only the server's URL: a browser is opened when the server
// requires authorization.
func ExampleNewTransport() {
	server, login := protected()
	defer server.Close()
	defer login.Close()

	auth := oauth.NewTransport(server.URL+"/mcp", &oauth.Options{
		Grant: &oauth.AuthorizationCode{
			Redirector: &oauth.Loopback{OpenBrowser: func(_ context.Context, url string) error {
				go func() { // a user, who agrees to everything
					if res, err := http.Get(url); err == nil {
						res.Body.Close()
					}
				}()
				return nil
			}},
		},
		Logger: slog.New(slog.DiscardHandler),
	})
	defer auth.Close()

	ctx := context.Background()
	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, mcphttp.NewTransport(server.URL+"/mcp", &mcphttp.TransportOptions{
		Client: &http.Client{Transport: auth},
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	res, err := conn.CallTool(ctx, &mcp.CallToolParams{Name: "greet"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Content[0].(*mcp.TextContent).Text)
	// Output:
	// hello, whoever you are
}

// A program without a user has its own credentials.
func ExampleClientCredentials() {
	server, login := protected()
	defer server.Close()
	defer login.Close()

	auth := oauth.NewTransport(server.URL+"/mcp", &oauth.Options{
		Grant: &oauth.ClientCredentials{Client: oauth.Client{
			Issuer: login.URL, ID: "nightly-report", Secret: "from the environment", Method: "client_secret_basic",
		}},
		Logger: slog.New(slog.DiscardHandler),
	})
	defer auth.Close()
	fmt.Println(auth.Authorize(context.Background()))
	// Output:
	// <nil>
}

// A web application redirects the user, and receives the parameters at its redirect URI.
func ExampleNewRedirector() {
	redirects := make(chan url.Values) // sent by the application's handler
	receiver := oauth.NewRedirector("https://app.example/callback", func(ctx context.Context, authorizationURL string) (url.Values, error) {
		u, err := url.Parse(authorizationURL)
		if err != nil {
			return nil, err
		}
		fmt.Println("send the user to", u.Host)
		go func() { redirects <- url.Values{"state": {u.Query().Get("state")}} }()
		select {
		case params := <-redirects:
			return params, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	way, err := receiver.Open(context.Background(), "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer way.Close()
	params, err := way.Authorize(context.Background(), "https://login.example/authorize?state=xyz")
	fmt.Println(params, err)
	// Output:
	// send the user to login.example
	// map[state:[xyz]] <nil>
}
