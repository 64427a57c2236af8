// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// A FileStore keeps every value in a file of its own, which nobody but its owner can
// read, below a directory that nobody else can enter. Files are replaced in one
// step, so that several processes may share the directory. The values are not
// encrypted: for that, wrap the store.
type FileStore struct{ dir string }

// NewFileStore makes a store in a directory, which is made when something is saved.
// One that exists must belong to the store alone.
func NewFileStore(dir string) *FileStore { return &FileStore{dir} }

// maxFile is how long a file may be that is read.
const maxFile = 1 << 20

func (s *FileStore) path(key StoreKey) string {
	sum := sha256.Sum256([]byte(key.Issuer + "\x00" + key.Resource))
	return filepath.Join(s.dir, hex.EncodeToString(sum[:])+".json")
}

// Load implements [Store]. It refuses files that others can read or write.
func (s *FileStore) Load(_ context.Context, key StoreKey) ([]byte, error) {
	path := s.path(key)
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > maxFile:
		return nil, fmt.Errorf("oauth: %s is no file of the store", path)
	case tooOpen(info.Mode()):
		return nil, fmt.Errorf("oauth: %s can be used by others: its mode is %v, want 0600", path, info.Mode().Perm())
	}
	return os.ReadFile(path) //nolint:gosec // the name is a hash
}

// Save implements [Store].
func (s *FileStore) Save(_ context.Context, key StoreKey, value []byte) (err error) {
	if value == nil {
		if err := os.Remove(s.path(key)); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	if err := s.prepare(); err != nil {
		return err
	}
	f, err := os.CreateTemp(s.dir, ".new-*") // with mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(value)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), s.path(key))
}

// prepare makes the directory, or makes sure that nobody else can enter it.
func (s *FileStore) prepare() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(s.dir)
	if err != nil {
		return err
	}
	if tooOpen(info.Mode()) {
		return os.Chmod(s.dir, 0o700) //nolint:gosec // a directory has to be entered
	}
	return nil
}
