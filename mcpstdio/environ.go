// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio

import (
	"os"
	"runtime"
	"strings"
)

// inherited are the variables without which programs do not run as they should, and
// which hold no secrets.
var inherited = map[bool][]string{
	false: {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"},
	true: { // on Windows
		"APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE", "PROGRAMFILES",
		"SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE",
	},
}

// Environ returns the part of this process's environment that a command whose Env is
// nil gets, each variable as "key=value", and the variables of the names given. It
// consists of HOME, LOGNAME, PATH, SHELL, TERM and USER; on Windows of APPDATA,
// HOMEDRIVE, HOMEPATH, LOCALAPPDATA, PATH, PATHEXT, PROCESSOR_ARCHITECTURE, PROGRAMFILES,
// SYSTEMDRIVE, SYSTEMROOT, TEMP, USERNAME and USERPROFILE. Variables that are not set,
// and functions that a shell exported, are left out.
func Environ(more ...string) []string {
	env := make([]string, 0, 16) // never nil, which would stand for everything
	for _, names := range [][]string{inherited[runtime.GOOS == "windows"], more} {
		for _, name := range names {
			if value, ok := os.LookupEnv(name); ok && !strings.HasPrefix(value, "()") {
				env = append(env, name+"="+value)
			}
		}
	}
	return env
}
