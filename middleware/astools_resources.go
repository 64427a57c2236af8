// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/go-psi/psi/mcp"
)

// ResourcesAsTools adds the tools list_resources and read_resource to a server, for hosts that
// know tools only. Resources stay what they are for all other hosts.
//
// Use it around a whole mux or a mount. A call becomes a request of the caller for the list or
// the resource, and passes the middleware inside: what [Visible] hides is not listed and not
// read, and [RequireScopesFunc] asks for the scopes of the resource. Tools of the server with
// these names are hidden. Text, images and audio become content of these types; several
// contents are named by their URIs.
func ResourcesAsTools() mcp.Middleware {
	return addTools(func(next mcp.Handler) []addedTool {
		return []addedTool{listResources(next), readResource(next)}
	})
}

// resourcePage is the result of list_resources. Pages of templates follow those of resources.
type resourcePage struct {
	Resources  []*mcp.Resource         `json:"resources"`
	Templates  []*mcp.ResourceTemplate `json:"resourceTemplates"`
	NextCursor string                  `json:"nextCursor,omitempty"`
}

// Prefixes of the cursors of list_resources.
const (
	ofResources = "r:"
	ofTemplates = "t:"
)

func listResources(next mcp.Handler) addedTool {
	return newAddedTool[cursorArgs](&mcp.Tool{
		Name: "list_resources", Title: "List resources",
		Description: "List the resources of this server: documents and other data that read_resource reads by their URIs. " +
			"A template is the URI of many resources, with variables in braces to be replaced.",
		OutputSchema: json.RawMessage(`{"type":"object","required":["resources","resourceTemplates"],"properties":{` +
			`"resources":{"type":"array","items":{"type":"object"}},"resourceTemplates":{"type":"array","items":{"type":"object"}},` + cursorSchema + `}}`),
	}, func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		in, err := args[cursorArgs](req)
		if err != nil {
			return nil, err
		}
		page := resourcePage{Resources: []*mcp.Resource{}, Templates: []*mcp.ResourceTemplate{}}
		at, isTemplates := strings.CutPrefix(in.Cursor, ofTemplates)
		if !isTemplates {
			if failed, err := page.addResources(ctx, next, req, strings.TrimPrefix(in.Cursor, ofResources)); failed != nil || err != nil {
				return failed, err
			}
		}
		if page.NextCursor == "" {
			if failed, err := page.addTemplates(ctx, next, req, at, isTemplates); failed != nil || err != nil {
				return failed, err
			}
		}
		return structured(page)
	})
}

func (p *resourcePage) addResources(ctx context.Context, next mcp.Handler, req *mcp.Request, cursor string) (failed mcp.Result, err error) {
	res, failed, err := ask(ctx, next, req, mcp.MethodListResources, pageAt(cursor, cursor != ""))
	list, ok := res.(*mcp.ListResourcesResult)
	if !ok {
		return failed, cmp.Or(err, unexpected(failed, res))
	}
	for _, r := range list.Resources {
		if r != nil {
			c := *r
			c.Icons = nil // they are for people
			p.Resources = append(p.Resources, &c)
		}
	}
	if list.NextCursor != nil {
		p.NextCursor = ofResources + *list.NextCursor
	}
	return nil, nil
}

func (p *resourcePage) addTemplates(ctx context.Context, next mcp.Handler, req *mcp.Request, cursor string, isNext bool) (failed mcp.Result, err error) {
	res, failed, err := ask(ctx, next, req, mcp.MethodListResourceTemplates, pageAt(cursor, isNext))
	list, ok := res.(*mcp.ListResourceTemplatesResult)
	if !ok {
		return failed, cmp.Or(err, unexpected(failed, res))
	}
	for _, t := range list.ResourceTemplates {
		if t != nil {
			c := *t
			c.Icons = nil
			p.Templates = append(p.Templates, &c)
		}
	}
	if list.NextCursor != nil {
		p.NextCursor = ofTemplates + *list.NextCursor
	}
	return nil, nil
}

type uriArgs struct {
	URI string `json:"uri" jsonschema:"minLength=1,description=The URI of the resource"`
}

func readResource(next mcp.Handler) addedTool {
	return newAddedTool[uriArgs](&mcp.Tool{
		Name: "read_resource", Title: "Read a resource",
		Description: "Read a resource of this server by its URI, as list_resources returns it or made of a template.",
	}, func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		in, err := args[uriArgs](req)
		if err != nil {
			return nil, err
		}
		res, failed, err := ask(ctx, next, req, mcp.MethodReadResource, in)
		read, ok := res.(*mcp.ReadResourceResult)
		if failed != nil || err != nil || !ok {
			return cmp.Or(failed, res), err // for example, a question
		}
		out := &mcp.CallToolResult{ResultBase: mcp.ResultBase{Meta: read.Meta}, Content: mcp.Contents{}}
		for _, part := range read.Contents {
			if part == nil {
				continue
			}
			if len(read.Contents) > 1 {
				out.Content = append(out.Content, mcp.Text(part.URI))
			}
			out.Content = append(out.Content, contentOf(part))
		}
		return out, nil
	})
}

// contentOf returns a part of a resource as a content block of a tool.
func contentOf(part *mcp.ResourceContents) mcp.Content {
	switch {
	case part.Blob == nil:
		return mcp.Text(part.Text)
	case strings.HasPrefix(part.MIMEType, "image/"):
		return &mcp.ImageContent{Data: part.Blob, MIMEType: part.MIMEType}
	case strings.HasPrefix(part.MIMEType, "audio/"):
		return &mcp.AudioContent{Data: part.Blob, MIMEType: part.MIMEType}
	}
	return &mcp.EmbeddedResource{Resource: part}
}
