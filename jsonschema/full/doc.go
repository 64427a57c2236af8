// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package full lets package jsonschema compile every JSON Schema, with
// github.com/santhosh-tekuri/jsonschema. It is imported for its effect:
//
//	import _ "github.com/go-psi/psi/jsonschema/full"
//
// A program needs it if it is a client, because servers may send any schema, or
// if it is a server with schemas, written by hand, that go beyond what package
// jsonschema checks by itself. Whoever needs it and does not have it is told so
// at once: by [mcp.Client.Connect], or when such a schema is compiled. Packages
// mcphttp and mcptest import it; a server of typed tools over stdio starts 5 ms
// sooner, and is 0.7 MB smaller, without it.
//
// [mcp.Client.Connect]: https://pkg.go.dev/github.com/go-psi/psi/mcp#Client.Connect
package full
