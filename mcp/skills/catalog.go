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
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-psi/psi/internal/made"
	"github.com/go-psi/psi/mcp"
)

// Options configure [FS]. Nil means the zero Options.
type Options struct {
	// Prefix is the path before the directories, such as "acme/billing" for the skill
	// skill://acme/billing/refunds/SKILL.md. Its elements have letters, digits, -, . and _.
	Prefix string
	// PageSize is the number of skills or files on one page of a list. 0 means 100.
	PageSize int
	// Cache holds the cache hints of lists and files. The zero value means private and not
	// to be kept.
	Cache mcp.Cacheable
	// Refresh is how long the directory is not looked at again when requests come: changes
	// are seen that much later. 0 means a second; a negative value means that only Reload
	// and Watch find changes.
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
	seen    atomic.Pointer[time.Time] // when the directory was looked at last

	reloading sync.Mutex // serializes changes; held while the muxes are changed
	muxes     []*mcp.Mux
	failed    error     // why the last reload failed
	failedAt  time.Time // the directory is not read again at once
	logged    string    // the problem that was logged last
}

// FS reads and checks the skills of a file system: every directory with a file SKILL.md, at
// any depth. A skill within a skill is a skill of its own, and its files belong to both.
// Files and directories whose name begins with a dot are left out, as are symbolic links. A
// file system that is an embed.FS or the FS of an [os.Root] never leads out of itself.
//
// The error names every skill that is not valid: without front matter, with a name that is
// not that of its directory or is not unique, without a description, with more than
// [MaxFiles] files or more than [MaxBytes] bytes.
func FS(fsys fs.FS, opts *Options) (*Catalog, error) {
	c := &Catalog{fsys: fsys, opts: opts.withDefaults()}
	if fsys == nil {
		return nil, errors.New("skills: the file system is nil")
	}
	if err := checkPrefix(c.opts.Prefix); err != nil {
		return nil, err
	}
	s, err := scan(fsys, c.opts.Prefix)
	if err != nil {
		return nil, fmt.Errorf("skills: %w", err)
	}
	c.current.Store(s)
	c.seen.Store(new(time.Now()))
	return c, nil
}

func checkPrefix(prefix string) error {
	const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._/"
	if prefix != "" && (!fs.ValidPath(prefix) || prefix == "." || strings.Trim(prefix, plain) != "") {
		return fmt.Errorf("skills: Options.Prefix is %q; it must be a path of letters, digits, -, . and _, such as acme/billing", prefix)
	}
	return nil
}

// mustBeMade panics if FS did not make the catalog.
func (c *Catalog) mustBeMade() {
	made.Check(c != nil && c.fsys != nil, "skills: a Catalog", "FS")
}

// Skills returns the entries of the skills, by URI. They must not be changed.
func (c *Catalog) Skills() []*Skill {
	c.mustBeMade()
	return slices.Clone(c.current.Load().sorted)
}

// Reload reads the directory again. If a skill is not valid, it returns an error, and the
// catalog stays as it is. Clients of the muxes on which the catalog is registered are told
// what has changed: lists of resources, and resources that they subscribe to.
func (c *Catalog) Reload() error {
	c.mustBeMade()
	c.reloading.Lock()
	defer c.reloading.Unlock()
	return c.reloadLocked()
}

func (c *Catalog) reloadLocked() error {
	c.seen.Store(new(time.Now()))
	next, err := scan(c.fsys, c.opts.Prefix)
	if err == nil {
		err = c.replace(next)
	}
	if c.failed = err; err != nil {
		c.failed, c.failedAt = fmt.Errorf("skills: %w", err), time.Now()
	}
	return c.failed
}

// reloadAfter reloads the directory for a reader of s who has found that s is not true any
// more, unless that has been done already, or has just failed.
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

// replace makes a snapshot the current one.
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

// Watch looks at the directory again and again until ctx is done, so that changes are
// announced even if no request comes. It logs why a changed directory is not valid. Every is
// the time between two looks; 0 or less means ten seconds.
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

// load returns the current snapshot, after a look at the directory if the last one is too
// long ago. Only one request looks, and the others do not wait for it.
func (c *Catalog) load(ctx context.Context) *snapshot {
	last := c.seen.Load()
	if c.opts.Refresh > 0 && time.Since(*last) >= c.opts.Refresh && c.seen.CompareAndSwap(last, new(time.Now())) {
		c.lookAgain(ctx)
	}
	return c.current.Load()
}

// lookAgain reloads the directory if files were written, added or removed. A problem is
// logged once.
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
		c.opts.Logger.WarnContext(ctx, "skills: the directory has changed and is not valid; the skills stay as they were", "error", err)
	}
}

func (s stamp) equal(other stamp) bool {
	return s.size == other.size && s.modified.Equal(other.modified)
}
