// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package skills

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-psi/psi/internal/filetype"
)

// A snapshot is the state of a directory of skills when it was read. It is immutable.
type snapshot struct {
	skills map[string]*Skill  // by URI
	byName map[string]*Skill  // by name, which is unique
	sorted []*Skill           // by URI
	files  map[string]*file   // files of skills, by URI
	dirs   map[string][]child // by URI; sorted by name
	prints map[string]stamp   // stamps of all files, by path
}

// A file is a file of a skill.
type file struct {
	File

	path string // in the file system
	kind string // MIME type
	of   *Skill // the skill, if the file is its SKILL.md
}

// A child is a file or a directory in a directory.
type child struct {
	name string
	uri  string
	file *file // nil for a directory
}

// A stamp changes when a file is written, unless it is written within the resolution of the
// clock and keeps its size.
type stamp struct {
	size     int64
	modified time.Time
}

const (
	scheme = "skill://"
	// maxEntries bounds the number of files and directories that are examined.
	maxEntries = 65_536
	// maxDirectories bounds the nesting of directories.
	maxDirectories = 32
)

// stamps returns the stamps of all regular files below the root. It skips names that begin
// with a dot, and anything that is neither a directory nor a regular file, such as a link.
func stamps(fsys fs.FS) (map[string]stamp, error) {
	found := map[string]stamp{}
	entries := -1 // the root does not count
	err := fs.WalkDir(fsys, ".", func(name string, e fs.DirEntry, err error) error {
		entries++
		switch {
		case err != nil:
			return err
		case entries > maxEntries:
			return fmt.Errorf("there are more than %d files and directories", maxEntries)
		case name == ".":
			return nil
		case strings.HasPrefix(e.Name(), "."):
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case strings.Count(name, "/") > maxDirectories:
			return fmt.Errorf("%s: it is more than %d directories deep", name, maxDirectories)
		case !e.Type().IsRegular():
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		found[name] = stamp{info.Size(), info.ModTime()}
		return nil
	})
	return found, err
}

// scan reads the skills below the root of a file system. prefix is the beginning of the
// paths in their URIs. It leaves out invalid skills, and problems names each. The snapshot is
// nil if the directory cannot be read.
func scan(fsys fs.FS, prefix string) (s *snapshot, problems error) {
	prints, err := stamps(fsys)
	if err != nil {
		return nil, err
	}
	s = &snapshot{skills: map[string]*Skill{}, byName: map[string]*Skill{}, files: map[string]*file{}, dirs: map[string][]child{}, prints: prints}
	paths := slices.Sorted(maps.Keys(prints))
	read := map[string]*file{}
	for _, name := range paths {
		if path.Base(name) != manifest {
			continue
		}
		if err := s.addSkill(fsys, prefix, path.Dir(name), paths, read); err != nil {
			problems = errors.Join(problems, fmt.Errorf("%s: %w", name, err))
		}
	}
	s.sorted = slices.SortedFunc(maps.Values(s.skills), func(a, b *Skill) int { return strings.Compare(a.URI, b.URI) })
	s.sortChildren()
	return s, problems
}

// addSkill adds the skill in a directory, or nothing of it if it is invalid.
func (s *snapshot) addSkill(fsys fs.FS, prefix, dir string, paths []string, read map[string]*file) error {
	if dir == "." {
		return fmt.Errorf("a skill must be in a directory that has its name, such as refunds/%s", manifest)
	}
	text, err := readFile(fsys, path.Join(dir, manifest))
	if err != nil {
		return err
	}
	if !utf8.Valid(text) { // it would be sent as binary data
		return errors.New("it is not valid UTF-8")
	}
	skill := &Skill{URI: uriOf(prefix, path.Join(dir, manifest))}
	if skill.Frontmatter, err = ParseFrontmatter(text); err != nil {
		return err
	}
	if err := skill.Frontmatter.checkOwn(path.Base(dir)); err != nil {
		return err
	}
	first, _ := slices.BinarySearch(paths, dir+"/")
	for _, name := range paths[first:] {
		if !strings.HasPrefix(name, dir+"/") {
			break
		}
		if len(skill.Files) == MaxFiles {
			return fmt.Errorf("it has more than %d files", MaxFiles)
		}
		if read[name] == nil {
			if read[name], err = describe(fsys, prefix, name); err != nil {
				return err
			}
		}
		skill.Files = append(skill.Files, read[name].File)
	}
	if err := skill.check(); err != nil {
		return err
	}
	name := skill.Frontmatter.Name()
	if other := s.byName[name]; other != nil {
		return fmt.Errorf("the name %q is already used by %s", name, other.URI)
	}
	s.skills[skill.URI], s.byName[name] = skill, skill
	read[path.Join(dir, manifest)].of = skill
	for _, f := range skill.Files {
		name, _ := skill.nameOf(f)
		s.addFile(prefix, read[path.Join(dir, name)])
	}
	return nil
}

// checkOwn is check for a skill that is served. It also rejects what hosts may reject, in
// some cases together with all other skills of the server.
func (f Frontmatter) checkOwn(dir string) error {
	var metadata map[string]string
	if f["metadata"] != nil && !f.Get("metadata", &metadata) {
		return errors.New(`metadata must have texts as values: put numbers, dates and the like into quotes, as in version: "1.0"`)
	}
	for key := range metadata {
		if strings.HasPrefix(key, "io.modelcontextprotocol/") {
			return fmt.Errorf("the key %q of metadata is reserved for extensions of the protocol", key)
		}
	}
	if n := utf8.RuneCountInString(f.text("compatibility")); f["compatibility"] != nil && (n == 0 || n > maxCompatibility) {
		return fmt.Errorf("compatibility must be a text of 1 to %d characters", maxCompatibility)
	}
	return f.check(dir)
}

// addFile adds a file of a skill, which may also belong to another skill.
func (s *snapshot) addFile(prefix string, f *file) {
	if s.files[f.URI] == nil {
		s.files[f.URI] = f
		s.addChild(prefix, f.path, f)
	}
}

// addChild adds a file to its directory, and the directory to its parent.
func (s *snapshot) addChild(prefix, name string, f *file) {
	full := path.Join(prefix, name)
	for {
		dir, base := path.Split(full)
		if dir == "" {
			return // its parent has no URI
		}
		dir = path.Clean(dir)
		siblings, known := s.dirs[uriOf("", dir)]
		s.dirs[uriOf("", dir)] = append(siblings, child{base, uriOf("", full), f})
		if known {
			return
		}
		full, f = dir, nil
	}
}

func (s *snapshot) sortChildren() {
	for _, children := range s.dirs {
		slices.SortFunc(children, func(a, b child) int { return strings.Compare(a.name, b.name) })
	}
}

// describe reads and describes a file.
func describe(fsys fs.FS, prefix, name string) (*file, error) {
	data, err := readFile(fsys, name)
	if err != nil {
		return nil, err
	}
	f := &file{File: File{URI: uriOf(prefix, name), Digest: digestOf(data), Size: int64(len(data))}, path: name, kind: filetype.ByName(name)}
	if f.kind == "" {
		f.kind = filetype.Of(data)
	}
	return f, nil
}

// uriOf returns the URI of a path.
func uriOf(prefix, name string) string {
	name = path.Join(prefix, name)
	if name == "." {
		name = ""
	}
	return scheme + (&url.URL{Path: name}).EscapedPath()
}

// readFile reads a file that is not larger than the limit for skills.
func readFile(fsys fs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, fmt.Errorf("%s is no longer a regular file", name))
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err == nil && len(data) > MaxBytes {
		err = fmt.Errorf("%s is larger than %d bytes", name, MaxBytes)
	}
	return data, err
}
