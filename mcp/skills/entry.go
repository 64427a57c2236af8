// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package skills

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"strings"
)

// directory returns the URI of the directory of the skill, without a trailing slash.
func (s *Skill) directory() string { return strings.TrimSuffix(s.URI, "/"+manifest) }

// Validate returns an error if an entry that came from a server is invalid: if its URI does
// not end in the name of the skill and SKILL.md, if files are listed twice, have no digest
// or are outside the directory, or if the skill exceeds [MaxFiles] or [MaxBytes].
func (s *Skill) Validate() error {
	if err := s.check(); err != nil {
		return fmt.Errorf("skills: the entry of %.200q is not valid: %w", s.URI, err)
	}
	return nil
}

func (s *Skill) check() error {
	scheme, rest, ok := strings.Cut(s.directory(), "://")
	if !ok || scheme == "" || s.directory() == s.URI {
		return fmt.Errorf("its URI does not end in /%s, as skill://refunds/%[1]s does", manifest)
	}
	dir, err := url.PathUnescape(path.Base(rest))
	if err != nil {
		return fmt.Errorf("its URI: %w", err)
	}
	if err := s.Frontmatter.check(dir); err != nil {
		return err
	}
	if s.Dynamic {
		return nil
	}
	_, err = s.names()
	return err
}

// names returns the files of the skill by their paths in its directory.
func (s *Skill) names() (map[string]File, error) {
	if len(s.Files) > MaxFiles {
		return nil, fmt.Errorf("it has %d files, and the limit is %d", len(s.Files), MaxFiles)
	}
	files := make(map[string]File, len(s.Files))
	size := int64(0)
	for _, f := range s.Files {
		name, err := s.nameOf(f)
		if err != nil {
			return nil, fmt.Errorf("the file %.200q: %w", f.URI, err)
		}
		if _, twice := files[name]; twice {
			return nil, fmt.Errorf("the file %q is listed twice", name)
		}
		if f.Size > MaxBytes-size {
			return nil, fmt.Errorf("its files are larger than %d bytes", MaxBytes)
		}
		files[name], size = f, size+f.Size
	}
	for name := range files {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, isFile := files[dir]; isFile {
				return nil, fmt.Errorf("%q is listed as a file and as a directory", dir)
			}
		}
	}
	if files[manifest].URI != s.URI {
		return nil, fmt.Errorf("its files do not include %s", s.URI)
	}
	return files, nil
}

// nameOf returns the path of a file in the directory of the skill.
func (s *Skill) nameOf(f File) (string, error) {
	escaped, inside := strings.CutPrefix(f.URI, s.directory()+"/")
	name, err := url.PathUnescape(escaped)
	switch {
	case !inside:
		return "", errors.New("it is not in the directory of the skill")
	case err != nil:
		return "", err
	case !fs.ValidPath(name) || name == "." || strings.Count(name, "/") != strings.Count(escaped, "/"):
		return "", errors.New("it is not the path of a file")
	case !isDigest(f.Digest):
		return "", fmt.Errorf("its digest is %.80q, not sha256: and 64 hexadecimal digits", f.Digest)
	case f.Size < 0:
		return "", fmt.Errorf("its size is %d", f.Size)
	}
	return name, nil
}

func isDigest(s string) bool {
	digits, ok := strings.CutPrefix(s, "sha256:")
	return ok && len(digits) == 64 && strings.Trim(digits, "0123456789abcdef") == ""
}
