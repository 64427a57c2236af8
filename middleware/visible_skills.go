// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"slices"

	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/skills"
)

// checkSkill rejects a request for the entry of a hidden skill.
func (v viewer) checkSkill(req *mcp.Request) (*mcp.Request, error) {
	var p skills.GetParams
	if err := req.Decode(&p); err != nil {
		return nil, err
	}
	if !v.readable(p.URI) {
		return nil, v.refusal(req, mcp.KindResource, p.URI)
	}
	return req, nil
}

// decodeSkills decodes a result of the extension into its own type. A connection returns it
// as an [mcp.EmptyResult].
func decodeSkills(method string, res mcp.Result) (mcp.Result, error) {
	var typed mcp.Result
	switch method {
	case skills.MethodList:
		typed = new(skills.ListResult)
	case skills.MethodGet:
		typed = new(skills.GetResult)
	case skills.MethodReadDirectory:
		typed = new(skills.ReadDirectoryResult)
	}
	untyped, ok := res.(*mcp.EmptyResult)
	if typed == nil || !ok {
		return res, nil
	}
	raw, err := strictjson.Marshal(untyped)
	if err == nil {
		err = strictjson.Unmarshal(raw, typed)
	}
	if err != nil {
		return nil, mcp.Errorf(mcp.CodeInternalError, "the result of %s cannot be read: %w", method, err)
	}
	return typed, nil
}

// keepSkills returns the visible skills, without their hidden files.
func (v viewer) keepSkills(list []*skills.Skill) []*skills.Skill {
	kept := keepVisible(v.ctx, list, func(s *skills.Skill) bool { return v.readable(s.URI) })
	for i, s := range kept {
		kept[i] = v.skill(s)
	}
	return kept
}

// skill returns a copy of a skill without its hidden files.
func (v viewer) skill(s *skills.Skill) *skills.Skill {
	if s == nil {
		return nil
	}
	c := *s
	c.Files = slices.DeleteFunc(slices.Clone(s.Files), func(f skills.File) bool { return v.ctx.Err() != nil || !v.readable(f.URI) })
	return &c
}

// filterDirectory removes hidden files from a directory of a skill. A directory that has
// only hidden files is treated as if it did not exist, unless it has several pages.
func (v viewer) filterDirectory(req *mcp.Request, r *skills.ReadDirectoryResult) (mcp.Result, error) {
	c := *r
	c.Resources = keepVisible(v.ctx, r.Resources, func(x *mcp.Resource) bool { return v.readable(x.URI) })
	var p skills.ReadDirectoryParams
	if err := req.Decode(&p); err != nil {
		return nil, err
	}
	if len(c.Resources) == 0 && len(r.Resources) > 0 && r.NextCursor == nil && p.Cursor == nil {
		return nil, v.refusal(req, mcp.KindResource, p.URI)
	}
	return &c, nil
}
