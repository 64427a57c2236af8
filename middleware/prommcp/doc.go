// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package prommcp measures MCP with Prometheus. It is a [middleware.Meter]:
//
//	mux.Use(middleware.Metrics(prommcp.Server(nil), nil))
//	conn.Use(middleware.Metrics(prommcp.Client(nil), nil))
//
// The metrics are
//
//   - mcp_server_operation_duration_seconds, a histogram of the requests that were served, and
//     how long they took. Subscriptions, which may last for days, are excluded. The labels are
//     mcp_method_name, gen_ai_tool_name, gen_ai_prompt_name and error_type;
//   - mcp_server_operations_total, a counter of all requests and notifications, with the same
//     labels, rpc_response_status_code and cause;
//   - mcp_server_active_operations, a gauge of those in flight, with the label mcp_method_name;
//   - mcp_server_mended_arguments_total, a counter of the arguments that a lenient mux changed
//     to fit the schema, with mcp_method_name and gen_ai_tool_name.
//
// and the same with "client" instead of "server". The first and the labels are named as in the
// semantic conventions of OpenTelemetry for MCP
// (https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp), in the form in which Prometheus shows
// them. The others are not part of the conventions, which are still in development; the label
// cause is the value that [middleware.MetricsOptions].Cause returns.
//
// The label error_type is "" if there was no error; "tool_error" if a tool reports a failure or
// its arguments are invalid; "cancelled"; "panic"; and otherwise, in the counter, the code of the
// error response, and in the histogram "_OTHER".
//
// Peers cannot create arbitrary values: [middleware.Metrics] bounds what becomes a label, and
// what it records as "other" is "_OTHER" here.
//
// This package is stable, as docs/stability.md defines it.
package prommcp
