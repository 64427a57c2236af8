// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package skills serves and loads skills, by the extension io.modelcontextprotocol/skills of
// the specification. A skill is a directory with a file SKILL.md: instructions for a model,
// whose YAML front matter has a name and a description, and the files that the instructions
// refer to.
//
// A server registers a directory of skills:
//
//	catalog, err := skills.FS(os.DirFS("skills"), nil)
//	…
//	catalog.Register(mux)
//
// Every file is a resource, such as skill://refunds/SKILL.md, so clients without the
// extension can read them as well. Changes of the directory are found and announced.
//
// A client lists skills without reading any file, and loads the one that it needs:
//
//	for skill, err := range skills.List(ctx, conn) { … }
//	loaded, err := skills.Load(ctx, conn, skill, nil)
//	fmt.Println(loaded.Instructions())
//	template, err := loaded.ReadFile(ctx, "templates/letter.md")
//
// Files are read when they are needed, and are compared with what was listed: a file with
// another digest or size, a file that was not listed, and front matter that differs are a
// [*VerificationError].
//
// # What a host must do
//
// A digest shows that a file is the one that was listed, not that it can be trusted: both
// come from the same server. Skills are text for a model from a stranger. Before a host loads
// a skill, it must ask the user, and it must ask again if [Skill.Digest] has changed. It must
// tell the model and the user which server a skill is from, and must not grant what the front
// matter asks for, such as allowed-tools, without the user's consent. Names are not unique
// among servers: a skill is identified by its server, as the host knows it, and its URI.
package skills
