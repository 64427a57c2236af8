// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth

import (
	"context"
	"os/exec"
	"runtime"
)

// OpenBrowser opens a URL, https or http to this machine, in the user's browser. It
// does not wait for the browser to end. No shell sees the URL.
func OpenBrowser(ctx context.Context, url string) error {
	u, err := parseURL(url)
	if err != nil {
		return err
	}
	name, args := "xdg-open", []string{u.String()}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", u.String()}
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), name, args...) //nolint:gosec // the URL was checked, and is one argument
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // so that it leaves nothing behind
	return nil
}
