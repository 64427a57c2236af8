// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package oauth authorizes a client at MCP servers over HTTP.
//
// A [Transport] is an [http.RoundTripper] around any other. It sends requests as they
// are until the server wants to know who calls; then it finds the authorization
// server, gets a token there, and sends the request again:
//
//	auth := oauth.NewTransport(url, &oauth.Options{Store: oauth.NewFileStore(dir)})
//	defer auth.Close()
//	conn, err := client.Connect(ctx, mcphttp.NewTransport(url, &mcphttp.TransportOptions{
//		Client: &http.Client{Transport: auth},
//	}))
//
// While a user logs in, the clocks of the request that waits stand still
// ([mcp.PauseTimeout]); a program that would rather have that done before it connects
// calls [Transport.Authorize].
//
// How a token is got is a [Grant]: [AuthorizationCode], which is the default, asks a
// user; [ClientCredentials], [WorkloadIdentity] and [EnterpriseGrant] need nobody. Tokens
// and registrations outlive the process in a [Store], such as that of [NewFileStore].
//
// What a server says of where to go is not trusted. Its metadata must be about the
// server, or be that of a resource above it, at the well-known URL of that resource;
// an authorization server's must be about itself, addresses within networks
// that the server is not part of are refused when they are dialled, redirects stay
// within their origin, and everything that is read or repeated is bounded. A token
// is sent to the server that it is for and nowhere else, and never in the clear,
// except on the machine itself.
package oauth
