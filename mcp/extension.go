// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import "encoding/json"

// A ServerExtension is a Handler that belongs to an extension of the protocol. A [Mux]
// declares the extensions of the handlers that are registered on it, and of those of muxes
// mounted in it, except for handlers of methods, which are not mounted.
type ServerExtension interface {
	Handler
	// Extension returns the identifier of the extension, such as
	// "io.modelcontextprotocol/ui", and its settings, a JSON object; nil means no settings.
	// It is called once, at registration. Settings in [MuxOptions].Capabilities take
	// precedence.
	Extension() (id string, settings json.RawMessage)
}

// An extension is what one handler declares. Its id is "" if that is nothing.
type extension struct {
	id       string
	settings json.RawMessage
}

func extensionOf(h Handler) (x extension) {
	if s, ok := h.(ServerExtension); ok {
		x.id, x.settings = s.Extension()
	}
	if x.settings == nil {
		x.settings = json.RawMessage("{}")
	}
	return x
}

// declareAll adds the extensions of entries to x, unless they are declared already.
func (x *Extensions) declareAll(entries map[string]*entry) {
	for _, e := range byName(entries) {
		x.declare(e.extension.id, e.extension.settings)
	}
}

// declare adds an extension, unless it is declared already.
func (x *Extensions) declare(id string, settings json.RawMessage) {
	if _, declared := (*x)[id]; declared || id == "" {
		return
	}
	if *x == nil {
		*x = Extensions{}
	}
	(*x)[id] = settings
}

// extensions returns the extensions that can be used through a mount of the mux.
func (g *registry) extensions() Extensions {
	s := g.load()
	x := Extensions{}
	for id, settings := range s.extensions {
		x.declare(id, settings)
	}
	for _, m := range s.mounts {
		if child, ok := m.handler.(*Mux); ok {
			for id, settings := range child.extensions() {
				x.declare(id, settings)
			}
		}
	}
	return x
}
