// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package debug

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"slices"

	"github.com/go-psi/psi/mcp"
)

// A block is a part of a result in human-readable form.
type block struct {
	Kind  string // text, json, image, audio, link or note
	Label string
	Text  string
	URI   string
	Data  template.URL // of an image or audio: a data URL of a known type
}

// Limits on what is shown of a result.
const (
	maxBlocks = 100
	maxMedia  = 4 << 20 // bytes of one image or audio
)

// mediaTypes are the media types that are shown. None of them can contain a script.
var mediaTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp", "audio/wav", "audio/mpeg", "audio/ogg", "audio/mp4"}

// blocksOf returns the blocks of a result.
func blocksOf(res mcp.Result) (blocks []block) {
	switch res := res.(type) {
	case *mcp.CallToolResult:
		if res.StructuredContent != nil {
			blocks = append(blocks, block{Kind: "json", Label: "structured content", Text: pretty(res.StructuredContent)})
		}
		for _, c := range first(res.Content) {
			blocks = append(blocks, blockOf(c))
		}
	case *mcp.GetPromptResult:
		for _, m := range first(res.Messages) {
			b := blockOf(m.Content)
			b.Label = string(m.Role) + ": " + b.Label
			blocks = append(blocks, b)
		}
	case *mcp.ReadResourceResult:
		for _, c := range first(res.Contents) {
			blocks = append(blocks, resourceBlock(c))
		}
	}
	return blocks
}

func first[T any](list []T) []T { return list[:min(len(list), maxBlocks)] }

func blockOf(c mcp.Content) block {
	switch c := c.(type) {
	case *mcp.TextContent:
		return textBlock("text", c.Text)
	case *mcp.ImageContent:
		return mediaBlock("image", c.MIMEType, c.Data)
	case *mcp.AudioContent:
		return mediaBlock("audio", c.MIMEType, c.Data)
	case *mcp.ResourceLink:
		return block{Kind: "link", Label: "resource", Text: cmp.Or(c.Title, c.Name), URI: c.URI}
	case *mcp.EmbeddedResource:
		return resourceBlock(c.Resource)
	}
	raw, err := json.Marshal(c)
	if err != nil {
		return block{Kind: "note", Text: "a block that cannot be shown"}
	}
	return block{Kind: "json", Label: "content", Text: pretty(raw)}
}

// textBlock returns a block for a text, which is indented if it is JSON.
func textBlock(label, text string) block {
	if raw := json.RawMessage(text); len(text) > 0 && (text[0] == '{' || text[0] == '[') && json.Valid(raw) {
		return block{Kind: "json", Label: label, Text: pretty(raw)}
	}
	return block{Kind: "text", Label: label, Text: cut(text)}
}

func resourceBlock(c *mcp.ResourceContents) block {
	switch {
	case c == nil:
		return block{Kind: "note", Text: "no contents"}
	case c.Blob == nil:
		b := textBlock(label("resource", c.MIMEType), c.Text)
		b.URI = c.URI
		return b
	}
	b := mediaBlock("resource", c.MIMEType, c.Blob)
	b.URI = c.URI
	return b
}

func label(kind, mimeType string) string {
	if mimeType == "" {
		return kind
	}
	return kind + ", " + mimeType
}

// mediaBlock returns an image or audio block, or a note if the data is of another type or too
// large.
func mediaBlock(kind, mimeType string, data []byte) block {
	if !slices.Contains(mediaTypes, mimeType) || len(data) > maxMedia {
		return block{Kind: "note", Label: label(kind, mimeType), Text: fmt.Sprintf("%d bytes, which are not shown", len(data))}
	}
	shown := "image"
	if mimeType[0] == 'a' {
		shown = "audio"
	}
	//nolint:gosec // the type is one of the list above, and base64 has nothing to escape
	return block{Kind: shown, Label: label(kind, mimeType), Data: template.URL("data:" + mimeType + ";base64," + base64.StdEncoding.EncodeToString(data))}
}
