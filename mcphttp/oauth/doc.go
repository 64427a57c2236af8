// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package oauth authorizes clients of MCP servers over HTTP.
//
// A [Transport] is an [http.RoundTripper] that wraps another. It sends requests unchanged
// until the server requires authorization. Then it discovers the authorization server,
// obtains a token, and sends the request again:
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
// [ClientCredentials], [WorkloadIdentity] and [EnterpriseGrant] do not. A [Store], such as
// a [FileStore], keeps tokens and registrations across restarts.
//
// URLs from servers are not trusted. Resource metadata must describe the server, or a
// parent resource if it is published at the well-known URL of that parent. Authorization
// server metadata must name the issuer that it was requested for; only the case of the
// host, the default port and the slash of an empty path may differ. The client does not
// dial addresses in networks that the server is not part of, follows redirects only within
// their origin, and limits everything that it reads or retries. A token is sent only to the
// server that it was issued for, and only over an encrypted connection, except on this
// machine.
//
// This package is stable, as docs/stability.md defines it.
package oauth
