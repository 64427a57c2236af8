// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/go-psi/psi/mcp"
)

// self is what the client of this package says it is.
var self = mcp.Implementation{Name: "mcptest", Version: "v0.0.0"}

// A Client is what a server meets: who calls, and what it can ask them. The zero
// Client is anonymous and answers nothing. Its fields must not be changed once it
// is used; it may be used any number of times.
type Client struct {
	// Version is the protocol revision to speak, of either era. Empty means the
	// newest: of all, or, where [Client.Run] speaks the legacy era, of that.
	Version string
	// Capabilities are declared to the server. Nil means those that the
	// functions below allow.
	Capabilities *mcp.ClientCapabilities
	// LogLevel is the least level of log messages that the client wants. Empty
	// means none, except that servers of the legacy era choose.
	LogLevel mcp.LoggingLevel
	// Principal is whom the server takes the client for.
	Principal *mcp.Principal
	// Header is added to every HTTP request.
	Header http.Header

	// Elicit, Sample and Roots answer the server's questions. They may be called
	// concurrently. An error means that the client gives no answer.
	Elicit func(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error)
	Sample func(ctx context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error)
	Roots  func(ctx context.Context) ([]mcp.Root, error)
}

// Accept is the answer of a user who fills in a form with the fields of content.
// It panics if content cannot be encoded.
func Accept(content any) *mcp.ElicitResult {
	return &mcp.ElicitResult{Action: mcp.ActionAccept, Content: mustMarshal(content)}
}

// Connect connects the zero [Client] to h.
func Connect(tb testing.TB, h mcp.Handler) *Conn {
	tb.Helper()
	return new(Client).Connect(tb, h)
}

// Connect connects to h in memory, in the era of the client's Version. It fails
// the test if that is not possible. Client and server end with the test. It works
// inside a testing/synctest bubble.
func (cl *Client) Connect(tb testing.TB, h mcp.Handler) *Conn {
	tb.Helper()
	return cl.open(tb, serveMemory(tb, cl, h))
}

// ConnectStream connects to whoever is at the other end of a stream, which it
// closes when the test ends.
func (cl *Client) ConnectStream(tb testing.TB, stream mcp.Stream) *Conn {
	tb.Helper()
	return cl.open(tb, newStreamWire(stream))
}

// ConnectURL connects to a server of streamable HTTP.
func (cl *Client) ConnectURL(tb testing.TB, url string) *Conn {
	tb.Helper()
	return cl.open(tb, newHTTPWire(cl, url, acceptBoth))
}

func (cl *Client) open(tb testing.TB, w wire) *Conn {
	tb.Helper()
	c := newConn(tb, cl, w)
	tb.Cleanup(c.Close)
	if err := c.era.open(c.ctx); err != nil {
		tb.Fatalf("mcptest: connecting: %v", err)
	}
	return c
}

func (cl *Client) isLegacy() bool { return slices.Contains(mcp.LegacyVersions(), cl.Version) }

// capabilities are those that are declared.
func (cl *Client) capabilities() *mcp.ClientCapabilities {
	if cl.Capabilities != nil {
		return cl.Capabilities
	}
	caps, all := new(mcp.ClientCapabilities), everything()
	if cl.Elicit != nil {
		caps.Elicitation = all.Elicitation
	}
	if cl.Sample != nil {
		caps.Sampling = all.Sampling
	}
	if cl.Roots != nil {
		caps.Roots = all.Roots
	}
	return caps
}

// everything is all that a client can be asked.
func everything() *mcp.ClientCapabilities {
	yes := new(struct{})
	return &mcp.ClientCapabilities{
		Elicitation: &mcp.ElicitationCapability{Form: yes, URL: yes},
		Sampling:    &mcp.SamplingCapability{Context: yes, Tools: yes},
		Roots:       &mcp.RootsCapability{},
	}
}

// answer answers a question of the server. The error is an [*mcp.Error] if there
// is nobody to ask.
func (cl *Client) answer(ctx context.Context, method string, params json.RawMessage) (any, error) {
	switch {
	case method == mcp.MethodElicit && cl.Elicit != nil:
		return answerWith(ctx, params, cl.Elicit)
	case method == mcp.MethodCreateMessage && cl.Sample != nil:
		return answerWith(ctx, params, cl.Sample)
	case method == mcp.MethodListRoots && cl.Roots != nil:
		roots, err := cl.Roots(ctx)
		return &mcp.ListRootsResult{Roots: roots}, err
	}
	return nil, mcp.MethodNotFound(method)
}

func answerWith[P, R any](ctx context.Context, raw json.RawMessage, fn func(context.Context, *P) (*R, error)) (any, error) {
	p := new(P)
	if err := jsonv2.Unmarshal(raw, p); err != nil {
		return nil, fmt.Errorf("the server's question: %w", err)
	}
	return fn(ctx, p)
}
