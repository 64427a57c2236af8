// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package skills serves and loads skills, using the extension
// io.modelcontextprotocol/skills of the specification. A skill is a directory with a file
// SKILL.md and the files that it refers to. SKILL.md contains instructions for a model, and
// YAML front matter with a name and a description.
//
// A server registers a directory of skills:
//
//	catalog, err := skills.New(os.DirFS("skills"), nil)
//	…
//	catalog.Register(mux)
//
// Every file is a resource, such as skill://refunds/SKILL.md, so clients without the
// extension can read them as well. Changes to the directory are detected and announced.
//
// A client lists skills without reading any file, and loads the one that it needs:
//
//	for skill, err := range skills.List(ctx, conn) { … }
//	loaded, err := skills.Load(ctx, conn, skill, nil)
//	fmt.Println(loaded.Instructions())
//	template, err := loaded.ReadFile(ctx, "templates/letter.md")
//
// Files are read when they are needed and compared with what was listed. A file with a
// different digest or size, a file that was not listed, and front matter that differs
// result in a [*VerificationError].
//
// # What a host must do
//
// A digest shows that a file is the one that was listed, not that it can be trusted: both
// come from the same server. Skills are text for a model from an untrusted source. Before a
// host loads a skill, it must ask the user, and it must ask again if [Skill.Digest] has
// changed. It must tell the model and the user which server a skill is from. It must not
// grant what the front matter asks for, such as allowed-tools, without the user's consent.
// Names are not unique among servers: a skill is identified by its server, as the host
// knows it, and its URI.
//
// This package follows the draft of its extension, as docs/stability.md defines it.
package skills
