// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import "maps"

// An offer is a set of kinds of items that a mux offers to its callers.
type offer uint32

const (
	offerTools offer = 1 << iota
	offerPrompts
	offerResources
	offerCompletions

	offerEverything = offerTools | offerPrompts | offerResources | offerCompletions
)

// offerOf returns what the entries of a mux offer.
func offerOf(s *snapshot) (o offer) {
	if len(s.tools) > 0 {
		o |= offerTools
	}
	if len(s.prompts) > 0 {
		o |= offerPrompts | offerCompletions
	}
	if len(s.resources)+len(s.templates) > 0 {
		o |= offerResources
	}
	if len(s.templates) > 0 {
		o |= offerCompletions
	}
	return o
}

// offerIn returns what capabilities that a program declares offer.
func offerIn(c *ServerCapabilities) (o offer) {
	for kind, declared := range map[offer]bool{
		offerTools: c.Tools != nil, offerPrompts: c.Prompts != nil,
		offerResources: c.Resources != nil, offerCompletions: c.Completions != nil,
	} {
		if declared {
			o |= kind
		}
	}
	return o
}

// offers returns what the mux and the muxes mounted in it offer. Everything may come to a
// mux that is served while it is empty, and from handlers mounted in it that are no Mux,
// such as connections. Clients keep what they were told, so that an offer is not taken
// back.
func (g *registry) offers() offer {
	s := g.load()
	o := offerOf(s) | offer(g.offered.Load())
	for _, m := range s.mounts {
		if child, ok := m.handler.(*Mux); ok {
			o |= child.offers()
		} else {
			o = offerEverything
		}
	}
	if o == 0 {
		o = offerEverything
	}
	g.offered.Or(uint32(o))
	return o
}

// capabilities returns the capabilities of the mux: those of its options, and those that
// follow from what it offers.
func (g *registry) capabilities() *ServerCapabilities {
	caps := *orEmpty(g.opts.Capabilities)
	caps.Extensions = maps.Clone(caps.Extensions)
	for _, extensions := range []Extensions{g.load().ofMethods, g.extensions()} {
		for id, settings := range extensions {
			caps.Extensions.declare(id, settings)
		}
	}
	o := g.offers()
	if caps.Tools == nil && o&offerTools != 0 {
		caps.Tools = &ListCapability{ListChanged: true}
	}
	if caps.Prompts == nil && o&offerPrompts != 0 {
		caps.Prompts = &ListCapability{ListChanged: true}
	}
	if caps.Resources == nil && o&offerResources != 0 {
		caps.Resources = &ResourcesCapability{Subscribe: true, ListChanged: true}
	}
	if o&offerCompletions != 0 {
		caps.Completions = &struct{}{}
	}
	if caps.Logging == nil {
		caps.Logging = &struct{}{}
	}
	return &caps
}
