// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package matrix_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-psi/psi/internal/seam"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
)

// core is the internal API of package mcp used by transports.
var core = mcp.Internal(seam.Key{})

var quiet = slog.New(slog.DiscardHandler)

// A way sends one request as one caller and returns the whole response message. For
// subscriptions/listen, that is the acknowledgement.
type way func(t *testing.T, method, params string) string

// A path is a way to reach a server.
type path struct {
	name   string
	legacy bool   // of the legacy era, where clients subscribe to one resource at a time
	prefix string // prefix of a mount on the path, or ""
	// open returns a way for a caller with the token who.
	open func(t *testing.T, h mcp.Handler, who string) way
}

// tool returns the name of a tool or prompt as seen over the path.
func (p path) tool(name string) string { return p.prefix + name }

// uri returns the URI of a resource as seen over the path.
func (p path) uri(uri string) string {
	if p.prefix == "" {
		return uri
	}
	return "mount:" + p.prefix + ":" + uri
}

func paths() []path {
	return []path{
		{name: "in process", open: inProcess},
		{name: "modern", open: modern},
		{name: "session", legacy: true, open: session("2025-11-25", false)},
		{name: "oldest session", legacy: true, open: session("2024-11-05", false)},
		{name: "batch", legacy: true, open: session("2025-03-26", true)},
		{name: "forwarded session", legacy: true, open: elsewhere(true)},
		{name: "adopted session", legacy: true, open: elsewhere(false)},
		{name: "HTTP+SSE", legacy: true, open: events},
		{name: "mount", prefix: "in_", open: mounted(modern)},
		{name: "mount in a session", legacy: true, prefix: "in_", open: mounted(session("2025-11-25", false))},
	}
}

// authenticate trusts the header X-User: a subject and scopes, as in "ann read write".
func authenticate(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, mcphttp.WithPrincipal(r, principal(r.Header.Get("X-User"))))
	})
}

func principal(who string) *mcp.Principal {
	words := strings.Fields(who)
	return &mcp.Principal{Issuer: "test", Subject: words[0], Scopes: words[1:]}
}

var lastID atomic.Int64

func message(method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, lastID.Add(1), method, params)
}

func inProcess(_ *testing.T, h mcp.Handler, who string) way {
	client := &mcptest.Client{Principal: principal(who)}
	return func(t *testing.T, method, params string) string {
		t.Helper()
		req := client.NewRequest(method, json.RawMessage(params))
		if method == mcp.MethodListen {
			return acknowledgement(t, h, req)
		}
		res, _, err := mcptest.Do(t, h, req)
		return string(mcp.AppendResponse(nil, req, res, err))
	}
}

// acknowledgement listens until the server acknowledges the subscription or fails.
func acknowledgement(t *testing.T, h mcp.Handler, req *mcp.Request) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ack := &firstNotification{end: cancel}
	_, err := core.Serve(ctx, h, req, ack, quiet)
	if ack.params == nil {
		return string(core.AppendError(nil, req.ID, err))
	}
	return string(ack.params)
}

type firstNotification struct {
	end    context.CancelFunc
	params json.RawMessage
}

func (f *firstNotification) Notify(_ context.Context, _ string, params json.RawMessage) error {
	if f.params == nil {
		f.params = append(f.params, params...)
	}
	f.end()
	return nil
}

// post sends a message and returns the response, or the first message of a stream.
func post(t *testing.T, to string, h http.Header, body string) (string, http.Header) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = h.Clone()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		return firstMessage(t, bufio.NewReader(res.Body)), res.Header
	}
	whole, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(whole), res.Header
}

// firstMessage returns the data of the next event that has data.
func firstMessage(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream ended: %v", err)
		}
		if data, ok := strings.CutPrefix(line, "data:"); ok && strings.TrimSpace(data) != "" {
			return strings.TrimSpace(data)
		}
	}
}

// endpoint serves h over Streamable HTTP and HTTP+SSE.
func endpoint(t *testing.T, h mcp.Handler, opts *mcphttp.Options) string {
	t.Helper()
	opts.Logger = quiet
	server := httptest.NewUnstartedServer(nil)
	if shared := opts.Sessions.Shared; shared != nil && shared.URL == "" {
		shared.URL = "http://" + server.Listener.Addr().String() + "/peers"
	}
	router := mcphttp.NewRouter(h, &mcphttp.RouterOptions{Options: opts})
	routes := http.NewServeMux()
	routes.Handle("/", authenticate(router))
	routes.Handle("/peers", router.MCP.PeerHandler())
	server.Config.Handler = routes
	server.Start()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // do not wait for open streams
		_ = router.Shutdown(ctx)
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

func modern(t *testing.T, h mcp.Handler, who string) way {
	at := endpoint(t, h, &mcphttp.Options{}) + "/mcp"
	return func(t *testing.T, method, params string) string {
		t.Helper()
		req := mcptest.NewRequest(method, json.RawMessage(params))
		headers := http.Header{"X-User": {who}, "Mcp-Protocol-Version": {mcp.LatestVersion}, "Mcp-Method": {method}}
		if req.Name() != "" {
			headers.Set("Mcp-Name", transport.EncodeHeaderValue(req.Name()))
		}
		got, _ := post(t, at, headers, message(method, string(req.Params())))
		return got
	}
}

func initialize(version string) string {
	return message("initialize", fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"c","version":"v1"}}`, version))
}

// session opens a session with a token that has all scopes, and then uses it with the
// caller's own token, which may be weaker.
func session(version string, batch bool) func(*testing.T, mcp.Handler, string) way {
	return func(t *testing.T, h mcp.Handler, who string) way {
		at := endpoint(t, h, &mcphttp.Options{}) + "/mcp"
		headers := enter(t, at, version, who)
		return func(t *testing.T, method, params string) string {
			t.Helper()
			body := message(method, params)
			if batch {
				body = "[" + body + "]"
			}
			got, _ := post(t, at, headers, body)
			return got
		}
	}
}

// enter opens a session for the subject of who, with all scopes.
func enter(t *testing.T, at, version, who string) http.Header {
	t.Helper()
	strong := http.Header{"X-User": {strings.Fields(who)[0] + " s"}}
	_, opened := post(t, at, strong, initialize(version))
	headers := http.Header{"X-User": {who}, "Mcp-Protocol-Version": {version}, "Mcp-Session-Id": {opened.Get("Mcp-Session-Id")}}
	post(t, at, headers, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return headers
}

// elsewhere opens a session at one replica and uses it at another, which passes the messages
// on if it can reach the first, and takes the session over if not.
func elsewhere(reachable bool) func(*testing.T, mcp.Handler, string) way {
	return func(t *testing.T, h mcp.Handler, who string) way {
		values := store.NewMemory(nil)
		share := func(url string) *mcphttp.Options {
			return &mcphttp.Options{Sessions: mcphttp.SessionOptions{Shared: &mcphttp.SharedSessions{Values: values, URL: url, Keys: [][]byte{[]byte("a secret of all replicas")}}}}
		}
		url := "http://127.0.0.1:1/" // nothing listens there
		if reachable {
			url = ""
		}
		first, second := endpoint(t, h, share(url))+"/mcp", endpoint(t, h, share(""))+"/mcp"
		headers := enter(t, first, "2025-11-25", who)
		return func(t *testing.T, method, params string) string {
			t.Helper()
			got, _ := post(t, second, headers, message(method, params))
			return got
		}
	}
}

// events opens an HTTP+SSE stream with a token that has all scopes, and sends messages with
// the caller's own token.
func events(t *testing.T, h mcp.Handler, who string) way {
	base := endpoint(t, h, &mcphttp.Options{}) + "/sse"
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-User", strings.Fields(who)[0]+" s")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	stream := bufio.NewReader(res.Body)
	where, err := url.Parse(firstMessage(t, stream))
	if err != nil {
		t.Fatal(err)
	}
	at := req.URL.ResolveReference(where).String()
	send := func(body string) { post(t, at, http.Header{"X-User": {who}}, body) }
	send(initialize("2024-11-05"))
	firstMessage(t, stream)
	send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return func(t *testing.T, method, params string) string {
		t.Helper()
		send(message(method, params))
		return firstMessage(t, stream)
	}
}

// mounted opens a path to a server behind a mount.
func mounted(open func(*testing.T, mcp.Handler, string) way) func(*testing.T, mcp.Handler, string) way {
	return func(t *testing.T, h mcp.Handler, who string) way {
		outer := mcp.NewMux("outer", "v1", &mcp.MuxOptions{Logger: quiet})
		outer.Mount("in_", h)
		return open(t, outer, who)
	}
}
