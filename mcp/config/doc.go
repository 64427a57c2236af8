// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package config reads and edits the configuration files in which hosts such as Claude Desktop, VS Code
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
// [Locations] returns the paths of the current user's configuration files. [Location.Set] and
// [Location.Remove] edit the contents of such a file and leave everything else in it alone,
// comments included; [Redact] removes its secrets, to show it.
//
// # Dialects
//
// Hosts agree only on the basics of the format. This package supports these variants:
//
//   - Servers are listed under "mcpServers" or, in VS Code, "servers" or "mcp" and "servers".
//     Also "mcp_servers" (Copilot), "context_servers" (Zed) and "mcp" (opencode) list servers,
//     and so does a file without such a member that consists of servers (plugins of Claude
//     Code). [File.ForDirectory] adds those that Claude Code stores for a project. Comments and
//     trailing commas are allowed.
//   - A server is a command, with "args", "env" (opencode: "environment"), "envFile" and "cwd",
//     or a URL, with "headers" or with "requestInit" that has "headers". A command may be a
//     list that includes its arguments, and is looked up in the PATH of its environment. The
//     URL is "url", or "serverUrl" (Windsurf), or "httpUrl" (Gemini CLI).
//   - "type" (also "transport" and "transportType") is "stdio" (also "local"), "http" (also
//     "streamable-http" and "remote") or "sse". It is optional.
//   - "oauth" configures the login; see [OAuth].
//   - "disabled": true and "enabled": false disable a server; see [Server].Disabled.
//   - "includeTools", "excludeTools" (Gemini CLI), "disabledTools" (Windsurf) and "tools"
//     (Copilot) select tools; see [Server.UsesTool].
//
// Other members are in [Server].Members. Most of them are host settings unrelated to the
// connection. [Server.Transport] logs a warning about those whose names suggest that they are
// headers, credentials or environments.
//
// Commands, arguments, environments, directories, URLs, headers and logins may contain
// variables: ${NAME}, ${env:NAME} and {env:NAME} for an environment variable, the first two
// also with a default as in ${NAME:-default}, which also replaces an empty value; ${userHome},
// ${workspaceFolder}, ${workspaceFolderBasename}, ${pathSeparator} and ${/}; and ${input:ID} for
// an input of VS Code, which is requested from the user with [Options].Input. A variable without
// a value is an error.
//
// # Security
//
// A configuration file starts programs, names the authorization servers at which users log in,
// and can send environment variables to any URL. Read
// only files that the user trusts. Do not read files from a directory with someone else's
// code without asking the user.
//
// A command gets the environment returned by [github.com/go-psi/psi/mcpstdio.Environ], which
// omits the secrets of this process, and the variables set in the file. Errors name the file,
// the server and the member, but never the values of variables.
//
// This package is a tool, as docs/stability.md defines it: its API may change.
package config
