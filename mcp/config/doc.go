// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package config reads the configuration files in which hosts such as Claude Desktop, VS Code
// and Cursor list their servers, so that other hosts, gateways and tools can use them:
//
//	{
//		"mcpServers": {
//			"files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/tmp"]},
//			"notes": {"url": "https://notes.example.com/mcp", "headers": {"Authorization": "Bearer ${NOTES_TOKEN}"}}
//		}
//	}
//
// [Load] reads a file, and [Server.Transport] returns a transport to a server:
//
//	file, err := config.Load("mcp.json")
//	server, err := file.Server("notes")
//	transport, err := server.Transport(ctx, nil)
//	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, transport)
//
// [Locations] returns the paths of the current user's configuration files.
//
// # Dialects
//
// Hosts agree only on the basics of the format. This package supports these variants:
//
//   - Servers are listed under "mcpServers" or, in VS Code, "servers". Comments and trailing
//     commas are allowed.
//   - A server is a command, with "args", "env", "envFile" and "cwd", or a URL, with
//     "headers". A command is looked up in the PATH of its environment. The URL is "url", or
//     "serverUrl" (Windsurf), or "httpUrl" (Gemini CLI).
//   - "type" is "stdio", "http" (also "streamable-http") or "sse". It is optional.
//   - "disabled": true and "enabled": false disable a server; see [Server].Disabled.
//   - "includeTools", "excludeTools" (Gemini CLI) and "disabledTools" (Windsurf) select tools;
//     see [Server.UsesTool].
//
// Other members are ignored, because they are host settings unrelated to the connection.
//
// Commands, arguments, environments, directories, URLs and headers may contain variables:
// ${NAME} and ${env:NAME} for an environment variable, either with a default as in
// ${NAME:-default}, which also replaces an empty value; ${userHome}, ${workspaceFolder},
// ${workspaceFolderBasename}, ${pathSeparator} and ${/}; and ${input:ID} for an input of VS
// Code, which is requested from the user with [Options].Input. A variable without a value is
// an error.
//
// # Security
//
// A configuration file starts programs, and can send environment variables to any URL. Read
// only files that the user trusts. Do not read files from a directory with someone else's
// code without asking the user.
//
// A command gets the environment returned by [github.com/go-psi/psi/mcpstdio.Environ], which
// omits the secrets of this process, and the variables set in the file. Errors name the file,
// the server and the member, but never the values of variables.
package config
