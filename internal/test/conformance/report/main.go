// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command report evaluates the results of the MCP conformance suite.
//
//	report -accepted accepted.txt results 2025-11-25=33 2026-07-28=50
//
// It reads the checks.json files below a directory that has one subdirectory per leg, and
// requires each leg to have run the stated number of scenarios. It is stricter than the
// suite: in every scenario, a warning counts as a failure, and so does the absence of any
// success. Accepted problems are listed in a file, each with a reason. An accepted problem
// that did not occur is an error.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

func main() {
	accepted := flag.String("accepted", "", "read the accepted problems from this `file`")
	flag.Parse()
	ok, err := run(os.Stdout, *accepted, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// run prints the report and reports whether everything passed.
func run(w io.Writer, acceptedFile string, args []string) (bool, error) {
	if len(args) < 2 {
		return false, errors.New("usage: report [-accepted file] results leg=scenarios [leg=scenarios]")
	}
	exceptions, err := readExceptions(acceptedFile)
	if err != nil {
		return false, err
	}
	results := os.DirFS(args[0])
	var legs []*leg
	for _, arg := range args[1:] {
		name, number, _ := strings.Cut(arg, "=")
		want, err := strconv.Atoi(number)
		if err != nil {
			return false, fmt.Errorf("%q is not leg=scenarios", arg)
		}
		l, err := readLeg(results, name)
		if err != nil {
			return false, err
		}
		l.want = want
		legs = append(legs, l)
	}
	return judge(legs, exceptions).writeTo(w), nil
}

// readExceptions reads the exceptions in a file. It returns none if file is "".
func readExceptions(file string) ([]*exception, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file) //nolint:gosec // reading the file that it is told to is what the program is for
	if err != nil {
		return nil, err
	}
	list, err := parseExceptions(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return list, nil
}
