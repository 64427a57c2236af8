// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio_test

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcpstdio"
)

// A command does not get the secrets of its client's environment unless Env contains them.
func TestFindingS20Environment(t *testing.T) {
	t.Setenv(behaviourVariable, "serve")
	t.Setenv("API_KEY", "hunter2")
	t.Setenv("WANTED", "yes")
	home := "HOME"
	if runtime.GOOS == "windows" {
		home = "USERPROFILE"
	}
	t.Setenv(home, "/home/somebody")
	t.Setenv("TERM", "() { :;}; a function of a shell")
	env := func(cmd *exec.Cmd) []string {
		cmd.Path, cmd.Args = program("serve").Path, program("serve").Args
		conn := connect(t, cmd, quietly())
		text, err := mcp.Call[string](t.Context(), conn, "environment", nil)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(text, "\n")
	}
	allowed := mcpstdio.Environ(behaviourVariable)
	for name, test := range map[string]struct {
		env  []string
		want []string // of the variables below
	}{
		"some": {allowed, []string{home, "PATH"}},
		"more": {mcpstdio.Environ(behaviourVariable, "WANTED", "UNSET_VARIABLE"), []string{home, "PATH", "WANTED"}},
		"all":  {os.Environ(), []string{"API_KEY", home, "PATH", "TERM", "WANTED"}},
	} {
		got := env(&exec.Cmd{Env: test.env})
		for _, variable := range []string{"API_KEY", home, "PATH", "TERM", "UNSET_VARIABLE", "WANTED"} {
			has := slices.ContainsFunc(got, func(v string) bool { return strings.HasPrefix(v, variable+"=") })
			if want := slices.Contains(test.want, variable); has != want {
				t.Errorf("%s: %s is passed on: %t, want %t", name, variable, has, want)
			}
		}
	}
}

// A nil Env is not the whole environment: the program does not learn what to do, and is not
// a server.
func TestFindingS20NilEnvironment(t *testing.T) {
	t.Setenv(behaviourVariable, "serve")
	cmd := program("serve")
	cmd.Env = nil
	conn, err := client().Connect(t.Context(), mcpstdio.NewCommand(cmd, quietly()))
	if err == nil {
		conn.Close()
		t.Error("the whole environment was passed on")
	}
}
