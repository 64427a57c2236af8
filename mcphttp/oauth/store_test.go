// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcphttp/oauth"
	"github.com/go-psi/psi/mcphttp/oauth/storetest"
)

func TestStores(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		storetest.Run(t, func(*testing.T) oauth.Store { return oauth.NewMemoryStore() })
	})
	t.Run("file", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) oauth.Store { return oauth.NewFileStore(filepath.Join(t.TempDir(), "a", "b")) })
	})
	t.Run("shared", func(t *testing.T) {
		storetest.Run(t, func(*testing.T) oauth.Store { return newShared(store.NewMemory(nil)) })
	})
}

func TestFileModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes say nothing here")
	}
	dir := filepath.Join(t.TempDir(), "tokens")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	store, key := oauth.NewFileStore(dir), oauth.StoreKey{Issuer: "i"}
	if err := store.Save(t.Context(), key, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files: %v, %v", files, err)
	}
	for path, want := range map[string]os.FileMode{dir: 0o700, files[0]: 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %v", path, info.Mode(), err, want)
		}
	}
	if err := os.Chmod(files[0], 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := store.Load(t.Context(), key); err == nil {
		t.Errorf("read %q from a file that others can read", got)
	}
	os.Remove(files[0])
	if err := os.Symlink("/dev/zero", files[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Load(t.Context(), key); err == nil {
		t.Error("read a link")
	}
}

// broken is a store that always fails.
type broken struct{}

func (broken) Load(context.Context, oauth.StoreKey) ([]byte, error) { return nil, errors.New("broken") }
func (broken) Save(context.Context, oauth.StoreKey, []byte) error   { return errors.New("broken") }

// damaged is a store with invalid values.
type damaged struct{ text string }

func (d damaged) Load(context.Context, oauth.StoreKey) ([]byte, error) { return []byte(d.text), nil }
func (d damaged) Save(context.Context, oauth.StoreKey, []byte) error   { return nil }

// Without its store, a program works, but remembers nothing.
func TestBrokenStore(t *testing.T) {
	for _, store := range []oauth.Store{
		broken{}, damaged{"{"}, damaged{"{}"},
		damaged{`{"access_token":"stolen","resource":"https://mcp.example/mcp","issuer":"https://evil.example"}`},
		damaged{`{"access_token":"stolen","resource":"https://mcp.example/other","issuer":"https://login.example"}`},
		damaged{`{"access_token":"stolen\r\n","resource":"https://mcp.example/mcp","issuer":"https://login.example"}`},
		damaged{`{"access_token":"stolen","resource":"https://mcp.example/mcp","issuer":"https://login.example","scopes":7}`},
		damaged{`{"access_token":"stolen","dpop":true,"resource":"https://mcp.example/mcp","issuer":"https://login.example"}`},
	} {
		w := newWorld(t)
		w.store = store
		w.mustPost(w.transport(nil), "", served)
		if w.seen(origin(serverURL), "stolen") {
			t.Errorf("%v: the token was used", store)
		}
	}
}
