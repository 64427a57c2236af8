// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build unix

package oauth_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/go-psi/psi/mcphttp/oauth"
)

// oneFile returns a store with one value, its directory, and the file of the value.
func oneFile(t *testing.T) (store *oauth.FileStore, dir, file string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "tokens")
	store = oauth.NewFileStore(dir)
	if err := store.Save(t.Context(), oneKey, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v", files, err)
	}
	return store, dir, files[0]
}

var oneKey = oauth.StoreKey{Issuer: "https://login.example"}

// A program that runs as root neither reads files that another user has planted, nor
// writes tokens where another user can replace them.
func TestFindingS36FilesOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files to others")
	}
	const other = 12345
	store, _, file := oneFile(t)
	if err := os.Chown(file, other, other); err != nil {
		t.Fatal(err)
	}
	if got, err := store.Load(t.Context(), oneKey); err == nil {
		t.Errorf("read %q from the file of another user", got)
	}
	store, dir, _ := oneFile(t)
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chown(dir, other, other)); err != nil {
		t.Fatal(err)
	}
	if got, err := store.Load(t.Context(), oneKey); err == nil {
		t.Errorf("read %q from the directory of another user", got)
	}
	if err := store.Save(t.Context(), oneKey, []byte("{}")); err == nil {
		t.Error("saved into the directory of another user")
	}
	if info, err := os.Stat(dir); err != nil || info.Sys().(*syscall.Stat_t).Uid != other || info.Mode().Perm() != 0o755 {
		t.Errorf("the directory was changed: %v, %v", info.Mode(), err)
	}
}

// In a directory where others can replace files, nothing is read until its permissions are
// restricted.
func TestFindingS36OpenDirectory(t *testing.T) {
	store, dir, _ := oneFile(t)
	for mode, readable := range map[os.FileMode]bool{0o700: true, 0o755: true, 0o770: false, 0o777: false, 0o702: false} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		if got, err := store.Load(t.Context(), oneKey); (err == nil) != readable {
			t.Errorf("with the mode %v: read %q, %v", mode, got, err)
		}
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := store.Save(t.Context(), oneKey, []byte("[]")); err != nil {
		t.Fatal(err)
	}
	if got, err := store.Load(t.Context(), oneKey); err != nil || string(got) != "[]" {
		t.Errorf("after saving: %q, %v", got, err)
	}
}
