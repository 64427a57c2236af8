// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth

import (
	"context"
	"os"
	"time"
)

var _ Locker = (*FileStore)(nil)

// Lock implements [Locker] on systems with flock: Linux, macOS and the BSDs. On other
// systems, and if files cannot be locked, it returns without locking: refreshing a token
// twice is better than not refreshing it. For the same reason, it waits for at most a
// minute.
func (s *FileStore) Lock(ctx context.Context, key StoreKey) (held context.Context, unlock func(), err error) {
	s.mustBeMade()
	held, cancel := context.WithCancel(ctx)
	f, err := s.openLock(key)
	if err != nil {
		return held, cancel, nil //nolint:nilerr // it goes on without a lock
	}
	for began := time.Now(); !tryLock(f) && time.Since(began) < lockTTL; {
		select {
		case <-time.After(lockPoll):
		case <-ctx.Done():
			cancel()
			_ = f.Close()
			return nil, nil, context.Cause(ctx)
		}
	}
	return held, func() {
		cancel()
		_ = f.Close() // which unlocks it
	}, nil
}

// openLock opens the lock file of a key. The file is never removed, because another process
// may have it open.
func (s *FileStore) openLock(key StoreKey) (*os.File, error) {
	if err := s.prepare(); err != nil {
		return nil, err
	}
	return os.OpenFile(s.path(key)+".lock", os.O_RDWR|os.O_CREATE|openFlags, 0o600)
}
