// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"

	"github.com/go-psi/psi/mcp"
)

// addContent adds the tools that return various kinds of content.
func addContent(mux *mcp.Mux) {
	mux.Tool("test_simple_text", mcp.ToolFunc(simpleText, about("Returns one block of text.")))
	mux.Tool("test_image_content", mcp.ToolFunc(imageContent, about("Returns a picture.")))
	mux.Tool("test_audio_content", mcp.ToolFunc(audioContent, about("Returns a sound.")))
	mux.Tool("test_embedded_resource", mcp.ToolFunc(embeddedResource, about("Returns the contents of a resource.")))
	mux.Tool("test_multiple_content_types", mcp.ToolFunc(multipleContent, about("Returns blocks of three kinds.")))
	mux.Tool("test_error_handling", mcp.ToolFunc(failing, about("Fails, and says so.")))
}

func simpleText(context.Context, none) (string, error) {
	return "This is a simple text response for testing.", nil
}

func imageContent(context.Context, none) (*mcp.ImageContent, error) { return redDot(), nil }

func audioContent(context.Context, none) (*mcp.AudioContent, error) { return silence(), nil }

func embeddedResource(context.Context, none) (*mcp.EmbeddedResource, error) {
	return embedded("test://embedded-resource", "This is an embedded resource."), nil
}

func multipleContent(context.Context, none) ([]mcp.Content, error) {
	return []mcp.Content{
		mcp.Text("Multiple content types test:"),
		redDot(),
		embedded("test://mixed-content-resource", "This came with a text and a picture."),
	}, nil
}

func embedded(uri, text string) *mcp.EmbeddedResource {
	return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: uri, MIMEType: "text/plain", Text: text}}
}

func failing(context.Context, none) (string, error) {
	return "", errors.New("this tool fails on purpose")
}
