// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package config reads the files in which hosts such as Claude Desktop, VS Code and Cursor
// keep their servers, so that other hosts, gateways and tools can use them:
//
//	{
//		"mcpServers": {
//			"files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/tmp"]},
//			"notes": {"url": "https://notes.example.com/mcp", "headers": {"Authorization": "Bearer ${NOTES_TOKEN}"}}
//		}
//	}
//
// [Load] reads a file, and [Server.Transport] returns the transport to a server:
//
//	file, err := config.Load("mcp.json")
//	server, err := file.Server("notes")
//	transport, err := server.Transport(ctx, nil)
//	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, transport)
//
// [Locations] returns where the hosts keep the file of their user.
//
// # Dialects
//
// The hosts agree on the main things only. This package reads what they have in common and
// their variants:
//
//   - The servers are below "mcpServers" or, in VS Code, "servers". Comments and trailing
//     commas are allowed.
//   - A server is a command, with "args", "env", "envFile" and "cwd", or a URL, with
//     "headers". A command is looked up in the PATH of its environment. The URL is "url", or
//     "serverUrl" (Windsurf), or "httpUrl" (Gemini CLI).
//   - "type" is "stdio", "http" (also "streamable-http") or "sse". It may be missing.
//   - "disabled": true and "enabled": false disable a server; see [Server].Disabled.
//   - "includeTools", "excludeTools" (Gemini CLI) and "disabledTools" (Windsurf) select tools.
//
// Other members are ignored: they are settings of a host that do not concern the connection.
//
// In commands, arguments, environments, directories, URLs and headers there may be variables:
// ${NAME} and ${env:NAME} for a variable of the environment, either with a default as in
// ${NAME:-default}, which replaces an empty value as well; ${userHome}, ${workspaceFolder},
// ${workspaceFolderBasename}, ${pathSeparator} and ${/}; and ${input:ID} for an input of VS
// Code, which [Options].Input asks the user for. A variable without a value is an error.
//
// # Security
//
// A configuration file starts programs, and can send variables of the environment to any URL.
// Read only files that the user trusts: not, without asking, those that lie in a directory with
// someone else's code.
//
// A command gets the environment that [github.com/go-psi/psi/mcpstdio.Environ] returns, without
// the secrets of this process, and what the file names for it. Errors name the file, the
// server and the member, but no values of variables.
package config
