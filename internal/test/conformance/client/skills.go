// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"io/fs"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/skills"
)

// listSkills lists skills without loading any.
func listSkills(ctx context.Context, c *mcp.Conn) error {
	for _, err := range skills.List(ctx, c) {
		if err != nil {
			return err
		}
	}
	return nil
}

// useSkills loads every skill and reads all its files.
func useSkills(ctx context.Context, c *mcp.Conn) error {
	for skill, err := range skills.List(ctx, c) {
		if err != nil {
			return err
		}
		loaded, err := skills.Load(ctx, c, skill, nil)
		if err != nil {
			return err
		}
		files := loaded.FS(ctx)
		err = fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				_, err = fs.ReadFile(files, name)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
