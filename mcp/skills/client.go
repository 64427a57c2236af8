// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package skills

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"

	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
)

// ErrNotSupported means that the server does not declare the extension, or not the
// requested method.
var ErrNotSupported = errors.New("skills: the server does not declare the extension " + Extension + ", or not this method of it")

// maxPages bounds the pages of a list, because a server can return pages forever.
const maxPages = 1000

// List yields the skills of all pages of skills/list. It reads no files and does not
// validate the entries; use [Load] or [Skill.Validate] for that. A server may have skills
// that it does not list; use [Get] for those. If an error occurs, List yields it with a nil
// skill and stops. The error is [ErrNotSupported] if the server has no skills.
func List(ctx context.Context, c *mcp.Conn) iter.Seq2[*Skill, error] {
	return func(yield func(*Skill, error) bool) {
		err := eachPage(func(cursor *string) (next *string, more bool, err error) {
			res, err := call[ListResult](ctx, c, MethodList, &mcp.ListParams{Cursor: cursor})
			if err != nil {
				return nil, false, err
			}
			return res.NextCursor, yieldAll(res.Skills, yield), nil
		})
		if err != nil {
			yield(nil, err)
		}
	}
}

// ReadDirectory yields the files and directories in a directory of skills, from all pages
// of resources/directory/read. uri is a URI that ReadDirectory has yielded before, or the
// URI of a SKILL.md without its last segment. Directories have the MIME type
// inode/directory. If an error occurs, ReadDirectory yields it with a nil resource and
// stops. The error is [ErrNotSupported] if the server cannot read directories.
func ReadDirectory(ctx context.Context, c *mcp.Conn, uri string) iter.Seq2[*mcp.Resource, error] {
	return func(yield func(*mcp.Resource, error) bool) {
		err := eachPage(func(cursor *string) (next *string, more bool, err error) {
			res, err := call[ReadDirectoryResult](ctx, c, MethodReadDirectory, &ReadDirectoryParams{URI: uri, Cursor: cursor})
			if err != nil {
				return nil, false, err
			}
			return res.NextCursor, yieldAll(res.Resources, yield), nil
		})
		if err != nil {
			yield(nil, err)
		}
	}
}

// yieldAll yields the items of a page and reports whether more are wanted.
func yieldAll[T any](items []*T, yield func(*T, error) bool) bool {
	for _, item := range items {
		if item != nil && !yield(item, nil) {
			return false
		}
	}
	return true
}

// eachPage calls read with the cursor of each page, nil for the first, until there is no
// next page or no more items are wanted.
func eachPage(read func(cursor *string) (next *string, more bool, err error)) error {
	var cursor *string
	seen := map[[sha256.Size]byte]bool{} // hashes, because cursors may be long
	for range maxPages {
		next, more, err := read(cursor)
		if err != nil || next == nil || !more {
			return err
		}
		sum := sha256.Sum256([]byte(*next))
		if seen[sum] {
			return mcp.ErrRepeatedCursor
		}
		seen[sum] = true
		cursor = next
	}
	return mcp.ErrTooManyPages
}

// Get returns the entry of a skill, whether or not it is listed. uri is the URI of its
// SKILL.md. Use Get to get the current entry of a skill that has changed.
func Get(ctx context.Context, c *mcp.Conn, uri string) (*Skill, error) {
	res, err := call[GetResult](ctx, c, MethodGet, &GetParams{URI: uri})
	if err != nil {
		return nil, err
	}
	if res.Skill == nil || res.Skill.URI != uri {
		return nil, fmt.Errorf("skills: the server's answer to %s is not the entry of %q: %w", MethodGet, uri, mcp.ErrUnreadable)
	}
	return res.Skill, nil
}

// call sends a request of the extension.
func call[R any](ctx context.Context, c *mcp.Conn, method string, params any) (res R, err error) {
	if !declares(c, method) {
		return res, ErrNotSupported
	}
	return mcp.Do[R](ctx, c, method, params)
}

// declares reports whether the server supports a method of the extension.
func declares(c *mcp.Conn, method string) bool {
	caps := c.Server().Capabilities
	if caps == nil || caps.Extensions[Extension] == nil {
		return false
	}
	var settings struct {
		DirectoryRead bool `json:"directoryRead"`
	}
	return method != MethodReadDirectory || strictjson.Unmarshal(caps.Extensions[Extension], &settings) == nil && settings.DirectoryRead
}
