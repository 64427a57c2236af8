// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

// calls lists the measured calls. Each prepare returns a function that makes one call and
// returns a text that contains wantResult, or describes the failure.
var calls = []struct {
	name, title string
	prepare     func() func() string
}{
	{"modern", "modern tools/call over HTTP, server side", prepareModern},
	{"legacy", "legacy tools/call over HTTP, server side", func() func() string { return prepareLegacy("add") }},
	{"ask", "legacy tools/call with an elicitation", func() func() string { return prepareLegacy("ask") }},
	{"client", "modern tools/call over HTTP, client side", prepareClient},
}

const (
	wantResult = `"sum":5`
	initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,` +
		`"capabilities":{"elicitation":{}},"clientInfo":{"name":"figures","version":"1"}}}`
	toolCall   = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":{"A":2,"B":3}%s}}`
	modernMeta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"` + mcp.LatestVersion + `","io.modelcontextprotocol/clientCapabilities":{}}`
)

// messageID matches the id member of a message.
var messageID = regexp.MustCompile(`"id":("[^"]*"|\d+)`)

type addIn struct{ A, B int }

type addOut struct {
	Sum int `json:"sum"`
}

// endpoint is an in-memory server and the header sent by its client.
type endpoint struct {
	handler http.Handler
	header  map[string]string
}

func newEndpoint(header map[string]string) *endpoint {
	mux := mcp.NewMux("figures", "v1.0.0", nil)
	mux.Tool("add", mcp.ToolFunc(func(_ context.Context, in addIn) (addOut, error) { return addOut{in.A + in.B}, nil }, nil))
	mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, in addIn) (addOut, error) {
		return mcp.Elicit[addOut](ctx, "sum", fmt.Sprintf("What is %d + %d?", in.A, in.B))
	}, nil))
	return &endpoint{mcphttp.NewHandler(mux, nil), header}
}

func (e *endpoint) post(body string) *answeringRecorder {
	r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "http://localhost/mcp", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for key, value := range e.header {
		r.Header.Set(key, value)
	}
	w := &answeringRecorder{ResponseRecorder: httptest.NewRecorder(), endpoint: e}
	e.handler.ServeHTTP(w, r)
	return w
}

// answeringRecorder records a response and answers a question in it with a second POST.
type answeringRecorder struct {
	*httptest.ResponseRecorder

	endpoint *endpoint
	answered bool
}

func (r *answeringRecorder) Flush() {
	r.ResponseRecorder.Flush()
	if body := r.Body.String(); !r.answered && strings.Contains(body, mcp.MethodElicit) {
		r.answered = true
		// On a new goroutine, because the stream may be locked here. It ends with its POST.
		go r.endpoint.post(`{"jsonrpc":"2.0",` + messageID.FindString(body) + `,"result":{"action":"accept","content":{"sum":5}}}`)
	}
}

func prepareModern() func() string {
	e := newEndpoint(map[string]string{"Mcp-Protocol-Version": mcp.LatestVersion, "Mcp-Method": "tools/call", "Mcp-Name": "add"})
	return func() string { return e.post(fmt.Sprintf(toolCall, "add", modernMeta)).Body.String() }
}

func prepareLegacy(tool string) func() string {
	e := newEndpoint(nil)
	session := e.post(fmt.Sprintf(initialize, mcp.LegacyVersions()[0])).Header().Get("Mcp-Session-Id")
	e.header = map[string]string{"Mcp-Protocol-Version": mcp.LegacyVersions()[0], "Mcp-Session-Id": session}
	e.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return func() string { return e.post(fmt.Sprintf(toolCall, tool, "")).Body.String() }
}

func prepareClient() func() string {
	ctx := context.Background()
	opts := &mcphttp.TransportOptions{Client: &http.Client{Transport: cannedServer{}}}
	conn, err := mcp.NewClient("figures", "v1.0.0", nil).Connect(ctx, mcphttp.NewTransport("http://localhost/mcp", opts))
	if err != nil {
		return err.Error
	}
	return func() string {
		out, err := mcp.Call[addOut](ctx, conn, "add", addIn{2, 3})
		return fmt.Sprintf(`"sum":%d, %v`, out.Sum, err)
	}
}

// cannedServer is an [http.RoundTripper] that answers server/discover and tools/call.
type cannedServer struct{}

func (cannedServer) RoundTrip(r *http.Request) (*http.Response, error) {
	request, err := io.ReadAll(r.Body)
	result := `{"resultType":"complete","content":[{"type":"text","text":"5"}],"structuredContent":{"sum":5}}`
	if strings.Contains(string(request), mcp.MethodDiscover) {
		result = `{"resultType":"complete","supportedVersions":["` + mcp.LatestVersion + `"],"capabilities":{"tools":{}},"serverInfo":{"name":"canned","version":"1"}}`
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0",%s,"result":%s}`, messageID.Find(request), result)
	return &http.Response{
		StatusCode: http.StatusOK, ProtoMajor: 1, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}, err
}
