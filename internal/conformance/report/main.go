// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command report judges what the MCP conformance suite found.
//
//	report -accepted accepted.txt results 2025-11-25=33 2026-07-28=50
//
// It reads the checks.json files below a directory of results that has one
// directory for every leg, and wants each leg to have run as many scenarios as
// stated. It is stricter than the suite: a warning is as bad as a failure, for
// every scenario, and so is a scenario in which nothing has succeeded. What is
// accepted all the same stands in a file, each with a reason; what is accepted
// and has not happened is an error, too.
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

// run prints the report and says whether everything is as it should be.
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

// readExceptions reads none if there is no file.
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
