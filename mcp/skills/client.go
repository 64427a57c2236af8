// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package skills

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
)

// ErrNotSupported means that the server does not declare the extension.
var ErrNotSupported = errors.New("skills: the server does not declare the extension " + Extension)

// maxPages bounds the pages of a list. A server can page on for ever.
const maxPages = 1000

// List yields the skills of all pages of skills/list. It reads no file, and does not check
// the entries: [Load] does, or [Skill.Validate]. A server may have skills that it does not
// list, for which there is [Get]. List yields an error with a nil skill, and stops then; it is
// [ErrNotSupported] if the server has no skills.
func List(ctx context.Context, c *mcp.Conn) iter.Seq2[*Skill, error] {
	return func(yield func(*Skill, error) bool) {
		var p mcp.ListParams
		seen := map[string]bool{}
		for range maxPages {
			var res ListResult
			if err := call(ctx, c, MethodList, &p, &res); err != nil {
				yield(nil, err)
				return
			}
			for _, skill := range res.Skills {
				if skill != nil && !yield(skill, nil) {
					return
				}
			}
			if res.NextCursor == nil {
				return
			}
			if seen[*res.NextCursor] {
				yield(nil, mcp.ErrRepeatedCursor)
				return
			}
			seen[*res.NextCursor] = true
			p.Cursor = res.NextCursor
		}
		yield(nil, mcp.ErrTooManyPages)
	}
}

// Get returns the entry of the skill with the URI of a SKILL.md, whether or not it is listed.
// Use it to get the present entry of a skill that has changed.
func Get(ctx context.Context, c *mcp.Conn, uri string) (*Skill, error) {
	var res GetResult
	if err := call(ctx, c, MethodGet, &GetParams{URI: uri}, &res); err != nil {
		return nil, err
	}
	if res.Skill == nil || res.Skill.URI != uri {
		return nil, fmt.Errorf("skills: the server's answer to %s is not the entry of %q: %w", MethodGet, uri, mcp.ErrUnreadable)
	}
	return res.Skill, nil
}

// call sends a request of the extension, and decodes its result into res.
func call(ctx context.Context, c *mcp.Conn, method string, params, res any) error {
	caps := c.Server().Capabilities
	if caps == nil || caps.Extensions[Extension] == nil {
		return ErrNotSupported
	}
	req, err := mcp.NewRequest(method, params)
	if err != nil {
		return err
	}
	got, err := core.Send(ctx, c, req)
	if err != nil {
		return err
	}
	raw, err := strictjson.Marshal(got)
	if err == nil {
		err = strictjson.Unmarshal(raw, res)
	}
	if err != nil {
		return fmt.Errorf("skills: the server's answer to %s: %w: %w", method, mcp.ErrUnreadable, err)
	}
	return nil
}
