// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package skills_test

import (
	"context"
	"fmt"
	"io/fs"
	"log"
	"testing/fstest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/skills"
)

// A server serves a directory of skills, and a client loads one.
func Example() {
	directory := fstest.MapFS{ // os.DirFS("skills") in a program
		"refunds/SKILL.md":           {Data: []byte("---\nname: refunds\ndescription: Decides about refunds.\n---\nRead references/fees.md.\n")},
		"refunds/references/fees.md": {Data: []byte("There are no fees.\n")},
	}
	catalog, err := skills.New(directory, nil)
	if err != nil {
		log.Fatal(err)
	}
	mux := mcp.NewMux("shop", "v1.0.0", nil)
	catalog.Register(mux)

	ctx := context.Background()
	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		log.Fatal(err)
	}
	for skill, err := range skills.List(ctx, conn) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(skill.Frontmatter.Name()+":", skill.Frontmatter.Description())
		loaded, err := skills.Load(ctx, conn, skill, nil) // when the user agrees
		if err != nil {
			log.Fatal(err)
		}
		fees, err := fs.ReadFile(loaded.FS(ctx), "references/fees.md")
		fmt.Print(string(fees), err)
	}
	conn.Close()
	// Output:
	// refunds: Decides about refunds.
	// There are no fees.
	// <nil>
}
