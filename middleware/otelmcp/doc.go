// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package otelmcp traces and measures MCP with OpenTelemetry. It follows the semantic
// conventions for MCP (https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp), which are
// still in development:
//
//	mux.Use(otelmcp.Server(nil))  // on the mux that is served, first
//	otelmcp.Instrument(conn, nil) // on a client's connection, last
//
// Traces are propagated from client to server in the _meta of requests: over every
// transport, in every era of the protocol, and through gateways.
//
// # Spans
//
// There is a span for each request and notification, of kind server or client. Its name is
// the method, followed by the name of the tool or prompt if that is known to exist. Its
// attributes are
//
//   - mcp.method.name;
//   - gen_ai.operation.name and gen_ai.tool.name, or gen_ai.prompt.name;
//   - mcp.resource.uri, without user information, query and fragment;
//   - mcp.protocol.version, on clients only with [Instrument];
//   - jsonrpc.request.id, on servers: clients assign IDs after the middleware has run;
//   - mcp.session.id, on servers: a digest, see below;
//   - mcp.tool.mended_arguments, on servers: the number of arguments that a lenient mux
//     changed to fit the schema ([mcp.CallToolResult.Mended]), if any. It is not part of
//     the conventions;
//   - network.transport and network.protocol.name, on servers over HTTP;
//   - rpc.response.status_code, the code of the error response;
//   - error.type: that code; "tool_error" if a tool reports a failure; "cancelled";
//     "timeout"; "panic"; on clients also "unauthorized", "session_lost", "not_understood"
//     and "closed"; or "_OTHER".
//
// A span with an error.type has the status error. The description of the status is the
// message of the error response, which may repeat what the client sent. For internal errors
// and failed tools ([mcp.CallToolResult.Err]), it is the text of the handler's error, even
// if the client does not see it. In descriptions, the URI of a resource is shortened as in
// mcp.resource.uri, and text that looks like a secret is redacted. Errors of a connection
// have no description. Arguments, results and the caller are not recorded. Text is
// truncated to 256 bytes.
//
// Without authentication, anyone who knows the ID of a session can use it. Therefore
// mcp.session.id is not the ID itself, but the first 16 hexadecimal digits of its SHA-256.
//
// Methods are named as in the newest revision, whatever revision the peer uses: the
// initialize request of an old client is recorded as server/discover. Requests that psi
// answers without calling a handler, such as ping, have no span. A handler that asks the
// user runs once for each answer, with a span each time; on the client, the call is one
// span.
//
// A subscription (subscriptions/listen) can last for days, which a span should not. Its
// span ends with the subscription or after one second, whichever is first. That is long
// enough to record why a subscription was rejected.
//
// # Measurements
//
// The histograms, in seconds, are
//
//   - mcp.server.operation.duration and mcp.client.operation.duration, for operations with
//     a span, except subscriptions that outlast their span;
//   - mcp.server.session.duration, for sessions of the legacy era, starting with their
//     first request;
//   - mcp.client.session.duration, for connections, starting when they are passed to
//     [Instrument].
//
// The counter mcp.server.mended_arguments counts the arguments that were changed.
//
// Their attributes are the attributes of spans, without IDs and URIs. Peers cannot create
// arbitrary values: a method that is neither in the specification nor in [Options], a name
// that is not known to exist, and a code that neither the specification nor package mcp
// defines are recorded as "_OTHER". A name is known to exist once a mux has found it
// ([mcp.Request.IsRouted]), or the outcome was a result, an internal error or a panic. The
// same holds for the names of spans.
//
// This package is stable, as docs/stability.md defines it.
package otelmcp
