// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package config

import (
	"os"
	"path/filepath"
)

// A Location is the configuration file in which a host lists the servers of a user.
type Location struct {
	Host string // such as "Claude Desktop"
	Path string
}

// Locations returns the configuration files of well-known hosts for the current user on this
// system. The files need not exist. Project files, such as .mcp.json or .vscode/mcp.json, are
// not included, because they come with the project.
func Locations() []Location {
	var all []Location
	add := func(host, dir string, err error, path ...string) {
		if err == nil {
			all = append(all, Location{host, filepath.Join(append([]string{dir}, path...)...)})
		}
	}
	settings, noSettings := os.UserConfigDir() // on macOS ~/Library/Application Support, on Windows %AppData%
	home, noHome := os.UserHomeDir()
	add("Claude Desktop", settings, noSettings, "Claude", "claude_desktop_config.json")
	add("Claude Code", home, noHome, ".claude.json")
	add("VS Code", settings, noSettings, "Code", "User", "mcp.json")
	add("Cursor", home, noHome, ".cursor", "mcp.json")
	add("Windsurf", home, noHome, ".codeium", "windsurf", "mcp_config.json")
	add("Gemini CLI", home, noHome, ".gemini", "settings.json")
	add("LM Studio", home, noHome, ".lmstudio", "mcp.json")
	add("Copilot CLI", home, noHome, ".copilot", "mcp-config.json")
	add("Kiro", home, noHome, ".kiro", "settings", "mcp.json")
	add("Amazon Q", home, noHome, ".aws", "amazonq", "mcp.json")
	add("Cline", settings, noSettings, "Code", "User", "globalStorage", "saoudrizwan.claude-dev", "settings", "cline_mcp_settings.json")
	return all
}
