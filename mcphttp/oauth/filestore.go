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
)

// A FileStore keeps every value in a file of its own, which nobody but its owner can
// read, below a directory that nobody else can enter. Files are replaced in one
// step, so that several processes of one user may share the directory. The values are
// not encrypted: for that, wrap the store.
//
// On Unix, files and directories of another user are refused, unless it is root, and so
// are files that others can use and directories in which others can replace files.
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

// Load implements [Store]. It refuses what others can read, write or replace.
func (s *FileStore) Load(_ context.Context, key StoreKey) ([]byte, error) {
	path := s.path(key)
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = checkFile(path, info)
	}
	if err == nil {
		err = s.checkDir()
	}
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|openFlags, 0) //nolint:gosec // the name is a hash
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err == nil {
		err = checkFile(path, info) // it may be another one by now
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, maxFile))
}

func checkFile(path string, info fs.FileInfo) error {
	switch {
	case !info.Mode().IsRegular() || info.Size() > maxFile:
		return fmt.Errorf("oauth: %s is no file of the store", path)
	case tooOpen(info):
		return fmt.Errorf("oauth: %s can be used by others: its mode is %v, want 0600", path, info.Mode().Perm())
	case isForeign(info):
		return fmt.Errorf("oauth: %s belongs to another user", path)
	}
	return nil
}

// checkDir makes sure that nobody else can replace files.
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
	if tooOpen(info) && !isForeign(info) {
		if err := os.Chmod(s.dir, 0o700); err != nil { //nolint:gosec // a directory has to be entered
			return err
		}
	}
	return s.checkDir()
}
