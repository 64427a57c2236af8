// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package skills

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-psi/psi/internal/made"
	"github.com/go-psi/psi/mcp"
)

// Options configure [New]. Nil means the zero Options.
type Options struct {
	// Prefix is the path before the directories, such as "acme/billing" for the skill
	// skill://acme/billing/refunds/SKILL.md. Its elements consist of letters, digits, -, .
	// and _.
	Prefix string
	// PageSize is the number of skills or files per page of a list. 0 means 100.
	PageSize int
	// Cache holds the cache hints of lists and files. The zero value means private and not
	// to be cached.
	Cache mcp.Cacheable
	// Refresh is the minimum time between checks of the directory by requests; changes may
	// be noticed that much later. 0 means one second. If it is negative, only Reload and
	// Watch detect changes.
	Refresh time.Duration
	// Logger receives diagnostic messages. Nil means slog.Default.
	Logger *slog.Logger
}

func (o *Options) withDefaults() Options {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.PageSize <= 0 {
		opts.PageSize = 100
	}
	if opts.Refresh == 0 {
		opts.Refresh = time.Second
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	return opts
}

// A Catalog serves a directory of skills. It is safe for concurrent use.
type Catalog struct {
	fsys    fs.FS
	opts    Options
	current atomic.Pointer[snapshot]
	seen    atomic.Pointer[time.Time] // when the directory was last checked

	reloading sync.Mutex // serializes changes; held while the muxes are changed
	muxes     []*mcp.Mux
	failed    error     // why the last reload failed
	failedAt  time.Time // when it failed; the directory is not read again immediately
	logged    string    // the last logged problem
}

// New reads and validates the skills of a file system: every directory with a file SKILL.md,
// at any depth. A skill inside another skill is a separate skill, and its files belong to
// both. Files and directories whose names begin with a dot are ignored, as are symbolic
// links. If fsys is an embed.FS or the FS of an [os.Root], no path leads outside it.
//
// If some skills are invalid, New returns the catalog of the others together with an error
// that names each invalid skill: one that has no front matter or no description, that has a
// name which differs from its directory or is used by another skill, or that has more than
// [MaxFiles] files or more than [MaxBytes] bytes. A program that wants to serve the others
// reports the error and continues. That there is no skill at all is logged. The catalog is nil if the file system cannot be read or an
// option is invalid.
func New(fsys fs.FS, opts *Options) (*Catalog, error) {
	c := &Catalog{fsys: fsys, opts: opts.withDefaults()}
	if fsys == nil {
		return nil, errors.New("skills: the file system is nil")
	}
	if err := checkPrefix(c.opts.Prefix); err != nil {
		return nil, err
	}
	s, err := scan(fsys, c.opts.Prefix)
	if err != nil {
		err = fmt.Errorf("skills: %w", err)
	}
	if s == nil {
		return nil, err
	}
	c.current.Store(s)
	c.seen.Store(new(time.Now()))
	if err == nil {
		c.warnMissing(s)
	}
	return c, err
}

// warnMissing logs that there is no skill, and a file whose name is almost that of a manifest,
// beside which there is none.
func (c *Catalog) warnMissing(s *snapshot) {
	for _, name := range slices.Sorted(maps.Keys(s.prints)) {
		if _, ok := s.prints[path.Join(path.Dir(name), manifest)]; !ok && strings.EqualFold(path.Base(name), manifest) {
			c.opts.Logger.Warn("skills: a file is not the manifest of a skill, because its name is not "+manifest, "file", name)
			return // it is the same mistake in all directories
		}
	}
	if len(s.sorted) == 0 {
		c.opts.Logger.Warn("skills: there is no skill: no directory has a file " + manifest)
	}
}

func checkPrefix(prefix string) error {
	const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._/"
	if prefix != "" && (!fs.ValidPath(prefix) || prefix == "." || strings.Trim(prefix, plain) != "") {
		return fmt.Errorf("skills: Options.Prefix is %q; it must be a path of letters, digits, -, . and _, such as acme/billing", prefix)
	}
	return nil
}

// mustBeMade panics unless the Catalog was created by New.
func (c *Catalog) mustBeMade() {
	made.Check(c != nil && c.fsys != nil, "skills: a Catalog", "New")
}

// Skills returns the entries of the skills, sorted by URI. They must not be modified.
func (c *Catalog) Skills() []*Skill {
	c.mustBeMade()
	return slices.Clone(c.current.Load().sorted)
}

// Reload reads the directory again. Like [New], it leaves out invalid skills and returns an
// error that names each. If the directory cannot be read, the catalog stays unchanged. Clients
// of the muxes on which the catalog is registered are
// notified of changed lists of resources, and of changed resources to which they subscribe.
func (c *Catalog) Reload() error {
	c.mustBeMade()
	c.reloading.Lock()
	defer c.reloading.Unlock()
	return c.reloadLocked()
}

func (c *Catalog) reloadLocked() error {
	c.seen.Store(new(time.Now()))
	next, err := scan(c.fsys, c.opts.Prefix)
	if next != nil {
		err = errors.Join(err, c.replace(next))
	}
	if c.failed = err; err != nil {
		c.failed, c.failedAt = fmt.Errorf("skills: %w", err), time.Now()
	}
	return c.failed
}

// reloadAfter reloads the directory for a reader that found s to be stale, unless that has
// already been done or has just failed.
func (c *Catalog) reloadAfter(s *snapshot) error {
	c.reloading.Lock()
	defer c.reloading.Unlock()
	switch {
	case c.current.Load() != s:
		return nil
	case c.failed != nil && time.Since(c.failedAt) < time.Second:
		return c.failed
	}
	return c.reloadLocked()
}

// replace makes next the current snapshot.
func (c *Catalog) replace(next *snapshot) error {
	before := c.current.Load()
	for i, mux := range c.muxes {
		if err := mux.Update(func(m *mcp.Mux) { c.changeResources(m, before, next) }); err != nil {
			for _, changed := range c.muxes[:i] {
				err = errors.Join(err, changed.Update(func(m *mcp.Mux) { c.changeResources(m, next, before) }))
			}
			return err
		}
	}
	c.current.Store(next)
	for uri, f := range next.files {
		if old := before.files[uri]; old != nil && old.Digest != f.Digest {
			for _, mux := range c.muxes {
				mux.ResourceUpdated(uri)
			}
		}
	}
	return nil
}

// Watch checks the directory periodically until ctx is done, so that changes are announced
// even without requests. Watch logs which skills are invalid. every is the
// time between checks; 0 or less means ten seconds.
func (c *Catalog) Watch(ctx context.Context, every time.Duration) {
	c.mustBeMade()
	if every <= 0 {
		every = 10 * time.Second
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			c.lookAgain(ctx)
		}
	}
}

// load returns the current snapshot, after checking the directory if the last check is too
// old. Only one request checks it; the others do not wait.
func (c *Catalog) load(ctx context.Context) *snapshot {
	last := c.seen.Load()
	if c.opts.Refresh > 0 && time.Since(*last) >= c.opts.Refresh && c.seen.CompareAndSwap(last, new(time.Now())) {
		c.lookAgain(ctx)
	}
	return c.current.Load()
}

// lookAgain reloads the directory if files were written, added or removed. It logs each
// problem once.
func (c *Catalog) lookAgain(ctx context.Context) {
	prints, err := stamps(c.fsys)
	if err == nil && maps.EqualFunc(prints, c.current.Load().prints, stamp.equal) {
		return
	}
	if err == nil {
		err = c.Reload()
	}
	c.logProblem(ctx, err)
}

func (c *Catalog) logProblem(ctx context.Context, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	c.reloading.Lock()
	isNew := c.logged != text
	c.logged = text
	c.reloading.Unlock()
	if isNew && err != nil {
		c.opts.Logger.WarnContext(ctx, "skills: the directory has changed; invalid skills are left out", "error", err)
	}
}

func (s stamp) equal(other stamp) bool {
	return s.size == other.size && s.modified.Equal(other.modified)
}
