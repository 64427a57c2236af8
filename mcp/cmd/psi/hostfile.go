// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-psi/psi/internal/nearest"
	"github.com/go-psi/psi/internal/printable"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/config"
)

// hostFlags choose the files of hosts.
type hostFlags struct {
	hosts  listFlag
	config string
}

// hostKey returns the name of a host as a flag: "claude-desktop".
func hostKey(host string) string { return strings.ReplaceAll(strings.ToLower(host), " ", "-") }

// isHost reports whether a flag names a host. VS Code is also vscode.
func isHost(host, flag string) bool {
	plain := strings.NewReplacer("-", "", " ", "", "_", "")
	return plain.Replace(strings.ToLower(host)) == plain.Replace(strings.ToLower(flag))
}

func hostKeys(locations []config.Location) []string {
	keys := make([]string, len(locations))
	for i, l := range locations {
		keys[i] = hostKey(l.Host)
	}
	return keys
}

// projectFiles are the files in which hosts list the servers of a project.
var projectFiles = []struct{ name, host string }{
	{".mcp.json", "Claude Code"}, {".vscode/mcp.json", "VS Code"}, {".cursor/mcp.json", "Cursor"}, {".zed/settings.json", "Zed"},
	{"opencode.json", "opencode"}, {"opencode.jsonc", "opencode"},
}

// locations returns the files that the flags name, or nil if there are no flags.
func (h *hostFlags) locations(command string) ([]config.Location, error) {
	known := config.Locations()
	var chosen []config.Location
	for _, flag := range h.hosts {
		i := slices.IndexFunc(known, func(l config.Location) bool { return isHost(l.Host, flag) })
		if i < 0 {
			keys := hostKeys(known)
			return nil, usagef("%s: there is no host %q%s; want one of %s", command, flag, nearest.Hint(flag, keys), strings.Join(keys, ", "))
		}
		chosen = append(chosen, known[i])
	}
	switch {
	case h.config == "":
		return chosen, nil
	case len(chosen) > 1:
		return nil, usagef("%s: -config wants one -host", command)
	case len(chosen) == 1:
		chosen[0].Path = h.config
		return chosen, nil
	}
	path, err := filepath.Abs(h.config)
	if err != nil {
		return nil, err
	}
	host := ""
	for _, f := range projectFiles {
		if strings.HasSuffix(filepath.ToSlash(path), "/"+f.name) {
			host = f.host
		}
	}
	for _, l := range known {
		if l.Host == host || l.Path == path {
			l.Path = h.config
			return []config.Location{l}, nil
		}
	}
	return []config.Location{{Host: filepath.Base(path), Path: h.config}}, nil
}

// A hostFile is the file of a host while it is being changed.
type hostFile struct {
	config.Location

	target string // what Path leads to, without symbolic links
	mode   fs.FileMode
	exists bool
	data   []byte
}

func readHostFile(l config.Location) (*hostFile, error) {
	f := &hostFile{Location: l, target: l.Path, mode: 0o600}
	target, err := filepath.EvalSymlinks(l.Path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(l.Path); err == nil {
			return nil, usagef("%s is a link to a file that does not exist", l.Path)
		}
		return f, nil
	}
	if err != nil {
		return nil, &usageError{err}
	}
	info, err := os.Stat(target)
	switch {
	case err != nil:
		return nil, &usageError{err}
	case !info.Mode().IsRegular():
		return nil, usagef("%s is not a file", l.Path)
	}
	f.target, f.mode, f.exists = target, info.Mode().Perm(), true
	if f.mode&0o200 == 0 { // replacing it would be possible
		return nil, usagef("%s is read-only", l.Path)
	}
	if f.data, err = os.ReadFile(target); err != nil {
		return nil, &usageError{err}
	}
	return f, nil
}

// change shows what an edit changes in the file, asks the user unless yes, and writes it.
func (e *env) change(ctx context.Context, f *hostFile, yes bool, edit func(data []byte) ([]byte, error)) error {
	after, err := edit(f.data)
	switch {
	case err != nil:
		return &usageError{err}
	case bytes.Equal(after, f.data):
		e.term.printf("%s: there is nothing to change in %s\n", f.Host, printable.Line(f.Path))
		return nil
	}
	e.term.printf("%s", diff(f.Path, config.Redact(f.data), config.Redact(after), f.data, after))
	if !yes {
		action, err := e.term.confirm(ctx, "Write this?")
		if err != nil {
			return err
		}
		if action != mcp.ActionAccept {
			return usagef("nothing was written to %s; answer y, or use -yes", f.Path)
		}
	}
	backup, err := f.write(after)
	if err != nil {
		return err
	}
	e.term.printf("%s: wrote %s; restart the host, or reload its servers\n", f.Host, printable.Line(f.target))
	if backup != "" {
		e.term.printf("The file as it was is in %s\n", printable.Line(backup))
	}
	return nil
}

// write replaces the file, which other programs see either as it was or as it is then. It
// returns the path of a copy of the file as it was, or "" if there was none.
func (f *hostFile) write(after []byte) (backup string, err error) {
	dir := filepath.Dir(f.target)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	if f.exists {
		backup = f.target + "." + time.Now().UTC().Format("20060102-150405.000000") + ".bak"
		if err := writeNew(backup, f.data, f.mode); err != nil {
			return "", fmt.Errorf("the backup: %w", err)
		}
	}
	next, err := os.CreateTemp(dir, filepath.Base(f.target)+".*.tmp")
	if err != nil {
		return "", err
	}
	defer os.Remove(next.Name()) // if it still has that name
	_, err = next.Write(after)
	if err = errors.Join(err, next.Sync(), next.Close(), os.Chmod(next.Name(), f.mode)); err != nil {
		return "", err
	}
	// Hosts write their files, too. What one has written since it was read must not be lost.
	now, err := os.ReadFile(f.target)
	if isNew := errors.Is(err, fs.ErrNotExist); isNew == f.exists || !bytes.Equal(now, f.data) {
		return "", fmt.Errorf("%s was changed by another program meanwhile, and was not written; run psi again", f.target)
	}
	return backup, os.Rename(next.Name(), f.target)
}

// writeNew writes a file that must not exist.
func writeNew(path string, data []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode) //nolint:gosec // beside the user's file
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
