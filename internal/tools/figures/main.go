// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command figures prints how much code there is in psi.
//
//	go run ./internal/tools/figures [-dir DIR] [-calls]
//
// For the module at DIR, it prints the size and the number of exported names of each
// package of the library, and the modules that programs link. With -calls, it also prints
// how many functions and files of the library a single call executes: it builds itself at
// DIR with coverage and makes each call in a separate process. To measure calls of an older
// commit, copy this directory into its checkout.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

func main() {
	dir := flag.String("dir", ".", "print the figures of the module at this `directory`")
	calls := flag.Bool("calls", false, "also print what a single call executes")
	one := flag.String("one", "", "only make the call with this `name` and write its coverage to the directory; -calls uses this")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *dir, *one, *calls); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer, dir, one string, calls bool) error {
	if one != "" {
		return writeCoverage(one, dir)
	}
	if err := printPackages(w, dir); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%-28s %7s\n", "program", "modules linked, without psi and the standard library")
	if err := printModules(ctx, w, dir, "smallest stdio server", "./mcp", "./mcpstdio"); err != nil {
		return err
	}
	if err := printModules(ctx, w, dir, "smallest HTTP server", "./mcp", "./mcphttp"); err != nil || !calls {
		return err
	}
	return printCalls(ctx, w, dir)
}

// printModules prints the modules that a program links if it imports these packages.
func printModules(ctx context.Context, w io.Writer, dir, program string, packages ...string) error {
	modules, err := linkedModules(ctx, dir, packages...)
	fmt.Fprintf(w, "%-28s %7d  %s\n", program, len(modules), strings.Join(modules, " "))
	return err
}

// linkedModules returns the paths of the modules, without the one at dir, that a program
// links if it imports these packages.
func linkedModules(ctx context.Context, dir string, packages ...string) ([]string, error) {
	args := []string{"list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}"}
	listed, err := runGo(ctx, dir, append(args, packages...)...)
	modules := strings.Fields(listed)
	slices.Sort(modules)
	return slices.Compact(modules), err
}

// runGo runs the go command in dir and returns its standard output.
func runGo(ctx context.Context, dir string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", args...) //nolint:gosec // the arguments are this program's
	command.Dir, command.Stderr = dir, os.Stderr
	output, err := command.Output()
	if err != nil {
		err = fmt.Errorf("go %s: %w", args[0], err)
	}
	return string(output), err
}
