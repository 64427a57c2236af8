// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package config

import (
	"cmp"
	"os"
	"path/filepath"
	"runtime"
)

// A Location is a configuration file in which a host lists servers. [Location.Set] and
// [Location.Remove] edit its contents.
type Location struct {
	Host string // such as "Claude Desktop"
	Path string
	// Place is the path of the member that lists the servers, such as "mcpServers", which ""
	// means, too.
	Place string
}

// A dialect is what is special about the servers in the file of a host.
type dialect struct {
	place                      string   // "" means mcpServers
	typeOfCommands, typeOfURLs string   // "" if the host needs no type
	url                        string   // the member with the URL; "" means url
	env                        string   // the member with the environment; "" means env
	words                      bool     // the command is a list, with its arguments
	noURLs                     bool     // the file lists only commands
	tools                      []string // nil if the host needs no list of tools
}

// dialects are the dialects of hosts that need more than a command or a URL.
var dialects = map[string]dialect{
	"Claude Desktop":   {noURLs: true},
	"Claude Code":      {typeOfCommands: "stdio", typeOfURLs: "http"},
	"VS Code":          {place: "servers", typeOfCommands: "stdio", typeOfURLs: "http"},
	"VS Code Insiders": {place: "servers", typeOfCommands: "stdio", typeOfURLs: "http"},
	"Windsurf":         {url: "serverUrl"},
	"Zed":              {place: "context_servers"},
	"Gemini CLI":       {url: "httpUrl"},
	"opencode":         {place: "mcp", typeOfCommands: "local", typeOfURLs: "remote", env: "environment", words: true},
	"Copilot CLI":      {typeOfCommands: "local", typeOfURLs: "http", tools: []string{"*"}},
	"Amazon Q":         {typeOfURLs: "http"},
	"Cline":            {typeOfURLs: "streamableHttp"},
}

// Locations returns the configuration files of well-known hosts for the current user on this
// system. The files need not exist. Project files, such as .mcp.json or .vscode/mcp.json, are
// not included, because they come with the project.
func Locations() []Location {
	var all []Location
	add := func(host, dir string, err error, path ...string) {
		if err == nil {
			all = append(all, Location{host, filepath.Join(append([]string{dir}, path...)...), cmp.Or(dialects[host].place, "mcpServers")})
		}
	}
	settings, noSettings := os.UserConfigDir() // on macOS ~/Library/Application Support, on Windows %AppData%
	home, noHome := os.UserHomeDir()
	add("Claude Desktop", settings, noSettings, "Claude", "claude_desktop_config.json")
	add("Claude Code", home, noHome, ".claude.json")
	add("VS Code", settings, noSettings, "Code", "User", "mcp.json")
	add("VS Code Insiders", settings, noSettings, "Code - Insiders", "User", "mcp.json")
	add("Cursor", home, noHome, ".cursor", "mcp.json")
	add("Windsurf", home, noHome, ".codeium", "windsurf", "mcp_config.json")
	zed, noZed := zedDir()
	add("Zed", zed, noZed, "settings.json")
	dotConfig, noDotConfig := os.Getenv("XDG_CONFIG_HOME"), error(nil) // on all systems
	if dotConfig == "" {
		dotConfig, noDotConfig = filepath.Join(home, ".config"), noHome
	}
	add("opencode", dotConfig, noDotConfig, "opencode", "opencode.json")
	add("Gemini CLI", home, noHome, ".gemini", "settings.json")
	add("LM Studio", home, noHome, ".lmstudio", "mcp.json")
	add("Copilot CLI", home, noHome, ".copilot", "mcp-config.json")
	add("Kiro", home, noHome, ".kiro", "settings", "mcp.json")
	add("Amazon Q", home, noHome, ".aws", "amazonq", "mcp.json")
	add("Cline", settings, noSettings, "Code", "User", "globalStorage", "saoudrizwan.claude-dev", "settings", "cline_mcp_settings.json")
	return all
}

// zedDir returns the directory of Zed, which is in ~/.config on macOS, too.
func zedDir() (string, error) {
	if runtime.GOOS != "darwin" {
		dir, err := os.UserConfigDir()
		name := "zed"
		if runtime.GOOS == "windows" {
			name = "Zed"
		}
		return filepath.Join(dir, name), err
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".config", "zed"), err
}
