// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package openapi serves an HTTP API that an OpenAPI document describes: each operation
// becomes a tool.
//
//	api, err := openapi.New(document, &openapi.Options{Handler: routes})
//	…
//	err = api.Register(mux)
//
// With [Options.Handler], the API is called in this process, without a socket, and its
// handlers see the caller in the context. With [Options.BaseURL], a remote API is called.
//
// A tool is named by operationId, or by method and path. Its arguments are the parameters and
// the members of the body; if two have one name, the body is the argument "body". Annotations
// follow the method. JSON is structured content, with an output schema if the document
// describes exactly one successful response; images, audio and files are content. The model
// reads the text of responses with a status of 4xx; that of 5xx is for logs only.
//
// The document and the responses are not trusted: sizes are bounded, no reference leaves the
// document, and control characters are escaped. A model cannot set the headers and parameters
// that carry credentials, and cannot leave the path of an operation.
//
// The document is read as YAML or JSON, and only what an operation uses is looked at, so one
// wrong operation does not affect the others. Parsers of the whole document reject it for one
// reference that cannot be resolved.
//
// This package is a tool, as docs/stability.md defines it.
package openapi
