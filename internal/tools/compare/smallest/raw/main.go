// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command raw is the smallest server over stdio, written by hand.
package main

import (
	"context"
	"log"
	"os"

	"github.com/go-psi/psi/internal/tools/compare/floor"
)

func main() {
	if err := floor.NewServer(0).Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
		log.Fatal(err)
	}
}
