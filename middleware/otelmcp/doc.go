// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package otelmcp traces and measures MCP with OpenTelemetry, by its semantic
// conventions for MCP (https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp), which
// are still in development:
//
//	mux.Use(otelmcp.Server(nil))  // on the mux that is served, first
//	otelmcp.Instrument(conn, nil) // on a client's connection, last
//
// A trace goes on from client to server in the _meta of requests: over every
// transport, in every era of the protocol, and through gateways.
//
// # Spans
//
// There is a span for each request and notification, of kind server or client. Its
// name is the method, followed by the name of the tool or prompt if that is known. Its
// attributes are
//
//   - mcp.method.name;
//   - gen_ai.operation.name and gen_ai.tool.name, or gen_ai.prompt.name;
//   - mcp.resource.uri, without user information, query and fragment;
//   - mcp.protocol.version, of clients if [Instrument] is used;
//   - jsonrpc.request.id, of servers: a connection chooses ids after its middleware;
//   - mcp.session.id, of servers: a digest, see below;
//   - network.transport and network.protocol.name, of servers over HTTP;
//   - rpc.response.status_code, the code of the error that was the answer;
//   - error.type: that code; "tool_error", if a tool says that it failed; "cancelled";
//     "timeout"; "panic"; on clients also "unauthorized", "session_lost",
//     "not_understood" and "closed"; or "_OTHER".
//
// A span with an error.type has the status error. The description is the message of
// the error that was the answer, which may repeat what the client sent; errors of a
// connection itself have none. Neither arguments nor results are recorded, nor who
// called. Text is cut after 256 bytes.
//
// Where nobody is authenticated, whoever has the id of a session can use it. Therefore
// mcp.session.id is not the id itself, but the first 16 hexadecimal digits of its
// SHA-256.
//
// Methods are those of the newest revision, whatever the peer speaks: the initialize of
// an old client is a server/discover. What an era settles by itself, such as ping, has
// no span. A handler that asks the user runs once for each answer, with a span each
// time; the call of the client is one span.
//
// A subscription (subscriptions/listen) lasts as long as somebody listens, which no
// span should. Its span ends with it or after one second, whichever is first: long
// enough to say why one was refused.
//
// # Measurements
//
// The histograms, in seconds, are
//
//   - mcp.server.operation.duration and mcp.client.operation.duration, of what has a
//     span, except subscriptions that outlast theirs;
//   - mcp.server.session.duration, of the sessions of the legacy era, from their first
//     request on;
//   - mcp.client.session.duration, of connections given to [Instrument], from then on.
//
// Their attributes are those of spans, without ids and URIs. Peers cannot make up any:
// a method that neither the specification nor [Options] has, a name under which
// nothing was reached yet, and a code that neither the specification nor package mcp
// has are "_OTHER". A name is known once the outcome was a result, an internal error
// or a panic. The names of spans have no others, either.
package otelmcp
