// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package skills

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
)

// Extension is the identifier of the extension, as declared by servers.
const Extension = "io.modelcontextprotocol/skills"

// The methods of the extension.
const (
	MethodList          = "skills/list"
	MethodGet           = "skills/get"
	MethodReadDirectory = "resources/directory/read"
)

// Limits of one skill. Servers enforce them, and clients accept skills up to them.
const (
	MaxFiles = 512      // including SKILL.md
	MaxBytes = 16 << 20 // of all files
)

// manifest is the name of the file that makes a directory a skill.
const manifest = "SKILL.md"

// A Skill is the entry of a skill: its front matter and the list of its files.
type Skill struct {
	// URI is the URI of SKILL.md.
	URI string
	// Frontmatter is the front matter of SKILL.md, with all its fields.
	Frontmatter Frontmatter
	// Files lists all files of the skill, including SKILL.md. It is nil if Dynamic is true.
	Files []File
	// Dynamic reports that the files are generated and therefore have no digests.
	Dynamic bool
	// Extra holds unknown members of the entry.
	Extra mcp.Extra
}

// A File is one file of a skill.
type File struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"` // "sha256:" and 64 lowercase hexadecimal digits
	Size   int64  `json:"size"`   // in bytes
}

// Frontmatter is the front matter of a SKILL.md: fields with JSON values.
type Frontmatter map[string]json.RawMessage

// Name returns the name of the skill. It is not unique among servers.
func (f Frontmatter) Name() string { return f.text("name") }

// Description returns a text for the model that says what the skill does and when to use
// it.
func (f Frontmatter) Description() string { return f.text("description") }

func (f Frontmatter) text(field string) (s string) {
	f.Get(field, &s)
	return s
}

// Get decodes a field into v, which must be a pointer, and reports whether the field exists
// and fits v.
func (f Frontmatter) Get(field string, v any) bool {
	raw, ok := f[field]
	return ok && strictjson.Unmarshal(raw, v) == nil
}

const dynamic = "dynamic"

// wireSkill is the wire format of a Skill.
type wireSkill struct {
	URI         string          `json:"uri"`
	Frontmatter Frontmatter     `json:"frontmatter"`
	Resources   json.RawMessage `json:"resources"`
	Extra       mcp.Extra       `json:",inline,embed"`
}

// MarshalJSON implements json.Marshaler.
func (s Skill) MarshalJSON() ([]byte, error) {
	w := wireSkill{URI: s.URI, Frontmatter: s.Frontmatter, Extra: s.Extra}
	var files any = s.Files
	switch {
	case s.Dynamic:
		files = dynamic
	case s.Files == nil:
		files = []File{}
	}
	var err error
	if w.Resources, err = strictjson.Marshal(files); err != nil {
		return nil, err
	}
	return strictjson.Marshal(&w)
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *Skill) UnmarshalJSON(data []byte) error {
	var w wireSkill
	if err := strictjson.Unmarshal(data, &w); err != nil {
		return err
	}
	*s = Skill{URI: w.URI, Frontmatter: w.Frontmatter, Extra: w.Extra}
	switch {
	case string(w.Resources) == `"`+dynamic+`"`:
		s.Dynamic = true
	case len(w.Resources) == 0 || w.Resources[0] != '[':
		return fmt.Errorf("the resources of the skill %.200q are neither a list nor %q", w.URI, dynamic)
	default:
		return strictjson.Unmarshal(w.Resources, &s.Files)
	}
	return nil
}

// Digest returns a digest of the content of the skill. It changes if a file or the front
// matter changes. A host stores it with the consent of its user, and asks again when it
// differs. It is "" if the skill is Dynamic, because the content of a dynamic skill is
// unknown until it is read.
func (s *Skill) Digest() string {
	if s.Dynamic {
		return ""
	}
	files := slices.Clone(s.Files)
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.URI, b.URI) })
	return digestOf(strictjson.MustMarshal([]any{s.URI, s.Frontmatter.canonical(), files}))
}

// digestOf returns the digest of data in the format of the extension.
func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// A ListResult is the result of skills/list.
type ListResult struct {
	mcp.ResultBase
	mcp.Cacheable
	mcp.Page

	Skills []*Skill `json:"skills"`
}

// GetParams are the params of skills/get.
type GetParams struct {
	URI  string   `json:"uri"` // of a SKILL.md
	Meta mcp.Meta `json:"_meta,omitempty"`
}

// A GetResult is the result of skills/get.
type GetResult struct {
	mcp.ResultBase
	mcp.Cacheable

	Skill *Skill `json:"skill"`
}

// ReadDirectoryParams are the params of resources/directory/read.
type ReadDirectoryParams struct {
	URI    string   `json:"uri"`             // of a directory, without a trailing slash
	Cursor *string  `json:"cursor,omitzero"` // nil means the first page
	Meta   mcp.Meta `json:"_meta,omitempty"`
}

// A ReadDirectoryResult is the result of resources/directory/read: the files and directories
// in a directory. Directories have the MIME type inode/directory.
type ReadDirectoryResult struct {
	mcp.ResultBase
	mcp.Cacheable
	mcp.Page

	Resources []*mcp.Resource `json:"resources"`
}
