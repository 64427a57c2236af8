// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
	"encoding/base64"
	"fmt"

	"github.com/go-psi/psi/internal/bufpool"
	"github.com/go-psi/psi/mcp"
)

// MaxResult refuses results that are larger than so many bytes as a response, in the
// encoding of the caller's revision. In place of a tool's result there is a failed
// one (isError) that tells the model how much it was and how much it may be, so that
// it can ask for less; everything else becomes an error with [mcp.CodeTooLarge].
//
// It has no effect on what handlers use to make a result. Most results are not
// encoded to be measured: the lengths of texts, data and structured content decide
// where they can. MaxResult panics if bytes is not positive.
func MaxResult(bytes int) mcp.Middleware {
	mustBePositive("MaxResult: the size", bytes)
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			res, err := next.ServeMCP(ctx, req)
			if err != nil || res == nil || fits(req, res, bytes) {
				return res, err
			}
			text := fmt.Sprintf("the result is larger than the %d bytes that are allowed; ask for less of it", bytes)
			if _, ok := res.(*mcp.CallToolResult); ok {
				return mcp.ErrorResult(text), nil
			}
			return nil, mcp.Errorf(mcp.CodeTooLarge, "%s", text)
		})
	}
}

// fits reports whether a response is at most so many bytes.
func fits(req *mcp.Request, res mcp.Result, bytes int) bool {
	size := sizeOf(res)
	if size.least > bytes {
		return false
	}
	if size.known && size.most <= bytes && size.most+encodedLen(req, emptyResult) <= bytes {
		return true
	}
	return encodedLen(req, res) <= bytes
}

var emptyResult = &mcp.CallToolResult{}

func encodedLen(req *mcp.Request, res mcp.Result) int {
	buf := bufpool.Get()
	defer buf.Put()
	buf.B = mcp.AppendResponse(buf.B, req, res, nil)
	return len(buf.B)
}

// size is what can be said of a result without encoding it: of that by which its
// response is longer than an empty one.
type size struct {
	least int // in every revision
	most  int
	known bool // whether most is known
}

const (
	frame  = 256 // more than what is around the members of a result and of a block
	escape = 6   // bytes that a byte of a string is encoded in at most
)

// sizeOf looks at the parts that can be large.
func sizeOf(res mcp.Result) size {
	s := size{most: frame, known: true}
	switch r := res.(type) {
	case *mcp.CallToolResult:
		s.base(&r.ResultBase)
		s.most += len(r.StructuredContent) // which not every revision has
		for _, c := range r.Content {
			s.content(c)
		}
	case *mcp.ReadResourceResult:
		s.base(&r.ResultBase)
		for _, c := range r.Contents {
			s.resource(c)
		}
	case *mcp.GetPromptResult:
		s.base(&r.ResultBase)
		s.add(len(r.Description), escape)
		for _, m := range r.Messages {
			if m == nil {
				s.known = false
				continue
			}
			s.known = s.known && len(m.Extra) == 0
			s.most += len(m.Role) * escape
			s.content(m.Content)
		}
	default:
		s.known = false
	}
	return s
}

// base is not known if there is something to it.
func (s *size) base(b *mcp.ResultBase) {
	s.known = s.known && len(b.Meta) == 0 && len(b.Extra) == 0
}

func (s *size) add(n, factor int) {
	s.least += n
	s.most += frame + n*factor
}

func (s *size) content(c mcp.Content) {
	switch c := c.(type) {
	case *mcp.TextContent:
		s.add(len(c.Text), escape)
		s.known = s.known && c.Annotations == nil && len(c.Meta) == 0 && len(c.Extra) == 0
	case *mcp.ImageContent:
		s.data(c.Data, c.MIMEType)
		s.known = s.known && c.Annotations == nil && len(c.Meta) == 0 && len(c.Extra) == 0
	case *mcp.AudioContent:
		least := s.least // not every revision has sounds
		s.data(c.Data, c.MIMEType)
		s.least = least
		s.known = s.known && c.Annotations == nil && len(c.Meta) == 0 && len(c.Extra) == 0
	case *mcp.EmbeddedResource:
		s.resource(c.Resource)
		s.known = s.known && c.Annotations == nil && len(c.Meta) == 0 && len(c.Extra) == 0
	default:
		s.known = false
	}
}

func (s *size) data(data []byte, mimeType string) {
	s.add(base64.StdEncoding.EncodedLen(len(data)), 1)
	s.add(len(mimeType), escape)
}

func (s *size) resource(c *mcp.ResourceContents) {
	if c == nil {
		s.known = false
		return
	}
	s.add(len(c.URI), escape)
	s.data(c.Blob, c.MIMEType)
	if c.Blob == nil {
		s.add(len(c.Text), escape)
	}
	s.known = s.known && len(c.Meta) == 0 && len(c.Extra) == 0
}
