// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import "strings"

// This file renames what a mounted server returns, which is shared with that server:
// it is copied, never changed. Its lists are in mount_lists.go.

// renameResult returns a copy of a result with the URIs that lead back through the
// mount, and without the identity of the mounted server: the caller's server is the
// outermost mux, in every era.
func (mt *mount) renameResult(res Result) Result {
	switch r := res.(type) {
	case *CallToolResult:
		c := *r
		c.Meta = withoutKey(r.Meta, MetaServerInfo)
		c.Content = mt.renameContents(r.Content)
		return &c
	case *GetPromptResult:
		c := *r
		c.Meta = withoutKey(r.Meta, MetaServerInfo)
		c.Messages = mt.renameMessages(r.Messages)
		return &c
	case *ReadResourceResult:
		c := *r
		c.Meta = withoutKey(r.Meta, MetaServerInfo)
		c.Contents = make([]*ResourceContents, len(r.Contents))
		for i, part := range r.Contents {
			c.Contents[i] = mt.renamePart(part)
		}
		return &c
	case *CompleteResult:
		c := *r
		c.Meta = withoutKey(r.Meta, MetaServerInfo)
		return &c
	case *InputRequired:
		c := *r
		c.Meta = withoutKey(r.Meta, MetaServerInfo)
		return &c
	case *EmptyResult: // of an extension
		c := *r
		c.Meta = withoutKey(r.Meta, MetaServerInfo)
		return &c
	}
	return res
}

func (mt *mount) renameMessages(messages []*PromptMessage) []*PromptMessage {
	renamed := make([]*PromptMessage, len(messages))
	for i, m := range messages {
		if m != nil {
			c := *m
			c.Content = mt.renameContent(m.Content)
			renamed[i] = &c
		}
	}
	return renamed
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
		link.URI = mt.uriPrefix + c.URI
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
	c.URI = mt.uriPrefix + part.URI
	return &c
}

// fromTheWeb reports whether a client fetches the URI by itself (server/resources).
func fromTheWeb(uri string) bool {
	return strings.HasPrefix(uri, "https://") || strings.HasPrefix(uri, "http://")
}
