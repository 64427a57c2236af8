// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"embed"
	"io/fs"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/skills"
)

//go:embed skills
var skillFiles embed.FS

// addSkills adds two skills, one of them with a directory. The page size is 1 so that there
// is a second page.
func addSkills(mux *mcp.Mux) {
	directory, err := fs.Sub(skillFiles, "skills")
	if err != nil {
		panic(err)
	}
	catalog, err := skills.New(directory, &skills.Options{PageSize: 1})
	if err != nil {
		panic(err)
	}
	catalog.Register(mux)
}
