// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"

	"github.com/go-psi/psi/mcp"
)

func addResources(mux *mcp.Mux) {
	mux.Resource("test://static-text", mcp.ResourceFunc(staticText, &mcp.Resource{
		Name: "static-text", Description: "A text that does not change.", MIMEType: "text/plain",
	}))
	mux.Resource("test://static-binary", mcp.ResourceFunc(staticBinary, &mcp.Resource{
		Name: "static-binary", Description: "A picture that does not change.", MIMEType: typePNG,
	}))
	mux.Resource("test://watched-resource", mcp.ResourceFunc(watched, &mcp.Resource{
		Name: "watched-resource", Description: "A text to subscribe to.", MIMEType: "text/plain",
	}))
	mux.Resource("test://template/{id}/data", mcp.ResourceFunc(record, &mcp.Resource{
		Name: "template", Description: "The record of an id.", MIMEType: "application/json",
	}))
}

func staticText(context.Context, none) (string, error) {
	return "This is the content of the static text resource.", nil
}

func staticBinary(context.Context, none) ([]byte, error) { return redPNG(), nil }

func watched(context.Context, none) (string, error) { return "This can be watched.", nil }

type recordID struct {
	ID string `json:"id"`
}

type recordData struct {
	ID           string `json:"id"`
	TemplateTest bool   `json:"templateTest"`
	Data         string `json:"data"`
}

func record(_ context.Context, in recordID) (recordData, error) {
	return recordData{ID: in.ID, TemplateTest: true, Data: "Data for ID: " + in.ID}, nil
}
