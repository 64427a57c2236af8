// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import "strings"

// This file renames what a mounted server says of itself. What it returns is
// shared with that server, so it is copied, never changed.

func (mt *mount) renameTools(tools []*Tool) []*Tool {
	renamed := make([]*Tool, 0, len(tools))
	for _, t := range tools {
		if t == nil {
			continue
		}
		c := *t
		c.Name = mt.prefix + t.Name
		renamed = append(renamed, &c)
	}
	return renamed
}

func (mt *mount) renamePrompts(prompts []*Prompt) []*Prompt {
	renamed := make([]*Prompt, 0, len(prompts))
	for _, p := range prompts {
		if p == nil {
			continue
		}
		c := *p
		c.Name = mt.prefix + p.Name
		renamed = append(renamed, &c)
	}
	return renamed
}

func (mt *mount) renameResources(resources []*Resource) []*Resource {
	renamed := make([]*Resource, 0, len(resources))
	for _, r := range resources {
		if r == nil {
			continue
		}
		c := *r
		c.URI = mt.uriPrefix() + r.URI
		renamed = append(renamed, &c)
	}
	return renamed
}

func (mt *mount) renameTemplates(templates []*ResourceTemplate) []*ResourceTemplate {
	renamed := make([]*ResourceTemplate, 0, len(templates))
	for _, t := range templates {
		if t == nil {
			continue
		}
		c := *t
		c.URITemplate = mt.uriPrefix() + t.URITemplate
		renamed = append(renamed, &c)
	}
	return renamed
}

func (mt *mount) renameResult(res Result) Result {
	switch r := res.(type) {
	case *CallToolResult:
		c := *r
		c.Content = mt.renameContents(r.Content)
		return &c
	case *GetPromptResult:
		c := *r
		c.Messages = make([]*PromptMessage, len(r.Messages))
		for i, m := range r.Messages {
			if m != nil {
				renamed := *m
				renamed.Content = mt.renameContent(m.Content)
				c.Messages[i] = &renamed
			}
		}
		return &c
	case *ReadResourceResult:
		c := *r
		c.Contents = make([]*ResourceContents, len(r.Contents))
		for i, part := range r.Contents {
			c.Contents[i] = mt.renamePart(part)
		}
		return &c
	}
	return res
}

func (mt *mount) renameContents(list Contents) Contents {
	renamed := make(Contents, len(list))
	for i, c := range list {
		renamed[i] = mt.renameContent(c)
	}
	return renamed
}

func (mt *mount) renameContent(c Content) Content {
	switch c := c.(type) {
	case *ResourceLink:
		if fromTheWeb(c.URI) {
			return c
		}
		link := *c
		link.URI = mt.uriPrefix() + c.URI
		return &link
	case *EmbeddedResource:
		embedded := *c
		embedded.Resource = mt.renamePart(c.Resource)
		return &embedded
	}
	return c
}

func (mt *mount) renamePart(part *ResourceContents) *ResourceContents {
	if part == nil {
		return nil
	}
	c := *part
	c.URI = mt.uriPrefix() + part.URI
	return &c
}

// fromTheWeb reports whether a client fetches the URI by itself (server/resources).
func fromTheWeb(uri string) bool {
	return strings.HasPrefix(uri, "https://") || strings.HasPrefix(uri, "http://")
}
