// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/go-psi/psi/mcp"
)

// clean makes text of a server fit for a terminal, which obeys control characters:
// with them a server could rewrite the very question that the user agrees to.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// oneLine is clean text without its line breaks.
func oneLine(s string) string { return strings.Join(strings.Fields(clean(s)), " ") }

// promptLine shows the arguments as the subcommand prompt takes them.
func promptLine(p *mcp.Prompt) string {
	var line strings.Builder
	line.WriteString(p.Name)
	for _, arg := range p.Arguments {
		switch {
		case arg == nil:
		case arg.Required:
			line.WriteString(" " + arg.Name + "=")
		default:
			line.WriteString(" [" + arg.Name + "=]")
		}
	}
	return line.String()
}

// printTool prints the content of a result and, if that has nothing, its
// structured content: servers repeat the one in the other.
func printTool(out io.Writer, res *mcp.CallToolResult) {
	for _, c := range res.Content {
		printContent(out, c)
	}
	if len(res.Content) == 0 && res.StructuredContent != nil {
		fmt.Fprintln(out, clean(indented(res.StructuredContent)))
	}
}

func printContent(out io.Writer, c mcp.Content) {
	switch c := c.(type) {
	case *mcp.TextContent:
		fmt.Fprintln(out, clean(c.Text))
	case *mcp.ImageContent:
		printData(out, "image", c.MIMEType, c.Data)
	case *mcp.AudioContent:
		printData(out, "audio", c.MIMEType, c.Data)
	case *mcp.ResourceLink:
		fmt.Fprintf(out, "[resource %s: %s]\n", oneLine(c.URI), oneLine(c.Name))
	case *mcp.EmbeddedResource:
		if c.Resource != nil {
			printResource(out, c.Resource)
		}
	default:
		fmt.Fprintf(out, "[%T]\n", c)
	}
}

func printResource(out io.Writer, r *mcp.ResourceContents) {
	if r.Blob != nil {
		printData(out, "resource "+r.URI, r.MIMEType, r.Blob)
		return
	}
	fmt.Fprintln(out, strings.TrimSuffix(clean(r.Text), "\n"))
}

func printData(out io.Writer, what, mimeType string, data []byte) {
	fmt.Fprintf(out, "[%s: %s, %d bytes]\n", oneLine(what), oneLine(mimeType), len(data))
}

func indented(raw json.RawMessage) string {
	var text bytes.Buffer
	if json.Indent(&text, raw, "", "  ") != nil {
		return string(raw)
	}
	return text.String()
}
