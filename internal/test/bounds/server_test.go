// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package bounds_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-psi/psi/internal/test/memnet"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
)

// serverStores is what one hostile server can fill at its client, or at a gateway.
var serverStores = []store{
	{"schemas of listed tools", 40, 0, func(t *testing.T) { listSchemas(t, connect(t, hostile(listSchemaPage), mcp.ClientOptions{})) }},
	{"schemas of listed tools, in an older revision", 40, 0, func(t *testing.T) {
		listSchemas(t, connect(t, hostile(listSchemaPage), mcp.ClientOptions{Version: "2025-11-25"}))
	}},
	{"schemas of tools listed through a gateway", 72, 0, // two connections: the caller's and the gateway's
		func(t *testing.T) {
			gateway := newMux()
			gateway.Mount("in_", connect(t, hostile(listSchemaPage), mcp.ClientOptions{}))
			conn := connect(t, gateway, mcp.ClientOptions{})
			drain(t, conn)
			_ = conn.Close()
			keep(t, gateway)
		}},
	{"deep arguments in headers", 40, 0, listDeepHeaders},
	{"compiled output schemas", 40, 0, func(t *testing.T) { callTools(t, 40, patternSchema) }},
	{"compiled output schemas with many parts", 40, 0, func(t *testing.T) { callTools(t, 8, partsSchema) }},
	{"cursors of a list", 40, 0, listCursors},
	{"notifications for a slow callback", 24, 0, func(t *testing.T) { notifySlowly(t, mcp.LatestVersion) }},
	{"notifications for a slow callback, in an older revision", 24, 0, func(t *testing.T) { notifySlowly(t, "2025-11-25") }},
	{"updates for a slow subscriber", 24, 0, func(t *testing.T) { updateSlowly(t, mcp.LatestVersion) }},
	{"updates for a slow subscriber, in an older revision", 24, 0, func(t *testing.T) { updateSlowly(t, "2025-11-25") }},
	{"questions while no one answers", 40, 0, askSlowly},
	{"words of tools that are searched", 80, 0, func(t *testing.T) {
		searchTools(t, 40, 10_000, func(int) string { return "" })
	}},
	{"words of tools that have many", 80, 0, func(t *testing.T) { searchTools(t, 18, 200, manyWords) }},
	{"schemas of reshaped tools", 16, 0, misuse},
	{"lines of a gateway's log", 8, 0, logMuch}, // with what two connections remember of the tools
}

// hostile returns a server whose lists of tools are what list returns.
func hostile(list func(page int) *mcp.ListToolsResult) *mcp.Mux {
	mux := newMux()
	mux.Tool("some", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "", nil }, nil))
	var pages atomic.Int32
	mux.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == mcp.MethodListTools && list != nil {
				return list(int(pages.Add(1))), nil
			}
			return next.ServeMCP(ctx, req)
		})
	})
	return mux
}

// connect connects a client to a handler over HTTP.
func connect(t *testing.T, h mcp.Handler, opts mcp.ClientOptions) *mcp.Conn {
	t.Helper()
	if opts.Logger == nil {
		opts.Logger = quiet
	}
	l := memnet.Listen()
	server := &http.Server{Handler: serve(t, h, nil), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	client := l.Client()
	conn, err := mcp.NewClient("c", "v1", &opts).Connect(t.Context(), mcphttp.NewTransport("http://localhost/mcp", &mcphttp.TransportOptions{Client: client, Logger: quiet}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		client.CloseIdleConnections()
		_ = server.Close()
	})
	return conn
}

func listSchemaPage(page int) *mcp.ListToolsResult {
	res := &mcp.ListToolsResult{}
	for i := range 4 {
		res.Tools = append(res.Tools, &mcp.Tool{
			Name: fmt.Sprintf("t%d-%d", page, i), InputSchema: json.RawMessage(`{"type":"object"}`),
			OutputSchema: json.RawMessage(`{"type":"object","description":"` + text(900*kib) + `"}`),
		})
	}
	if page%times(20, 1000) != 0 {
		next := fmt.Sprint(page)
		res.NextCursor = &next
	}
	return res
}

// drain lists all tools, and drops them.
func drain(t *testing.T, conn *mcp.Conn) {
	t.Helper()
	for _, err := range conn.Tools(t.Context(), nil) {
		if err != nil {
			t.Log(err) // a limit
		}
	}
}

func listSchemas(t *testing.T, conn *mcp.Conn) {
	drain(t, conn)
	keep(t, conn)
}

// listCursors measures within the loop over a list, at its last page: the store is full
// before the loop ends.
func listCursors(t *testing.T) {
	pages := times(100, 999)
	conn := connect(t, hostile(func(page int) *mcp.ListToolsResult {
		res := &mcp.ListToolsResult{Tools: []*mcp.Tool{{Name: fmt.Sprint("t", page), InputSchema: json.RawMessage(`{"type":"object"}`)}}}
		if page < pages {
			next := text(mib)
			res.NextCursor = &next
		}
		return res
	}), mcp.ClientOptions{})
	paused, full := make(chan struct{}), make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		n := 0
		for range conn.Tools(t.Context(), nil) {
			if n++; n == pages {
				close(full)
				<-paused
			}
		}
	}()
	select {
	case <-full:
	case <-done: // refused
	}
	t.Cleanup(func() {
		close(paused)
		<-done
	})
}

// notifySlowly sends log messages and others to a client whose callbacks do not return.
func notifySlowly(t *testing.T, version string) {
	mux := hostile(nil)
	mux.Tool("talk", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		for range times(64, 1000) {
			_ = mcp.RequestFromContext(ctx).Notify(ctx, "notifications/x", map[string]string{"text": text(mib)})
			mcp.ClientLogger(ctx).Error(text(mib))
		}
		return "", nil
	}, nil))
	stuck := make(chan struct{})
	conn := connect(t, mux, mcp.ClientOptions{
		Version: version, LogLevel: mcp.LoggingLevelDebug,
		Notification: func(context.Context, *mcp.Conn, *mcp.Request) { <-stuck },
		Log:          func(context.Context, *mcp.Conn, *mcp.LoggingMessageParams) { <-stuck },
	})
	t.Cleanup(func() { close(stuck) })
	if _, err := conn.CallTool(t.Context(), &mcp.CallToolParams{Name: "talk"}); err != nil {
		t.Fatal(err)
	}
}

// updateSlowly changes more resources than a subscriber that does not return can remember.
func updateSlowly(t *testing.T, version string) {
	mux := listenMux()
	const uris = 900
	all := make([]string, uris)
	for i := range all {
		all[i] = "x:" + text(180)
	}
	stuck := make(chan struct{})
	conn := connect(t, mux, mcp.ClientOptions{Version: version})
	if _, err := conn.Listen(t.Context(), mcp.SubscriptionFilter{ResourceSubscriptions: all, ToolsListChanged: true}, func(mcp.Change) { <-stuck }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { close(stuck) })
	for range times(20, 200) {
		for _, uri := range all {
			mux.ResourceUpdated(uri + "/" + text(7*kib))
			mux.ResourceUpdated(uri)
		}
	}
}

// askSlowly asks a user that does not answer as much as a server can, during one call.
func askSlowly(t *testing.T) {
	client, server := transport.Pipe()
	sent := make(chan struct{})
	go serveQuestions(t.Context(), server, sent)
	stuck := make(chan struct{})
	opts := &mcp.ClientOptions{
		Version: "2025-11-25", Logger: quiet,
		Sample: func(context.Context, *mcp.Conn, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			<-stuck
			return nil, context.Canceled
		},
	}
	conn, err := mcp.NewClient("c", "v1", opts).Connect(t.Context(), transport.FromStream(func(context.Context) (transport.Stream, error) { return client, nil }))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = conn.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask"})
	}()
	<-sent
	t.Cleanup(func() {
		close(stuck)
		_ = conn.Close()
		_ = server.Close()
		<-done
	})
}

// serveQuestions answers the handshake, and asks when a tool is called.
func serveQuestions(ctx context.Context, s transport.Stream, sent chan<- struct{}) {
	for {
		data, err := s.Read(ctx)
		if err != nil {
			return
		}
		m, _ := transport.ParseMessage(data)
		switch m.Method {
		case "initialize":
			_ = s.Write(ctx, []byte(`{"jsonrpc":"2.0","id":`+m.ID.String()+`,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}`))
		case mcp.MethodCallTool:
			for i := range times(100, 2000) {
				_ = s.Write(ctx, []byte(fmt.Sprintf(`{"jsonrpc":"2.0","id":"q%d","method":"sampling/createMessage","params":{"maxTokens":1,"messages":[{"role":"user","content":{"type":"text","text":%q}}]}}`, i, text(mib))))
			}
			_ = s.Write(ctx, []byte(`{"jsonrpc":"2.0","id":"ping","method":"ping"}`)) // answered after all questions were read
		case "":
			if m.ID.String() == `"ping"` {
				close(sent)
			}
		}
	}
}

// A countingWriter counts what is written.
type countingWriter struct{ n atomic.Int64 }

func (w *countingWriter) Write(p []byte) (int, error) {
	w.n.Add(int64(len(p)))
	return len(p), nil
}

// logMuch lists the items of a hostile server through a gateway: many cannot be used, and
// each list has others. It keeps as much as was logged.
func logMuch(t *testing.T) {
	remote := hostile(func(page int) *mcp.ListToolsResult {
		res := &mcp.ListToolsResult{}
		for i := range 5000 {
			res.Tools = append(res.Tools, &mcp.Tool{Name: fmt.Sprintf("bad name %d/%d %s", page, i, text(200)), InputSchema: json.RawMessage(`{"type":"string"}`)})
		}
		return res
	})
	lines := &countingWriter{}
	logger := slog.New(slog.NewTextHandler(lines, nil))
	gateway := mcp.NewMux("g", "v1", &mcp.MuxOptions{Logger: logger})
	gateway.Mount("in_", connect(t, remote, mcp.ClientOptions{Logger: logger}))
	conn := connect(t, gateway, mcp.ClientOptions{})
	for range times(4, 100) {
		_, _ = conn.ListTools(t.Context(), nil)
	}
	t.Logf("%.1f MiB logged", float64(lines.n.Load())/mib)
	keep(t, make([]byte, lines.n.Load()))
}

// listDeepHeaders lists tools with many arguments, below many properties, that are mirrored in
// headers.
func listDeepHeaders(t *testing.T) {
	const depth, leaves = 55, 6000
	arguments := make([]string, leaves)
	for i := range arguments {
		arguments[i] = fmt.Sprintf(`"%d":{"type":"integer","x-mcp-header":"%d"}`, i, i)
	}
	schema := json.RawMessage(`{"type":"object"` + strings.Repeat(`,"properties":{"a":{"type":"object"`, depth) +
		`,"properties":{` + strings.Join(arguments, ",") + `}` + strings.Repeat(`}}`, depth) + `}`)
	listSchemas(t, connect(t, hostile(func(page int) *mcp.ListToolsResult {
		res := &mcp.ListToolsResult{Tools: []*mcp.Tool{{Name: fmt.Sprint("t", page), InputSchema: schema}}}
		if page < 24 {
			next := fmt.Sprint(page)
			res.NextCursor = &next
		}
		return res
	}), mcp.ClientOptions{}))
}

// patternSchema returns a short schema whose regular expression compiles to 2 MiB.
func patternSchema(i int) string {
	return fmt.Sprintf(`{"type":"object","properties":{"t%d":{"type":"string","pattern":"%s"}}}`, i, strings.Repeat("b{990}", 45))
}

// partsSchema returns a schema whose parts compile to 12 MiB.
func partsSchema(i int) string {
	return fmt.Sprintf(`{"type":"object","allOf":[{"title":"t%d"}%s]}`, i, strings.Repeat(`,{"not":false}`, 4900))
}

// callTools calls tools with the output schemas that schema returns.
func callTools(t *testing.T, tools int, schema func(i int) string) {
	mux := hostile(func(int) *mcp.ListToolsResult {
		res := &mcp.ListToolsResult{}
		for i := range tools {
			res.Tools = append(res.Tools, &mcp.Tool{
				Name: fmt.Sprint("t", i), InputSchema: json.RawMessage(`{"type":"object"}`), OutputSchema: json.RawMessage(schema(i)),
			})
		}
		return res
	})
	mux.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == mcp.MethodCallTool {
				return &mcp.CallToolResult{StructuredContent: json.RawMessage(`{}`)}, nil
			}
			return next.ServeMCP(ctx, req)
		})
	})
	conn := connect(t, mux, mcp.ClientOptions{})
	drain(t, conn)
	for i := range tools {
		if _, err := conn.CallTool(t.Context(), &mcp.CallToolParams{Name: fmt.Sprint("t", i)}); err != nil {
			t.Fatal(err)
		}
	}
	keep(t, conn)
}
