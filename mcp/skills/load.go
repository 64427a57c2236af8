// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package skills

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/go-psi/psi/internal/made"
	"github.com/go-psi/psi/mcp"
)

// A VerificationError means that a file of a skill does not match the entry of the skill:
// it was changed or tampered with. Its content must not be used. To continue, get the
// current entry with [Get], ask the user again, and load the skill again.
type VerificationError struct {
	URI    string // of the file
	Reason string
}

func (e *VerificationError) Error() string {
	return fmt.Sprintf("skills: %.200q does not match the list: %s; if the skill has changed, get its entry again", e.URI, e.Reason)
}

// LoadOptions configure [Load]. Nil means the zero LoadOptions.
type LoadOptions struct {
	// AllowDynamic allows skills whose files are generated. Their files cannot be verified:
	// only the front matter is compared.
	AllowDynamic bool
}

// A Loaded is a skill in use. Its methods read files when they are called and cache
// verified files. A Loaded must be created by [Load] and is safe for concurrent use.
type Loaded struct {
	conn         *mcp.Conn
	skill        *Skill
	opts         LoadOptions
	instructions string
	files        map[string]File // by name; nil if the skill is dynamic

	mu   sync.Mutex
	kept map[string][]byte // by name
	size int64             // of kept
}

// Load reads the SKILL.md of a skill and verifies its size, its digest, and that its front
// matter equals the front matter of the entry, field by field. It reads no other file. The
// skill must not be modified afterwards. Load does not ask the user; see the package
// documentation.
//
// Load returns a [*VerificationError] if SKILL.md does not match the entry. opts may be
// nil.
func Load(ctx context.Context, c *mcp.Conn, skill *Skill, opts *LoadOptions) (*Loaded, error) {
	if skill == nil {
		return nil, errors.New("skills: Load: the skill is nil; List and Get return skills")
	}
	l := &Loaded{conn: c, skill: skill, kept: map[string][]byte{}}
	if opts != nil {
		l.opts = *opts
	}
	if err := skill.Validate(); err != nil {
		return nil, err
	}
	switch {
	case !skill.Dynamic:
		l.files, _ = skill.names()
	case !l.opts.AllowDynamic:
		return nil, fmt.Errorf("skills: the files of %q are generated, so that they cannot be verified; see LoadOptions.AllowDynamic", skill.URI)
	}
	text, err := l.ReadFile(ctx, manifest)
	if err != nil {
		return nil, err
	}
	f, err := ParseFrontmatter(text)
	if err != nil {
		return nil, &VerificationError{skill.URI, err.Error()}
	}
	if fields := f.differences(skill.Frontmatter); len(fields) > 0 {
		return nil, &VerificationError{skill.URI, fmt.Sprintf("its front matter differs in %.200q", strings.Join(fields, ", "))}
	}
	l.instructions = string(text)
	return l, nil
}

// mustBeMade panics unless the Loaded was created by Load.
func (l *Loaded) mustBeMade() {
	made.Check(l != nil && l.skill != nil, "skills: a Loaded", "Load")
}

// Skill returns the entry of the skill.
func (l *Loaded) Skill() *Skill {
	l.mustBeMade()
	return l.skill
}

// Instructions returns the text of SKILL.md, including its front matter.
func (l *Loaded) Instructions() string {
	l.mustBeMade()
	return l.instructions
}

// ReadFile reads and verifies a file. name is its path in the directory of the skill, such
// as "references/fees.md". If the entry does not list the file, the error matches both
// [*VerificationError] and [fs.ErrNotExist]. The caller owns the data.
func (l *Loaded) ReadFile(ctx context.Context, name string) ([]byte, error) {
	l.mustBeMade()
	if !fs.ValidPath(name) || name == "." {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrInvalid}
	}
	f := File{URI: l.skill.directory() + "/" + escape(name)}
	if listed, ok := l.files[name]; ok {
		f = listed
	} else if !l.skill.Dynamic {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.Join(fs.ErrNotExist, &VerificationError{f.URI, "the entry of the skill does not have it"})}
	}
	if data := l.keptFile(name); data != nil {
		return data, nil
	}
	data, err := read(ctx, l.conn, f.URI)
	if err != nil {
		return nil, err
	}
	if err := l.verify(f, data); err != nil {
		return nil, err
	}
	return data, l.keep(name, data)
}

// verify compares a file with its entry.
func (l *Loaded) verify(f File, data []byte) error {
	switch {
	case l.skill.Dynamic:
		return nil
	case int64(len(data)) != f.Size:
		return &VerificationError{f.URI, fmt.Sprintf("it has %d bytes, and %d were listed", len(data), f.Size)}
	case digestOf(data) != f.Digest:
		return &VerificationError{f.URI, "its digest is another one"}
	}
	return nil
}

func (l *Loaded) keptFile(name string) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if data, ok := l.kept[name]; ok {
		return append([]byte{}, data...)
	}
	return nil
}

// keep caches a file. It returns an error if the files of a dynamic skill exceed the
// limits.
func (l *Loaded) keep(name string, data []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, kept := l.kept[name]; kept {
		return nil
	}
	if int64(len(data)) > MaxBytes-l.size || len(l.kept) >= MaxFiles {
		return fmt.Errorf("skills: the files of %q that were read are more than %d, or larger than %d bytes", l.skill.URI, MaxFiles, MaxBytes)
	}
	l.kept[name] = append([]byte{}, data...)
	l.size += int64(len(data))
	return nil
}

// read reads a resource that consists of one file.
func read(ctx context.Context, c *mcp.Conn, uri string) ([]byte, error) {
	res, err := c.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		return nil, err
	}
	if len(res.Contents) != 1 || res.Contents[0].URI != uri {
		return nil, &VerificationError{uri, "the server has sent something else, or several files"}
	}
	if part := res.Contents[0]; part.Blob != nil {
		return part.Blob, nil
	}
	return []byte(res.Contents[0].Text), nil
}
