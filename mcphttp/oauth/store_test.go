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
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcphttp/oauth"
	"github.com/go-psi/psi/mcphttp/oauth/oauthtest"
)

func TestStores(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		oauthtest.Run(t, func(*testing.T) oauth.Store { return oauth.NewMemoryStore() })
	})
	t.Run("file", func(t *testing.T) {
		oauthtest.Run(t, func(t *testing.T) oauth.Store { return oauth.NewFileStore(filepath.Join(t.TempDir(), "a", "b")) })
	})
	t.Run("shared", func(t *testing.T) {
		oauthtest.Run(t, func(*testing.T) oauth.Store { return newShared(store.NewMemory(nil)) })
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

// If its store fails, a program works but remembers nothing.
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

// A caller stops waiting for a lock when its context ends. It waits at most a minute for a
// file lock, whatever the process that holds the lock does.
func TestLocks(t *testing.T) {
	for name, open := range map[string]func() oauth.Locker{
		"memory": func() oauth.Locker { return oauth.NewMemoryStore() },
		"file":   func() oauth.Locker { return oauth.NewFileStore(t.TempDir()) },
	} {
		synctest.Test(t, func(t *testing.T) {
			store, key := open(), oauth.StoreKey{Issuer: "i"}
			held, unlock, err := store.Lock(t.Context(), key)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.ErrUnsupported)
			defer cancel()
			if name == "file" && runtime.GOOS == "windows" {
				return // file locks are not supported here
			}
			if _, _, err := store.Lock(ctx, key); !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("%s: the second Lock returned %v", name, err)
			}
			if _, unlock, err := store.Lock(t.Context(), oauth.StoreKey{Issuer: "j"}); err != nil {
				t.Errorf("%s: another key: %v", name, err)
			} else {
				unlock()
			}
			if name == "file" {
				began := time.Now()
				_, unlock, err := store.Lock(t.Context(), key)
				if err != nil || time.Since(began) < time.Minute {
					t.Fatalf("a lock that is held was had after %v, %v", time.Since(began), err)
				}
				unlock()
			}
			unlock()
			if held.Err() == nil {
				t.Errorf("%s: the context of a lock outlives it", name)
			}
			if _, unlock, err = store.Lock(t.Context(), key); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			unlock()
		})
	}
}

// A token is refreshed even if no file can be locked.
func TestNoPlaceForLocks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	held, unlock, err := oauth.NewFileStore(file).Lock(t.Context(), oauth.StoreKey{Issuer: "i"})
	if err != nil || held.Err() != nil {
		t.Fatal(err)
	}
	unlock()
}
