// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"github.com/go-psi/psi/internal/tools/compare/floorhttp"
	"github.com/go-psi/psi/internal/tools/compare/gosdk"
	"github.com/go-psi/psi/internal/tools/compare/mcpgo"
	"github.com/go-psi/psi/internal/tools/compare/psi"
	"github.com/go-psi/psi/internal/tools/compare/side"
)

// sides lists the compared sides, in the order of the table. The first is the baseline.
var sides = []*side.Side{&floorhttp.Side, &psi.Side, &gosdk.Side, &mcpgo.Side}

const (
	floorName = "raw"
	ownName   = "psi"
)

func sideOf(name string) *side.Side {
	for _, s := range sides {
		if s.Name == name {
			return s
		}
	}
	return nil
}
