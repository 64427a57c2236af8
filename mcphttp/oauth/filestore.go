// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-psi/psi/internal/made"
)

// A FileStore keeps each value in a separate file that only its owner can read, in a
// directory that only its owner can enter. Files are replaced atomically, so that several
// processes of one user may share the directory. Values are not encrypted; to encrypt them,
// wrap the store. It must be created by [NewFileStore].
//
// On Unix, it rejects files and directories that belong to users other than the current
// user and root, files that other users can access, and directories in which other users
// can replace files.
type FileStore struct{ dir string }

// NewFileStore returns a store in dir, which is created when a value is saved. An existing
// directory must not be used for anything else. NewFileStore panics if dir is empty.
func NewFileStore(dir string) *FileStore {
	if dir == "" {
		panic("oauth: NewFileStore: the directory is empty; use one such as the result of os.UserConfigDir")
	}
	return &FileStore{dir}
}

// mustBeMade panics unless the store was created by NewFileStore.
func (s *FileStore) mustBeMade() {
	made.Check(s != nil && s.dir != "", "oauth: a FileStore", "NewFileStore")
}

// maxFile is the maximum size of a file.
const maxFile = 1 << 20

func (s *FileStore) path(key StoreKey) string {
	sum := sha256.Sum256([]byte(key.Issuer + "\x00" + key.Resource))
	return filepath.Join(s.dir, hex.EncodeToString(sum[:])+".json")
}

// Load implements [Store]. It rejects files that other users can read, write or replace.
func (s *FileStore) Load(_ context.Context, key StoreKey) ([]byte, error) {
	s.mustBeMade()
	path := s.path(key)
	f, err := os.OpenFile(path, os.O_RDONLY|openFlags, 0) //nolint:gosec // the name is a hash
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		err = checkFile(path, info)
	}
	if err == nil {
		err = s.checkDir()
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, maxFile))
}

func checkFile(path string, info fs.FileInfo) error {
	switch {
	case !info.Mode().IsRegular() || info.Size() > maxFile:
		return fmt.Errorf("oauth: %s is not a file of the store", path)
	case tooOpen(info):
		return fmt.Errorf("oauth: %s can be used by others: its mode is %v, want 0600", path, info.Mode().Perm())
	case isForeign(info):
		return fmt.Errorf("oauth: %s belongs to another user", path)
	}
	return nil
}

// checkDir checks that other users cannot replace files.
func (s *FileStore) checkDir() error {
	info, err := os.Stat(s.dir)
	switch {
	case err != nil:
		return err
	case isForeign(info):
		return fmt.Errorf("oauth: the store's directory %s belongs to another user", s.dir)
	case tooOpen(info) && info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("oauth: others can write to the store's directory %s: its mode is %v, want 0700", s.dir, info.Mode().Perm())
	}
	return nil
}

// Save implements [Store].
func (s *FileStore) Save(_ context.Context, key StoreKey, value []byte) error {
	s.mustBeMade()
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
	defer os.Remove(f.Name()) // unless it was renamed
	_, err = f.Write(value)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), s.path(key))
}

// prepare creates the directory if necessary, makes it private, and checks it with
// checkDir.
func (s *FileStore) prepare() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	if info, err := os.Stat(s.dir); err == nil && !isForeign(info) {
		_ = os.Chmod(s.dir, 0o700) //nolint:gosec // a directory has to be entered; checkDir sees whether it was closed
	}
	return s.checkDir()
}
