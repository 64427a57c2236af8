// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package oauth authorizes a client at MCP servers over HTTP.
//
// A [Transport] is an [http.RoundTripper] that wraps another. It sends requests
// unchanged until the server requires authorization. Then it finds the authorization
// server, gets a token there, and sends the request again:
//
//	auth := oauth.NewTransport(url, &oauth.Options{Store: oauth.NewFileStore(dir)})
//	defer auth.Close()
//	conn, err := client.Connect(ctx, mcphttp.NewTransport(url, &mcphttp.TransportOptions{
//		Client: &http.Client{Transport: auth},
//	}))
//
// Client timeouts are paused while a user logs in. To have the user
// log in before connecting, call [Transport.Authorize].
//
// A [Grant] obtains tokens: [AuthorizationCode], the default, asks a user;
// [ClientCredentials], [WorkloadIdentity] and [EnterpriseGrant] do not. A [Store], such
// as that of [NewFileStore], keeps tokens and registrations across restarts.
//
// URLs from servers are not trusted. Metadata must be about the server that it was
// requested for, or about a resource above it, at the well-known URL of that resource.
// The metadata of an authorization server must be about itself. Addresses in networks
// that the server is not part of are refused when they are dialled, redirects are
// followed only within their origin, and everything that is read or repeated is bounded.
// A token is sent only to the server that it was issued for, and only encrypted, except on
// this machine.
package oauth
