// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package peers_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	marktransport "github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/server"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcpstdio"
)

var (
	withSessions = []string{"2025-11-25", "2025-06-18", "2025-03-26"}
	overStdio    = []string{"", "2025-11-25", "2024-11-05"}
)

const noID = "mcp-go leaves out to which subscription a change belongs, which clients on stdio cannot know"

var (
	looseProgress = lack{feature: "progress", sometimes: true, why: "mcp-go may send some of it after the result, or not at all"}
	uncancelled   = lack{feature: "cancellation", era: "legacy", why: "mcp-go does not cancel over HTTP"}
)

// unasked returns the lacks of a peer that cannot be asked.
func unasked(why string) (lacks []lack) {
	for _, feature := range []string{"elicitation", "sampling", "roots"} {
		lacks = append(lacks, lack{feature: feature, why: why})
	}
	return lacks
}

// TestDemo tries every feature on every leg.
func TestDemo(t *testing.T) {
	legs := slices.Concat(sdkServers(), markServers(), sdkClients(), markClients())
	checkLacks(t, legs, demoFeatures)
	for _, l := range legs {
		l.run(t, demoFeatures)
	}
}

// overHTTP returns a function that returns psi's HTTP transport to a handler.
func overHTTP(handler func() http.Handler) func(t *testing.T) transport.Transport {
	return func(t *testing.T) transport.Transport { return mcphttp.NewTransport(serve(t, handler()), nil) }
}

// command returns a function that returns psi's stdio transport to a server run by this
// program.
func command(peer string) func(t *testing.T) transport.Transport {
	return func(t *testing.T) transport.Transport { return mcpstdio.NewCommand(program(t, peer), nil) }
}

// sdkServers returns the legs with psi's client and servers of the Go SDK.
func sdkServers() []leg {
	handler := func(opts *sdk.StreamableHTTPOptions) func() http.Handler {
		return func() http.Handler {
			s := newSDK()
			return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, opts)
		}
	}
	sse := func(open func(url string) transport.Transport) func(t *testing.T) transport.Transport {
		return func(t *testing.T) transport.Transport {
			s := newSDK()
			return open(serve(t, sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return s }, nil)))
		}
	}
	return []leg{
		{
			name: "psi to go-sdk over http", versions: withSessions,
			connect: connectPsi(overHTTP(handler(nil))),
		},
		{
			name: "psi to go-sdk over http with sessions", versions: []string{""},
			found:   "2025-11-25", // the modern era is only available without sessions
			connect: connectPsi(overHTTP(handler(nil))),
		},
		{
			name: "psi to go-sdk over http without sessions", versions: []string{""}, found: mcp.LatestVersion,
			connect: connectPsi(overHTTP(handler(&sdk.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true}))),
		},
		{
			name: "psi to go-sdk over stdio", versions: overStdio, found: mcp.LatestVersion,
			connect: connectPsi(command("go-sdk")),
		},
		{
			name: "psi to go-sdk over sse", versions: []string{"2024-11-05"},
			connect: connectPsi(sse(func(url string) transport.Transport { return mcphttp.NewSSETransport(url, nil) })),
		},
		{
			name: "psi to go-sdk over what turns out to be sse", versions: []string{""}, found: "2025-11-25",
			connect: connectPsi(sse(func(url string) transport.Transport { return mcphttp.NewTransport(url, nil) })),
		},
	}
}

// markServers returns the legs with psi's client and servers of mcp-go.
func markServers() []leg {
	handler := func() http.Handler { return server.NewStreamableHTTPServer(newMark(), server.WithStateful(true)) }
	return []leg{
		{
			name: "psi to mcp-go over http", versions: append([]string{""}, withSessions...), found: mcp.LatestVersion,
			connect: connectPsi(overHTTP(handler)),
			lacks: []lack{
				looseProgress,
				{feature: "logging", era: "modern", sometimes: true, why: "mcp-go may end the answer before what was logged is sent"},
				{feature: "resource updates", era: "modern", why: "mcp-go does not send them to those who listen"},
			},
		},
		{
			name: "psi to mcp-go over stdio", versions: overStdio, found: mcp.LatestVersion,
			connect: connectPsi(command("mcp-go")),
			lacks: []lack{
				looseProgress,
				{feature: "list changes", era: "modern", why: noID},
				{feature: "resource updates", era: "modern", why: noID},
			},
		},
		{
			name: "psi to mcp-go over sse", versions: []string{"2024-11-05"},
			connect: connectPsi(func(t *testing.T) transport.Transport { return mcphttp.NewSSETransport(serveMarkSSE(t)+"/sse", nil) }),
			lacks:   append(unasked("mcp-go's server asks nothing over HTTP+SSE"), looseProgress),
		},
	}
}

// serveMarkSSE serves mcp-go's HTTP+SSE server of 2024, which must know its own URL.
func serveMarkSSE(t *testing.T) string {
	t.Helper()
	h := httptest.NewUnstartedServer(nil)
	h.Config.Handler = server.NewSSEServer(newMark(), server.WithBaseURL("http://"+h.Listener.Addr().String()))
	h.Start()
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
	})
	return h.URL
}

// sdkClients returns the legs with clients of the Go SDK and psi's server.
func sdkClients() []leg {
	return []leg{
		{
			name: "go-sdk to psi over http", versions: append([]string{mcp.LatestVersion}, withSessions...),
			connect: connectSDK(func(t *testing.T) sdk.Transport { return &sdk.StreamableClientTransport{Endpoint: servePsi(t)} }),
		},
		{
			name: "go-sdk to psi over stdio", versions: []string{mcp.LatestVersion, "2025-11-25", "2024-11-05"},
			connect: connectSDK(func(t *testing.T) sdk.Transport { return &sdk.CommandTransport{Command: program(t, "psi")} }),
		},
		{
			name: "go-sdk to psi over sse", versions: []string{"2024-11-05"},
			connect: connectSDK(func(t *testing.T) sdk.Transport { return &sdk.SSEClientTransport{Endpoint: servePsiSSE(t)} }),
		},
	}
}

func servePsi(t *testing.T) string {
	t.Helper()
	return serve(t, mcphttp.NewHandler(newMux(), &mcphttp.Options{Logger: logger(t)}))
}

func servePsiSSE(t *testing.T) string {
	t.Helper()
	return serve(t, mcphttp.NewSSEHandler(newMux(), &mcphttp.Options{Logger: logger(t)}))
}

// markClients returns the legs with clients of mcp-go and psi's server.
func markClients() []leg {
	return []leg{
		{
			name: "mcp-go to psi over http", versions: append([]string{mcp.LatestVersion}, withSessions...),
			connect: connectMark(func(t *testing.T, version string) (marktransport.Interface, error) {
				return markHTTP(servePsi(t), version)
			}),
			lacks: []lack{uncancelled},
		},
		{
			name: "mcp-go to psi over stdio", versions: []string{mcp.LatestVersion, "2025-11-25", "2024-11-05"},
			connect: connectMark(func(t *testing.T, _ string) (marktransport.Interface, error) {
				return marktransport.NewStdio(program(t, "psi").Path, []string{serveEnv + "=psi"}), nil
			}),
		},
		{
			name: "mcp-go to psi over sse", versions: []string{"2024-11-05"},
			connect: connectMark(func(t *testing.T, _ string) (marktransport.Interface, error) {
				return marktransport.NewSSE(servePsiSSE(t))
			}),
			lacks: append(unasked("mcp-go's client answers nothing over HTTP+SSE"), uncancelled),
		},
	}
}

// markHTTP returns mcp-go's HTTP transport. For sessions, it opens the stream that servers
// need for unsolicited messages.
func markHTTP(url, version string) (marktransport.Interface, error) {
	if eraOf(version) == "modern" {
		return marktransport.NewStreamableHTTP(url)
	}
	return marktransport.NewStreamableHTTP(url, marktransport.WithContinuousListening())
}
