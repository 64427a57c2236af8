// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package otelmcp traces and measures MCP with OpenTelemetry, by its semantic
// conventions for MCP (https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp), which
// are still in development:
//
//	mux.Use(otelmcp.Server(nil))  // on the mux that is served, first
//	otelmcp.Instrument(conn, nil) // on a client's connection, last
//
// A trace continues from client to server in the _meta of requests: over every
// transport, in every era of the protocol, and through gateways.
//
// # Spans
//
// There is a span for each request and notification, of kind server or client. Its
// name is the method, followed by the name of the tool or prompt if that is known to
// exist. Its attributes are
//
//   - mcp.method.name;
//   - gen_ai.operation.name and gen_ai.tool.name, or gen_ai.prompt.name;
//   - mcp.resource.uri, without user information, query and fragment;
//   - mcp.protocol.version, on clients only with [Instrument];
//   - jsonrpc.request.id, on servers: clients assign IDs after the middleware has run;
//   - mcp.session.id, on servers: a digest, see below;
//   - mcp.tool.mended_arguments, on servers: how many arguments a lenient mux has changed
//     to fit the schema ([mcp.CallToolResult.Mended]), if any. It is not one of the
//     conventions;
//   - network.transport and network.protocol.name, on servers over HTTP;
//   - rpc.response.status_code, the code of the error response;
//   - error.type: that code; "tool_error", if a tool reports a failure; "cancelled";
//     "timeout"; "panic"; on clients also "unauthorized", "session_lost",
//     "not_understood" and "closed"; or "_OTHER".
//
// A span with an error.type has the status error. Its description is the message of
// the error response, which may repeat what the client sent. For internal errors and
// failed tools ([mcp.CallToolResult.Err]) it is the text of the handler's error, whatever
// the client gets of it. Of the URI of a resource, a description has what mcp.resource.uri has,
// and texts that look like secrets are redacted. Errors of a connection have no description.
// Arguments, results and the caller are not recorded. Text is cut after 256 bytes.
//
// Without authentication, everyone who knows the ID of a session can use it. Therefore
// mcp.session.id is not the ID itself, but the first 16 hexadecimal digits of its
// SHA-256.
//
// Methods are those of the newest revision, whatever the peer speaks: the initialize of
// an old client is a server/discover. Requests that an era answers by itself, such as
// ping, have no span. A handler that asks the user runs once for each answer, with a span
// each time; on the client the call is one span.
//
// A subscription (subscriptions/listen) can last for days, which a span should not. Its
// span ends with it or after one second, whichever is first. That is long enough to
// record why a subscription was rejected.
//
// # Measurements
//
// The histograms, in seconds, are
//
//   - mcp.server.operation.duration and mcp.client.operation.duration, of operations
//     with a span, except subscriptions that outlast theirs;
//   - mcp.server.session.duration, of the sessions of the legacy era, from their first
//     request on;
//   - mcp.client.session.duration, of connections passed to [Instrument], from then on.
//
// The counter mcp.server.mended_arguments has the number of arguments that were changed.
//
// Their attributes are those of spans, without IDs and URIs. Peers cannot create
// arbitrary values: a method that neither the specification nor [Options] has, a name
// that is not known to exist, and a code that neither the specification nor package mcp
// has are "_OTHER". A name is known to exist once an outcome was a result, an internal
// error or a panic. The same holds for the names of spans.
package otelmcp
