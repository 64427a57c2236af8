// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package config_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/config"
)

// A program is looked up in the PATH of the server's own environment, as hosts do.
func TestProgramInPathOfServer(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "windows" {
		t.Skip("symbolic links need a privilege")
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, "only-here")); err != nil {
		t.Fatal(err)
	}
	envFile := filepath.Join(dir, "env")
	if err := os.WriteFile(envFile, []byte("PATH="+dir+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := "/none/such" + string(filepath.ListSeparator) + dir
	for name, s := range map[string]*config.Server{
		"env":     {Command: "only-here", Env: map[string]string{isServer: "1", "PATH": path}},
		"envFile": {Command: "only-here", EnvFile: envFile, Env: map[string]string{isServer: "1"}},
	} {
		if _, err := mcp.Call[process](t.Context(), connect(t, s, nil), "process", nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := &config.Server{Command: "only-here", Env: map[string]string{"PATH": "/none/such"}}
	transport, err := s.Transport(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := transport.Connect(t.Context(), nil); err == nil {
		t.Error("a program was started that is nowhere")
	}
}

// The name of a Windows variable may contain parentheses.
func TestVariableOfWindows(t *testing.T) {
	s := &config.Server{URL: "https://example.com/${env:ProgramFiles(x86)}/${ProgramFiles(x86)}"}
	if _, err := s.Transport(t.Context(), &config.Options{LookupEnv: vars("ProgramFiles(x86)=C:")}); err != nil {
		t.Error(err)
	}
}
